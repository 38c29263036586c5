/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What of an ended rank has passed: a rank that waits for it asks every gateway
 * that the ended one may have sent by, and knows from the answers how many
 * frames are still to come. Only what the first gateway of a way has taken
 * counts, so that nothing is counted twice.
 */
#include "programs/gateway/gateway.h"

void gateway_flush_ended(struct gateway *g, uint32_t proc)
{
    if (proc >= g->job->size || g->ends[proc] != GATEWAY_END_NONE)
        return;
    g->ends[proc] = GATEWAY_END_TOLD;
    g->end_count++;
    g->is_restless = true;
}

void gateway_flush_ask(struct gateway *g, struct gateway_flow *flow,
                       struct chempi_neighbor_buf *buf)
{
    chempi_neighbor_buf_hold(buf);
    chempi_neighbor_buf_drop(flow->flush); /* one that has lost the answer */
    flow->flush = buf;
    if (g->ends[flow->src] != GATEWAY_END_OVER)
        return;
    g->ends[flow->src] = GATEWAY_END_TOLD; /* it is answered with the others */
    g->end_count++;
    g->is_restless = true;
}

/* False: no memory. */
static bool answer(struct gateway *g, struct gateway_flow *flow)
{
    struct chempi_neighbor_frame flushed = {.kind = CHEMPI_NEIGHBOR_FLUSHED,
                                            .seq = flow->behind,
                                            .number = flow->taken};
    /* Nothing comes from there any more. */
    struct chempi_shortage *shortage =
        &g->neighbors.sources[flow->src].shortage;
    struct chempi_neighbor_frame f;
    const char *why;

    if (chempi_neighbor_frame_head(flow->flush->data, flow->flush->len, &f,
                                   &why) >= 0 && /* it was read before */
        !gateway_answer(g, &f, &flushed)) {
        if (!chempi_shortage_may_wait(shortage))
            gateway_give_up(g, "out of memory for an answer");
        return false;
    }
    chempi_shortage_end(shortage);
    chempi_neighbor_buf_drop(flow->flush);
    flow->flush = NULL;
    return true;
}

static bool answer_all(struct gateway *g, uint32_t rank)
{
    for (uint32_t i = 0; i < g->flows.count; i++) {
        struct gateway_flow *flow = &g->flows.at[i];

        if (flow->src == rank && flow->flush && !answer(g, flow))
            return false;
    }
    return true;
}

/* How is it with a rank that has ended? */
static enum chempi_remains settle(struct gateway *g, uint32_t rank)
{
    const enum chempi_remains end =
        chempi_dev_remains(g->devices, g->device_count, rank);

    return end == CHEMPI_REMAINS_NONE &&
                   (chempi_neighbors_has_left(
                        &g->neighbors) || /* of it, too? */
                    !answer_all(g, rank))
               ? CHEMPI_REMAINS_LEFT
               : end;
}

int gateway_flush_settle(struct gateway *g)
{
    int events = 0;

    g->is_restless = false;
    for (uint32_t rank = 0; g->end_count && rank < g->job->size; rank++) {
        enum chempi_remains end;

        if (g->ends[rank] != GATEWAY_END_TOLD)
            continue;
        end = settle(g, rank);
        g->is_restless |= end == CHEMPI_REMAINS_LEFT;
        if (end != CHEMPI_REMAINS_NONE)
            continue;
        g->ends[rank] = GATEWAY_END_OVER;
        g->end_count--;
        events++;
    }
    return events;
}
