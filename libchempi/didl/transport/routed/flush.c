/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What gateways have of a process that has died (F12 of internal.h). Each one
 * that is left is asked (FLUSH): the process chose its ways from the table of
 * its own node. It answers (FLUSHED) when it has taken all that had been sent
 * to it: so many frames, up to this number. All is here when that number has
 * come, or so many frames: then also where others before that number never
 * reached a gateway.
 *
 * Time decides only where nobody knows more: frames may be lost with a gateway,
 * a gateway is not believed in a secure job, and answers none while the
 * launcher has not said that the process is dead (its connection here may have
 * broken).
 */
#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/transport/routed/internal.h"

#define CLOCK_TICK_NS 5000000L /* how often the clock is looked at */

enum { TO_ASK, ASKED, ANSWERED };

struct chempi_routed_flush {
    uint64_t since_ns;
    uint64_t taken;   /* frames, by all gateways together */
    uint64_t behind;  /* the number behind the last of these */
    uint32_t missing; /* answers */
    bool has_gap;     /* some of it may be lost, or unknown */
    bool is_timed;    /* counts in routed.timed */
    uint8_t states[]; /* [gateways] */
};

static uint32_t gateway_count(const struct chempi_routed *routed)
{
    return routed->dev.params.services->proc_count - routed->rank_count;
}

/* No way passes its own ends. */
static bool is_at_end(const struct chempi_routed_flow *flow, uint32_t gateway)
{
    const struct chempi_services *s = flow->ep.dev->params.services;
    const uint32_t node = s->node_of_proc[gateway];

    return node == s->node || node == s->node_of_proc[flow->ep.proc];
}

/* By the table of this node, can the process have sent to this rank by that
 * gateway first? */
static bool may_be_first(const struct chempi_routed_flow *flow,
                         uint32_t gateway)
{
    const struct chempi_services *s = flow->ep.dev->params.services;
    const uint32_t node = s->node_of_proc[gateway];
    const uint32_t from = s->node_of_proc[flow->ep.proc];
    const uint32_t at = chempi_table_find_node(s->table, s->node_names[node]);
    const uint32_t there =
        chempi_table_find_node(s->table, s->node_names[from]);

    return at == CHEMPI_TABLE_NONE || there == CHEMPI_TABLE_NONE ||
           chempi_table_has_common(s->table, at, there);
}

static void close_one(struct chempi_routed_flush *flush, uint32_t k)
{
    if (flush->states[k] != ANSWERED)
        flush->missing--;
    flush->states[k] = ANSWERED;
}

static struct chempi_routed_flush *begin(const struct chempi_routed_flow *flow)
{
    const struct chempi_routed *routed = chempi_routed_of(flow);
    const uint32_t count = gateway_count(routed);
    struct chempi_routed_flush *flush =
        chempi_sys->calloc(1, sizeof(*flush) + count);

    if (!flush)
        return NULL;
    flush->since_ns = chempi_clock_ns();
    flush->missing = count;
    for (uint32_t k = 0; k < count; k++) {
        const bool is_dead = routed->gateways[k] == CHEMPI_ROUTED_DEAD;

        flush->has_gap |= is_dead;
        if (is_dead || is_at_end(flow, routed->rank_count + k))
            close_one(flush, k);
    }
    return flush;
}

/* Nothing will be known from this gateway. */
static void give_up(struct chempi_routed_flow *flow, uint32_t k)
{
    flow->flush->has_gap |=
        may_be_first(flow, chempi_routed_of(flow)->rank_count + k);
    close_one(flow->flush, k);
}

/* 0, or -errno: it stays to be asked. */
static int send_question(struct chempi_routed *routed,
                         const struct chempi_neighbor_frame *f)
{
    uint8_t head[CHEMPI_NEIGHBOR_FIXED_MAX];
    const size_t len = chempi_neighbor_frame_put(head, f);
    struct chempi_neighbor_buf *buf = chempi_neighbor_buf_create(len);
    int rc;

    if (!buf)
        return -ENOMEM;
    memcpy(buf->data, head, len);
    rc = chempi_neighbors_queue(&routed->neighbors, f->gateways[0], buf);
    if (rc)
        chempi_neighbor_buf_drop(buf);
    return rc;
}

static void ask(struct chempi_routed_flow *flow, uint32_t k)
{
    struct chempi_shortage *shortage =
        &flow->shortages[CHEMPI_ROUTED_FOR_FLUSH];
    struct chempi_routed *routed = chempi_routed_of(flow);
    struct chempi_neighbor_frame f = {
        .kind = CHEMPI_NEIGHBOR_FLUSH,
        .src = routed->dev.params.services->proc,
        .dst = flow->ep.proc,
    };
    int rc;

    f.gateway_count = (uint8_t)chempi_routed_way_to_gateway(
        routed, routed->rank_count + k, f.gateways);
    rc = f.gateway_count ? send_question(routed, &f) : -EHOSTUNREACH;
    if (rc == 0) {
        flow->flush->states[k] = ASKED;
        chempi_shortage_end(shortage);
    } else if (rc == -EHOSTUNREACH ||
               (rc == -ENOMEM && !chempi_shortage_may_wait(shortage))) {
        give_up(flow, k);
    } /* else there is memory the next time, or its loss is said soon */
}

/* Does it help to go on waiting? */
static bool is_in_vain(const struct chempi_routed_flow *flow)
{
    const struct chempi_routed *routed = chempi_routed_of(flow);
    const uint64_t ns = chempi_clock_ns() - flow->flush->since_ns;

    if (!chempi_conn_has_ended(flow->ep.proc))
        return ns >=
               chempi_setting(CHEMPI_SET_DAEMON_SUSPECT) * CHEMPI_NS_PER_MS;
    return routed->seals &&
           ns >= chempi_dev_setting(&routed->dev, CHEMPI_ROUTED_SET_GAP) *
                     CHEMPI_NS_PER_MS;
}

/* Does the clock decide, too, when it is over? */
static bool is_timed(const struct chempi_routed_flow *flow)
{
    return !chempi_conn_has_ended(flow->ep.proc) ||
           chempi_routed_of(flow)->seals ||
           (flow->flush->has_gap && !flow->flush->missing);
}

/* Wake this process every so often, or not any more. 0 or -errno. */
static int set_clock(struct chempi_routed_flow *flow, bool is_on)
{
    struct chempi_routed *routed = chempi_routed_of(flow);
    struct chempi_pollset *set = routed->dev.params.services->pollset;

    if (flow->flush->is_timed != is_on)
        routed->timed += is_on ? 1u : -1u;
    flow->flush->is_timed = is_on;
    if (!routed->timed)
        chempi_pollset_untick(set, &routed->clock);
    return is_on ? chempi_pollset_tick(set, &routed->clock,
                                       chempi_pollset_ticked, CLOCK_TICK_NS)
                 : 0;
}

static bool has_to_ask(const struct chempi_routed_flow *flow)
{
    const uint32_t count = gateway_count(chempi_routed_of(flow));

    for (uint32_t k = 0; k < count; k++)
        if (flow->flush->states[k] == TO_ASK)
            return true;
    return false;
}

static bool is_over(const struct chempi_routed_flow *flow, bool is_quiet)
{
    const struct chempi_routed_flush *flush = flow->flush;

    if (is_in_vain(flow))
        return is_quiet;
    if (flush->missing)
        return false;
    if (flow->seq_in >= flush->behind)
        return true;
    return flush->has_gap ? is_quiet : flow->come >= flush->taken;
}

enum chempi_remains chempi_routed_flush_end(struct chempi_routed_flow *flow,
                                            bool is_quiet)
{
    struct chempi_routed *routed = chempi_routed_of(flow);

    if (!flow->way_count && !flow->come)
        return CHEMPI_REMAINS_NONE; /* no way leads from here to there, or back
                                     */
    if (!flow->flush) {
        flow->flush = begin(flow);
        if (!flow->flush)
            return chempi_shortage_may_wait(
                       &flow->shortages[CHEMPI_ROUTED_FOR_FLUSH])
                       ? CHEMPI_REMAINS_LEFT
                       : CHEMPI_REMAINS_NONE;
        chempi_shortage_end(&flow->shortages[CHEMPI_ROUTED_FOR_FLUSH]);
    }
    for (uint32_t k = 0; k < gateway_count(routed); k++)
        if (flow->flush->states[k] == TO_ASK)
            ask(flow, k);
    if (is_over(flow, is_quiet)) {
        (void)set_clock(flow, false); /* none is no error */
        return CHEMPI_REMAINS_NONE;
    }
    return set_clock(flow, is_timed(flow)) || has_to_ask(flow)
               ? CHEMPI_REMAINS_LEFT
               : CHEMPI_REMAINS_COMING;
}

void chempi_routed_flush_take(struct chempi_routed_flow *flow,
                              const struct chempi_neighbor_frame *f)
{
    const uint32_t k = f->gateways[0] - chempi_routed_of(flow)->rank_count;
    struct chempi_routed_flush *flush = flow->flush;
    uint64_t behind;

    if (!flush || !f->gateway_count ||
        k >= gateway_count(chempi_routed_of(flow)) || flush->states[k] != ASKED)
        return;
    close_one(flush, k);
    flush->taken += f->number;
    behind = f->number ? chempi_neighbor_seal_extend(flow->seq_in, f->seq) : 0;
    if (behind > flush->behind)
        flush->behind = behind;
}

void chempi_routed_flush_lose(struct chempi_routed_flow *flow, uint32_t gateway)
{
    const uint32_t first = chempi_routed_of(flow)->rank_count;
    struct chempi_routed_flush *flush = flow->flush;

    if (!flush)
        return;
    flush->has_gap = true;
    close_one(flush, gateway - first);
    for (uint32_t k = 0; k < gateway_count(chempi_routed_of(flow)); k++)
        if (flush->states[k] == ASKED)
            flush->states[k] = TO_ASK;
}
