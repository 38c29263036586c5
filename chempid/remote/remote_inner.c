/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A remote that has called others (remote.h): an inner node of the job's tree
 * (hub.h) with the supervisor of its own node and remotes below it. One
 * process, which serves one launch; what it says goes to the process that has
 * the standard streams of the command (remote_serve.c).
 */
#define _GNU_SOURCE /* geteuid */
#include <errno.h>
#include <ev.h>
#include <stdio.h>
#include <unistd.h>

#include "chempid/remote/branches.h"
#include "chempid/remote/remote_tree.h"
#include "chempid/tree/nodes/members.h"
#include "common/control/msg.h"
#include "common/fd/file.h"

struct inner {
    struct ev_loop *loop;
    struct chempi_link up;
    struct chempi_channel ch;        /* the same, before the loop runs */
    struct chempi_branches branches; /* the first is this node's supervisor */
    struct chempi_hub hub;
    struct chempi_spec spec;
    uint32_t node;
    struct chempi_pool pool; /* of what CALL says */
    struct chempi_remote *remotes;
    uint32_t remote_count;
    struct chempi_remote_way way;
};

_Noreturn static void give_up(const char *what, int code)
{
    (void)fprintf(stderr, "chempirun " CHEMPI_REMOTE_OPTION ": %s: %s\n", what,
                  chempi_err_name(code));
    _exit(1);
}

/* ---- before the launch --------------------------------------------------- */

static int read_hosts(struct inner *k, struct chempi_reader *r)
{
    for (uint32_t i = 0; i < k->remote_count; i++) {
        struct chempi_remote *remote = &k->remotes[i];
        const char *host;

        remote->node = chempi_wire_get_u32(r);
        host = chempi_wire_get_str(r, CHEMPI_NODE_NAME_MAX);
        if (r->is_bad || !chempi_members_is_name(host))
            return -EBADMSG;
        remote->host = chempi_pool_str(&k->pool, host);
        if (!remote->host)
            return -ENOMEM;
    }
    return chempi_wire_is_done(r) ? 0 : -EBADMSG;
}

static int take_call(struct inner *k, const struct chempi_frame *frame)
{
    struct chempi_reader r;
    const char *launcher;

    if (frame->type != CHEMPI_MSG_CALL)
        return -EBADMSG;
    chempi_wire_read(&r, frame->data, frame->len);
    k->way.is_trial = true;
    k->way.limit_ms = chempi_wire_get_u32(&r);
    k->way.group_ms = k->way.limit_ms / 2;
    launcher = chempi_wire_get_str(&r, CHEMPI_SPEC_STRING_MAX);
    k->remote_count = chempi_wire_get_count(&r, CHEMPI_JOB_NODES_MAX, 8);
    if (r.is_bad || !k->remote_count ||
        k->way.limit_ms > CHEMPI_REMOTE_LIMIT_MS)
        return -EBADMSG;
    k->way.launcher = chempi_pool_str(&k->pool, launcher);
    k->remotes = chempi_remote_create(k->remote_count);
    return k->way.launcher && k->remotes ? read_hosts(k, &r) : -ENOMEM;
}

static int tell_called(struct inner *k)
{
    struct chempi_writer *w =
        chempi_channel_begin(&k->ch, CHEMPI_MSG_CALLED, 0);
    uint32_t n = 0;
    int rc;

    for (uint32_t i = 0; i < k->remote_count; i++)
        n += k->remotes[i].via == CHEMPI_REMOTE_NONE;
    chempi_wire_put_u32(w, n);
    for (uint32_t i = 0; i < k->remote_count; i++) {
        if (k->remotes[i].via != CHEMPI_REMOTE_NONE)
            continue;
        chempi_wire_put_u32(w, k->remotes[i].node);
        chempi_wire_put_str(w, k->remotes[i].why);
    }
    rc = chempi_channel_end(&k->ch);
    return rc ? rc : chempi_remote_flush(&k->ch, UINT64_MAX);
}

/* ---- the launch ---------------------------------------------------------- */

/* This node, and whoever has been reached. */
static int check_nodes(const struct inner *k, const uint32_t *nodes, uint32_t n)
{
    uint32_t reached = 1;

    for (uint32_t i = 0; i < k->remote_count; i++)
        reached += k->remotes[i].via != CHEMPI_REMOTE_NONE;
    if (n != reached)
        return -EBADMSG;
    for (uint32_t i = 0; i < n; i++)
        if (nodes[i] >= k->spec.node_count)
            return -EBADMSG;
    for (uint32_t i = 0, at = 1; i < k->remote_count; i++)
        if (k->remotes[i].via != CHEMPI_REMOTE_NONE &&
            nodes[at++] != k->remotes[i].node)
            return -EBADMSG;
    return 0;
}

static int take_launch(struct inner *k, const struct chempi_frame *frame)
{
    struct chempi_shell shell;
    struct chempi_reader r;
    uint32_t *nodes;
    uint32_t n;
    int rc;

    if (frame->type != CHEMPI_MSG_LAUNCH)
        return -EBADMSG;
    chempi_wire_read(&r, frame->data, frame->len);
    n = chempi_wire_get_count(&r, CHEMPI_JOB_NODES_MAX, 4);
    nodes = n ? chempi_pool_array(&k->pool, n, sizeof(*nodes)) : NULL;
    if (!nodes)
        return n ? -ENOMEM : -EBADMSG;
    for (uint32_t i = 0; i < n; i++)
        nodes[i] = chempi_wire_get_u32(&r);
    rc = chempi_shell_take(&shell, &r);
    rc = rc ? rc : chempi_spec_read(&k->spec, &r);
    if (rc)
        return rc;
    k->node = nodes[0];
    k->spec.shell = shell;
    k->spec.uid = geteuid(); /* as remote_serve.c */
    k->spec.gid = getegid();
    return chempi_wire_is_done(&r) ? check_nodes(k, nodes, n) : -EBADMSG;
}

/* ---- the inner node -------------------------------------------------------
 */

static void go_up(void *arg, uint16_t type, const void *data, size_t len)
{
    struct inner *k = arg;

    chempi_link_send(&k->up, type, k->spec.job, data, len);
}

static void go_down(void *arg, uint32_t child, uint16_t type, const void *data,
                    size_t len)
{
    struct inner *k = arg;

    chempi_branches_send(&k->branches, child, type, data, len);
}

static const struct chempi_hub_ops hub_ops = {.up = go_up, .down = go_down};

/* The loop ends when all is told; nobody may be there to hear it. */
static void leave_if_over(void *arg)
{
    const struct inner *k = arg;

    if (chempi_hub_is_over(&k->hub) &&
        (!k->up.is_open || !chempi_channel_has_output(&k->up.ch)))
        ev_break(k->loop, EVBREAK_ALL);
}

static void written(struct chempi_link *link)
{
    leave_if_over(link->arg);
}

static int take_up(struct chempi_link *link, const struct chempi_frame *frame,
                   struct chempi_err *err)
{
    struct inner *k = link->arg;

    return chempi_hub_down(&k->hub, frame->type, frame->data, frame->len, err);
}

/* E3: all that stands below ends by itself, or is ended. */
static void up_lost(struct chempi_link *link, int code,
                    const struct chempi_err *err)
{
    struct inner *k = link->arg;

    (void)code;
    (void)err;
    chempi_link_close(link);
    for (uint32_t i = 0; i < k->branches.count; i++) {
        struct chempi_branch *b = &k->branches.items[i];

        if (b->remote) {
            chempi_link_close(b->link);
            chempi_hub_lose(&k->hub, i, "");
        } else {
            chempi_supervisors_drop(&b->supervisor_child);
        }
    }
    leave_if_over(k);
}

/* What a command complains of later goes to our own caller's. */
static void complain(struct ev_loop *loop, ev_io *w, int events)
{
    char text[4096];
    const ssize_t n = read(w->fd, text, sizeof(text));

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || write(2, text, (size_t)n) < 0)
        ev_io_stop(loop, w);
}

/* ---- its beginning and end ----------------------------------------------- */

static int start_remote(struct inner *k, uint32_t at, struct chempi_err *err)
{
    ev_io *complaints = chempi_pool_alloc(&k->pool, sizeof(*complaints));

    if (!complaints)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    ev_io_init(complaints, complain, k->remotes[at].err_fd, EV_READ);
    ev_io_start(k->loop, complaints);
    return chempi_branches_start_far(&k->branches, k->remotes, k->remote_count,
                                     at, err);
}

static int set_up(struct inner *k, struct chempi_err *err)
{
    uint32_t nodes = 1;
    uint32_t children = 1;

    for (uint32_t i = 0; i < k->remote_count; i++) {
        nodes += k->remotes[i].via != CHEMPI_REMOTE_NONE;
        children += k->remotes[i].via == i;
    }
    if (chempi_branches_init(&k->branches, &k->hub, &k->spec, children, err))
        return err->code;
    k->branches.from = k->spec.node_names[k->node];
    k->branches.changed = leave_if_over;
    k->branches.arg = k;
    k->loop = ev_loop_new(EVFLAG_AUTO);
    if (k->loop && chempi_branches_watch(&k->branches, k->loop, err))
        return err->code;
    if (!k->loop ||
        chempi_hub_init(&k->hub, k->spec.node_count, children, &hub_ops, k))
        return chempi_err_set(err, -ENOMEM, "out of memory");
    chempi_hub_expect(&k->hub, nodes);
    chempi_link_adopt(&k->up, k->loop, &k->ch);
    k->up.on_frame = take_up;
    k->up.on_lost = up_lost;
    k->up.on_written = written;
    k->up.arg = k;
    return 0;
}

static int run(struct inner *k, struct chempi_err *err)
{
    int rc = set_up(k, err);

    rc = rc ? rc : chempi_branches_start(&k->branches, k->node, err);
    for (uint32_t i = 0; !rc && i < k->remote_count; i++)
        if (k->remotes[i].via == i)
            rc = start_remote(k, i, err);
    if (!rc)
        ev_run(k->loop, 0);
    return rc;
}

void chempi_remote_serve_inner(int fd)
{
    struct inner k = {0};
    struct chempi_err err = {0};
    struct chempi_frame frame;
    int rc = chempi_file_leave_streams();

    chempi_channel_init(&k.ch, fd, CHEMPI_TREE_MAX, CHEMPI_QUEUE_MAX);
    rc = rc ? rc : chempi_remote_await(&k.ch, UINT64_MAX, &frame);
    rc = rc ? rc : take_call(&k, &frame);
    if (rc)
        give_up("a call that is malformed", rc);
    rc = chempi_remote_spread(k.remotes, k.remote_count, &k.way, &err);
    rc = rc ? rc : tell_called(&k);
    rc = rc ? rc : chempi_remote_await(&k.ch, UINT64_MAX, &frame);
    if (rc) { /* the launcher has left, or tells why */
        chempi_remote_leave(k.remotes, k.remote_count);
        _exit(1);
    }
    rc = take_launch(&k, &frame);
    rc = rc ? rc : run(&k, &err);
    for (uint32_t i = 0; i < k.branches.count; i++)
        if (k.branches.items[i].remote)
            chempi_link_close(k.branches.items[i].link);
    chempi_remote_leave(k.remotes, k.remote_count);
    if (k.loop)
        chempi_branches_fini(&k.branches);
    if (rc)
        give_up(err.code ? err.text : "a launch that is malformed", rc);
    _exit(0);
}
