/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which way a flow's messages take, counted for chempirun --trace-routes. A
 * class of messages is a range of the table and one of this device's protocols,
 * as are the routes that lead here; class 0 are frames that are no message's.
 */
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/transport/routed/internal.h"

uint8_t chempi_routed_trace_class(const struct chempi_routed_flow *flow,
                                  uint64_t len)
{
    uint32_t i = 0;

    if (!chempi_routed_of(flow)->tally.is_on || !flow->way_count)
        return 0;
    while (i + 1 < flow->way_count && len > flow->ways[i].max_len)
        i++;
    return (uint8_t)(1 + CHEMPI_ROUTED_PROTOCOLS * i +
                     (len > CHEMPI_NEIGHBOR_CHUNK_MAX ? CHEMPI_ROUTED_RENDEZVOUS
                                                      : CHEMPI_ROUTED_EAGER));
}

/* What the sender knows of a way. */
static void describe(const struct chempi_routed_flow *flow,
                     const struct chempi_routed_way *way,
                     struct chempi_route_stats_way *out)
{
    const struct chempi_services *s = flow->ep.dev->params.services;
    const uint32_t class = out->key.class;
    const uint32_t i = class ? (class - 1u) / CHEMPI_ROUTED_PROTOCOLS : 0;

    out->network = "-";
    if (way->range && !way->is_direct)
        out->network =
            chempi_table_network(s->table, way->range->network)->name;
    out->protocol = "control";
    if (!class || i >= flow->way_count)
        return;
    out->max_len = flow->ways[i].max_len;
    out->protocol = "rendezvous";
    if ((class - 1u) % CHEMPI_ROUTED_PROTOCOLS == CHEMPI_ROUTED_RENDEZVOUS)
        return;
    out->protocol = "eager";
    if (out->max_len > CHEMPI_NEIGHBOR_CHUNK_MAX)
        out->max_len = CHEMPI_NEIGHBOR_CHUNK_MAX;
}

uint32_t chempi_routed_trace_way(const struct chempi_routed_flow *flow,
                                 const struct chempi_routed_way *way,
                                 uint8_t class)
{
    const struct chempi_services *s = flow->ep.dev->params.services;
    struct chempi_route_stats *tally = &chempi_routed_of(flow)->tally;
    struct chempi_route_stats_key key = {.class = class,
                                         .gateway_count = way->gateway_count};
    struct chempi_route_stats_way *counted;
    uint32_t number;

    if (CHEMPI_LIKELY(!tally->is_on))
        return 0;
    key.from = s->node;
    key.to = s->node_of_proc[flow->ep.proc];
    for (uint32_t i = 0; i < way->gateway_count; i++)
        key.gateways[i] = way->gateways[i];
    number =
        chempi_route_stats_find(tally, &key, chempi_routed_way_next(flow, way));
    counted = chempi_route_stats_way(tally, number);
    if (counted && !counted->protocol)
        describe(flow, way, counted);
    return number;
}

static struct chempi_route_stats_way *
way_of(const struct chempi_routed_flow *flow, uint32_t number)
{
    return chempi_route_stats_way(&chempi_routed_of(flow)->tally, number);
}

void chempi_routed_trace_sent(const struct chempi_routed_flow *flow,
                              const struct chempi_neighbor_buf *buf,
                              const struct chempi_neighbor_frame *f, size_t n)
{
    struct chempi_route_stats_way *way = way_of(flow, buf->tally);

    if (CHEMPI_LIKELY(!way))
        return;
    way->messages += f->kind == CHEMPI_NEIGHBOR_EAGER ||
                     f->kind == CHEMPI_NEIGHBOR_RTS ||
                     (f->kind == CHEMPI_NEIGHBOR_PART && f->number == 0);
    way->bytes += n;
}

void chempi_routed_trace_stopped(struct chempi_routed_flow *flow,
                                 const struct chempi_envelope *env)
{
    const struct chempi_routed_way *way =
        chempi_routed_way_find(flow, env->len);
    struct chempi_route_stats_way *counted = NULL;

    if (CHEMPI_LIKELY(!chempi_routed_of(flow)->tally.is_on) || !way ||
        (flow->is_stopped && flow->stopped == env->serial))
        return; /* it is tried until there is room */
    flow->is_stopped = true;
    flow->stopped = env->serial;
    counted =
        way_of(flow, chempi_routed_trace_way(
                         flow, way, chempi_routed_trace_class(flow, env->len)));
    if (counted)
        counted->waits++;
}

void chempi_routed_trace_waits(const struct chempi_routed_flow *flow,
                               const struct chempi_tx *tx)
{
    struct chempi_route_stats_way *way =
        way_of(flow, (uint32_t)tx->priv[CHEMPI_ROUTED_TX_TALLY]);

    if (way)
        way->waits++;
}

void chempi_routed_trace_goes(const struct chempi_routed_flow *flow,
                              struct chempi_tx *tx)
{
    const struct chempi_routed_way *way =
        chempi_routed_way_find(flow, tx->env.len);
    struct chempi_route_stats_way *before;
    uint32_t number;

    if (CHEMPI_LIKELY(!chempi_routed_of(flow)->tally.is_on) || !way)
        return;
    before = way_of(flow, (uint32_t)tx->priv[CHEMPI_ROUTED_TX_TALLY]);
    number = chempi_routed_trace_way(
        flow, way, chempi_routed_trace_class(flow, tx->env.len));
    if (before && number != tx->priv[CHEMPI_ROUTED_TX_TALLY])
        before->moved++;
    tx->priv[CHEMPI_ROUTED_TX_TALLY] = number;
}

/* Has this message pieces that are not in frames yet? Then it is noticed to
 * have moved when the next one goes. */
static bool is_unfinished(const struct chempi_routed_flow *flow,
                          uint64_t receiver)
{
    CHEMPI_LIST_FOR (pos, &flow->bulk)
        if (CHEMPI_CONTAINER_OF(pos, struct chempi_tx, link)
                ->priv[CHEMPI_ROUTED_TX_RECEIVER] == receiver)
            return true;
    return false;
}

void chempi_routed_trace_resent(const struct chempi_routed_flow *flow,
                                const struct chempi_neighbor_frame *f,
                                uint32_t before, uint32_t now,
                                struct chempi_routed_moves *moves)
{
    struct chempi_route_stats_way *from = way_of(flow, before);
    struct chempi_route_stats_way *to = way_of(flow, now);

    if (to)
        to->resent++;
    if (!from ||
        (f->kind != CHEMPI_NEIGHBOR_EAGER && f->kind != CHEMPI_NEIGHBOR_DATA &&
         f->kind != CHEMPI_NEIGHBOR_PART))
        return;
    if (f->kind == CHEMPI_NEIGHBOR_PART) { /* one after the other (F10) */
        if (moves->has_part && moves->part == f->sender)
            return;
        moves->has_part = true;
        moves->part = f->sender;
    }
    if (f->kind == CHEMPI_NEIGHBOR_DATA) {
        for (uint32_t i = 0; i < moves->count; i++)
            if (moves->receivers[i] == f->receiver)
                return;
        if (is_unfinished(flow, f->receiver))
            return;
        moves->receivers[moves->count++] = f->receiver;
    }
    from->moved++;
}
