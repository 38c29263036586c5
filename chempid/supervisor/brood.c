/* SPDX-License-Identifier: BSD-3-Clause */
/* Supervisors as children; see brood.h. */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "chempid/supervisor/brood.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/supervisor/orphans.h"
#include "chempid/supervisor/super.h"
#include "chempid/tree/limits.h"
#include "common/base/sys.h"
#include "common/control/msg.h"

int chempi_brood_init(struct chempi_brood *brood, struct chempi_err *err)
{
    int rc;

    *brood = (struct chempi_brood){.signal_fd = -1};
    chempi_list_init(&brood->nestlings);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return chempi_err_set(err, -errno, "cannot become a subreaper: %s",
                              chempi_err_name(errno));
    rc = chempi_orphans_list(&brood->elders, &brood->elder_count);
    if (rc)
        return chempi_err_set(err, rc, "cannot read /proc: %s",
                              chempi_err_name(rc));
    return 0;
}

static bool is_elder(const struct chempi_brood *brood, pid_t pid)
{
    for (size_t i = 0; i < brood->elder_count; i++)
        if (brood->elders[i] == pid)
            return true;
    return false;
}

static bool is_elder_fn(void *arg, pid_t pid)
{
    return is_elder(arg, pid);
}

/* B2 */
static bool is_known(void *arg, pid_t pid)
{
    struct chempi_brood *brood = arg;

    CHEMPI_LIST_FOR (e, &brood->nestlings)
        if (CHEMPI_CONTAINER_OF(e, struct chempi_nestling, entry)->pid == pid)
            return true;
    return is_elder(brood, pid);
}

void chempi_brood_fini(struct chempi_brood *brood)
{
    if (brood->signal_fd >= 0) {
        ev_io_stop(brood->loop, &brood->child_io);
        (void)close(brood->signal_fd); /* nothing is written there */
        brood->signal_fd = -1;
    }
    (void)chempi_orphans_end(is_elder_fn, brood,
                             (unsigned)(CHEMPI_REAP_S * 1000));
    free(brood->elders);
    free(brood->held);
    brood->elders = brood->held = NULL;
    brood->elder_count = brood->held_count = 0;
}

int chempi_brood_spare(struct chempi_brood *brood, pid_t pid)
{
    const size_t n = brood->elder_count + 1;
    pid_t *list = chempi_sys->realloc(brood->elders, n * sizeof(*list));

    if (!list)
        return -ENOMEM;
    list[brood->elder_count] = pid;
    brood->elders = list;
    brood->elder_count = n;
    return 0;
}

void chempi_brood_yield(struct chempi_brood *brood, pid_t pid)
{
    for (size_t i = 0; i < brood->elder_count; i++)
        if (brood->elders[i] == pid)
            brood->elders[i] = brood->elders[--brood->elder_count];
    if (brood->signal_fd >= 0) /* it may have ended before */
        ev_feed_event(brood->loop, &brood->child_io, EV_READ);
}

/* ---- strays -------------------------------------------------------------- */

static bool is_held(const struct chempi_brood *brood, pid_t pid)
{
    for (size_t i = 0; i < brood->held_count; i++)
        if (brood->held[i] == pid)
            return true;
    return false;
}

/* Without memory others wait for it, too: CHEMPI_REAP_S at most. */
static void hold(struct chempi_brood *brood, pid_t pid)
{
    const size_t n = brood->held_count + 1;
    pid_t *list;

    if (is_held(brood, pid))
        return;
    list = chempi_sys->realloc(brood->held, n * sizeof(*list));
    if (!list)
        return;
    list[brood->held_count] = pid;
    brood->held = list;
    brood->held_count = n;
}

static void release(struct chempi_brood *brood, pid_t pid)
{
    for (size_t i = 0; i < brood->held_count; i++)
        if (brood->held[i] == pid)
            brood->held[i] = brood->held[--brood->held_count];
}

/* The real user of a process; false: it is gone. */
static bool user_of(pid_t pid, uid_t *out)
{
    char path[64];
    char buf[1024]; /* the line is among the first dozen */
    const char *at;
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, buf, sizeof(buf) - 1);
    (void)close(fd); /* read only */
    buf[n > 0 ? n : 0] = '\0';
    at = strstr(buf, "\nUid:");
    if (!at)
        return false;
    *out = (uid_t)strtoul(at + 5, NULL, 10);
    return true;
}

/* A stray that has not ended keeps the supervisors of its user waiting; with
 * `gives_up` set, it is held instead. */
struct watchman {
    struct chempi_brood *brood;
    const struct chempi_nestling *gives_up;
};

static bool is_spared(void *arg, pid_t pid)
{
    const struct watchman *w = arg;

    return is_known(w->brood, pid);
}

static void seen(void *arg, pid_t pid, bool is_gone)
{
    struct watchman *w = arg;
    uid_t uid;

    if (is_gone) {
        release(w->brood, pid);
        return;
    }
    if (is_held(w->brood, pid) || !user_of(pid, &uid))
        return;
    CHEMPI_LIST_FOR (e, &w->brood->nestlings) {
        struct chempi_nestling *n =
            CHEMPI_CONTAINER_OF(e, struct chempi_nestling, entry);

        n->is_waiting |= n->uid == uid;
    }
    if (w->gives_up && w->gives_up->uid == uid)
        hold(w->brood, pid);
}

static void sweep(struct chempi_brood *brood,
                  const struct chempi_nestling *gives_up)
{
    struct watchman w = {.brood = brood, .gives_up = gives_up};

    CHEMPI_LIST_FOR (e, &brood->nestlings)
        CHEMPI_CONTAINER_OF(e, struct chempi_nestling, entry)->is_waiting =
            false;
    /* Without /proc nobody knows of strays, and nobody waits for them. */
    (void)chempi_orphans_sweep(is_spared, seen, &w);
}

/* ---- the end of a supervisor --------------------------------------------- */

static void describe_end(struct chempi_nestling *n, int status)
{
    if (n->is_faulty)
        return;
    if (WIFSIGNALED(status))
        (void)snprintf(n->text, sizeof(n->text),
                       "the supervisor of node %s (pid %ld) was killed by "
                       "signal %d (%s)",
                       n->node_name, (long)n->pid, WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    else
        (void)snprintf(n->text, sizeof(n->text),
                       "the supervisor of node %s (pid %ld) gave up: %s",
                       n->node_name, (long)n->pid,
                       WEXITSTATUS(status) > 1
                           ? chempi_err_name(WEXITSTATUS(status))
                           : "it lost its connection");
}

static void wait_for(struct chempi_nestling *n, double seconds)
{
    ev_timer_stop(n->link.loop, &n->limit);
    ev_timer_set(&n->limit, seconds, 0.0);
    ev_timer_start(n->link.loop, &n->limit);
}

/* B1 */
static void finish(struct chempi_nestling *n)
{
    chempi_brood_forget(n);
    n->pid = 0;
    n->on_end(n->arg, n->text); /* may free n */
}

/* Has its process ended? */
static bool reap(struct chempi_nestling *n)
{
    int status = 0;
    const pid_t got = waitpid(n->pid, &status, WNOHANG);

    if (got == 0 || (got < 0 && errno == EINTR))
        return false;
    describe_end(n, status);
    n->pid = 0; /* free for others */
    n->phase = CHEMPI_NESTLING_SWEPT;
    wait_for(n, CHEMPI_REAP_S);
    return true;
}

static void settle_all(struct chempi_brood *brood)
{
    CHEMPI_LIST_FOR (e, &brood->nestlings) {
        struct chempi_nestling *n =
            CHEMPI_CONTAINER_OF(e, struct chempi_nestling, entry);

        if (n->phase == CHEMPI_NESTLING_ENDS ||
            n->phase == CHEMPI_NESTLING_KILLED)
            (void)reap(n);
    }
    sweep(brood, NULL);
}

/* One at a time: on_end may start and forget others. */
static void finish_all(struct chempi_brood *brood)
{
    bool is_any;

    do {
        is_any = false;
        CHEMPI_LIST_FOR (e, &brood->nestlings) {
            struct chempi_nestling *n =
                CHEMPI_CONTAINER_OF(e, struct chempi_nestling, entry);

            if (n->phase != CHEMPI_NESTLING_SWEPT || n->is_waiting)
                continue;
            finish(n);
            is_any = true;
            break;
        }
    } while (is_any);
}

static void child_ended(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_brood *brood = w->data;
    struct signalfd_siginfo info;

    (void)loop;
    (void)events;
    while (read(brood->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        ;
    settle_all(brood);
    finish_all(brood);
}

static void kill_now(struct chempi_nestling *n)
{
    (void)kill(n->pid, SIGKILL);
    n->phase = CHEMPI_NESTLING_KILLED;
    wait_for(n, CHEMPI_REAP_S);
}

/* Its process becomes a stray, and is held with what it has left. */
static void give_up(struct chempi_nestling *n)
{
    if (!n->is_faulty)
        (void)snprintf(n->text, sizeof(n->text),
                       "the supervisor of node %s (pid %ld) was killed, but "
                       "has not ended within %.0f s: another process traces "
                       "it, or it waits for a device",
                       n->node_name, (long)n->pid, CHEMPI_REAP_S);
    n->pid = 0;
    n->phase = CHEMPI_NESTLING_SWEPT;
    sweep(n->brood, n);
    finish(n);
}

static void too_late(struct ev_loop *loop, ev_timer *w, int events)
{
    struct chempi_nestling *n = w->data;

    (void)loop;
    (void)events;
    switch (n->phase) {
    case CHEMPI_NESTLING_RUNS:
        break;
    case CHEMPI_NESTLING_DROPPED:
        chempi_link_close(&n->link);
        kill_now(n);
        break;
    case CHEMPI_NESTLING_ENDS:
        kill_now(n);
        break;
    case CHEMPI_NESTLING_KILLED:
        give_up(n);
        break;
    case CHEMPI_NESTLING_SWEPT:
        sweep(n->brood, n);
        finish(n);
    }
}

static void lost(struct chempi_link *link, int code,
                 const struct chempi_err *err)
{
    struct chempi_nestling *n = link->arg;

    chempi_link_close(link);
    if (code == -EPIPE) { /* it closes its socket by ending */
        n->phase = CHEMPI_NESTLING_ENDS;
        wait_for(n, CHEMPI_END_S);
    } else { /* it lives but talks nonsense */
        n->is_faulty = true;
        (void)snprintf(n->text, sizeof(n->text),
                       "the supervisor of node %s failed: %.700s", n->node_name,
                       err->text);
        kill_now(n);
    }
    /* SIGCHLD may have come before. */
    ev_feed_event(n->brood->loop, &n->brood->child_io, EV_READ);
}

static int take(struct chempi_link *link, const struct chempi_frame *frame,
                struct chempi_err *err)
{
    struct chempi_nestling *n = link->arg;

    return n->on_frame(n->arg, frame, err);
}

int chempi_brood_start(struct chempi_brood *brood, struct chempi_nestling *n,
                       struct ev_loop *loop, const struct chempi_spec *spec,
                       uint32_t node, struct chempi_err *err)
{
    int fds[2];

    if (chempi_sys->socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return chempi_err_set(err, -errno,
                              "cannot create the supervisor's socket: %s",
                              chempi_err_name(errno));
    n->pid = chempi_sys->fork();
    if (n->pid == 0)
        chempi_super_run(spec, node, fds[1]);
    (void)close(fds[1]); /* the child's end */
    if (n->pid < 0) {
        const int code = -errno;

        (void)close(fds[0]); /* unused */
        n->pid = 0;
        return chempi_err_set(err, code,
                              "cannot start a supervisor: %s; raise the "
                              "limit of processes ('ulimit -u')",
                              chempi_err_name(code));
    }
    n->brood = brood;
    n->phase = CHEMPI_NESTLING_RUNS;
    n->uid = spec->uid;
    n->is_faulty = false;
    ev_timer_init(&n->limit, too_late, 0.0, 0.0);
    n->limit.data = n;
    n->node = node;
    n->node_name = spec->node_names[node];
    chempi_list_append(&brood->nestlings, &n->entry);
    chempi_link_open(&n->link, loop, fds[0], CHEMPI_TREE_MAX,
                     CHEMPI_NESTLING_QUEUE_MAX);
    n->link.on_frame = take;
    n->link.on_lost = lost;
    n->link.arg = n;
    return 0;
}

void chempi_brood_drop(struct chempi_nestling *n)
{
    if (!n->link.is_open || n->phase != CHEMPI_NESTLING_RUNS)
        return;
    (void)shutdown(n->link.ch.fd, SHUT_WR); /* it reads the end (P5) */
    n->phase = CHEMPI_NESTLING_DROPPED;
    wait_for(n, CHEMPI_DROP_S);
}

void chempi_brood_forget(struct chempi_nestling *n)
{
    if (!n->brood)
        return;
    ev_timer_stop(n->brood->loop, &n->limit);
    chempi_link_close(&n->link);
    chempi_list_remove(&n->entry);
    n->brood = NULL;
}

int chempi_brood_watch(struct chempi_brood *brood, struct ev_loop *loop,
                       struct chempi_err *err)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    brood->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (brood->signal_fd < 0)
        return chempi_err_set(err, -errno, "cannot watch children: %s",
                              chempi_err_name(errno));
    brood->loop = loop;
    ev_io_init(&brood->child_io, child_ended, brood->signal_fd, EV_READ);
    brood->child_io.data = brood;
    ev_io_start(loop, &brood->child_io);
    return 0;
}
