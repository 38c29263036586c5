/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device that stands for all ways through gateways; see routed.h. It has no
 * network of its own: its frames travel in messages of the real devices.
 */
#include "libchempi/didl/transport/routed/routed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/containers/sparse.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/control/daemon.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/routed/internal.h"

#define POLLS_MAX 256u         /* until an acknowledgement goes by itself */
#define ENDED_POLLS 64u        /* without a frame of a process that has died, */
#define ENDED_NS 10000000u     /* and then so long */
#define DRAIN_TICK_NS 5000000L /* how often a drain looks at the clock */

static struct {
    const struct chempi_sink *above;
    struct chempi_routed *routed; /* NULL: not open */
} self;

static bool is_needed(void)
{
    return chempi_ctx.services.proc_count > chempi_ctx.job->size;
}

static struct chempi_routed *of_device(struct chempi_dev *dev)
{
    return (struct chempi_routed *)(void *)dev;
}

static struct chempi_routed_flow *flow_of(struct chempi_ep *ep)
{
    return (struct chempi_routed_flow *)(void *)ep;
}

static void gateway_lost(uint32_t proc, const char *why);

/* ---- what the real devices say ------------------------------------------ */

static enum chempi_verdict arrived(void *arg, const struct chempi_arrival *a,
                                   struct chempi_rx **rx)
{
    struct chempi_dev_traffic *counted = &a->ep->dev->received[a->protocol];
    enum chempi_verdict verdict;

    if (self.routed &&
        chempi_neighbors_arrived(&self.routed->neighbors, a, &verdict, rx)) {
        if (verdict == CHEMPI_NO_ROOM)
            self.routed->left_poll = self.routed->polls;
        if (verdict >= CHEMPI_NO_ROOM)
            return verdict;
        counted->messages--; /* the messages in frames are counted here */
        counted->bytes -= a->env.len;
        return verdict;
    }
    return self.above->arrived(arg, a, rx);
}

static void delivered(void *arg, struct chempi_rx *rx, int status)
{
    if (!self.routed ||
        !chempi_neighbors_delivered(&self.routed->neighbors, rx, status))
        self.above->delivered(arg, rx, status);
}

static void sent(void *arg, struct chempi_tx *tx, int status)
{
    if (!self.routed ||
        !chempi_neighbors_sent(&self.routed->neighbors, tx, status))
        self.above->sent(arg, tx, status);
}

static void room(void *arg, struct chempi_ep *ep)
{
    if (ep->proc < chempi_ctx.job->size)
        self.above->room(arg, ep);
    if (self.routed) /* frames go to ranks when no gateway is left */
        chempi_neighbors_room(&self.routed->neighbors, ep);
}

static void lost(void *arg, uint32_t proc, int status, const char *why)
{
    if (proc >= chempi_ctx.job->size) {
        gateway_lost(proc, why);
        return;
    }
    if (self.routed)
        chempi_neighbors_forget(&self.routed->neighbors, proc);
    self.above->lost(arg, proc, status, why);
}

static const struct chempi_sink routed_sink = {
    .arrived = arrived,
    .delivered = delivered,
    .sent = sent,
    .room = room,
    .lost = lost,
};

static const struct chempi_sink *sink_under(const struct chempi_sink *above)
{
    self.above = above;
    return &routed_sink;
}

/* ---- gateways ----------------------------------------------------------- */

static int ask(void *arg, uint32_t proc, const char *key)
{
    (void)arg;
    return chempi_daemon_get(proc, key);
}

static void left(void *arg, struct chempi_neighbor_buf *buf)
{
    const struct chempi_routed *routed = arg;

    if (buf->tally)
        chempi_route_stats_left(&routed->tally, buf);
}

static void neighbour_lost(void *arg, uint32_t proc, const char *why)
{
    const struct chempi_routed *routed = arg;

    lost(routed->dev.params.sink_arg, proc, -EPROTO, why);
}

static const struct chempi_neighbors_ops hop_ops = {
    .frame = chempi_routed_input,
    .left = left,
    .ask = ask,
    .lost = neighbour_lost,
};

static void gateway_card(uint32_t proc, const char *key, const void *card,
                         size_t len)
{
    if (self.routed)
        chempi_neighbors_card(&self.routed->neighbors, proc, key, card, len);
}

static void gateway_lost(uint32_t proc, const char *why)
{
    struct chempi_routed *routed = self.routed;
    bool is_cut = false;

    if (!routed || proc < routed->rank_count ||
        proc >= routed->dev.params.services->proc_count ||
        routed->gateways[proc - routed->rank_count] == CHEMPI_ROUTED_DEAD)
        return;
    routed->gateways[proc - routed->rank_count] = CHEMPI_ROUTED_DEAD;
    chempi_neighbors_forget(&routed->neighbors, proc);
    for (uint32_t p = 0; p < routed->rank_count; p++) {
        if (!routed->flows[p])
            continue;
        is_cut |= chempi_routed_flow_reroute(routed->flows[p], proc) != 0;
        chempi_routed_flush_lose(routed->flows[p], proc);
    }
    if (is_cut)
        chempi_routed_way_cut(routed, proc, why);
}

static void gateway_drained(uint32_t proc, bool is_drained)
{
    struct chempi_routed *routed = self.routed;

    if (!routed || proc < routed->rank_count ||
        proc >= routed->dev.params.services->proc_count ||
        routed->gateways[proc - routed->rank_count] == CHEMPI_ROUTED_DEAD)
        return;
    routed->gateways[proc - routed->rank_count] =
        is_drained ? CHEMPI_ROUTED_DRAINED : CHEMPI_ROUTED_UP;
    for (uint32_t p = 0; p < routed->rank_count; p++)
        if (routed->flows[p]) /* there is a way as long as it lives */
            (void)chempi_routed_way_choose(routed->flows[p]);
}

/* ---- opening and closing ------------------------------------------------ */

static const char *const protocol_names[] = {"eager", "rendezvous"};
static const uint64_t protocol_max[] = {CHEMPI_NEIGHBOR_CHUNK_MAX, UINT64_MAX};

static const struct chempi_dev_caps routed_caps = {
    .protocols = protocol_names,
    .protocol_count = CHEMPI_ROUTED_PROTOCOLS,
    .inject_max = CHEMPI_NEIGHBOR_CHUNK_MAX,
    .protocol_max = protocol_max,
    .eager_max = CHEMPI_NEIGHBOR_CHUNK_MAX,
};

static const struct chempi_setting settings[CHEMPI_ROUTED_SET_COUNT] = {
    [CHEMPI_ROUTED_SET_LINGER] =
        {"gate", "linger_ms",
         "How long a process that finishes waits for processes behind gateways "
         "to confirm what it has sent them, in milliseconds.",
         1000, 0, 3600000, NULL, CHEMPI_SETTING_LOCAL, false, false},
    [CHEMPI_ROUTED_SET_WINDOW] =
        {"gate", "window",
         "How much may be on its way through gateways to one process, in "
         "bytes.",
         512u << 10, 128u << 10, 4u << 20, NULL, CHEMPI_SETTING_LOCAL, false,
         false},
    [CHEMPI_ROUTED_SET_TOTAL] =
        {"gate", "total",
         "How much may be on its way through gateways to all processes "
         "together, in bytes; one frame to each may be in any case.",
         16u << 20, 512u << 10, 1u << 30, NULL, CHEMPI_SETTING_LOCAL, false,
         false},
    [CHEMPI_ROUTED_SET_GAP] =
        {"gate", "gap_ms",
         "In a secure job: for how long a frame that has come through gateways "
         "may be late when later ones have come, in milliseconds; then the "
         "process that sent it is lost.",
         60000, 100, 3600000, NULL, CHEMPI_SETTING_LOCAL, false, false},
};

static const struct chempi_gauge gauges[] = {
    {"resent", "Frames sent again because a gateway was lost, a count.",
     CHEMPI_GAUGE_COUNTER, CHEMPI_GAUGE_AT(struct chempi_routed, resent), NULL},
    {"unconfirmed", "What is on its way through gateways, in bytes.",
     CHEMPI_GAUGE_LEVEL, CHEMPI_GAUGE_AT(struct chempi_routed, unacked_bytes),
     NULL},
};

static const struct chempi_dev_panel routed_panel = {
    .text = "messages through gateways",
    .protocols = protocol_names,
    .protocol_count = CHEMPI_ROUTED_PROTOCOLS,
    .settings = settings,
    .setting_count = CHEMPI_ARRAY_LEN(settings),
    .gauges = gauges,
    .gauge_count = CHEMPI_ARRAY_LEN(gauges),
};

static void routed_close(struct chempi_dev *dev);

static int open_over(struct chempi_dev *const *devices,
                     const uint32_t *device_count,
                     const _Atomic uint64_t *settings_now,
                     struct chempi_dev **out, struct chempi_err *err)
{
    const struct chempi_services *s = &chempi_ctx.services;
    struct chempi_routed *routed = chempi_sys->calloc(1, sizeof(*routed));
    int rc = -ENOMEM;

    if (!routed)
        return chempi_err_set(err, rc, "out of memory for gateways");
    routed->dev = (struct chempi_dev){
        .ops = &chempi_routed_ops,
        .caps = &routed_caps,
        .params = {.services = s,
                   .sink = self.above,
                   .sink_arg = &chempi_lane_main,
                   .settings = settings_now},
    };
    routed->rank_count = chempi_ctx.job->size;
    routed->tally.is_on = chempi_ctx.job->want_stats & CHEMPI_STATS_ROUTES;
    routed->timer.fd = -1;
    chempi_list_init(&routed->work);
    chempi_list_init(&routed->owing);
    chempi_list_init(&routed->pressed);
    chempi_list_init(&routed->gaps);
    routed->alarm.fd = -1;
    routed->clock.fd = -1;
    routed->flows = chempi_sparse_alloc(routed->rank_count,
                                        sizeof(struct chempi_routed_flow *));
    routed->gateways = chempi_sys->calloc(s->proc_count - routed->rank_count,
                                          sizeof(*routed->gateways));
    if (routed->flows && routed->gateways)
        rc = chempi_neighbors_open(&routed->neighbors, s, devices, device_count,
                                   &hop_ops, routed);
    if (rc)
        (void)chempi_err_set(err, rc, "out of memory for gateways");
    else
        rc = chempi_routed_sealed_open(routed, err);
    if (rc) {
        routed_close(&routed->dev);
        return rc;
    }
    self.routed = routed;
    *out = &routed->dev;
    return 0;
}

static int routed_open(const struct chempi_dev_params *params,
                       struct chempi_dev **out, struct chempi_err *err)
{
    (void)params;
    (void)out;
    return chempi_err_set(err, -ENOTSUP, "gate is opened over other devices");
}

static void routed_close(struct chempi_dev *dev)
{
    struct chempi_routed *routed = of_device(dev);

    if (!routed)
        return;
    chempi_pollset_untick(routed->dev.params.services->pollset, &routed->timer);
    chempi_pollset_untick(routed->dev.params.services->pollset, &routed->clock);
    for (uint32_t p = 0; routed->flows && p < routed->rank_count; p++)
        chempi_routed_flow_destroy(routed->flows[p]);
    chempi_routed_sealed_close(routed);
    chempi_neighbors_close(&routed->neighbors);
    chempi_route_stats_fini(&routed->tally);
    chempi_sparse_free(routed->flows, routed->rank_count,
                       sizeof(struct chempi_routed_flow *));
    free(routed->gateways);
    free(routed);
    self.routed = NULL;
}

/* ---- operations --------------------------------------------------------- */

static int routed_connect(struct chempi_dev *dev, uint32_t proc,
                          struct chempi_ep **out, struct chempi_err *err)
{
    struct chempi_routed *routed = of_device(dev);
    const struct chempi_services *s = dev->params.services;
    struct chempi_routed_flow *flow;
    const struct chempi_routed_way *way;
    int rc = chempi_routed_flow_get(routed, proc, &flow);

    if (rc)
        return chempi_err_set(err, rc, "%s to process %u",
                              rc == -ENOMEM ? "out of memory for the way"
                                            : "no gateway leads",
                              proc);
    way = chempi_routed_way_find(flow, 0);
    if (!way)
        return chempi_routed_way_none(routed, s->node_of_proc[proc], err);
    rc = chempi_neighbors_reach(&routed->neighbors,
                                chempi_routed_way_next(flow, way), err);
    if (rc)
        return rc;
    *out = &flow->ep;
    return 0;
}

/* What to answer for a message when sending it says rc. */
static int answer(struct chempi_routed_flow *flow,
                  const struct chempi_envelope *env, int rc)
{
    if (rc == -ENOMEM &&
        chempi_routed_flow_may_wait(flow, CHEMPI_ROUTED_FOR_MESSAGE))
        rc = -EAGAIN;
    if (rc != -EAGAIN) {
        chempi_neighbors_flush(&chempi_routed_of(flow)->neighbors);
        return rc;
    }
    flow->is_starved = true;
    chempi_routed_trace_stopped(flow, env);
    return rc;
}

/* A message that need not be announced, whole or in parts. */
static int send_eager(struct chempi_routed_flow *flow,
                      const struct chempi_envelope *env, const void *data,
                      struct chempi_segment *iter)
{
    const struct chempi_routed_way *way =
        chempi_routed_way_find(flow, env->len);
    struct chempi_neighbor_frame f = {.kind = CHEMPI_NEIGHBOR_EAGER,
                                      .env = *env};

    if (way && env->len > way->chunk)
        return chempi_routed_part_send(flow, way, env, data, iter);
    return chempi_routed_flow_send(flow, &f, env->len, data, iter,
                                   (size_t)env->len);
}

static int routed_inject(struct chempi_ep *ep,
                         const struct chempi_envelope *env, const void *data,
                         size_t len, bool may_keep)
{
    struct chempi_routed_flow *flow = flow_of(ep);

    (void)len; /* the envelope's */
    (void)may_keep;
    return answer(flow, env, send_eager(flow, env, data, NULL));
}

static int announce(struct chempi_routed_flow *flow, struct chempi_tx *tx)
{
    struct chempi_neighbor_frame f = {.kind = CHEMPI_NEIGHBOR_RTS,
                                      .env = tx->env};
    int rc = chempi_handle_table_put(&flow->announced, tx, &f.sender);

    if (rc)
        return rc;
    rc = chempi_routed_flow_send(flow, &f, tx->env.len, NULL, NULL, 0);
    if (rc == CHEMPI_DONE) {
        chempi_routed_trace_goes(flow, tx);
        return CHEMPI_PENDING;
    }
    (void)chempi_handle_table_take(&flow->announced, f.sender);
    return rc;
}

static int routed_send(struct chempi_ep *ep, struct chempi_tx *tx)
{
    struct chempi_routed_flow *flow = flow_of(ep);
    bool is_eager =
        tx->env.len <= CHEMPI_NEIGHBOR_CHUNK_MAX && !tx->needs_consent;

    memset(tx->priv, 0, sizeof(tx->priv));
    chempi_list_init(&tx->link);
    tx->ep = ep;
    return answer(flow, &tx->env,
                  is_eager || tx->env.len == 0
                      ? send_eager(flow, &tx->env, tx->buf, tx->iter)
                      : announce(flow, tx));
}

static int routed_accept(struct chempi_ep *ep, const uint64_t token[2],
                         struct chempi_rx *rx)
{
    struct chempi_routed_flow *flow = flow_of(ep);
    uint64_t take = token[1] < rx->cap ? token[1] : rx->cap;
    int rc;

    if (take == 0) {
        ep->dev->ops->drop(ep, token);
        return CHEMPI_DONE;
    }
    flow->undecided--;
    if (flow->has_ended)
        return -EPIPE; /* F11 */
    memset(rx->priv, 0, sizeof(rx->priv));
    rx->priv[CHEMPI_ROUTED_RX_TAKE] = take;
    rx->priv[CHEMPI_ROUTED_RX_SENDER] = token[0];
    rc = chempi_routed_flow_clear(flow, rx);
    if (rc == -ENOMEM &&
        chempi_routed_flow_may_wait(flow, CHEMPI_ROUTED_FOR_CTS)) {
        chempi_list_init(&rx->link);
        chempi_list_append(&flow->uncleared, &rx->link);
        rc = 0;
    }
    return rc ? rc : CHEMPI_PENDING;
}

static void routed_drop(struct chempi_ep *ep, const uint64_t token[2])
{
    struct chempi_routed_flow *flow = flow_of(ep);

    flow->undecided--;
    chempi_routed_flow_drop(flow, token[0]);
}

/* ---- reports ------------------------------------------------------------- */

static void report(struct chempi_writer *out)
{
    if (self.routed)
        chempi_route_stats_report(&self.routed->tally, &self.routed->neighbors,
                                  out);
}

/* ---- progress ----------------------------------------------------------- */

static int pay(struct chempi_routed *routed)
{
    bool is_sleepy = routed->is_sleepy;
    int events = 0;

    routed->is_sleepy = false;
    CHEMPI_LIST_FOR_SAFE (pos, &routed->owing) {
        struct chempi_routed_flow *flow =
            CHEMPI_CONTAINER_OF(pos, struct chempi_routed_flow, owing);

        if (!is_sleepy && !flow->owes_now && ++flow->owed_polls < POLLS_MAX)
            continue;
        chempi_routed_flow_ack(flow, false);
        events += chempi_list_is_empty(&flow->owing); /* else no memory */
    }
    return events;
}

static int routed_progress(struct chempi_dev *dev)
{
    struct chempi_routed *routed = of_device(dev);
    struct chempi_list now;
    int events = 0;

    routed->polls++;
    if (!chempi_list_is_empty(&routed->work)) {
        chempi_list_init(&now);
        chempi_list_splice(&now, &routed->work);
        while (!chempi_list_is_empty(&now)) {
            struct chempi_routed_flow *flow = CHEMPI_CONTAINER_OF(
                chempi_list_first(&now), struct chempi_routed_flow, work);

            chempi_list_remove(&flow->work);
            events += chempi_routed_flow_pump(flow);
        }
    }
    if (!chempi_list_is_empty(&routed->owing))
        events += pay(routed);
    if (CHEMPI_UNLIKELY(!chempi_list_is_empty(&routed->gaps)))
        chempi_routed_sealed_check(routed);
    if (CHEMPI_UNLIKELY(chempi_neighbors_has_left(&routed->neighbors)))
        events += chempi_neighbors_retake(&routed->neighbors);
    if (chempi_neighbors_is_dirty(&routed->neighbors)) {
        chempi_neighbors_flush(&routed->neighbors);
        events++;
    }
    return events;
}

static bool gate_is_ready(struct chempi_dev *dev)
{
    struct chempi_routed *routed = of_device(dev);

    if (!chempi_list_is_empty(&routed->owing)) {
        routed->is_sleepy = true;
        return true;
    }
    return !chempi_list_is_empty(&routed->work) ||
           chempi_neighbors_is_dirty(&routed->neighbors) ||
           chempi_neighbors_has_left(&routed->neighbors);
}

/* ---- the end ------------------------------------------------------------ */

/* Has all of this flow left? *is_unacked: and not yet arrived. */
static bool is_flow_drained(struct chempi_routed_flow *flow, bool *is_unacked)
{
    bool is_empty;

    if (flow->unacked_count) {
        *is_unacked = true;
        if (!flow->is_asked)
            chempi_routed_flow_ack(flow, true);
        flow->is_asked = true;
    }
    is_empty = chempi_list_is_empty(&flow->held) &&
               chempi_list_is_empty(&flow->bulk) && flow->announced.used == 0 &&
               flow->dropped_count == 0 && !flow->has_strays;
    if (flow->is_said_gone) { /* what is not empty may never be, then */
        *is_unacked |= !is_empty;
        return true;
    }
    return is_empty && chempi_list_is_empty(&flow->owing);
}

/*
 * A frame is safe when it is acknowledged. A receiver that computes, or has
 * left MPI, does not acknowledge: then it is enough, after a while, that the
 * frames are with the gateway.
 */
static bool gate_is_drained(struct chempi_dev *dev)
{
    struct chempi_routed *routed = of_device(dev);
    bool is_unacked = false;
    bool is_drained = routed->neighbors.queued == 0;

    routed->is_sleepy = true;
    for (uint32_t p = 0; p < routed->rank_count; p++)
        if (routed->flows[p])
            is_drained =
                is_flow_drained(routed->flows[p], &is_unacked) && is_drained;
    if (!is_drained || !is_unacked) {
        routed->drain_ns = 0; /* not when it is over: it is asked again */
    } else {
        uint64_t now_ns = chempi_clock_ns();

        if (!routed->drain_ns)
            routed->drain_ns = now_ns;
        is_drained = now_ns - routed->drain_ns >=
                     chempi_dev_setting(dev, CHEMPI_ROUTED_SET_LINGER) *
                         CHEMPI_NS_PER_MS;
        /* Or acknowledgements wake us alone. */
        (void)chempi_pollset_tick(routed->dev.params.services->pollset,
                                  &routed->timer, chempi_pollset_ticked,
                                  DRAIN_TICK_NS);
    }
    if (is_drained)
        chempi_pollset_untick(routed->dev.params.services->pollset,
                              &routed->timer);
    return is_drained;
}

static bool is_recent(const struct chempi_routed *routed, uint64_t poll)
{
    return poll && routed->polls - poll < ENDED_POLLS;
}

/* Has nothing of it come for a while, nor been left here or at a device? */
static bool is_quiet(struct chempi_routed_flow *flow)
{
    const struct chempi_routed *routed = chempi_routed_of(flow);
    const uint64_t now_ns = chempi_clock_ns();

    if (!flow->quiet_ns || chempi_neighbors_has_left(&routed->neighbors) ||
        is_recent(routed, routed->left_poll) ||
        is_recent(routed, flow->come_poll)) {
        flow->quiet_ns = now_ns;
        flow->quiet_poll = routed->polls;
    }
    return now_ns - flow->quiet_ns >= ENDED_NS &&
           routed->polls - flow->quiet_poll >= ENDED_POLLS;
}

/* Also who has not been heard of gets a flow: something of it may come late. */
static enum chempi_remains routed_ended(struct chempi_dev *dev, uint32_t proc)
{
    struct chempi_routed *routed = of_device(dev);
    const struct chempi_services *s = dev->params.services;
    struct chempi_routed_flow *flow;
    int rc;

    if (proc == s->proc || s->node_of_proc[proc] == s->node)
        return CHEMPI_REMAINS_NONE; /* no gateway is on its way */
    rc = chempi_routed_flow_get(routed, proc, &flow);
    if (rc)
        return rc == -ENOMEM && chempi_shortage_may_wait(&routed->shortage)
                   ? CHEMPI_REMAINS_LEFT
                   : CHEMPI_REMAINS_NONE;
    chempi_routed_flow_bury(flow);
    return chempi_routed_flush_end(flow, is_quiet(flow));
}

const struct chempi_dev_ops chempi_routed_ops = {
    .abi = CHEMPI_DEV_ABI,
    .name = "gate",
    .panel = &routed_panel,
    .open = routed_open,
    .card = chempi_dev_no_card,
    .connect = routed_connect,
    .card_arrived = chempi_dev_no_card_arrived,
    .inject = routed_inject,
    .send = routed_send,
    .accept = routed_accept,
    .drop = routed_drop,
    .progress = routed_progress,
    .is_ready = gate_is_ready,
    .is_drained = gate_is_drained,
    .close = routed_close,
    .ended = routed_ended,
};

const struct chempi_conn_overlay chempi_routed_overlay = {
    .ops = &chempi_routed_ops,
    .is_needed = is_needed,
    .sink = sink_under,
    .open = open_over,
    .report = report,
    .card = gateway_card,
    .lost = gateway_lost,
    .drained = gateway_drained,
};
