/* SPDX-License-Identifier: BSD-3-Clause */
/* From one neighbour to the next; see gateway.h. */
#include <errno.h>
#include <string.h>

#include "common/base/log.h"
#include "programs/gateway/gateway.h"

static struct gateway *gateway_of(void *arg)
{
    return arg;
}

/* ---- what the devices say ----------------------------------------------- */

/* Ranks send nothing but frames to a gateway. */
static enum chempi_verdict arrived(void *arg, const struct chempi_arrival *a,
                                   struct chempi_rx **rx)
{
    struct gateway *g = gateway_of(arg);
    enum chempi_verdict verdict = CHEMPI_TAKEN;

    if (!chempi_neighbors_arrived(&g->neighbors, a, &verdict, rx))
        gateway_give_up(g, "rank %u sent the gateway what is no frame",
                        a->ep->proc);
    return verdict;
}

static void delivered(void *arg, struct chempi_rx *rx, int status)
{
    (void)chempi_neighbors_delivered(&gateway_of(arg)->neighbors, rx, status);
}

static void sent(void *arg, struct chempi_tx *tx, int status)
{
    (void)chempi_neighbors_sent(&gateway_of(arg)->neighbors, tx, status);
}

static void room(void *arg, struct chempi_ep *ep)
{
    chempi_neighbors_room(&gateway_of(arg)->neighbors, ep);
}

/* Whoever it is, its supervisor tells the others. */
static void lost(void *arg, uint32_t proc, int status, const char *why)
{
    struct gateway *g = gateway_of(arg);

    (void)status;
    chempi_log(CHEMPI_LOG_INFO, "gateway", "process %u is lost: %s", proc, why);
    chempi_neighbors_forget(&g->neighbors, proc);
}

const struct chempi_sink gateway_sink = {
    .arrived = arrived,
    .delivered = delivered,
    .sent = sent,
    .room = room,
    .lost = lost,
};

/* ---- frames ------------------------------------------------------------- */

/* The neighbour that comes after this gateway. */
static uint32_t next_of(const struct chempi_neighbor_frame *f)
{
    return f->at + 1u < f->gateway_count ? f->gateways[f->at + 1] : f->dst;
}

/* NULL, or what is wrong: it comes from where its way says, and goes on. */
static const char *check(const struct gateway *g, uint32_t from,
                         const struct chempi_neighbor_frame *f)
{
    const uint32_t ranks = g->job->size;
    const uint32_t procs = g->services.proc_count;

    if (f->src >= ranks || f->dst >= ranks || f->src == f->dst)
        return "a frame between impossible ranks";
    if (f->at >= f->gateway_count || f->gateways[f->at] != g->services.proc)
        return "a frame whose way does not lead here";
    if (from != (f->at ? f->gateways[f->at - 1] : f->src))
        return "a frame that came another way than it says";
    if (f->at == 0 && chempi_neighbor_is_gateways_own(f->kind))
        return "a rank's frame of a kind that only gateways send";
    for (uint32_t i = 0; i < f->gateway_count; i++)
        if (f->gateways[i] < ranks || f->gateways[i] >= procs)
            return "a frame over what is no gateway";
    return NULL;
}

/* Tell a sender that its receiver has finished. */
static void answer_gone(struct gateway *g,
                        const struct chempi_neighbor_frame *f)
{
    struct chempi_neighbor_frame gone = {.kind = CHEMPI_NEIGHBOR_GONE};

    if (chempi_neighbor_is_gateways_own(f->kind))
        return;
    /* Without memory it asks again with its next frame. */
    (void)gateway_answer(g, f, &gone);
}

/* G3; what is sent again over another way is another frame. */
static void note_taken(struct gateway_flow *flow,
                       const struct chempi_neighbor_frame *f)
{
    if (f->at || !chempi_neighbor_is_numbered(f->kind))
        return;
    if (!flow->taken++ || (int32_t)(f->seq + 1 - flow->behind) > 0)
        flow->behind = f->seq + 1;
}

/* The number of the way that counts this frame from here on. */
static uint32_t tally(struct gateway *g, const struct chempi_neighbor_frame *f)
{
    struct chempi_route_stats_key key = {
        .class = chempi_neighbor_class_of(f->flags),
        .at = (uint8_t)(f->at + 1u),
        .gateway_count = f->gateway_count,
    };

    if (CHEMPI_LIKELY(!g->tally.is_on))
        return 0;
    key.from = g->services.node_of_proc[f->src];
    key.to = g->services.node_of_proc[f->dst];
    memcpy(key.gateways, f->gateways,
           f->gateway_count * sizeof(f->gateways[0]));
    return chempi_route_stats_find(&g->tally, &key, next_of(f));
}

/* G2 */
static uint64_t flow_max(const struct gateway *g)
{
    return (uint64_t)GATEWAY_FLOW_MAX * (g->services.proc_count - g->job->size);
}

/* False: no memory. */
static bool forward(struct gateway *g, struct gateway_flow *flow,
                    const struct chempi_neighbor_frame *f,
                    struct chempi_neighbor_buf *buf)
{
    int rc = chempi_neighbors_reach(&g->neighbors, next_of(f), NULL);

    if (rc == -ENOMEM)
        return false;
    if (rc) { /* not that it has finished */
        gateway_give_up(g, "process %u cannot be reached: %s", next_of(f),
                        chempi_err_name(rc));
        return true;
    }
    if (flow->held + buf->len > flow_max(g)) {
        gateway_give_up(g, "rank %u sends more to rank %u than its window",
                        f->src, f->dst);
        return true;
    }
    chempi_neighbor_frame_set_at(buf->data, (uint8_t)(f->at + 1u));
    buf->flow = flow->slot;
    buf->tally = tally(g, f);
    flow->frames++;
    flow->bytes += buf->len;
    flow->held += buf->len;
    if (flow->held > flow->peak)
        flow->peak = flow->held;
    chempi_neighbor_buf_hold(buf);
    rc = chempi_neighbors_queue(&g->neighbors, next_of(f), buf);
    if (rc == 0) {
        note_taken(flow, f);
        return true;
    }
    flow->held -= buf->len;
    g->dropped++;
    chempi_neighbor_buf_drop(buf);
    if (next_of(f) == f->dst)
        answer_gone(g, f);
    return true;
}

/* A buffer of the gateway's own for a frame that lies with a device. NULL:
 * memory is missing. */
static struct chempi_neighbor_buf *copy(const uint8_t *data, size_t len)
{
    struct chempi_neighbor_buf *buf = chempi_neighbor_buf_create(len);

    if (buf)
        memcpy(buf->data, data, len);
    return buf;
}

/* The frame comes again, when there is some. */
static CHEMPI_COLD bool miss_memory(struct gateway *g, uint32_t from)
{
    if (!chempi_shortage_may_wait(&g->neighbors.sources[from].shortage))
        gateway_give_up(g, "out of memory for a frame");
    return false;
}

/* Is the question for this gateway? */
static bool is_asked(const struct chempi_neighbor_frame *f)
{
    return f->kind == CHEMPI_NEIGHBOR_FLUSH && f->at + 1u == f->gateway_count;
}

/* Whoever gives one up goes on to the end with what comes. */
static bool take(struct gateway *g, uint32_t from,
                 struct chempi_neighbor_buf *buf)
{
    struct chempi_neighbor_frame f;
    struct gateway_flow *flow;
    const char *why;
    const int head_len =
        chempi_neighbor_frame_head(buf->data, buf->len, &f, &why);
    bool has_memory = true;

    if (head_len >= 0)
        why = check(g, from, &f);
    if (!why && is_asked(&f) && buf->len != (size_t)head_len)
        why = "a question that is too long"; /* it would be kept (G3) */
    if (why) {
        gateway_give_up(g, "process %u sent %s", from, why);
        return true;
    }
    flow = is_asked(&f) ? gateway_flows_get(&g->flows, f.dst, f.src)
                        : gateway_flows_get(&g->flows, f.src, f.dst);
    if (CHEMPI_UNLIKELY(!flow))
        return miss_memory(g, from);
    if (is_asked(&f))
        gateway_flush_ask(g, flow, buf);
    else
        has_memory = forward(g, flow, &f, buf);
    if (CHEMPI_UNLIKELY(!has_memory))
        return miss_memory(g, from);
    chempi_shortage_end(&g->neighbors.sources[from].shortage);
    return true;
}

/* What lies with a device may be memory that its sender can still write: what
 * is looked at is what is sent on. */
static bool frame(void *arg, uint32_t from, const uint8_t *data, size_t len,
                  struct chempi_neighbor_buf *buf)
{
    struct gateway *g = gateway_of(arg);
    struct chempi_neighbor_buf *own = buf ? NULL : copy(data, len);
    bool is_taken;

    if (own)
        buf = own;
    is_taken = buf ? take(g, from, buf) : miss_memory(g, from);
    chempi_neighbor_buf_drop(own);
    return is_taken;
}

/* G1 */
static void left(void *arg, struct chempi_neighbor_buf *buf)
{
    struct gateway *g = gateway_of(arg);

    if (buf->flow)
        g->flows.at[buf->flow - 1].held -= buf->len;
    if (buf->tally)
        chempi_route_stats_left(&g->tally, buf);
}

static int ask(void *arg, uint32_t proc, const char *key)
{
    struct gateway *g = gateway_of(arg);

    return g->client ? chempi_client_get(g->client, proc, key) : -EPIPE;
}

static void neighbour_lost(void *arg, uint32_t proc, const char *why)
{
    gateway_give_up(gateway_of(arg), "process %u: %s", proc, why);
}

const struct chempi_neighbors_ops gateway_neighbors_ops = {
    .frame = frame,
    .left = left,
    .ask = ask,
    .lost = neighbour_lost,
};
