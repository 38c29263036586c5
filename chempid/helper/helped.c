/* SPDX-License-Identifier: BSD-3-Clause */
/* Root's helper as the daemon sees it; see helper.h. */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/helper/helper.h"
#include "chempid/helper/passing.h"
#include "chempid/tree/limits.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/sys.h"

#define LATER_S 0.2
#define BUFFER_BYTES                                                           \
    (8 << 20) /* more than the orders of all jobs that a daemon may have */

/* ---- orders -------------------------------------------------------------- */

/* Does not wait. */
static int send_order(struct chempi_helper *h,
                      const struct chempi_helper_order *o, int fd)
{
    return chempi_passing_send(h->fd, o, sizeof(*o), fd, false);
}

static void lose(struct chempi_helper *h, const char *text)
{
    if (!h->supervisors)
        return;
    ev_io_stop(h->supervisors->loop, &h->io);
    ev_timer_stop(h->supervisors->loop, &h->later);
    h->supervisors = NULL;
    h->on_lost(h->arg, text);
}

static bool is_passing(int rc)
{
    return rc == -EAGAIN || rc == -ENOMEM || rc == -ENOBUFS;
}

static void give_owed(struct ev_loop *loop, ev_timer *w, int events)
{
    struct chempi_helper *h = w->data;
    uint32_t n = 0;
    int rc = 0;

    (void)events;
    ev_io_start(loop, &h->io); /* reports may wait for memory, too */
    while (n < h->owed_count && !rc) {
        const struct chempi_helper_order o = {.what = h->owed[n].what,
                                              .number = h->owed[n].number};

        rc = send_order(h, &o, -1);
        n += !rc;
    }
    h->owed_count -= n;
    memmove(h->owed, h->owed + n, h->owed_count * sizeof(*h->owed));
    if (!h->owed_count || !is_passing(rc))
        ev_timer_stop(loop, w);
    if (rc && !is_passing(rc))
        lose(h, "it does not take orders");
}

/* In their order, and later where the kernel has no memory for one; there is
 * room for those of all jobs. */
static void give(struct chempi_supervisor_child *n, uint32_t what)
{
    struct chempi_helper *h = n->supervisors->arg;

    if (!n->number || !h->supervisors)
        return;
    if (h->owed_count == CHEMPI_HELPER_OWED_MAX) {
        lose(h, "it does not take orders");
        return;
    }
    h->owed[h->owed_count].what = what;
    h->owed[h->owed_count++].number = n->number;
    if (ev_is_active(&h->later))
        return;
    give_owed(h->supervisors->loop, &h->later, 0);
    if (h->owed_count && h->supervisors)
        ev_timer_again(h->supervisors->loop, &h->later);
}

static int start(struct chempi_supervisor_child *n,
                 const struct chempi_spec *spec, int up_fd,
                 struct chempi_err *err)
{
    struct chempi_helper *h = n->supervisors->arg;
    const struct chempi_shell *shell = &spec->shell;
    struct chempi_helper_order o = {.what = CHEMPI_HELPER_START,
                                    .number = ++h->next,
                                    .job = spec->job,
                                    .uid = spec->uid,
                                    .gid = spec->gid,
                                    .is_known = shell->is_known,
                                    .umask = shell->umask,
                                    .limit_count = shell->count};
    int rc;

    for (uint32_t i = 0; i < shell->count; i++) {
        o.limits[i][0] = shell->limits[i].rlim_cur;
        o.limits[i][1] = shell->limits[i].rlim_max;
    }
    rc = send_order(h, &o, up_fd);
    if (rc)
        return chempi_err_set(err, rc,
                              "the daemon's helper, which starts supervisors, "
                              "takes no order: %s",
                              chempi_err_name(rc));
    n->number = o.number;
    n->pid = 0;
    n->young = (struct chempi_young){.uid = spec->uid};
    return 0;
}

static void end(struct chempi_supervisor_child *n)
{
    give(n, CHEMPI_HELPER_KILL);
}

static void let_go(struct chempi_supervisor_child *n)
{
    give(n, CHEMPI_HELPER_LET_GO);
    n->number = 0;
}

static const struct chempi_supervisors_ops helpers_children = {.start = start,
                                                               .kill = end,
                                                               .let_go = let_go,
                                                               .forget = let_go,
                                                               .tells_part =
                                                                   true};

/* ---- reports ------------------------------------------------------------- */

static void fail_start(struct chempi_supervisor_child *n, int code)
{
    n->is_faulty = true;
    (void)snprintf(n->text, sizeof(n->text),
                   "the helper of the daemon of node %s starts no supervisor: "
                   "%s",
                   n->node_name, chempi_err_name(code));
}

/* Only noted here; the supervisors looks from its loop. */
static void note(struct chempi_supervisor_child *n,
                 const struct chempi_helper_report *r)
{
    switch (r->what) {
    case CHEMPI_HELPER_STARTED:
        n->pid = r->value;
        return;
    case CHEMPI_HELPER_FAILED:
        fail_start(n, r->value);
        n->young.has_ended = true;
        n->number = 0;
        break;
    case CHEMPI_HELPER_ENDED:
        n->young.status = r->value;
        n->young.has_ended = n->young.is_waiting = true;
        break;
    case CHEMPI_HELPER_CLEAR:
        n->young.is_waiting = false;
        n->number = 0;
        break;
    default:
        return;
    }
    chempi_supervisors_look(n->supervisors);
}

/* Of one that nobody asks about any more it is late. */
static void take(struct chempi_helper *h, const struct chempi_helper_report *r)
{
    CHEMPI_LIST_FOR (e, &h->supervisors->children) {
        struct chempi_supervisor_child *n =
            CHEMPI_CONTAINER_OF(e, struct chempi_supervisor_child, entry);

        if (n->number != r->number)
            continue;
        note(n, r);
        return;
    }
}

/* 1, 0: none yet, below: no more will come. */
static int receive(struct chempi_helper *h, struct chempi_helper_report *out,
                   int *fd)
{
    return chempi_passing_receive(h->fd, out, sizeof(*out), fd);
}

static void readable(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_helper *h = w->data;
    struct chempi_helper_report r;
    int fd;
    int rc;

    (void)events;
    while ((rc = receive(h, &r, &fd)) > 0) {
        if (fd >= 0)
            (void)close(fd); /* asked for too long ago */
        take(h, &r);
    }
    if (rc == -ENOMEM) {
        ev_io_stop(loop, w);
        ev_timer_again(loop, &h->later);
    } else if (rc < 0) {
        lose(h, "it has ended");
    }
}

/* ---- files --------------------------------------------------------------- */

static bool wait_for_input(const struct chempi_helper *h, uint64_t end_ns)
{
    struct pollfd p = {.fd = h->fd, .events = POLLIN};
    const uint64_t now = chempi_clock_ns();

    return now < end_ns &&
           poll(&p, 1, (int)((end_ns - now) / CHEMPI_NS_PER_MS) + 1) >= 0;
}

int chempi_helper_open(struct chempi_helper *h, uint32_t which)
{
    const uint64_t end_ns =
        chempi_clock_ns() + (uint64_t)(CHEMPI_HELPER_S * 1e9);
    const struct chempi_helper_order o = {.what = CHEMPI_HELPER_OPEN,
                                          .number = which};
    struct chempi_helper_report r;
    int fd = -1;
    int rc = h->supervisors ? send_order(h, &o, -1) : -EPIPE;

    if (rc)
        return rc;
    while ((rc = receive(h, &r, &fd)) >= 0) {
        if (rc == 0) {
            if (!wait_for_input(h, end_ns))
                return -ETIMEDOUT;
            continue;
        }
        if (r.what == CHEMPI_HELPER_FILE && r.number == which)
            return fd >= 0 ? fd : r.value < 0 ? r.value : -EIO;
        if (fd >= 0)
            (void)close(fd); /* asked for too long ago */
        take(h, &r);
    }
    return rc; /* the loop tells of the loss */
}

/* ---- beginning and end --------------------------------------------------- */

int chempi_helper_start(struct chempi_helper *h,
                        const struct chempi_helper_terms *terms,
                        struct chempi_supervisors *supervisors,
                        struct chempi_err *err)
{
    const int bytes = BUFFER_BYTES;
    int fds[2];
    pid_t pid;
    int rc = 0;

    if (chempi_sys->socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) <
        0)
        return chempi_err_set(err, -errno, "cannot start the helper: %s",
                              chempi_err_name(errno));
    (void)setsockopt(fds[0], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
    pid = chempi_sys->fork();
    if (pid == 0)
        chempi_helper_run(terms, fds[1]);
    if (pid < 0)
        rc = -errno;
    (void)close(fds[1]); /* the child's end */
    if (!rc && chempi_supervisors_spare(supervisors, pid))
        rc = -ENOMEM;
    if (rc) {
        (void)close(fds[0]); /* the helper ends */
        return chempi_err_set(err, rc, "cannot start the helper: %s",
                              chempi_err_name(rc));
    }
    h->pid = pid;
    h->fd = fds[0];
    h->supervisors = supervisors;
    supervisors->ops = &helpers_children;
    supervisors->arg = h;
    ev_io_init(&h->io, readable, h->fd, EV_READ);
    h->io.data = h;
    ev_init(&h->later, give_owed);
    h->later.repeat = LATER_S;
    h->later.data = h;
    ev_io_start(supervisors->loop, &h->io);
    return 0;
}

void chempi_helper_stop(struct chempi_helper *h)
{
    if (!h->pid)
        return;
    if (h->supervisors) {
        ev_io_stop(h->supervisors->loop, &h->io);
        ev_timer_stop(h->supervisors->loop, &h->later);
    }
    (void)close(h->fd); /* this is the sign */
    while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    h->pid = 0;
    h->supervisors = NULL;
}
