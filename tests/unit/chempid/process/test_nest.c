/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For whom strays count that are not their user's any more. Needs root; skipped
 * elsewhere.
 */
#define _GNU_SOURCE /* setresuid */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/process/nest.h"
#include "common/base/sys.h"

#define USER 65534u
#define OTHER 65533u  /* what the stray has become */
#define NOBODY 65532u /* whose job has no part in it */
#define LIMIT_MS 60000
#define MANY 1200 /* strays */
#define SWEEPS 20 /* for them */

static struct chempi_nest nest;
static struct chempi_young young = {.uid = USER};
static struct chempi_young beside = {.uid = NOBODY};
static pid_t tracer;
static int to_tracer, from_tracer;
static int guard[2]; /* the test alone holds the end to write to */

/* Whose fork this is ends with the test, however that ends: a death signal
 * would come when the supervisor dies, too. */
static void stay(void)
{
    char byte;

    (void)close(guard[1]);
    (void)read(guard[0], &byte, 1); /* nobody writes */
    _exit(0);
}

/* A process that keeps those it is told of from ending. */
static void start_tracer(void)
{
    int down[2], up[2];
    pid_t pid;
    char done = 0;

    cr_assert_eq(pipe(down), 0);
    cr_assert_eq(pipe(up), 0);
    tracer = fork();
    cr_assert_geq(tracer, 0);
    if (tracer == 0) {
        (void)close(down[1]);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL))
            _exit(1);
        while (read(down[0], &pid, sizeof(pid)) == sizeof(pid))
            if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) ||
                write(up[1], &done, 1) != 1)
                _exit(1);
        _exit(0);
    }
    to_tracer = down[1];
    (void)close(up[1]); /* its end is heard */
    from_tracer = up[0];
}

/* A supervisor that ends, and what it leaves: so many of this user, which tell
 * their numbers. */
static int leave_strays(int count, uid_t uid)
{
    int fds[2];
    pid_t pid;

    cr_assert_eq(pipe(fds), 0);
    young.pid = fork();
    cr_assert_geq(young.pid, 0);
    for (int i = 0; young.pid == 0 && i < count; i++) {
        pid = fork();
        if (pid)
            continue;
        pid = getpid();
        if (setresuid(uid, uid, uid) ||
            write(fds[1], &pid, sizeof(pid)) != sizeof(pid))
            _exit(1);
        stay();
    }
    if (young.pid == 0)
        stay();
    chempi_nest_add(&nest, &young);
    return fds[0];
}

/* The next of them is traced; false: nobody is, here. */
static bool trace_one(int strays)
{
    pid_t pid;
    char byte;

    cr_assert_eq(read(strays, &pid, sizeof(pid)), (ssize_t)sizeof(pid));
    cr_assert_eq(write(to_tracer, &pid, sizeof(pid)), (ssize_t)sizeof(pid));
    return read(from_tracer, &byte, 1) == 1;
}

static void settle_until(const bool *what)
{
    for (int i = 0; i < LIMIT_MS && !*what; i++) {
        chempi_nest_settle(&nest);
        (void)poll(NULL, 0, 1);
    }
    cr_assert(*what);
}

/* So many strays of that user that are traced; their supervisor lives. */
static void begin_with(int count, uid_t uid)
{
    struct chempi_err err;
    int strays;

    if (geteuid() != 0)
        cr_skip_test("needs root");
    cr_assert_eq(pipe(guard), 0);
    start_tracer();
    cr_assert_eq(chempi_nest_init(&nest, &err), 0, "%s", err.text);
    strays = leave_strays(count, uid);
    for (int i = 0; i < count; i++)
        if (!trace_one(strays))
            cr_skip_test("nobody is traced here");
}

static void begin(void)
{
    begin_with(1, OTHER);
}

static void end(void)
{
    cr_assert_eq(kill(tracer, SIGKILL), 0);
    for (int i = 0; i < LIMIT_MS && chempi_nest_held(&nest, USER); i++) {
        chempi_nest_settle(&nest);
        (void)poll(NULL, 0, 1);
    }
    cr_assert_eq(chempi_nest_held(&nest, USER), 0);
    chempi_nest_fini(&nest);
}

Test(nest, a_stray_that_has_become_another_user_counts_for_its_jobs_user)
{
    begin();
    beside.pid = fork();
    cr_assert_geq(beside.pid, 0);
    if (beside.pid == 0)
        stay();
    chempi_nest_add(&nest, &beside);
    chempi_nest_kill(&young);
    settle_until(&young.has_ended);
    cr_assert(young.is_waiting);
    cr_assert_not(beside.is_waiting);
    chempi_nest_let_go(&nest, &young);
    cr_assert_eq(chempi_nest_held(&nest, USER), 1);
    cr_assert_eq(chempi_nest_held(&nest, OTHER), 0);
    chempi_nest_kill(&beside);
    settle_until(&beside.has_ended);
    chempi_nest_forget(&beside);
    end();
}

/* The supervisor ends when strays are looked for, and was alive just before. */
static int end_young(const char *path, int flags, mode_t mode)
{
    siginfo_t info;

    if (young.pid) {
        (void)kill(young.pid, SIGKILL);
        (void)waitid(P_PID, (id_t)young.pid, &info, WEXITED | WNOWAIT);
    }
    return open(path, flags, mode);
}

Test(nest, a_stray_is_not_nobodys_when_its_supervisor_has_just_ended)
{
    struct chempi_sys rigged = chempi_sys_libc;

    begin();
    rigged.open = end_young;
    chempi_sys = &rigged;
    chempi_nest_settle(&nest);
    chempi_sys = &chempi_sys_libc;
    settle_until(&young.has_ended);
    cr_assert(young.is_waiting);
    cr_assert_eq(chempi_nest_held(&nest, OTHER), 0);
    chempi_nest_let_go(&nest, &young);
    cr_assert_eq(chempi_nest_held(&nest, USER), 1);
    end();
}

static bool has_signal(const sigset_t *set)
{
    const struct timespec now = {0};

    return sigtimedwait(set, NULL, &now) == SIGCHLD;
}

/* More than are looked at in one sweep: then each would be a reason for the
 * next, without end. Another job of their user goes on. */
Test(nest, strays_that_do_not_end_keep_nobody_busy)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    begin_with(MANY, USER);
    beside = (struct chempi_young){.uid = USER, .pid = fork()};
    cr_assert_geq(beside.pid, 0);
    if (beside.pid == 0)
        stay();
    chempi_nest_add(&nest, &beside);
    chempi_nest_kill(&young);
    settle_until(&young.has_ended);
    cr_assert(young.is_waiting);
    chempi_nest_let_go(&nest, &young);
    for (int i = 0; i < SWEEPS && chempi_nest_held(&nest, USER) < MANY; i++)
        chempi_nest_settle(&nest);
    cr_assert_eq(chempi_nest_held(&nest, USER), MANY);
    while (has_signal(&set))
        ;
    chempi_nest_settle(&nest);
    cr_expect_not(has_signal(&set));
    chempi_nest_kill(&beside);
    settle_until(&beside.has_ended);
    chempi_nest_forget(&beside);
    end();
}
