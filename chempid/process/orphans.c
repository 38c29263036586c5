/* SPDX-License-Identifier: BSD-3-Clause */
/* The descendants of a subreaper; see orphans.h. */
#define _GNU_SOURCE /* O_CLOEXEC, waitpid */
#include "chempid/process/orphans.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/containers/array.h"
#include "common/host/proc_stat.h"

/* Children that a sweep looks at, each time it does: processes that fork as
 * fast as they are killed must not keep it from returning. */
#define SWEEP_MAX 512

struct pids {
    pid_t *list;
    size_t count;
    size_t cap;
};

/* What is done with a child; not 0 ends the visits with that code. */
typedef int visit_fn(void *arg, pid_t pid);

static int add(void *arg, pid_t pid)
{
    struct pids *p = arg;

    if (!CHEMPI_ARRAY_FIT(p->list, p->cap, p->count + 1))
        return -ENOMEM;
    p->list[p->count++] = pid;
    return 0;
}

/* Decimal numbers separated by blanks; a number may be cut between reads. */
static int parse_children(int fd, visit_fn *visit, void *arg)
{
    char buf[4096];
    pid_t pid = 0;
    ssize_t n;
    int rc = 0;

    while (!rc && (n = read(fd, buf, sizeof(buf))) != 0) {
        if (n < 0 && errno != EINTR)
            return -errno;
        for (ssize_t i = 0; !rc && i < n; i++) {
            if (isdigit((unsigned char)buf[i])) {
                pid = pid * 10 + (buf[i] - '0');
            } else if (pid) {
                rc = visit(arg, pid);
                pid = 0;
            }
        }
    }
    if (!rc && pid)
        rc = visit(arg, pid);
    return rc;
}

/* Parent of a process; 0 when it is gone. */
static pid_t parent_of(pid_t pid)
{
    struct chempi_proc_stat stat;

    return chempi_proc_stat(pid, &stat) == 0 ? stat.parent : 0;
}

/* For kernels without the list of children. */
static int scan_all(visit_fn *visit, void *arg)
{
    DIR *dir = opendir("/proc");
    const pid_t self = getpid();
    struct dirent *d;
    int rc = 0;

    if (!dir)
        return -errno;
    while (!rc && (d = readdir(dir))) {
        const pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);

        if (pid > 0 && parent_of(pid) == self)
            rc = visit(arg, pid);
    }
    (void)closedir(dir); /* read only */
    return rc;
}

/* Every child as it is read; needs no memory. */
static int visit_children(visit_fn *visit, void *arg)
{
    char path[64];
    int rc = -1;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%ld/children",
                   (long)getpid());
    fd = chempi_sys->open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd >= 0) {
        rc = parse_children(fd, visit, arg);
        (void)close(fd); /* read only */
    }
    return fd >= 0 && rc != -EIO ? rc : scan_all(visit, arg);
}

int chempi_orphans_list(pid_t **out, size_t *count)
{
    struct pids p = {0};
    int rc = visit_children(add, &p);

    if (rc) {
        free(p.list);
        return rc;
    }
    *out = p.list;
    *count = p.count;
    return 0;
}

struct hunt {
    chempi_orphans_spare_fn *spare;
    chempi_orphans_spare_fn *slow;
    chempi_orphans_seen_fn *seen;
    void *arg;
    bool reaps;
    bool is_second; /* look, or a later one */
    int killed;
    int left;
    int reaped;
    int budget; /* children to look at; without reaping, all */
};

static int kill_child(void *arg, pid_t pid)
{
    struct hunt *h = arg;
    const bool is_slow = h->slow && h->slow(h->arg, pid);
    pid_t got = 0;

    if ((is_slow && h->is_second) || (h->spare && h->spare(h->arg, pid)))
        return 0;
    if (h->reaps && !is_slow && h->budget-- <= 0)
        return -EBUSY;
    (void)kill(pid, SIGKILL); /* our child: at worst a zombie */
    if (h->reaps)
        got = waitpid(pid, NULL, WNOHANG);
    h->killed++;
    h->left += got <= 0;
    h->reaped += got > 0;
    if (h->seen)
        h->seen(h->arg, pid, got > 0);
    return 0;
}

int chempi_orphans_kill(chempi_orphans_spare_fn *spare, void *arg)
{
    struct hunt h = {.spare = spare, .arg = arg};
    int rc = visit_children(kill_child, &h);

    return rc ? rc : h.killed;
}

int chempi_orphans_sweep(chempi_orphans_spare_fn *spare,
                         chempi_orphans_spare_fn *slow,
                         chempi_orphans_seen_fn *seen, void *arg)
{
    struct hunt h = {.spare = spare,
                     .slow = slow,
                     .seen = seen,
                     .arg = arg,
                     .reaps = true,
                     .budget = SWEEP_MAX};
    int rc;

    /* A child that has been reaped has handed us its own children. */
    do {
        h.left = h.reaped = 0;
        rc = visit_children(kill_child, &h);
        h.is_second = true;
    } while (!rc && h.reaped);
    if (rc != -EBUSY)
        return rc ? rc : h.left;
    (void)kill(getpid(), SIGCHLD);
    return h.left ? h.left : 1;
}

int chempi_orphans_end(chempi_orphans_spare_fn *spare, void *arg,
                       unsigned limit_ms)
{
    const uint64_t end = chempi_clock_ns() + limit_ms * CHEMPI_NS_PER_MS;
    uint64_t now;
    sigset_t set;
    int left;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    while ((left = chempi_orphans_sweep(spare, NULL, NULL, arg)) > 0 &&
           (now = chempi_clock_ns()) < end) {
        const uint64_t rest = end - now;
        const struct timespec ts = {(time_t)(rest / CHEMPI_NS_PER_S),
                                    (long)(rest % CHEMPI_NS_PER_S)};

        (void)sigtimedwait(&set, NULL, &ts); /* or time is up */
    }
    return left;
}
