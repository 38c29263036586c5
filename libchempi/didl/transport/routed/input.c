/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that have come for this process; see internal.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "libchempi/didl/transport/routed/internal.h"

/* A message is announced to the sink, whole or without its payload. NULL, or
 * chempi_shortage_left. */
static const char *take_message(struct chempi_routed_flow *flow,
                                const struct chempi_neighbor_frame *f)
{
    struct chempi_routed *routed = chempi_routed_of(flow);
    const struct chempi_dev_params *p = &routed->dev.params;
    bool is_whole = f->kind == CHEMPI_NEIGHBOR_EAGER;
    const struct chempi_arrival arrival = {
        .ep = &flow->ep,
        .env = f->env,
        .data = is_whole ? f->data : NULL,
        .avail = is_whole ? f->env.len : 0,
        .token = {f->sender, f->env.len},
        .protocol = is_whole ? CHEMPI_ROUTED_EAGER : CHEMPI_ROUTED_RENDEZVOUS,
    };
    enum chempi_verdict verdict;
    struct chempi_rx *rx = NULL;
    int rc;

    if (!is_whole && !chempi_routed_flow_expect(flow))
        return chempi_shortage_may_wait(&flow->shortages[CHEMPI_ROUTED_FOR_RTS])
                   ? chempi_shortage_left
                   : "out of memory for what it announces";
    chempi_dev_count(&routed->dev, arrival.protocol, f->env.len);
    verdict = p->sink->arrived(p->sink_arg, &arrival, &rx);
    if (verdict == CHEMPI_NO_ROOM) {
        flow->undecided -= !is_whole;
        chempi_dev_uncount(&routed->dev, arrival.protocol, f->env.len);
        return chempi_shortage_left;
    }
    if (verdict != CHEMPI_ACCEPT)
        return NULL;
    rc = routed->dev.ops->accept(&flow->ep, arrival.token, rx);
    if (rc != CHEMPI_PENDING)
        p->sink->delivered(p->sink_arg, rx, rc);
    return NULL;
}

/* The last part makes it a message that has come whole. */
static const char *take_part(struct chempi_routed_flow *flow,
                             const struct chempi_neighbor_frame *f)
{
    struct chempi_routed_part *part;
    const char *why = chempi_routed_part_take(flow, f, &part);
    struct chempi_neighbor_frame whole = {.kind = CHEMPI_NEIGHBOR_EAGER};

    if (why || !part)
        return why;
    whole.env = part->env;
    whole.data = part->data;
    whole.len = (uint32_t)part->env.len;
    why = take_message(flow, &whole);
    if (why == chempi_shortage_left)
        chempi_routed_part_untake(flow, f, part);
    else
        free(part);
    return why;
}

static const char *take_cts(struct chempi_routed_flow *flow,
                            const struct chempi_neighbor_frame *f)
{
    struct chempi_tx *tx =
        chempi_handle_table_take(&flow->announced, f->sender);

    if (!tx)
        return "it cleared a message that was not announced";
    if (f->number > tx->env.len) {
        chempi_list_append(&flow->bulk, &tx->link);
        return "it wants more of a message than there is";
    }
    tx->priv[CHEMPI_ROUTED_TX_POS] = 0;
    tx->priv[CHEMPI_ROUTED_TX_END] = f->number;
    tx->priv[CHEMPI_ROUTED_TX_RECEIVER] = f->receiver;
    chempi_list_append(&flow->bulk, &tx->link);
    chempi_routed_flow_work(flow);
    return NULL;
}

static const char *take_drop(struct chempi_routed_flow *flow,
                             const struct chempi_neighbor_frame *f)
{
    const struct chempi_dev_params *p = &chempi_routed_of(flow)->dev.params;
    struct chempi_tx *tx =
        chempi_handle_table_take(&flow->announced, f->sender);

    if (!tx)
        return "it dropped a message that was not announced";
    p->sink->sent(p->sink_arg, tx, 0);
    return NULL;
}

static const char *take_data(struct chempi_routed_flow *flow,
                             const struct chempi_neighbor_frame *f)
{
    const struct chempi_dev_params *p = &chempi_routed_of(flow)->dev.params;
    struct chempi_rx *rx = chempi_handle_table_get(&flow->cleared, f->receiver);

    if (!rx)
        return "it sent a piece of a message that was not cleared";
    if (f->number > rx->priv[CHEMPI_ROUTED_RX_TAKE] ||
        f->len > rx->priv[CHEMPI_ROUTED_RX_TAKE] - f->number ||
        f->len >
            rx->priv[CHEMPI_ROUTED_RX_TAKE] - rx->priv[CHEMPI_ROUTED_RX_GOT])
        return "it sent more of a message than was cleared";
    if (rx->iter) {
        if (rx->iter->position != f->number)
            chempi_segment_seek(rx->iter, f->number);
        (void)chempi_segment_unpack(rx->iter, f->data, f->len);
    } else {
        memcpy((uint8_t *)rx->buf + f->number, f->data, f->len);
    }
    rx->priv[CHEMPI_ROUTED_RX_GOT] += f->len;
    if (rx->priv[CHEMPI_ROUTED_RX_GOT] < rx->priv[CHEMPI_ROUTED_RX_TAKE])
        return NULL;
    (void)chempi_handle_table_take(&flow->cleared, f->receiver); /* F6 */
    p->sink->delivered(p->sink_arg, rx, 0);
    return NULL;
}

static const char *take_new(struct chempi_routed_flow *flow,
                            const struct chempi_neighbor_frame *f)
{
    switch (f->kind) {
    case CHEMPI_NEIGHBOR_CTS:
        return take_cts(flow, f);
    case CHEMPI_NEIGHBOR_DROP:
        return take_drop(flow, f);
    case CHEMPI_NEIGHBOR_DATA:
        return take_data(flow, f);
    case CHEMPI_NEIGHBOR_PART:
        return take_part(flow, f);
    default:
        return take_message(flow, f);
    }
}

/* Of a process that has died messages are taken, also those that it only
 * announced: others stand behind them in order (F11). */
static bool is_message(const struct chempi_neighbor_frame *f)
{
    return f->kind == CHEMPI_NEIGHBOR_EAGER ||
           f->kind == CHEMPI_NEIGHBOR_PART || f->kind == CHEMPI_NEIGHBOR_RTS;
}

/* NULL, what is wrong with it, or chempi_shortage_left: it comes again. */
static const char *take(struct chempi_routed_flow *flow,
                        const struct chempi_neighbor_frame *f)
{
    const char *why;
    int rc;

    chempi_routed_flow_acked(flow, f->ack);
    if (!chempi_neighbor_is_numbered(f->kind)) {
        if (f->flags & CHEMPI_NEIGHBOR_HURRY)
            chempi_routed_flow_ack(flow, false);
        return NULL;
    }
    rc = chempi_routed_flow_take(flow, f);
    if (rc <= 0)
        return rc ? "it sent a frame beyond its window" : NULL;
    if (flow->has_ended && !is_message(f))
        return NULL;
    why = take_new(flow, f);
    if (CHEMPI_UNLIKELY(why == chempi_shortage_left))
        chempi_routed_flow_untake(flow, f);
    return why;
}

/* The last gateway of its way has sent it (or its source, when no gateway is
 * left), and it is for us. */
static bool is_placed(const struct chempi_routed *routed, uint32_t from,
                      const struct chempi_neighbor_frame *f)
{
    return f->dst == routed->dev.params.services->proc &&
           f->at == f->gateway_count &&
           from ==
               (f->gateway_count ? f->gateways[f->gateway_count - 1] : f->src);
}

/* Whom a frame that is wrong has to do with, in a secure job: gateways may have
 * changed it. -1: nobody says. */
static int64_t find_pair(const struct chempi_routed *routed,
                         const struct chempi_neighbor_frame *f)
{
    const uint32_t self = routed->dev.params.services->proc;
    const uint32_t peer = f->src == self ? f->dst : f->src;

    return routed->seals && peer < routed->rank_count && peer != self
               ? (int64_t)peer
               : -1;
}

/* In a secure job a frame that is wrong is nobody's mistake. */
static void refuse(struct chempi_routed *routed, uint32_t from, int64_t peer,
                   const char *why)
{
    const struct chempi_dev_params *p = &routed->dev.params;
    const char *node = p->services->node_names[p->services->node_of_proc[from]];
    char text[CHEMPI_ERR_TEXT_MAX];

    if (peer < 0) {
        chempi_log(CHEMPI_LOG_WARNING, "gate",
                   "ignored what the gateway on node %s sent: %s", node, why);
        return;
    }
    (void)snprintf(text, sizeof(text),
                   "%s came over node %s, in a job with --secure", why, node);
    p->sink->lost(p->sink_arg, (uint32_t)peer, -EBADMSG, text);
}

/* A gateway says something itself. It is not believed in a secure job: see
 * gate_is_drained(). 0, or -EPROTO with *why. */
static int take_word(struct chempi_routed_flow *flow, const uint8_t *data,
                     size_t len, const char **why)
{
    struct chempi_neighbor_frame f;
    int rc = chempi_neighbor_frame_get(data, len, &f, why);

    if (rc)
        return rc;
    if (f.kind == CHEMPI_NEIGHBOR_FLUSHED)
        chempi_routed_flush_take(flow, &f);
    else if (chempi_routed_of(flow)->seals)
        flow->is_said_gone = true;
    else
        chempi_routed_flow_end(flow);
    return 0;
}

/* What the flow's peer has sent. 0, -EPROTO with *why, or -ENOMEM: it is left.
 */
static int take_frame(struct chempi_routed_flow *flow, const uint8_t *data,
                      size_t len, struct chempi_neighbor_frame *f,
                      const char **why)
{
    const struct chempi_dev_params *p = &flow->ep.dev->params;
    const uint32_t src = f->src;
    int rc = chempi_routed_sealed_get(flow, data, len, f, why);
    const char *wrong;

    if (rc)
        return rc;
    if (!chempi_routed_way_find(flow, 0))
        chempi_routed_way_learn(flow, f);
    wrong = take(flow, f);
    if (CHEMPI_UNLIKELY(wrong == chempi_shortage_left)) {
        chempi_routed_sealed_unget(flow, data, len);
        return -ENOMEM;
    }
    if (wrong)
        p->sink->lost(p->sink_arg, src, -EPROTO, wrong);
    return 0;
}

bool chempi_routed_input(void *arg, uint32_t from, const uint8_t *data,
                         size_t len, struct chempi_neighbor_buf *buf)
{
    struct chempi_routed *routed = arg;
    struct chempi_routed_flow *flow = NULL;
    struct chempi_neighbor_frame f;
    const char *why;
    int64_t peer = -1;
    bool is_counted = false;
    int rc = chempi_neighbor_frame_head(data, len, &f, &why);

    (void)buf; /* it is used up here */
    if (rc >= 0) {
        peer = find_pair(routed, &f);
        why = "a frame that is not for this process";
        rc = is_placed(routed, from, &f) ? 0 : -EPROTO;
        is_counted = f.gateway_count > 0 && chempi_neighbor_is_numbered(f.kind);
    }
    if (!rc)
        rc = chempi_routed_flow_get(routed, f.src, &flow);
    if (rc == -ENOMEM && chempi_shortage_may_wait(&routed->shortage))
        return false;
    if (!rc)
        rc = chempi_neighbor_is_gateways_own(f.kind)
                 ? take_word(flow, data, len, &why)
                 : take_frame(flow, data, len, &f, &why);
    if (flow && rc == -ENOMEM)
        return false;
    if (flow)
        flow->come += is_counted; /* F12; also one that is refused */
    if (rc)
        refuse(routed, from, peer, rc == -EPROTO ? why : chempi_err_name(rc));
    return true;
}
