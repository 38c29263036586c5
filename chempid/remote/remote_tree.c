/* SPDX-License-Identifier: BSD-3-Clause */
/* Calling many hosts as a tree; see remote_tree.h. */
#define _GNU_SOURCE /* clock_gettime */
#include "chempid/remote/remote_tree.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/tree/nodes/pieces.h"
#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/control/msg.h"
#include "common/words/plain.h"

/* ---- blocking talk ------------------------------------------------------- */

/* 0, -ETIMEDOUT. */
static int await_fd(int fd, short events, uint64_t deadline_ns)
{
    struct pollfd p = {.fd = fd, .events = events};
    const uint64_t now_ns = chempi_clock_ns();

    if (now_ns >= deadline_ns)
        return -ETIMEDOUT;
    (void)poll(&p, 1,
               deadline_ns == UINT64_MAX
                   ? -1
                   : (int)((deadline_ns - now_ns) / CHEMPI_NS_PER_MS) + 1);
    return 0;
}

int chempi_remote_await(struct chempi_channel *ch, uint64_t deadline_ns,
                        struct chempi_frame *frame)
{
    int rc = chempi_channel_next(ch, frame);

    while (rc == 0) {
        rc = chempi_channel_fill(ch);
        if (rc == 0)
            rc = await_fd(ch->fd, POLLIN, deadline_ns);
        rc = rc < 0 ? rc : chempi_channel_next(ch, frame);
    }
    return rc < 0 ? rc : 0;
}

int chempi_remote_flush(struct chempi_channel *ch, uint64_t deadline_ns)
{
    int rc;

    while ((rc = chempi_channel_flush(ch)) == 1) {
        rc = await_fd(ch->fd, POLLOUT, deadline_ns);
        if (rc)
            return rc;
    }
    return rc;
}

/* ---- the tree ------------------------------------------------------------ */

/* The words may come from another host. */
static void miss(struct chempi_remote *remote, const char *why)
{
    remote->via = CHEMPI_REMOTE_NONE;
    (void)snprintf(remote->why, sizeof(remote->why), "%.200s", why);
    chempi_plain(remote->why, strlen(remote->why), "");
}

/* E4: whatever it may have reached is out of our reach with it. */
static void miss_group(struct chempi_remote *remotes, uint32_t count,
                       uint32_t head, const char *why)
{
    struct chempi_remote *remote = &remotes[head];

    chempi_remote_leave(remote, 1);
    if (!*remote->why)
        miss(remote, why);
    for (uint32_t i = head + 1; i < count; i++) /* some may be missed before */
        if (remotes[i].via == head)
            miss(&remotes[i], why);
}

static int order_calls(struct chempi_remote *remotes, uint32_t count,
                       uint32_t head, const struct chempi_remote_way *way)
{
    struct chempi_channel *ch = &remotes[head].ch;
    struct chempi_writer *w = chempi_channel_begin(ch, CHEMPI_MSG_CALL, 0);
    uint32_t end = head + 1;
    int rc;

    while (end < count && remotes[end].via == head)
        end++;
    chempi_wire_put_u32(w, way->group_ms);
    chempi_wire_put_str(w, way->launcher);
    chempi_wire_put_u32(w, end - head - 1);
    for (uint32_t i = head + 1; i < end; i++) {
        chempi_wire_put_u32(w, remotes[i].node);
        chempi_wire_put_str(w, remotes[i].host);
    }
    rc = chempi_channel_end(ch);
    return rc ? rc
              : chempi_remote_flush(ch, chempi_clock_ns() +
                                            way->group_ms * CHEMPI_NS_PER_MS);
}

int chempi_remote_take_called(struct chempi_remote *remotes, uint32_t count,
                              uint32_t head, const struct chempi_frame *frame)
{
    struct chempi_reader r;
    uint32_t n;

    if (frame->type != CHEMPI_MSG_CALLED)
        return -EBADMSG;
    chempi_wire_read(&r, frame->data, frame->len);
    n = chempi_wire_get_count(&r, CHEMPI_JOB_NODES_MAX, 8);
    while (n-- > 0 && !r.is_bad) {
        const uint32_t node = chempi_wire_get_u32(&r);
        const char *why = chempi_wire_get_str(&r, CHEMPI_REMOTE_WHY_MAX);
        uint32_t i = head + 1;

        while (i < count && remotes[i].node != node)
            i++;
        if (r.is_bad || i == count || remotes[i].via != head)
            return -EBADMSG;
        miss(&remotes[i], why);
    }
    return chempi_wire_is_done(&r) ? 0 : -EBADMSG;
}

static bool has_group(const struct chempi_remote *remotes, uint32_t count,
                      uint32_t i)
{
    return remotes[i].via == i && i + 1 < count && remotes[i + 1].via == i;
}

/* The remotes that have answered call their groups, all at the same time. */
static void call_groups(struct chempi_remote *remotes, uint32_t count,
                        const struct chempi_remote_way *way)
{
    struct chempi_frame frame;
    uint64_t deadline_ns;
    int rc;

    for (uint32_t i = 0; i < count; i++)
        if (has_group(remotes, count, i) && order_calls(remotes, count, i, way))
            miss_group(remotes, count, i, "it cannot be told of others");
    deadline_ns = chempi_clock_ns() + 2 * way->group_ms * CHEMPI_NS_PER_MS;
    for (uint32_t i = 0; i < count; i++) {
        if (!has_group(remotes, count, i))
            continue;
        rc = chempi_remote_await(&remotes[i].ch, deadline_ns, &frame);
        rc = rc ? rc : chempi_remote_take_called(remotes, count, i, &frame);
        if (rc)
            miss_group(remotes, count, i,
                       rc == -ETIMEDOUT
                           ? "it has not told in time whom it has reached"
                           : "it was lost while it called others");
    }
}

int chempi_remote_spread(struct chempi_remote *remotes, uint32_t count,
                         const struct chempi_remote_way *way,
                         struct chempi_err *err)
{
    const uint32_t size = chempi_pieces_len(count, CHEMPI_REMOTE_CALLS);
    uint32_t heads[CHEMPI_REMOTE_CALLS] = {0};
    uint32_t n = 0;
    int rc;

    for (uint32_t i = 0; i < count; i += size)
        heads[n++] = i; /* O1 */
    rc = chempi_remote_call(remotes, count, heads, n, way, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t head = chempi_pieces_head(i, size);

        if (i == head)
            continue;
        if (remotes[head].via == head)
            remotes[i].via = head;
        else
            miss(&remotes[i], "the host that was to call it is not reached");
    }
    call_groups(remotes, count, way);
    return 0;
}

/* ---- the root ------------------------------------------------------------ */

/* Before `head` of a group is called anew its command has ended. */
static uint32_t list_missed(struct chempi_remote *remotes, uint32_t count,
                            uint32_t *places, bool is_verbose)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (remotes[i].via != CHEMPI_REMOTE_NONE)
            continue;
        chempi_remote_leave(&remotes[i], 1);
        if (is_verbose && *remotes[i].why)
            (void)fprintf(stderr,
                          "chempirun: node %s is called from here, as other "
                          "nodes do not reach it: %s\n",
                          remotes[i].host, remotes[i].why);
        places[n++] = i;
    }
    return n;
}

int chempi_remote_reach(struct chempi_remote *remotes, uint32_t count,
                        uint32_t tree_count, const char *launcher,
                        bool is_verbose, struct chempi_err *err)
{
    const struct chempi_remote_way way = {.launcher = launcher,
                                          .limit_ms = CHEMPI_REMOTE_LIMIT_MS,
                                          .group_ms = CHEMPI_REMOTE_GROUP_MS};
    uint32_t *places = chempi_sys->calloc(count, sizeof(*places));
    uint32_t n;
    int rc = places ? 0 : chempi_err_set(err, -ENOMEM, "out of memory");

    if (!rc && tree_count > CHEMPI_REMOTE_FLAT)
        rc = chempi_remote_spread(remotes, tree_count, &way, err);
    if (!rc) {
        n = list_missed(remotes, count, places, is_verbose);
        rc = n ? chempi_remote_call(remotes, count, places, n, &way, err) : 0;
    }
    free(places);
    return rc;
}

/* ---- the launch ---------------------------------------------------------- */

int chempi_remote_start(struct chempi_remote *remotes, uint32_t count,
                        uint32_t at, const struct chempi_spec *spec,
                        struct chempi_hub *hub, struct chempi_link *link,
                        struct ev_loop *loop, struct chempi_err *err)
{
    uint32_t *nodes = chempi_sys->calloc(count, sizeof(*nodes));
    struct chempi_writer *w;
    uint32_t n = 1;
    int64_t rc;

    if (!nodes)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    nodes[0] = remotes[at].node;
    for (uint32_t i = 0; i < count; i++)
        if (i != at && remotes[i].via == at)
            nodes[n++] = remotes[i].node;
    chempi_link_adopt(link, loop, &remotes[at].ch);
    w = chempi_link_begin(link, CHEMPI_MSG_LAUNCH, spec->job);
    chempi_wire_put_u32(w, n);
    for (uint32_t i = 0; i < n; i++)
        chempi_wire_put_u32(w, nodes[i]);
    chempi_shell_write(&(const struct chempi_shell){0}, w); /* as it is there */
    chempi_spec_write(spec, n == 1 ? nodes[0] : CHEMPI_NODE_ANY, w);
    chempi_link_end(link);
    rc = chempi_hub_add(hub, nodes, n);
    free(nodes);
    return rc < 0 ? chempi_err_set(err, (int)rc, "hosts that were called twice")
                  : 0;
}
