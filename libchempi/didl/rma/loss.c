/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows one of whose members is away, in jobs that survive that
 * (doc/survivors.md): it has ended, or it has no window, as it has heard in
 * time that another one has ended.
 *
 *   L1  each member finds out by itself, from the window's hook; from then on
 *       win->lost names one that is away, and for good
 *   L2  nobody waits any more for a lock, nor for a token of MPI_Win_post or
 *       MPI_Win_complete: gates are open, tickets are not waited for
 *   L3  what is under way between the others is completed: none of them frees
 *       the window before all have come to that
 */
#include "libchempi/didl/transport/loss.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/match.h"

static bool is_token(const struct chempi_request *req, const void *arg)
{
    const struct chempi_win *win = arg;

    return req->comm == win->comm && req->peer_tag < CHEMPI_RMA_TOKEN_FREE &&
           req->context % CHEMPI_CONTEXT_STEP == (uint32_t)CHEMPI_RMA_TOKENS;
}

static void end_tokens(struct chempi_win *win)
{
    struct chempi_request *req;

    while (
        (req = chempi_match_find_posted(chempi_lane_main.match, is_token, win)))
        chempi_loss_end_receive(req);
}

void chempi_rma_look_for_loss(struct chempi_win *win)
{
    int32_t rank = chempi_loss_rank(win->comm);

    win->missing = chempi_conn_missing_count();
    if (rank < 0)
        return;
    atomic_store_explicit(&win->lost, (uint32_t)rank + 1, memory_order_relaxed);
    for (uint32_t i = 0; i < win->bucket_count; i++)
        for (struct chempi_rma_peer *p = win->buckets[i]; p; p = p->next)
            if (chempi_loss_is_away(win->comm, p->rank))
                chempi_rma_drop_batch(p);
    chempi_rma_gate_open(win);
    end_tokens(win);
}

/* An error may be known before the hook has looked. */
static CHEMPI_NOINLINE void look_now(struct chempi_win *win)
{
    chempi_lane_lock(&chempi_lane_main);
    if (chempi_conn_missing_count() != win->missing)
        chempi_rma_look_for_loss(win);
    chempi_lane_unlock(&chempi_lane_main);
}

int chempi_rma_loss(struct chempi_win *win, int rc)
{
    if (CHEMPI_UNLIKELY(rc))
        look_now(win);
    if (CHEMPI_LIKELY(!chempi_rma_lost(win)))
        return rc;
    return chempi_error_set(MPI_ERR_PROC_ABORTED,
                            "%s: its rank %u has %s; free the window",
                            chempi_rma_name(win), chempi_rma_lost(win) - 1,
                            chempi_rma_lost_words(win));
}
