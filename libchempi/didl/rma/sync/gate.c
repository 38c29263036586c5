/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Win_lock in windows of several nodes: the target's process keeps a gate
 * and grants, also to itself and to its own node, so that all meet at one
 * place. struct chempi_rma_line has the rules.
 */
#include <stdlib.h>

#include "libchempi/didl/rma/count.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/lane.h"

static bool is_exclusive(const struct chempi_rma_claim *claim)
{
    return claim->kind == CHEMPI_RMA_EXCLUSIVE;
}

static bool is_guest(const struct chempi_rma_claim *claim)
{
    return claim->kind == CHEMPI_RMA_OVERTAKING;
}

static bool is_first(const struct chempi_rma_gate *gate,
                     const struct chempi_rma_claim *claim)
{
    return gate->waiting.next == &claim->link;
}

/* Of one that waits. */
static bool may_enter(const struct chempi_win *win,
                      const struct chempi_rma_claim *claim)
{
    const struct chempi_rma_gate *gate = &win->gate;

    if (gate->is_open)
        return true;
    if (gate->is_exclusive)
        return false;
    if (is_exclusive(claim))
        return gate->readers == 0 && is_first(gate, claim);
    return is_guest(claim) || is_first(gate, claim);
}

/* The first that may enter, or NULL: only guests may past the first one. */
static struct chempi_rma_claim *next_claim(struct chempi_win *win)
{
    struct chempi_rma_gate *gate = &win->gate;
    struct chempi_rma_claim *claim;

    if (chempi_list_is_empty(&gate->waiting))
        return NULL;
    claim = CHEMPI_CONTAINER_OF(chempi_list_first(&gate->waiting),
                                struct chempi_rma_claim, link);
    if (may_enter(win, claim))
        return claim;
    if (gate->is_exclusive || chempi_list_is_empty(&gate->guests))
        return NULL;
    return CHEMPI_CONTAINER_OF(chempi_list_first(&gate->guests),
                               struct chempi_rma_claim, guest);
}

void chempi_rma_free_claim(struct chempi_rma_claim *claim)
{
    free(claim->rest);
    free(claim);
}

/* The lock of another: answered if it asks for that, then what came with it. */
static void grant_other(struct chempi_rma_claim *claim)
{
    struct chempi_rma_peer *peer = claim->peer;
    const struct chempi_rma_verdict granted = {
        .error = peer->win->gate.is_open ? MPI_ERR_PROC_ABORTED : MPI_SUCCESS};

    peer->granted =
        is_exclusive(claim) ? CHEMPI_RMA_EXCLUSIVE : CHEMPI_RMA_SHARED;
    peer->claim = NULL;
    if (granted.error && !peer->in_error.error)
        peer->in_error = granted; /* for what came with it */
    if (claim->id)
        chempi_rma_answer(peer, claim->id, &granted, sizeof(granted));
    claim->serve_rest(peer, claim->rest, claim->rest_len);
    chempi_rma_free_claim(claim);
}

static void grant(struct chempi_win *win, struct chempi_rma_claim *claim)
{
    chempi_list_remove(&claim->link);
    chempi_list_remove(&claim->guest);
    if (is_exclusive(claim))
        win->gate.is_exclusive = true;
    else
        win->gate.readers++;
    if (claim->is_own) {
        win->gate.is_mine = true;
        claim->is_granted = true;
        return;
    }
    grant_other(claim);
}

/* What is granted may bring its own unlock along, which comes here again. */
static void pump(struct chempi_win *win)
{
    struct chempi_rma_claim *claim;

    if (win->gate.is_pumping)
        return;
    win->gate.is_pumping = true;
    while ((claim = next_claim(win)) != NULL)
        grant(win, claim);
    win->gate.is_pumping = false;
}

/* Somebody who has the lock now: a rank, or -1. */
static int32_t holder_of(const struct chempi_win *win)
{
    if (win->gate.is_mine)
        return win->comm->rank;
    for (uint32_t i = 0; i < win->bucket_count; i++)
        for (const struct chempi_rma_peer *p = win->buckets[i]; p; p = p->next)
            if (p->granted)
                return (int32_t)p->rank;
    return -1;
}

void chempi_rma_gate_ask(struct chempi_win *win, struct chempi_rma_claim *claim)
{
    chempi_list_append(&win->gate.waiting, &claim->link);
    chempi_list_init(&claim->guest);
    if (is_guest(claim))
        chempi_list_append(&win->gate.guests, &claim->guest);
    if (may_enter(win, claim)) {
        grant(win, claim);
        return;
    }
    claim->held_by = holder_of(win);
    if (!claim->is_own)
        chempi_rma_tell_holder(claim->peer, claim->held_by);
}

void chempi_rma_gate_leave(struct chempi_win *win, bool was_exclusive)
{
    if (was_exclusive)
        win->gate.is_exclusive = false;
    else if (win->gate.readers > 0)
        win->gate.readers--;
    pump(win);
    chempi_progress_nudge();
}

void chempi_rma_gate_open(struct chempi_win *win)
{
    win->gate.is_open = true;
    pump(win);
}

static bool is_granted(void *arg)
{
    return ((const struct chempi_rma_claim *)arg)->is_granted;
}

static void put_claim(struct chempi_wait_report *w, const void *object)
{
    const struct chempi_rma_claim *claim = object;

    chempi_rma_put_lock(w, claim->peer, is_exclusive(claim));
    if (claim->held_by >= 0)
        chempi_wait_report_put(w, ", which rank %d held when it was asked for",
                               claim->held_by);
}

/* Without the lock. */
int chempi_rma_enter_own_gate(struct chempi_rma_peer *peer)
{
    struct chempi_rma_claim claim = {
        .peer = peer, .held_by = -1, .is_own = true, .kind = peer->wanted};

    chempi_lane_lock(&chempi_lane_main);
    chempi_rma_gate_ask(peer->win, &claim);
    if (!claim.is_granted)
        chempi_rma_count(peer->win, CHEMPI_RMA_COUNT_LOCK_WAITS, 1);
    chempi_lane_unlock(&chempi_lane_main);
    (void)chempi_progress_wait_for(is_granted, &claim, put_claim, &claim);
    return chempi_rma_lock_loss(peer, is_exclusive(&claim));
}
