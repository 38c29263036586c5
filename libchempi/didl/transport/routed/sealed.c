/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows of secure jobs: their frames are sealed between ranks
 * (neighbors/seal.h), and what gateways leave out is missed. In other jobs
 * these functions do next to nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/secret.h"
#include "common/base/clock.h"
#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/transport/routed/internal.h"

#define ALARM_TICK_NS 50000000L /* how often gaps are looked at */

static size_t seals_len(const struct chempi_routed *routed)
{
    return routed->rank_count * sizeof(*routed->seals);
}

int chempi_routed_sealed_open(struct chempi_routed *routed,
                              struct chempi_err *err)
{
    const struct chempi_job *job = chempi_ctx.job;

    if (!job->is_secure)
        return 0;
    if (sodium_is_zero(job->rank_key, sizeof(job->rank_key)))
        return chempi_err_set(err, -EINVAL,
                              "the launcher has sent no key of ranks for a job "
                              "with --secure");
    if (sodium_init() < 0)
        return chempi_err_set(err, -EIO, "libsodium does not start");
    routed->seals = chempi_secret_create(seals_len(routed));
    routed->opened = chempi_sys->malloc(CHEMPI_NEIGHBOR_FRAME_MAX);
    if (!routed->seals || !routed->opened)
        return chempi_err_set(err, -ENOMEM, "out of memory for gateways");
    return 0;
}

static struct chempi_neighbor_seal *
seal_of(const struct chempi_routed_flow *flow)
{
    const struct chempi_routed *routed = chempi_routed_of(flow);
    struct chempi_neighbor_seal *seal = &routed->seals[flow->ep.proc];

    if (!seal->is_ready)
        chempi_neighbor_seal_init(seal, chempi_ctx.job->rank_key,
                                  routed->dev.params.services->proc,
                                  flow->ep.proc);
    return seal;
}

void chempi_routed_sealed_put(struct chempi_routed_flow *flow,
                              struct chempi_neighbor_buf *buf, uint64_t seq)
{
    if (chempi_routed_of(flow)->seals)
        chempi_neighbor_seal_put(seal_of(flow), buf->data,
                                 buf->len - CHEMPI_NEIGHBOR_SEAL_BYTES, seq,
                                 flow->seq_in);
}

int chempi_routed_sealed_undo(const struct chempi_routed_flow *flow,
                              const struct chempi_neighbor_buf *buf,
                              struct chempi_neighbor_frame *f, uint8_t **copy)
{
    const struct chempi_routed *routed = chempi_routed_of(flow);
    const uint8_t *data = buf->data;
    const char *why;
    int n = (int)(buf->len - chempi_routed_sealed_extra(routed));

    *copy = NULL;
    if (chempi_neighbor_frame_head(data, buf->len, f, &why) < 0)
        return -EPROTO; /* cannot be: we wrote it */
    if (f->flags & CHEMPI_NEIGHBOR_SEALED) {
        *copy = chempi_sys->malloc(buf->len);
        if (!*copy)
            return -ENOMEM;
        n = chempi_neighbor_seal_undo(seal_of(flow), data, buf->len,
                                      flow->seq_out, flow->seq_in, *copy);
        data = *copy;
    }
    if (n >= 0 && chempi_neighbor_frame_get(data, (size_t)n, f, &why) == 0)
        return 0;
    free(*copy);
    *copy = NULL;
    return -EPROTO; /* this cannot be, either */
}

int chempi_routed_sealed_get(struct chempi_routed_flow *flow,
                             const uint8_t *data, size_t len,
                             struct chempi_neighbor_frame *f, const char **why)
{
    const struct chempi_routed *routed = chempi_routed_of(flow);
    int n;

    if (!routed->seals)
        return chempi_neighbor_frame_get(data, len, f, why);
    *why = "a frame in clear";
    if (!(f->flags & CHEMPI_NEIGHBOR_SEALED))
        return -EPROTO;
    n = chempi_neighbor_seal_get(seal_of(flow), data, len, flow->seq_in,
                                 flow->seq_out, routed->opened, why);
    return n < 0 ? -EPROTO
                 : chempi_neighbor_frame_get(routed->opened, (size_t)n, f, why);
}

void chempi_routed_sealed_unget(struct chempi_routed_flow *flow,
                                const uint8_t *data, size_t len)
{
    if (chempi_routed_of(flow)->seals)
        chempi_neighbor_seal_unget(seal_of(flow), data, len);
}

/* ---- gaps ---------------------------------------------------------------- */

/* That it woke us is all that matters: progress checks. */
static void rung(struct chempi_poll_item *item, uint32_t events)
{
    struct chempi_routed *routed =
        CHEMPI_CONTAINER_OF(item, struct chempi_routed, alarm);

    chempi_pollset_ticked(item, events);
    if (chempi_list_is_empty(&routed->gaps))
        chempi_pollset_untick(routed->dev.params.services->pollset, item);
}

void chempi_routed_sealed_note(struct chempi_routed_flow *flow)
{
    struct chempi_routed *routed = chempi_routed_of(flow);

    if (CHEMPI_LIKELY(!routed->seals))
        return;
    if (!flow->early) {
        chempi_list_remove(&flow->gap);
        return;
    }
    if (!chempi_list_is_empty(&flow->gap) && flow->gap_seq == flow->seq_in)
        return;
    flow->gap_seq = flow->seq_in;
    flow->gap_ns = chempi_clock_ns();
    chempi_list_remove(&flow->gap);
    chempi_list_append(&routed->gaps, &flow->gap);
    /* A process that sleeps looks for gaps, too; or the next gap tries. */
    (void)chempi_pollset_tick(routed->dev.params.services->pollset,
                              &routed->alarm, rung, ALARM_TICK_NS);
}

void chempi_routed_sealed_check(struct chempi_routed *routed)
{
    const struct chempi_dev_params *p = &routed->dev.params;
    const uint64_t limit_ns =
        chempi_dev_setting(&routed->dev, CHEMPI_ROUTED_SET_GAP) *
        CHEMPI_NS_PER_MS;
    const uint64_t now_ns = chempi_clock_ns();

    while (!chempi_list_is_empty(&routed->gaps)) { /* the oldest is first */
        struct chempi_routed_flow *flow = CHEMPI_CONTAINER_OF(
            chempi_list_first(&routed->gaps), struct chempi_routed_flow, gap);

        if (now_ns - flow->gap_ns < limit_ns)
            return;
        chempi_list_remove(&flow->gap);
        p->sink->lost(p->sink_arg, flow->ep.proc, -EBADMSG,
                      "a gateway on its way leaves out a frame that it has "
                      "sent, or passes it on too late (CHEMPI_GATE_GAP_MS), in "
                      "a job with --secure");
    }
}

/* ---- the end --------------------------------------------------------------
 */

void chempi_routed_sealed_close(struct chempi_routed *routed)
{
    chempi_pollset_untick(routed->dev.params.services->pollset, &routed->alarm);
    chempi_secret_destroy(routed->seals, seals_len(routed));
    free(routed->opened);
    routed->seals = NULL;
    routed->opened = NULL;
}
