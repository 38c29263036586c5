/* SPDX-License-Identifier: BSD-3-Clause */
/* Calling many hosts as a tree; see outpost_tree.h. */
#define _GNU_SOURCE /* clock_gettime */
#include "chempid/outpost/outpost_tree.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/tree/pieces.h"
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

int chempi_outpost_await(struct chempi_channel *ch, uint64_t deadline_ns,
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

int chempi_outpost_flush(struct chempi_channel *ch, uint64_t deadline_ns)
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
static void miss(struct chempi_outpost *post, const char *why)
{
    post->via = CHEMPI_OUTPOST_NONE;
    (void)snprintf(post->why, sizeof(post->why), "%.200s", why);
    chempi_plain(post->why, strlen(post->why), "");
}

/* E4: whatever it may have reached is out of our reach with it. */
static void miss_group(struct chempi_outpost *posts, uint32_t count,
                       uint32_t head, const char *why)
{
    struct chempi_outpost *post = &posts[head];

    chempi_outpost_leave(post, 1);
    if (!*post->why)
        miss(post, why);
    for (uint32_t i = head + 1; i < count; i++) /* some may be missed before */
        if (posts[i].via == head)
            miss(&posts[i], why);
}

static int order_calls(struct chempi_outpost *posts, uint32_t count,
                       uint32_t head, const struct chempi_outpost_way *way)
{
    struct chempi_channel *ch = &posts[head].ch;
    struct chempi_writer *w = chempi_channel_begin(ch, CHEMPI_MSG_CALL, 0);
    uint32_t end = head + 1;
    int rc;

    while (end < count && posts[end].via == head)
        end++;
    chempi_wire_put_u32(w, way->group_ms);
    chempi_wire_put_str(w, way->launcher);
    chempi_wire_put_u32(w, end - head - 1);
    for (uint32_t i = head + 1; i < end; i++) {
        chempi_wire_put_u32(w, posts[i].node);
        chempi_wire_put_str(w, posts[i].host);
    }
    rc = chempi_channel_end(ch);
    return rc ? rc
              : chempi_outpost_flush(ch, chempi_clock_ns() +
                                             way->group_ms * CHEMPI_NS_PER_MS);
}

int chempi_outpost_take_called(struct chempi_outpost *posts, uint32_t count,
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
        const char *why = chempi_wire_get_str(&r, CHEMPI_OUTPOST_WHY_MAX);
        uint32_t i = head + 1;

        while (i < count && posts[i].node != node)
            i++;
        if (r.is_bad || i == count || posts[i].via != head)
            return -EBADMSG;
        miss(&posts[i], why);
    }
    return chempi_wire_is_done(&r) ? 0 : -EBADMSG;
}

static bool has_group(const struct chempi_outpost *posts, uint32_t count,
                      uint32_t i)
{
    return posts[i].via == i && i + 1 < count && posts[i + 1].via == i;
}

/* The posts that have answered call their groups, all at the same time. */
static void call_groups(struct chempi_outpost *posts, uint32_t count,
                        const struct chempi_outpost_way *way)
{
    struct chempi_frame frame;
    uint64_t deadline_ns;
    int rc;

    for (uint32_t i = 0; i < count; i++)
        if (has_group(posts, count, i) && order_calls(posts, count, i, way))
            miss_group(posts, count, i, "it cannot be told of others");
    deadline_ns = chempi_clock_ns() + 2 * way->group_ms * CHEMPI_NS_PER_MS;
    for (uint32_t i = 0; i < count; i++) {
        if (!has_group(posts, count, i))
            continue;
        rc = chempi_outpost_await(&posts[i].ch, deadline_ns, &frame);
        rc = rc ? rc : chempi_outpost_take_called(posts, count, i, &frame);
        if (rc)
            miss_group(posts, count, i,
                       rc == -ETIMEDOUT
                           ? "it has not told in time whom it has reached"
                           : "it was lost while it called others");
    }
}

int chempi_outpost_spread(struct chempi_outpost *posts, uint32_t count,
                          const struct chempi_outpost_way *way,
                          struct chempi_err *err)
{
    const uint32_t size = chempi_pieces_len(count, CHEMPI_OUTPOST_CALLS);
    uint32_t heads[CHEMPI_OUTPOST_CALLS] = {0};
    uint32_t n = 0;
    int rc;

    for (uint32_t i = 0; i < count; i += size)
        heads[n++] = i; /* O1 */
    rc = chempi_outpost_call(posts, count, heads, n, way, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t head = chempi_pieces_head(i, size);

        if (i == head)
            continue;
        if (posts[head].via == head)
            posts[i].via = head;
        else
            miss(&posts[i], "the host that was to call it is not reached");
    }
    call_groups(posts, count, way);
    return 0;
}

/* ---- the root ------------------------------------------------------------ */

/* Before `head` of a group is called anew its command has ended. */
static uint32_t list_missed(struct chempi_outpost *posts, uint32_t count,
                            uint32_t *places, bool is_verbose)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (posts[i].via != CHEMPI_OUTPOST_NONE)
            continue;
        chempi_outpost_leave(&posts[i], 1);
        if (is_verbose && *posts[i].why)
            (void)fprintf(stderr,
                          "chempirun: node %s is called from here, as other "
                          "nodes do not reach it: %s\n",
                          posts[i].host, posts[i].why);
        places[n++] = i;
    }
    return n;
}

int chempi_outpost_reach(struct chempi_outpost *posts, uint32_t count,
                         uint32_t tree_count, const char *launcher,
                         bool is_verbose, struct chempi_err *err)
{
    const struct chempi_outpost_way way = {.launcher = launcher,
                                           .limit_ms = CHEMPI_OUTPOST_LIMIT_MS,
                                           .group_ms = CHEMPI_OUTPOST_GROUP_MS};
    uint32_t *places = chempi_sys->calloc(count, sizeof(*places));
    uint32_t n;
    int rc = places ? 0 : chempi_err_set(err, -ENOMEM, "out of memory");

    if (!rc && tree_count > CHEMPI_OUTPOST_FLAT)
        rc = chempi_outpost_spread(posts, tree_count, &way, err);
    if (!rc) {
        n = list_missed(posts, count, places, is_verbose);
        rc = n ? chempi_outpost_call(posts, count, places, n, &way, err) : 0;
    }
    free(places);
    return rc;
}

/* ---- the launch ---------------------------------------------------------- */

int chempi_outpost_start(struct chempi_outpost *posts, uint32_t count,
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
    nodes[0] = posts[at].node;
    for (uint32_t i = 0; i < count; i++)
        if (i != at && posts[i].via == at)
            nodes[n++] = posts[i].node;
    chempi_link_adopt(link, loop, &posts[at].ch);
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
