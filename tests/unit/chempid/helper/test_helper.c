/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Root's helper, asked by a daemon that is not what it was: all that it can be
 * made to do. Needs root; skipped elsewhere.
 */
#define _GNU_SOURCE /* struct ucred, SOCK_CLOEXEC */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/helper/helper.h"
#include "chempid/helper/say.h"
#include "common/control/msg.h"
#include "common/fd/rights.h"

#define NOBODY 65534u
#define OWN 65530u
#define USER_MAX 8u
#define LIMIT_MS 60000 /* reached only when something hangs */

static char dir[] = "/tmp/chempi-helper-XXXXXX";
static char key_path[64], gone_path[64];
static struct chempi_cgroups groups; /* nowhere */
static struct chempi_keeper keeper;
static struct chempi_helper_terms terms;
static pid_t helper;
static int fd = -1;

static void set_up(void)
{
    struct chempi_err err = {0};
    int fds[2];

    if (geteuid() != 0)
        cr_skip_test("needs root");
    chempi_say_start("test", CHEMPI_LOG_ERROR);
    cr_assert_not_null(mkdtemp(dir));
    (void)snprintf(key_path, sizeof(key_path), "%s/key", dir);
    (void)snprintf(gone_path, sizeof(gone_path), "%s/none", dir);
    cr_assert_geq(creat(key_path, 0600), 0);
    keeper.paths[0] = keeper.paths[1] = gone_path;
    keeper.groups = &groups;
    cr_assert_eq(chempi_keeper_start(&keeper, &err), 0, "%s", err.text);
    terms = (struct chempi_helper_terms){.node = "a1",
                                         .own = OWN,
                                         .user_max = USER_MAX,
                                         .files = {key_path, gone_path},
                                         .keeper = &keeper,
                                         .groups = &groups};
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    helper = fork();
    if (helper == 0)
        chempi_helper_run(&terms, fds[1]);
    cr_assert_gt(helper, 0);
    (void)close(fds[1]);
    fd = fds[0];
}

/* The last of each test, as what fails in a fini does not count. */
static void ends_well(void)
{
    int status;

    (void)close(fd);
    chempi_keeper_forget(&keeper);
    cr_assert_eq(waitpid(helper, &status, 0), helper);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
    (void)unlink(key_path);
    cr_assert_eq(rmdir(dir), 0);
}

TestSuite(helper, .init = set_up);

/* ---- talking to it ------------------------------------------------------- */

static void send_bytes(const void *data, size_t len, const int *fds, size_t n)
{
    cr_assert_eq(chempi_rights_send_fds(fd, data, len, fds, n, 0),
                 (ssize_t)len);
}

static struct chempi_helper_order start_of(uint32_t number, uint32_t uid,
                                           uint32_t gid)
{
    return (struct chempi_helper_order){
        .what = CHEMPI_HELPER_START, .number = number, .uid = uid, .gid = gid};
}

static void order(uint32_t what, uint32_t number)
{
    const struct chempi_helper_order o = {.what = what, .number = number};

    send_bytes(&o, sizeof(o), NULL, 0);
}

/* Whether it says anything more. */
static bool listen_to(struct chempi_helper_report *out, int *passed)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    size_t count;
    ssize_t n;

    cr_assert_eq(poll(&p, 1, LIMIT_MS), 1);
    n = chempi_rights_recv_fds(fd, out, sizeof(*out), passed, 1, &count, 0);
    cr_assert(n <= 0 || n == (ssize_t)sizeof(*out));
    if (count == 0)
        *passed = -1;
    return n > 0;
}

static int32_t expect(uint32_t what, uint32_t number)
{
    struct chempi_helper_report r;
    int passed;

    cr_assert(listen_to(&r, &passed));
    cr_assert_eq(r.what, what, "%u instead of %u (value %d)", r.what, what,
                 r.value);
    cr_assert_eq(r.number, number);
    cr_assert_lt(passed, 0);
    return r.value;
}

/* Our end of the new supervisor's link. */
static int start(const struct chempi_helper_order *o)
{
    int fds[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    send_bytes(o, sizeof(*o), &fds[1], 1);
    (void)close(fds[1]);
    return fds[0];
}

static void refuses(struct chempi_helper_order o, int code)
{
    const int link = start(&o);
    char byte;

    cr_expect_eq(expect(CHEMPI_HELPER_FAILED, o.number), code);
    cr_expect_eq(read(link, &byte, 1), 0); /* nobody has it */
    (void)close(link);
}

/* It ends, and what it has started with it. */
static void has_ended(void)
{
    struct chempi_helper_report r;
    int passed;

    while (listen_to(&r, &passed))
        ;
}

/* The four of them; the process may be in the middle of it. */
static void await_ids(pid_t pid, uint32_t uid, uint32_t gid)
{
    char path[64];
    char want[160];
    char text[2048];

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    (void)snprintf(want, sizeof(want),
                   "\nUid:\t%u\t%u\t%u\t%u\nGid:\t%u\t%u\t%u\t%u\n", uid, uid,
                   uid, uid, gid, gid, gid, gid);
    for (int i = 0; i < LIMIT_MS; i++) {
        FILE *file = fopen(path, "r");
        size_t n;

        cr_assert_not_null(file, "it has ended");
        n = fread(text, 1, sizeof(text) - 1, file);
        (void)fclose(file);
        text[n] = '\0';
        if (strstr(text, want))
            return;
        (void)poll(NULL, 0, 1);
    }
    cr_assert(false, "%s", text);
}

/* ---- what it does -------------------------------------------------------- */

Test(helper, starts_as_the_user_and_tells_of_the_end)
{
    const struct chempi_helper_order o = start_of(7, NOBODY, NOBODY);
    const int link = start(&o);
    const pid_t pid = expect(CHEMPI_HELPER_STARTED, 7);

    await_ids(pid, NOBODY, NOBODY);
    order(CHEMPI_HELPER_KILL, 8); /* there is none */
    order(CHEMPI_HELPER_KILL, 7);
    cr_assert_eq(expect(CHEMPI_HELPER_ENDED, 7), SIGKILL);
    (void)expect(CHEMPI_HELPER_CLEAR, 7);
    order(CHEMPI_HELPER_KILL, 7); /* late */
    order(CHEMPI_HELPER_LET_GO, 7);
    (void)close(link);
    cr_assert_eq(kill(pid, 0), -1);
    ends_well();
}

Test(helper, opens_its_files_only)
{
    struct chempi_helper_report r;
    struct stat st;
    int passed;

    order(CHEMPI_HELPER_OPEN, 0);
    cr_assert(listen_to(&r, &passed));
    cr_assert(r.what == CHEMPI_HELPER_FILE && r.value == 0 && passed >= 0);
    cr_assert_eq(fstat(passed, &st), 0);
    cr_assert_eq(fcntl(passed, F_GETFL) & O_ACCMODE, O_RDONLY);
    (void)close(passed);
    order(CHEMPI_HELPER_OPEN, 1);
    cr_assert_eq(expect(CHEMPI_HELPER_FILE, 1), -ENOENT);
    order(CHEMPI_HELPER_OPEN, 2); /* not given */
    cr_assert_eq(expect(CHEMPI_HELPER_FILE, 2), -ENOENT);
    ends_well();
}

/* R1 */
Test(helper, starts_nothing_as_root)
{
    refuses(start_of(1, 0, 0), -EPERM);
    refuses(start_of(2, 0, NOBODY), -EPERM);
    refuses(start_of(3, NOBODY, 0), -EPERM);
    refuses(start_of(4, OWN, NOBODY), -EPERM);
    refuses(start_of(5, UINT32_MAX, NOBODY), -EPERM);
    refuses(start_of(6, NOBODY, UINT32_MAX), -EPERM);
    ends_well();
}

/* The child finds out, before it reads anything. */
Test(helper, starts_nobody_whom_the_node_does_not_know)
{
    const uint32_t ids[][2] = {{60098, 60098}, {NOBODY, 60099}};

    for (uint32_t i = 0; i < 2; i++) {
        const struct chempi_helper_order o =
            start_of(i + 1, ids[i][0], ids[i][1]);
        const int link = start(&o);
        char data[512] = "";
        ssize_t n;

        (void)expect(CHEMPI_HELPER_STARTED, i + 1);
        n = recv(link, data, sizeof(data) - 1, MSG_WAITALL);
        cr_assert_geq(n, (ssize_t)CHEMPI_FRAME_HEADER + 9);
        cr_assert_eq(data[4], CHEMPI_MSG_REFUSED);
        cr_assert(strstr(data + CHEMPI_FRAME_HEADER + 8,
                         i ? "not in group 60099" : "no user 60098"));
        (void)close(link);
        (void)expect(CHEMPI_HELPER_ENDED, i + 1);
        (void)expect(CHEMPI_HELPER_CLEAR, i + 1);
    }
    ends_well();
}

Test(helper, gives_a_user_no_more_than_a_user_may_have)
{
    int links[USER_MAX];

    for (uint32_t i = 0; i < USER_MAX; i++) {
        const struct chempi_helper_order o = start_of(i + 1, NOBODY, NOBODY);

        links[i] = start(&o);
        (void)expect(CHEMPI_HELPER_STARTED, i + 1);
    }
    refuses(start_of(USER_MAX + 1, NOBODY, NOBODY), -EDQUOT);
    refuses(start_of(5, NOBODY, NOBODY), -EEXIST);
    for (uint32_t i = 0; i < USER_MAX; i++)
        (void)close(links[i]);
    ends_well();
}

/* A traced process does not end: its tracer has to look first. */
Test(helper, what_does_not_end_counts_for_its_user)
{
    struct chempi_helper_order more = start_of(USER_MAX + 1, NOBODY, NOBODY);
    struct chempi_helper_report r = {.what = CHEMPI_HELPER_FAILED};
    pid_t pids[USER_MAX];
    int passed;

    for (uint32_t i = 0; i < USER_MAX; i++) {
        const struct chempi_helper_order o = start_of(i + 1, NOBODY, NOBODY);
        const int link = start(&o);

        pids[i] = expect(CHEMPI_HELPER_STARTED, i + 1);
        await_ids(pids[i], NOBODY, NOBODY);
        if (ptrace(PTRACE_SEIZE, pids[i], NULL, NULL))
            cr_skip_test("nobody is traced here");
        order(CHEMPI_HELPER_LET_GO, i + 1);
        (void)close(link);
    }
    refuses(more, -EDQUOT);
    for (uint32_t i = 0; i < USER_MAX; i++)
        cr_assert_eq(waitpid(pids[i], NULL, __WALL), pids[i]);
    for (int i = 0; i < LIMIT_MS && r.what == CHEMPI_HELPER_FAILED; i++) {
        (void)close(start(&more));
        cr_assert(listen_to(&r, &passed));
        (void)poll(NULL, 0, 1);
    }
    cr_assert_eq(r.what, CHEMPI_HELPER_STARTED, "still %d", r.value);
    ends_well();
}

/* R3 */
Test(helper, kills_nobody_elses_processes)
{
    const pid_t other = fork();

    cr_assert_geq(other, 0);
    if (other == 0)
        for (;;)
            (void)pause();
    order(CHEMPI_HELPER_KILL, (uint32_t)other);
    order(CHEMPI_HELPER_LET_GO, (uint32_t)other);
    order(CHEMPI_HELPER_KILL, 1);
    order(CHEMPI_HELPER_OPEN, 2);
    (void)expect(CHEMPI_HELPER_FILE, 2); /* it has obeyed the others */
    cr_assert_eq(waitpid(other, NULL, WNOHANG), 0);
    (void)kill(other, SIGKILL);
    cr_assert_eq(waitpid(other, NULL, 0), other);
    ends_well();
}

/* ---- what is no order ---------------------------------------------------- */

/* R2 and R4, with a supervisor that would stay. */
static void ends_at(const void *data, size_t len, size_t fd_count)
{
    const struct chempi_helper_order o = start_of(1, NOBODY, NOBODY);
    const int link = start(&o);
    const int fds[2] = {link, link};
    const pid_t pid = expect(CHEMPI_HELPER_STARTED, 1);

    await_ids(pid, NOBODY, NOBODY);
    cr_assert_eq(kill(pid, SIGSTOP), 0);
    send_bytes(data, len, fds, fd_count);
    has_ended();
    cr_assert_eq(kill(pid, 0), -1);
    (void)close(link);
}

Test(helper, ends_at_an_unknown_order)
{
    const struct chempi_helper_order o = {.what = CHEMPI_HELPER_STARTED};

    ends_at(&o, sizeof(o), 0);
    ends_well();
}

Test(helper, ends_at_a_short_order)
{
    const struct chempi_helper_order o = start_of(2, NOBODY, NOBODY);

    ends_at(&o, sizeof(o) - 1, 1);
    ends_well();
}

Test(helper, ends_at_a_long_order)
{
    const struct chempi_helper_order o[2] = {start_of(2, NOBODY, NOBODY)};

    ends_at(o, sizeof(o[0]) + 1, 1);
    ends_well();
}

Test(helper, ends_at_a_start_without_a_link)
{
    const struct chempi_helper_order o = start_of(2, NOBODY, NOBODY);

    ends_at(&o, sizeof(o), 0);
    ends_well();
}

Test(helper, ends_at_a_start_with_two_links)
{
    const struct chempi_helper_order o = start_of(2, NOBODY, NOBODY);

    ends_at(&o, sizeof(o), 2);
    ends_well();
}

Test(helper, ends_at_more_limits_than_there_are)
{
    struct chempi_helper_order o = start_of(2, NOBODY, NOBODY);

    o.is_known = 1;
    o.limit_count = RLIM_NLIMITS + 1;
    ends_at(&o, sizeof(o), 1);
    ends_well();
}

Test(helper, ends_at_a_file_that_it_does_not_have)
{
    const struct chempi_helper_order o = {.what = CHEMPI_HELPER_OPEN,
                                          .number = CHEMPI_HELPER_FILES};

    ends_at(&o, sizeof(o), 0);
    ends_well();
}

/* ---- a description ------------------------------------------------------- */

/* Read by the user only: one that names root, or nonsense, starts nothing. */
Test(helper, a_supervisor_reads_nonsense_as_the_user)
{
    const struct chempi_helper_order o = start_of(1, NOBODY, NOBODY);
    const int link = start(&o);
    uint8_t frame[CHEMPI_FRAME_HEADER + 64] = {64};
    int status;

    frame[4] = CHEMPI_MSG_PART;
    frame[6] = CHEMPI_FRAME_MAGIC & 0xff;
    frame[7] = CHEMPI_FRAME_MAGIC >> 8;
    await_ids(expect(CHEMPI_HELPER_STARTED, 1), NOBODY, NOBODY);
    cr_assert_eq(send(link, frame, sizeof(frame), MSG_NOSIGNAL),
                 (ssize_t)sizeof(frame));
    status = expect(CHEMPI_HELPER_ENDED, 1);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == EBADMSG, "%d",
              status);
    (void)close(link);
    ends_well();
}
