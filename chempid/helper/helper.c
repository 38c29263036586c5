/* SPDX-License-Identifier: BSD-3-Clause */
/* Root's helper, its own side; see helper.h. */
#define _GNU_SOURCE /* close_range, closefrom */
#include "chempid/helper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chempid/helper/passing.h"
#include "chempid/helper/say.h"
#include "chempid/peers/users.h"
#include "chempid/supervisor/super.h"
#include "chempid/tree/limits.h"
#include "common/base/log.h"
#include "common/base/sys.h"

#define REST_MS 50 /* without the kernel's memory */

struct helper {
    const struct chempi_helper_terms *terms;
    struct chempi_nest nest;
    struct chempi_keeper *keeper;
    uint32_t count; /* of supervisors */
    int fd;
    int signal_fd;
};

/* A supervisor. */
struct charge {
    struct chempi_young young;
    uint32_t number;
    bool has_told; /* of its end */
};

/* Also when it was killed: nobody is left to start anything for. */
_Noreturn static void leave(struct helper *h)
{
    chempi_nest_fini(&h->nest); /* R4 */
    chempi_keeper_stop(h->keeper);
    _exit(0);
}

/* Waits for a daemon that does not read; nothing else is to be done then. */
static void report_with(struct helper *h, uint32_t what, uint32_t number,
                        int value, int passed_fd)
{
    const struct chempi_helper_report r = {what, number, value};
    int rc;

    while ((rc = chempi_passing_send(h->fd, &r, sizeof(r), passed_fd, true)))
        if (rc == -ENOMEM || rc == -ENOBUFS)
            (void)poll(NULL, 0, REST_MS);
        else
            leave(h);
}

static void report(struct helper *h, uint32_t what, uint32_t number, int value)
{
    report_with(h, what, number, value, -1);
}

static void forget(struct helper *h, struct charge *c)
{
    chempi_nest_forget(&c->young);
    h->count--;
    free(c);
}

static void settle(struct helper *h)
{
    chempi_nest_settle(&h->nest);
    CHEMPI_LIST_FOR_SAFE (e, &h->nest.young) {
        struct charge *c = CHEMPI_CONTAINER_OF(e, struct charge, young.entry);

        if (!c->young.has_ended)
            continue;
        if (!c->has_told)
            report(h, CHEMPI_HELPER_ENDED, c->number, c->young.status);
        c->has_told = true;
        if (c->young.is_waiting)
            continue;
        report(h, CHEMPI_HELPER_CLEAR, c->number, 0);
        forget(h, c);
    }
}

static struct charge *find(struct helper *h, uint32_t number)
{
    CHEMPI_LIST_FOR (e, &h->nest.young) {
        struct charge *c = CHEMPI_CONTAINER_OF(e, struct charge, young.entry);

        if (c->number == number)
            return c;
    }
    return NULL;
}

/* ---- starting ------------------------------------------------------------ */

/* Supervisors, and what ended ones have left that does not end: a user who
 * traces it starts no more than that. */
static size_t count_of(const struct helper *h, uid_t uid)
{
    size_t n = chempi_nest_held(&h->nest, uid);

    CHEMPI_LIST_FOR (e, &h->nest.young)
        n += CHEMPI_CONTAINER_OF(e, struct chempi_young, entry)->uid == uid;
    return n;
}

/* R1, whatever the daemon has checked. */
static int check(struct helper *h, const struct chempi_helper_order *o)
{
    struct chempi_err err = {0};

    if (chempi_users_check(true, h->terms->node, o->uid, o->gid, &err) ||
        o->uid == h->terms->own || o->uid == (uid_t)-1 || o->gid == (gid_t)-1)
        return -EPERM;
    if (h->count >= CHEMPI_DAEMON_JOBS_MAX)
        return -ENOBUFS;
    return count_of(h, o->uid) >= h->terms->user_max ? -EDQUOT : 0;
}

/* Limits are numbers, whatever they are: the kernel checks what root sets. */
static struct chempi_shell shell_of(const struct chempi_helper_order *o)
{
    struct chempi_shell shell = {.is_known = o->is_known != 0,
                                 .umask = o->umask & 0777,
                                 .count = o->limit_count};

    for (uint32_t i = 0; i < o->limit_count; i++)
        shell.limits[i] = (struct rlimit){.rlim_cur = (rlim_t)o->limits[i][0],
                                          .rlim_max = (rlim_t)o->limits[i][1]};
    return shell;
}

static int make_group(struct helper *h, struct charge *c, uint64_t job)
{
    struct chempi_err err = {0};
    char name[CHEMPI_JOB_ID_MAX];
    int rc;

    chempi_spec_name(job, name);
    rc = chempi_cgroup_make(&c->young.group, h->nest.groups, name, &err);
    if (rc)
        chempi_log(CHEMPI_LOG_WARNING, "helper", "%s", err.text);
    return rc;
}

static int start(struct helper *h, const struct chempi_helper_order *o,
                 int up_fd)
{
    const struct chempi_shell shell = shell_of(o);
    struct charge *c;
    int rc = check(h, o);

    if (rc)
        return rc;
    c = chempi_sys->calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->number = o->number;
    c->young.uid = o->uid;
    rc = make_group(h, c, o->job);
    if (!rc && (c->young.pid = chempi_cgroup_fork(&c->young.group)) < 0)
        rc = -errno;
    if (!rc && c->young.pid == 0)
        chempi_super_run_as(o->uid, o->gid, &shell, &c->young.group, up_fd);
    if (rc) {
        chempi_cgroup_remove(&c->young.group);
        free(c);
        return rc;
    }
    chempi_nest_add(&h->nest, &c->young);
    h->count++;
    report(h, CHEMPI_HELPER_STARTED, c->number, c->young.pid);
    return 0;
}

/* ---- orders -------------------------------------------------------------- */

static void open_file(struct helper *h, uint32_t which)
{
    const char *path = h->terms->files[which];
    int fd = -ENOENT;

    if (path) {
        fd = chempi_sys->open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
        fd = fd < 0 ? -errno : fd;
    }
    report_with(h, CHEMPI_HELPER_FILE, which, fd < 0 ? fd : 0, fd);
    if (fd >= 0)
        (void)close(fd); /* read only; the daemon has its own */
}

bool chempi_helper_is_order(const struct chempi_helper_order *o, bool has_fd)
{
    switch (o->what) {
    case CHEMPI_HELPER_START:
        return has_fd && o->is_known <= 1 && o->limit_count <= RLIM_NLIMITS;
    case CHEMPI_HELPER_KILL:
    case CHEMPI_HELPER_LET_GO:
        return !has_fd;
    case CHEMPI_HELPER_OPEN:
        return !has_fd && o->number < CHEMPI_HELPER_FILES;
    default:
        return false;
    }
}

static void obey(struct helper *h, const struct chempi_helper_order *o,
                 int up_fd)
{
    struct charge *c = find(h, o->number);
    int rc;

    if (o->what == CHEMPI_HELPER_START) {
        rc = c ? -EEXIST : start(h, o, up_fd);
        if (rc)
            report(h, CHEMPI_HELPER_FAILED, o->number, rc);
    } else if (o->what == CHEMPI_HELPER_OPEN) {
        open_file(h, o->number);
    } else if (c && o->what == CHEMPI_HELPER_KILL) {
        chempi_nest_kill(&c->young); /* else it has ended meanwhile */
    } else if (c) {
        chempi_nest_let_go(&h->nest, &c->young);
        forget(h, c);
    }
}

/* R2. One at a time; a daemon that says nonsense is no daemon any more. */
static void take(struct helper *h)
{
    struct chempi_helper_order o;
    int fd;
    const int rc = chempi_passing_receive(h->fd, &o, sizeof(o), &fd);

    if (rc == 0)
        return;
    if (rc == -ENOMEM) {
        (void)poll(NULL, 0, REST_MS);
        return;
    }
    if (rc == -EPIPE)
        leave(h);
    if (rc < 0 || !chempi_helper_is_order(&o, fd >= 0)) {
        chempi_log(CHEMPI_LOG_ERROR, "helper",
                   "the daemon's process has sent what is no order, and is "
                   "not obeyed any more: all jobs here end");
        leave(h);
    }
    obey(h, &o, fd);
    if (fd >= 0)
        (void)close(fd); /* the child's */
}

/* ---- life ---------------------------------------------------------------- */

/* Whoever killed the keeper may do so again; a look at each time is cheap. */
static void replace_keeper(struct helper *h)
{
    struct chempi_err err = {0};

    chempi_nest_yield(&h->nest, h->keeper->pid);
    chempi_keeper_forget(h->keeper);
    h->keeper->fd = -1;
    if (chempi_keeper_start(h->keeper, &err)) {
        chempi_log(CHEMPI_LOG_ERROR, "helper", "%s", err.text);
        h->keeper->fd = -1; /* poll() leaves it out */
    } else if (chempi_nest_spare(&h->nest, h->keeper->pid)) {
        chempi_keeper_forget(h->keeper);
        h->keeper->fd = -1;
    }
}

static void drain_signals(const struct helper *h)
{
    struct signalfd_siginfo info;

    while (read(h->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        ;
}

static void close_others(int a, int b)
{
    const unsigned low = (unsigned)(a < b ? a : b);
    const unsigned high = (unsigned)(a < b ? b : a);

    if (low > 3)
        (void)close_range(3, low - 1, 0);
    if (high > low + 1)
        (void)close_range(low + 1, high - 1, 0);
    closefrom((int)high + 1);
}

/* Signals of a terminal or a service manager are the daemon's: it ends, and
 * the helper with it. */
static int set_up(struct helper *h, struct chempi_err *err)
{
    sigset_t set;
    int rc;

    (void)setsid();
    (void)prctl(PR_SET_NAME, "chempi-helper");
    (void)prctl(PR_SET_DUMPABLE, 0);
    close_others(h->fd, h->keeper->fd);
    if (!h->terms->has_streams && chempi_say_leave())
        (void)close(STDERR_FILENO); /* somebody waits for its end */
    (void)sigfillset(&set);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    rc = chempi_nest_init(&h->nest, err);
    h->nest.groups = h->terms->groups;
    h->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (!rc && h->signal_fd < 0)
        rc = chempi_err_set(err, -errno, "cannot watch children: %s",
                            chempi_err_name(errno));
    return rc;
}

_Noreturn void chempi_helper_run(const struct chempi_helper_terms *terms,
                                 int fd)
{
    struct helper h = {.terms = terms, .keeper = terms->keeper, .fd = fd};
    struct chempi_err err = {0};

    if (set_up(&h, &err)) {
        chempi_log(CHEMPI_LOG_ERROR, "helper", "%s", err.text);
        _exit(1);
    }
    for (;;) {
        struct pollfd p[] = {{.fd = h.fd, .events = POLLIN},
                             {.fd = h.signal_fd, .events = POLLIN},
                             {.fd = h.keeper->fd, .events = POLLIN}};

        if (poll(p, CHEMPI_ARRAY_LEN(p), -1) < 0)
            continue; /* a signal, or no memory for the moment */
        if (p[1].revents) {
            drain_signals(&h);
            settle(&h);
        }
        if (p[2].revents)
            replace_keeper(&h);
        if (p[0].revents)
            take(&h);
    }
}
