/* SPDX-License-Identifier: BSD-3-Clause */
/* What stands below the root of a job's tree; see branches.h. */
#include "chempid/remote/branches.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "chempid/remote/remote_tree.h"
#include "common/base/sys.h"

int chempi_branches_init(struct chempi_branches *all, struct chempi_hub *hub,
                         const struct chempi_spec *spec, uint32_t most,
                         struct chempi_err *err)
{
    int rc;

    all->hub = hub;
    all->spec = spec;
    rc = chempi_supervisors_init(&all->supervisors, err);
    if (rc)
        return rc;
    all->supervisors.is_of_one_job = true;
    all->items = chempi_sys->calloc(most, sizeof(*all->items));
    if (!all->items)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    return 0;
}

int chempi_branches_watch(struct chempi_branches *all, struct ev_loop *loop,
                          struct chempi_err *err)
{
    all->loop = loop;
    return chempi_supervisors_watch(&all->supervisors, loop, err);
}

void chempi_branches_fini(struct chempi_branches *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        chempi_supervisors_forget(&all->items[i].supervisor_child);
        chempi_link_close(all->items[i].link);
    }
    chempi_supervisors_fini(&all->supervisors); /* B3 */
    free(all->items);
}

void chempi_branches_send(struct chempi_branches *all, uint32_t child,
                          uint16_t type, const void *data, size_t len)
{
    chempi_link_send(all->items[child].link, type, all->spec->job, data, len);
}

static struct chempi_branch *add(struct chempi_branches *all)
{
    struct chempi_branch *b = &all->items[all->count++];

    b->all = all;
    b->link = &b->stream;
    b->stream.arg = b;
    return b;
}

static int take_branch(struct chempi_branch *b,
                       const struct chempi_frame *frame, struct chempi_err *err)
{
    const uint32_t child = (uint32_t)(b - b->all->items);
    const int rc = chempi_hub_take(b->all->hub, child, frame, err);

    if (b->all->changed)
        b->all->changed(b->all->arg);
    return rc;
}

/* A branch may go when the root knows that all ranks are done, and below it
 * when that has been told. */
static void lose_branch(struct chempi_branch *b, const char *text)
{
    const struct chempi_branches *all = b->all;
    const uint32_t child = (uint32_t)(b - all->items);

    if (all->from ? all->hub->has_ended : all->hub->has_done)
        chempi_hub_leave(all->hub, child);
    else
        chempi_hub_lose(all->hub, child, text);
    if (all->changed)
        all->changed(all->arg);
}

/* ---- supervisors of our own ---------------------------------------------- */

static int take_supervisor(void *arg, const struct chempi_frame *frame,
                           struct chempi_err *err)
{
    if (frame->type == CHEMPI_MSG_RUNS) /* nobody asks for its process here */
        return 0;
    return take_branch(arg, frame, err);
}

static void supervisor_ended(void *arg, const char *text)
{
    lose_branch(arg, text);
}

int chempi_branches_start(struct chempi_branches *all, uint32_t node,
                          struct chempi_err *err)
{
    struct chempi_branch *b = &all->items[all->count];
    int rc;

    b->supervisor_child.on_frame = take_supervisor;
    b->supervisor_child.on_end = supervisor_ended;
    b->supervisor_child.arg = b;
    b->all = all;
    rc = chempi_supervisors_start(&all->supervisors, &b->supervisor_child,
                                  all->loop, all->spec, node, err);
    if (rc)
        return rc;
    add(all)->link = &b->supervisor_child.link;
    return chempi_hub_add(all->hub, &node, 1) < 0
               ? chempi_err_set(err, -EBADMSG, "a node that is there twice")
               : 0;
}

/* ---- supervisors on other hosts ------------------------------------------ */

static int take_far(struct chempi_link *link, const struct chempi_frame *frame,
                    struct chempi_err *err)
{
    return take_supervisor(link->arg, frame, err);
}

static void far_lost(struct chempi_link *link, int code,
                     const struct chempi_err *err)
{
    struct chempi_branch *b = link->arg;
    const char *from = b->all->from;
    char text[CHEMPI_TEXT_MAX];
    char fate[96];

    chempi_link_close(link);
    (void)chempi_remote_fate(b->remote, fate, sizeof(fate));
    (void)snprintf(text, sizeof(text),
                   "the connection to host %s%s%s%s is lost: %.700s%s",
                   b->remote->host, from ? ", which was called from node " : "",
                   from ? from : "", from ? "," : "",
                   code == -EPIPE ? "it was closed" : err->text, fate);
    lose_branch(b, text);
}

int chempi_branches_start_far(struct chempi_branches *all,
                              struct chempi_remote *remotes, uint32_t count,
                              uint32_t at, struct chempi_err *err)
{
    struct chempi_branch *b = add(all);

    b->remote = &remotes[at];
    b->stream.on_frame = take_far;
    b->stream.on_lost = far_lost;
    return chempi_remote_start(remotes, count, at, all->spec, all->hub,
                               &b->stream, all->loop, err);
}

/* ---- a daemon ------------------------------------------------------------ */

/* The daemon has ended the job, and nothing of it is left there. */
static void end_by_daemon(struct chempi_branch *b, const char *why)
{
    char text[CHEMPI_TEXT_MAX];

    (void)snprintf(text, sizeof(text),
                   "the daemon of node %s has ended it: %.800s", b->all->daemon,
                   why);
    chempi_hub_lose(b->all->hub, 0, text);
}

static int take_daemon(struct chempi_link *link,
                       const struct chempi_frame *frame, struct chempi_err *err)
{
    struct chempi_branch *b = link->arg;
    struct chempi_reader r;

    if (frame->type != CHEMPI_MSG_REPLY && frame->type != CHEMPI_MSG_REFUSED)
        return take_branch(b, frame, err);
    chempi_wire_read(&r, frame->data, frame->len);
    (void)chempi_wire_get_u32(&r);
    if (frame->type == CHEMPI_MSG_REFUSED) {
        end_by_daemon(b, chempi_wire_get_str(&r, CHEMPI_TEXT_MAX));
        return 0;
    }
    (void)snprintf(b->all->refusal, sizeof(b->all->refusal), "%s",
                   chempi_wire_get_str(&r, CHEMPI_TEXT_MAX));
    return 0;
}

static void daemon_lost(struct chempi_link *link, int code,
                        const struct chempi_err *err)
{
    struct chempi_branch *b = link->arg;
    char text[CHEMPI_TEXT_MAX];

    chempi_link_close(link);
    if (b->all->refusal[0])
        (void)snprintf(text, sizeof(text),
                       "the daemon of node %s refuses: %.800s", b->all->daemon,
                       b->all->refusal);
    else
        (void)snprintf(text, sizeof(text),
                       "the daemon of node %s is lost: %.800s", b->all->daemon,
                       code == -EPIPE ? "it closed the connection" : err->text);
    lose_branch(b, text);
}

int chempi_branches_order(struct chempi_branches *all, int fd,
                          const char *daemon, struct chempi_err *err)
{
    const uint32_t n = all->spec->node_count;
    uint32_t *nodes = chempi_sys->calloc(n, sizeof(*nodes));
    struct chempi_branch *b;

    if (!nodes)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    all->daemon = daemon;
    b = add(all);
    chempi_link_open(&b->stream, all->loop, fd, CHEMPI_TREE_MAX,
                     CHEMPI_QUEUE_MAX);
    b->stream.on_frame = take_daemon;
    b->stream.on_lost = daemon_lost;
    b->stream.arg = b;
    chempi_spec_order(
        all->spec,
        chempi_link_begin(&b->stream, CHEMPI_MSG_LAUNCH, all->spec->job));
    chempi_link_end(&b->stream);
    for (uint32_t i = 0; i < n; i++)
        nodes[i] = i;
    (void)chempi_hub_add(all->hub, nodes, n);
    free(nodes);
    return 0;
}

/* ---- leaving ------------------------------------------------------------- */

/* The job's verdict stands, and still not all is well. */
static void left(const struct chempi_branches *all, uint32_t child, char *text,
                 size_t size)
{
    const uint32_t node = all->hub->children[child].first_node;

    (void)snprintf(text, size,
                   "all ranks have ended, but the %s of node %s has not told "
                   "that nothing of the job is left there; it is not waited "
                   "for any longer",
                   all->daemon ? "daemon" : "supervisor",
                   all->daemon ? all->daemon : all->spec->node_names[node]);
}

void chempi_branches_leave(struct chempi_branches *all, double seconds,
                           void (*say)(void *arg, const char *text), void *arg)
{
    char text[CHEMPI_TEXT_MAX];

    for (uint32_t i = 0; i < all->count; i++) {
        struct chempi_branch *b = &all->items[i];

        if (all->hub->children[i].is_lost)
            continue;
        if (all->hub->has_done && !chempi_hub_is_over(all->hub)) {
            left(all, i, text, sizeof(text));
            say(arg, text);
        }
        if (b->link == &b->supervisor_child.link) {
            chempi_supervisors_drop(&b->supervisor_child);
            continue;
        }
        chempi_link_close(b->link);
        (void)snprintf(text, sizeof(text),
                       "node %s has not told within %g s that the job has "
                       "ended",
                       b->remote ? b->remote->host : all->daemon, seconds);
        lose_branch(b, text);
    }
}
