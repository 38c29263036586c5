/* SPDX-License-Identifier: BSD-3-Clause */
/* A job's place in the tree; see hub.h. */
#include "chempid/tree/hub.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/invariant.h"
#include "common/base/sys.h"
#include "common/control/client.h"
#include "common/control/dynamic.h"
#include "common/control/msg.h"

#define FIELDS_MAX 64u /* bytes of a payload apart from text and blobs */

int chempi_hub_init(struct chempi_hub *hub, uint32_t node_count,
                    uint32_t child_max, const struct chempi_hub_ops *ops,
                    void *arg)
{
    *hub = (struct chempi_hub){.ops = ops, .arg = arg};
    hub->next = chempi_sys->calloc(node_count, sizeof(*hub->next));
    hub->children = chempi_sys->calloc(child_max, sizeof(*hub->children));
    if (!hub->next || !hub->children) {
        chempi_hub_fini(hub);
        return -ENOMEM;
    }
    hub->node_count = hub->spare = node_count;
    hub->child_max = child_max;
    return 0;
}

size_t chempi_hub_bytes(uint32_t node_count, uint32_t child_max)
{
    const struct chempi_hub *hub = NULL;

    return node_count * sizeof(*hub->next) + child_max * sizeof(*hub->children);
}

void chempi_hub_fini(struct chempi_hub *hub)
{
    free(hub->next);
    free(hub->children);
    hub->next = NULL;
    hub->children = NULL;
    hub->child_count = 0;
}

/* Takes back what it has put below the child where not all go there. */
static int place(struct chempi_hub *hub, uint32_t child, const uint32_t *nodes,
                 uint32_t count)
{
    uint32_t done = 0;

    while (done < count && nodes[done] < hub->node_count &&
           !hub->next[nodes[done]])
        hub->next[nodes[done++]] = child + 1;
    if (done == count)
        return 0;
    while (done > 0)
        hub->next[nodes[--done]] = 0;
    return -EINVAL;
}

int64_t chempi_hub_add(struct chempi_hub *hub, const uint32_t *nodes,
                       uint32_t count)
{
    const uint32_t child = hub->child_count;

    if (child >= hub->child_max)
        return -ENOBUFS;
    if (count == 0 || place(hub, child, nodes, count))
        return -EINVAL;
    hub->children[child] =
        (struct chempi_hub_child){.first_node = nodes[0], .nodes = count};
    hub->child_count++;
    return child;
}

void chempi_hub_spare(struct chempi_hub *hub, uint32_t first)
{
    hub->spare = first;
}

bool chempi_hub_is_over(const struct chempi_hub *hub)
{
    return hub->has_gone;
}

static void send_count(struct chempi_hub *hub, uint16_t type, uint32_t count)
{
    uint8_t data[4];

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(count >> (8 * i));
    hub->ops->up(hub->arg, type, data, sizeof(data));
}

static void send_fence(struct chempi_hub *hub, uint64_t fence)
{
    uint8_t data[8];

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(fence >> (8 * i));
    hub->ops->up(hub->arg, CHEMPI_MSG_ENTERED, data, sizeof(data));
}

/* H2: send what has become complete, in the order of a job's life. */
static void settle_counts(struct chempi_hub *hub)
{
    uint32_t nodes = 0;
    uint32_t started = 0;
    uint32_t done = 0;
    uint32_t gone = 0;

    for (uint32_t i = 0; i < hub->child_count; i++) {
        nodes += hub->children[i].nodes;
        started += hub->children[i].started;
        done += hub->children[i].done;
        gone += hub->children[i].gone;
    }
    if (nodes < hub->expected) /* children are still being added */
        return;
    if (!hub->has_started && started == nodes) {
        hub->has_started = true;
        send_count(hub, CHEMPI_MSG_STARTED, nodes);
    }
    if (!hub->has_done && done == nodes) {
        hub->has_done = true;
        send_count(hub, CHEMPI_MSG_DONE, nodes);
    }
    if (!hub->has_gone && gone == nodes) {
        hub->has_gone = true;
        send_count(hub, CHEMPI_MSG_GONE, nodes);
    }
}

void chempi_hub_expect(struct chempi_hub *hub, uint32_t nodes)
{
    hub->expected = nodes;
    settle_counts(hub);
}

static bool is_spare(const struct chempi_hub *hub, uint32_t child)
{
    return hub->children[child].first_node >= hub->spare;
}

/* H4 */
static void settle_fence(struct chempi_hub *hub)
{
    uint64_t low = UINT64_MAX;

    for (uint32_t i = 0; i < hub->child_count; i++) {
        const struct chempi_hub_child *c = &hub->children[i];

        if (c->fence < low && !(is_spare(hub, i) && c->gone == c->nodes))
            low = c->fence;
    }
    while (low < UINT64_MAX && hub->fence < low)
        send_fence(hub, ++hub->fence);
}

const char *chempi_hub_check(const struct chempi_hub *hub)
{
    uint64_t below = 0;

    for (uint32_t i = 0; i < hub->child_count; i++) {
        const struct chempi_hub_child *c = &hub->children[i];

        if (c->started > c->nodes || c->done > c->nodes || c->gone > c->nodes)
            return "hub H2: more nodes are counted than are below a child";
        if (c->is_lost && c->gone != c->nodes)
            return "hub H3: a child is lost, and nodes of it are not gone";
        if (c->fence < hub->fence && !(is_spare(hub, i) && c->gone == c->nodes))
            return "hub H4: a fence went up that a child has not entered";
        below += c->nodes;
    }
    for (uint32_t i = 0; i < hub->node_count; i++) {
        if (hub->next[i] > hub->child_count)
            return "hub H1: a node below a child that there is not";
        below -= hub->next[i] != 0;
    }
    return below ? "hub H1: children have other nodes than are below them"
                 : NULL;
}

static int bad(struct chempi_err *err, const char *what)
{
    return chempi_err_set(err, -EBADMSG, "a malformed message (%s)", what);
}

static int take_count(struct chempi_hub *hub, uint32_t child,
                      const struct chempi_frame *frame, struct chempi_reader *r,
                      struct chempi_err *err)
{
    struct chempi_hub_child *c = &hub->children[child];
    uint32_t *sum = frame->type == CHEMPI_MSG_STARTED ? &c->started
                    : frame->type == CHEMPI_MSG_DONE  ? &c->done
                                                      : &c->gone;
    const uint32_t n = chempi_wire_get_u32(r);

    if (!chempi_wire_is_done(r) || n > c->nodes - *sum)
        return bad(err, "count of nodes");
    *sum += n;
    settle_counts(hub);
    settle_fence(hub);
    return 0;
}

static int take_fence(struct chempi_hub *hub, uint32_t child,
                      struct chempi_reader *r, struct chempi_err *err)
{
    const uint64_t n = chempi_wire_get_u64(r);

    if (!chempi_wire_is_done(r) || n != hub->children[child].fence + 1)
        return bad(err, "fence");
    hub->children[child].fence = n;
    settle_fence(hub);
    return 0;
}

/* Pass on what is for one node (its number opens the payload). */
static int route(struct chempi_hub *hub, uint16_t type, const void *data,
                 size_t len, bool from_above, struct chempi_err *err)
{
    struct chempi_reader r;
    uint32_t node;
    uint32_t next;

    chempi_wire_read(&r, data, len);
    node = chempi_wire_get_u32(&r);
    if (r.is_bad || node >= hub->node_count)
        return bad(err, "address");
    next = hub->next[node];
    if (next && !hub->children[next - 1].is_lost)
        hub->ops->down(hub->arg, next - 1, type, data, len);
    else if (!next && !from_above)
        hub->ops->up(hub->arg, type, data, len);
    else if (!next)
        return bad(err, "address of a node that is not below");
    return 0;
}

static void broadcast(struct chempi_hub *hub, uint16_t type, const void *data,
                      size_t len)
{
    for (uint32_t i = 0; i < hub->child_count; i++)
        if (!hub->children[i].is_lost)
            hub->ops->down(hub->arg, i, type, data, len);
}

/* The sender may speak for its own nodes only. */
static int pass_up(struct chempi_hub *hub, uint32_t child,
                   const struct chempi_frame *frame, struct chempi_reader *r,
                   struct chempi_err *err)
{
    const uint32_t node = chempi_wire_get_u32(r);

    if (r->is_bad || node >= hub->node_count || hub->next[node] != child + 1)
        return bad(err, "sender's node");
    hub->ops->up(hub->arg, frame->type, frame->data, frame->len);
    return 0;
}

int chempi_hub_take(struct chempi_hub *hub, uint32_t child,
                    const struct chempi_frame *frame, struct chempi_err *err)
{
    struct chempi_reader r;

    if (hub->children[child].is_lost)
        return 0;
    chempi_wire_read(&r, frame->data, frame->len);
    switch (frame->type) {
    case CHEMPI_MSG_STARTED:
    case CHEMPI_MSG_DONE:
    case CHEMPI_MSG_GONE:
        return take_count(hub, child, frame, &r, err);
    case CHEMPI_MSG_ENTERED:
        return take_fence(hub, child, &r, err);
    case CHEMPI_MSG_OUTPUT:
    case CHEMPI_MSG_EATEN:
    case CHEMPI_MSG_ENDED:
    case CHEMPI_MSG_NODE_LOST:
    case CHEMPI_MSG_STATS:
    case CHEMPI_MSG_ORDERED:
    case CHEMPI_MSG_ABSENT:
    case CHEMPI_MSG_GATEWAY:
    case CHEMPI_MSG_PLACES:
    case CHEMPI_MSG_SOUGHT:
    case CHEMPI_MSG_PIDS:
    case CHEMPI_MSG_TAKEN:
    case CHEMPI_MSG_ROOT_REQUEST:
        return pass_up(hub, child, frame, &r, err);
    case CHEMPI_MSG_ASK:
    case CHEMPI_MSG_ANSWER:
        return route(hub, frame->type, frame->data, frame->len, false, err);
    default:
        return bad(err, "unknown type");
    }
}

/* The longest payload of such a message. */
static size_t longest(uint16_t type)
{
    switch (type) {
    case CHEMPI_MSG_INPUT:
        return CHEMPI_STDIN_WINDOW + FIELDS_MAX;
    case CHEMPI_MSG_ANSWER:
        return CHEMPI_KVS_KEY_MAX + CHEMPI_KVS_VALUE_MAX + FIELDS_MAX;
    case CHEMPI_MSG_ROOT_REPLY:
        return CHEMPI_PORT_NAME_MAX + FIELDS_MAX;
    default: /* a sentence, a key, or numbers */
        return CHEMPI_TEXT_MAX + FIELDS_MAX;
    }
}

int chempi_hub_down(struct chempi_hub *hub, uint16_t type, const void *data,
                    size_t len, struct chempi_err *err)
{
    struct chempi_reader r;

    if (len > longest(type)) /* it would wait where nobody may read */
        return bad(err, "too long");
    switch (type) {
    case CHEMPI_MSG_SIGNAL:
    case CHEMPI_MSG_KILL:
    case CHEMPI_MSG_RELEASE:
    case CHEMPI_MSG_END:
    case CHEMPI_MSG_ABSENT:
    case CHEMPI_MSG_FALLEN:
    case CHEMPI_MSG_LOCATE:
    case CHEMPI_MSG_BEGIN:
        hub->has_ended |= type == CHEMPI_MSG_END;
        broadcast(hub, type, data, len);
        return 0;
    case CHEMPI_MSG_INPUT:
        chempi_wire_read(&r, data, len);
        if (chempi_wire_get_u32(&r) == CHEMPI_NODE_ANY) {
            broadcast(hub, type, data, len);
            return 0;
        }
        return route(hub, type, data, len, true, err);
    case CHEMPI_MSG_CREDIT:
    case CHEMPI_MSG_ASK:
    case CHEMPI_MSG_ANSWER:
    case CHEMPI_MSG_ROOT_REPLY:
        return route(hub, type, data, len, true, err);
    default:
        return bad(err, "unknown type");
    }
}

static void say_lost(struct chempi_hub *hub, uint32_t node, const char *text)
{
    uint8_t data[CHEMPI_TEXT_MAX + 16];
    struct chempi_writer w;

    chempi_wire_fix(&w, data, sizeof(data)); /* also without memory */
    chempi_wire_put_u32(&w, node);
    chempi_wire_put_str(&w, text);
    hub->ops->up(hub->arg, CHEMPI_MSG_NODE_LOST, w.data, w.len);
}

void chempi_hub_lose(struct chempi_hub *hub, uint32_t child, const char *text)
{
    struct chempi_hub_child *c = &hub->children[child];

    if (c->is_lost)
        return;
    CHEMPI_CHECK(chempi_hub_check(hub));
    c->is_lost = true;
    if (c->gone < c->nodes && !is_spare(hub, child))
        say_lost(hub, c->first_node, text);
    for (uint32_t i = hub->spare;
         c->gone < c->nodes && is_spare(hub, child) && i < hub->node_count; i++)
        if (hub->next[i] == child + 1)
            say_lost(hub, i, text);
    c->started = c->done = c->gone = c->nodes; /* H3 */
    settle_counts(hub);
    settle_fence(hub);
}

void chempi_hub_leave(struct chempi_hub *hub, uint32_t child)
{
    struct chempi_hub_child *c = &hub->children[child];

    c->is_lost = true; /* nothing more goes down to it */
    c->gone = c->nodes;
    settle_counts(hub);
    settle_fence(hub);
}
