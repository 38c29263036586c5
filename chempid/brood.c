/* SPDX-License-Identifier: BSD-3-Clause */
/* Supervisors as children; see brood.h. */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "chempid/brood.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/orphans.h"
#include "chempid/super.h"
#include "common/base/sys.h"
#include "common/control/msg.h"

int chempi_brood_init(struct chempi_brood *brood, struct chempi_err *err)
{
    int rc;

    *brood = (struct chempi_brood){0};
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
    chempi_orphans_end(is_elder_fn, brood);
    free(brood->elders);
    brood->elders = NULL;
    brood->elder_count = 0;
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

static void describe_end(const struct chempi_nestling *n, int status,
                         char *text, size_t size)
{
    if (WIFSIGNALED(status))
        (void)snprintf(text, size,
                       "the supervisor of node %s (pid %ld) was killed by "
                       "signal %d (%s)",
                       n->node_name, (long)n->pid, WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    else
        (void)snprintf(
            text, size, "the supervisor of node %s (pid %ld) gave up: %s",
            n->node_name, (long)n->pid,
            WEXITSTATUS(status) > 1 ? chempi_err_name(WEXITSTATUS(status))
                                    : "it lost its connection");
}

/* Its socket closes when it ends, so the wait is short. */
static void lost(struct chempi_link *link, int code,
                 const struct chempi_err *err)
{
    struct chempi_nestling *n = link->arg;
    char text[CHEMPI_TEXT_MAX];
    int status = 0;

    chempi_link_close(link);
    if (code != -EPIPE) /* it lives but talks nonsense */
        (void)kill(n->pid, SIGKILL);
    while (waitpid(n->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (code == -EPIPE)
        describe_end(n, status, text, sizeof(text));
    else
        (void)snprintf(text, sizeof(text),
                       "the supervisor of node %s failed: %.700s", n->node_name,
                       err->text);
    chempi_list_remove(&n->entry);
    chempi_orphans_end(is_known, n->brood); /* B1 */
    n->pid = 0;
    n->on_end(n->arg, text);
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
    n->node = node;
    n->node_name = spec->node_names[node];
    chempi_list_append(&brood->nestlings, &n->entry);
    chempi_link_open(&n->link, loop, fds[0], CHEMPI_TREE_MAX, CHEMPI_QUEUE_MAX);
    n->link.on_frame = take;
    n->link.on_lost = lost;
    n->link.arg = n;
    return 0;
}

void chempi_brood_drop(struct chempi_nestling *n)
{
    if (n->link.is_open)
        (void)shutdown(n->link.ch.fd, SHUT_WR); /* it reads the end (P5) */
}
