/* SPDX-License-Identifier: BSD-3-Clause */
/* Supervisors as children; see supervisors.h. */
#define _GNU_SOURCE /* SOCK_CLOEXEC, strsignal */
#include "chempid/supervisor/supervisors.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/process/cgroup.h"
#include "chempid/supervisor/super.h"
#include "chempid/tree/limits.h"
#include "common/base/sys.h"
#include "common/control/msg.h"
#include "common/fd/rights.h"

/* ---- supervisors that are children here ---------------------------------- */

static int fork_one(struct chempi_supervisor_child *n,
                    const struct chempi_spec *spec, int up_fd,
                    struct chempi_err *err)
{
    struct chempi_cgroup *group = &n->young.group;
    struct chempi_spec own = *spec;
    pid_t pid;
    int code;

    if (chempi_cgroup_make(group, n->supervisors->nest.groups, spec->id, err))
        return err->code;
    own.cgroup = group;
    pid = chempi_cgroup_fork(group);
    code = -errno;
    if (pid == 0)
        chempi_super_run(&own, n->node, up_fd, n->supervisors->is_of_one_job);
    if (pid < 0) {
        chempi_cgroup_remove(group);
        return chempi_err_set(err, code,
                              "cannot start a supervisor: %s; raise the "
                              "limit of processes ('ulimit -u')",
                              chempi_err_name(code));
    }
    n->pid = n->young.pid = pid;
    n->young.uid = spec->uid;
    chempi_nest_add(&n->supervisors->nest, &n->young);
    return 0;
}

static void kill_one(struct chempi_supervisor_child *n)
{
    chempi_nest_kill(&n->young);
}

static void let_go_of_one(struct chempi_supervisor_child *n)
{
    chempi_nest_let_go(&n->supervisors->nest, &n->young);
}

static void forget_one(struct chempi_supervisor_child *n)
{
    chempi_nest_forget(&n->young);
}

static const struct chempi_supervisors_ops own_children = {
    .start = fork_one,
    .kill = kill_one,
    .let_go = let_go_of_one,
    .forget = forget_one};

/* ---- beginning and end --------------------------------------------------- */

int chempi_supervisors_init(struct chempi_supervisors *supervisors,
                            struct chempi_err *err)
{
    *supervisors =
        (struct chempi_supervisors){.ops = &own_children, .signal_fd = -1};
    chempi_list_init(&supervisors->children);
    return chempi_nest_init(&supervisors->nest, err);
}

void chempi_supervisors_fini(struct chempi_supervisors *supervisors)
{
    if (supervisors->signal_fd >= 0) {
        ev_io_stop(supervisors->loop, &supervisors->child_io);
        (void)close(supervisors->signal_fd); /* nothing is written there */
        supervisors->signal_fd = -1;
    }
    chempi_nest_fini(&supervisors->nest);
}

int chempi_supervisors_spare(struct chempi_supervisors *supervisors, pid_t pid)
{
    return chempi_nest_spare(&supervisors->nest, pid);
}

void chempi_supervisors_look(struct chempi_supervisors *supervisors)
{
    if (supervisors->signal_fd >= 0)
        ev_feed_event(supervisors->loop, &supervisors->child_io, EV_READ);
}

void chempi_supervisors_yield(struct chempi_supervisors *supervisors, pid_t pid)
{
    chempi_nest_yield(&supervisors->nest, pid);
    chempi_supervisors_look(supervisors); /* it may have ended before */
}

/* ---- the end of a supervisor --------------------------------------------- */

static void describe_end(struct chempi_supervisor_child *n, int status)
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

static void wait_for(struct chempi_supervisor_child *n, double seconds)
{
    ev_timer_stop(n->link.loop, &n->limit);
    ev_timer_set(&n->limit, seconds, 0.0);
    ev_timer_start(n->link.loop, &n->limit);
}

/* B1 */
static void finish(struct chempi_supervisor_child *n)
{
    chempi_supervisors_forget(n);
    n->on_end(n->arg, n->text); /* may free n */
}

/* B2: its link has ended before. */
static void judge(struct chempi_supervisor_child *n)
{
    if (!n->young.has_ended || (n->phase != CHEMPI_SUPERVISOR_CHILD_ENDS &&
                                n->phase != CHEMPI_SUPERVISOR_CHILD_KILLED))
        return;
    describe_end(n, n->young.status);
    n->phase = CHEMPI_SUPERVISOR_CHILD_SWEPT;
    wait_for(n, CHEMPI_REAP_S);
}

/* One at a time: on_end may start and forget others. */
static void finish_all(struct chempi_supervisors *supervisors)
{
    bool is_any;

    do {
        is_any = false;
        CHEMPI_LIST_FOR (e, &supervisors->children) {
            struct chempi_supervisor_child *n =
                CHEMPI_CONTAINER_OF(e, struct chempi_supervisor_child, entry);

            judge(n);
            if (n->phase != CHEMPI_SUPERVISOR_CHILD_SWEPT ||
                n->young.is_waiting)
                continue;
            finish(n);
            is_any = true;
            break;
        }
    } while (is_any);
}

static void child_ended(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_supervisors *supervisors = w->data;
    struct signalfd_siginfo info;

    (void)loop;
    (void)events;
    while (read(supervisors->signal_fd, &info, sizeof(info)) ==
           (ssize_t)sizeof(info))
        ;
    chempi_nest_settle(&supervisors->nest);
    finish_all(supervisors);
}

static void kill_now(struct chempi_supervisor_child *n)
{
    n->supervisors->ops->kill(n);
    n->phase = CHEMPI_SUPERVISOR_CHILD_KILLED;
    wait_for(n, CHEMPI_REAP_S);
}

/* Its process becomes a stray, and is held with what it has left. */
static void give_up(struct chempi_supervisor_child *n)
{
    if (!n->is_faulty)
        (void)snprintf(n->text, sizeof(n->text),
                       "the supervisor of node %s (pid %ld) was killed, but "
                       "has not ended within %.0f s: another process traces "
                       "it, or it waits for a device",
                       n->node_name, (long)n->pid, CHEMPI_REAP_S);
    n->phase = CHEMPI_SUPERVISOR_CHILD_SWEPT;
    n->supervisors->ops->let_go(n);
    finish(n);
}

static void too_late(struct ev_loop *loop, ev_timer *w, int events)
{
    struct chempi_supervisor_child *n = w->data;

    (void)loop;
    (void)events;
    switch (n->phase) {
    case CHEMPI_SUPERVISOR_CHILD_RUNS:
        break;
    case CHEMPI_SUPERVISOR_CHILD_DROPPED:
        chempi_link_close(&n->link);
        kill_now(n);
        break;
    case CHEMPI_SUPERVISOR_CHILD_ENDS:
        kill_now(n);
        break;
    case CHEMPI_SUPERVISOR_CHILD_KILLED:
        give_up(n);
        break;
    case CHEMPI_SUPERVISOR_CHILD_SWEPT:
        n->supervisors->ops->let_go(n);
        finish(n);
    }
}

static void lost(struct chempi_link *link, int code,
                 const struct chempi_err *err)
{
    struct chempi_supervisor_child *n = link->arg;

    chempi_link_close(link);
    if (code == -EPIPE) { /* it closes its socket by ending */
        n->phase = CHEMPI_SUPERVISOR_CHILD_ENDS;
        wait_for(n, CHEMPI_END_S);
    } else { /* it lives but talks nonsense */
        n->is_faulty = true;
        (void)snprintf(n->text, sizeof(n->text),
                       "the supervisor of node %s failed: %.700s", n->node_name,
                       err->text);
        kill_now(n);
    }
    chempi_supervisors_look(
        n->supervisors); /* its process may have ended before */
}

/* The child has not become its user; its end follows. */
static int take_refusal(struct chempi_supervisor_child *n,
                        const struct chempi_frame *frame,
                        struct chempi_err *err)
{
    struct chempi_reader r;
    const char *text;

    chempi_wire_read(&r, frame->data, frame->len);
    (void)chempi_wire_get_u32(&r);
    text = chempi_wire_get_str(&r, CHEMPI_TEXT_MAX);
    if (!chempi_wire_is_done(&r))
        return chempi_err_set(err, -EBADMSG, "a malformed message (refusal)");
    n->is_faulty = true;
    (void)snprintf(n->text, sizeof(n->text), "node %s starts no ranks: %.800s",
                   n->node_name, text);
    return 0;
}

/* Queued whatever its length, which the daemon has read already; but the user
 * pays for it until the supervisor has read it. */
static void tell_part(struct chempi_supervisor_child *n,
                      const struct chempi_spec *spec)
{
    struct chempi_writer *w =
        chempi_link_begin(&n->link, CHEMPI_MSG_PART, spec->job);

    chempi_wire_put_u32(w, n->node);
    chempi_wire_put_u64(w, spec->memory_share);
    chempi_wire_put_u32(w, spec->slots);
    chempi_shell_write(&spec->shell, w);
    chempi_spec_write(spec, n->node, w);
    n->link.ch.queue_max += w->len;
    chempi_link_end(&n->link);
}

static int take(struct chempi_link *link, const struct chempi_frame *frame,
                struct chempi_err *err)
{
    struct chempi_supervisor_child *n = link->arg;

    if (n->supervisors->ops->tells_part && frame->type == CHEMPI_MSG_REFUSED)
        return take_refusal(n, frame, err);
    return n->on_frame(n->arg, frame, err);
}

int chempi_supervisors_start(struct chempi_supervisors *supervisors,
                             struct chempi_supervisor_child *n,
                             struct ev_loop *loop,
                             const struct chempi_spec *spec, uint32_t node,
                             struct chempi_err *err)
{
    int fds[2];
    int rc;

    if (chempi_sys->socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return chempi_err_set(err, -errno,
                              "cannot create the supervisor's socket: %s",
                              chempi_err_name(errno));
    chempi_rights_refuse(fds[0]);
    n->supervisors = supervisors;
    n->node = node;
    chempi_list_init(&n->young.entry);
    rc = supervisors->ops->start(n, spec, fds[1], err);
    (void)close(fds[1]); /* the child's end */
    if (rc) {
        (void)close(fds[0]); /* unused */
        n->supervisors = NULL;
        return rc;
    }
    n->phase = CHEMPI_SUPERVISOR_CHILD_RUNS;
    n->is_faulty = false;
    ev_timer_init(&n->limit, too_late, 0.0, 0.0);
    n->limit.data = n;
    n->node_name = spec->node_names[node];
    chempi_list_append(&supervisors->children, &n->entry);
    chempi_link_open(&n->link, loop, fds[0], CHEMPI_TREE_MAX,
                     CHEMPI_SUPERVISOR_CHILD_QUEUE_MAX);
    n->link.on_frame = take;
    n->link.on_lost = lost;
    n->link.arg = n;
    n->link.ch.purse = n->purse;
    if (supervisors->ops->tells_part)
        tell_part(n, spec);
    return 0;
}

void chempi_supervisors_drop(struct chempi_supervisor_child *n)
{
    if (!n->link.is_open || n->phase != CHEMPI_SUPERVISOR_CHILD_RUNS)
        return;
    (void)shutdown(n->link.ch.fd, SHUT_WR); /* it reads the end (P5) */
    n->phase = CHEMPI_SUPERVISOR_CHILD_DROPPED;
    wait_for(n, CHEMPI_DROP_S);
}

void chempi_supervisors_forget(struct chempi_supervisor_child *n)
{
    if (!n->supervisors)
        return;
    ev_timer_stop(n->supervisors->loop, &n->limit);
    chempi_link_close(&n->link);
    n->supervisors->ops->forget(n);
    chempi_list_remove(&n->entry);
    n->supervisors = NULL;
}

int chempi_supervisors_watch(struct chempi_supervisors *supervisors,
                             struct ev_loop *loop, struct chempi_err *err)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    supervisors->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (supervisors->signal_fd < 0)
        return chempi_err_set(err, -errno, "cannot watch children: %s",
                              chempi_err_name(errno));
    supervisors->loop = loop;
    ev_io_init(&supervisors->child_io, child_ended, supervisors->signal_fd,
               EV_READ);
    supervisors->child_io.data = supervisors;
    ev_io_start(loop, &supervisors->child_io);
    return 0;
}
