/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for what is out at one peer or at all, and the errors of it. */
#include <stdio.h>

#include "libchempi/didl/error/error.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/lane.h"

#define BREATHE_EVERY 8u /* flushes that had nothing to wait for */

/* Are atomic changes of memory fences, too? */
#ifdef __x86_64__
#define ATOMICS_ORDER true
#else
#define ATOMICS_ORDER false
#endif

/* What is complete at a target is so before anything that follows here. Gets
 * need no fence for it, and what changed memory by atomics has been one. */
static void order(struct chempi_win *win)
{
    if (ATOMICS_ORDER && !chempi_lane_main.is_locking &&
        !atomic_load_explicit(&win->has_stored, memory_order_relaxed)) {
        atomic_thread_fence(memory_order_acq_rel);
        return;
    }
    atomic_store_explicit(&win->has_stored, false, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

static bool is_peer_quiet(void *arg)
{
    return chempi_list_is_empty(&((struct chempi_rma_peer *)arg)->out);
}

static bool is_quiet(void *arg)
{
    struct chempi_win *win = arg;

    CHEMPI_LIST_FOR (link, &win->active) {
        const struct chempi_rma_peer *peer =
            CHEMPI_CONTAINER_OF(link, struct chempi_rma_peer, active);

        if (!chempi_list_is_empty(&peer->out))
            return false;
    }
    return true;
}

/* The first peer that keeps the window waiting for a lock, if any does. */
static void put_win(struct chempi_wait_report *w, const void *object)
{
    const struct chempi_win *win = object;

    CHEMPI_LIST_FOR (link, &win->active) {
        const struct chempi_rma_peer *peer =
            CHEMPI_CONTAINER_OF(link, struct chempi_rma_peer, active);

        if (peer->batch.asked) {
            chempi_rma_put_peer(w, peer);
            return;
        }
    }
    chempi_wait_report_put(w, " for operations of %s", chempi_rma_name(win));
}

static const char *refused_words(int error)
{
    switch (error) {
    case MPI_ERR_RMA_RANGE:
        return "it goes beyond the window there";
    case MPI_ERR_TYPE:
        return "it does not have the target's datatype, whose description is "
               "too long, or has not found memory";
    default:
        return "it could not be executed";
    }
}

int chempi_rma_refused(const struct chempi_win *win, uint32_t rank,
                       const struct chempi_rma_verdict *verdict)
{
    const struct chempi_rma_verdict v = *verdict;
    char place[96] = "";

    if (v.error == MPI_ERR_PROC_ABORTED)
        return chempi_error_set(v.error,
                                "%s: one of its ranks has ended, as rank %u "
                                "knows; free the window",
                                chempi_rma_name(win), rank);
    if (v.is_placed)
        (void)snprintf(place, sizeof(place),
                       " of %llu bytes at displacement %lld",
                       (unsigned long long)v.len, (long long)v.disp);
    if (v.error == MPI_ERR_RMA_RANGE && win->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return chempi_error_set(
            v.error,
            "%s: rank %u refused an operation%s: not all of that memory is "
            "attached there; call MPI_Win_attach first",
            chempi_rma_name(win), rank, place);
    return chempi_error_set(v.error, "%s: rank %u refused an operation%s: %s",
                            chempi_rma_name(win), rank, place,
                            refused_words(v.error));
}

/* What went wrong since it was asked last. */
static int take_error(struct chempi_rma_peer *peer)
{
    const struct chempi_rma_verdict v = peer->error;

    peer->error = (struct chempi_rma_verdict){0};
    return v.error ? chempi_rma_refused(peer->win, peer->rank, &v)
                   : MPI_SUCCESS;
}

/* Programs wait for others by loops of direct operations and flushes, which
 * would never make progress for the rest of the process. */
void chempi_rma_breathe(struct chempi_win *win)
{
    const uint32_t breaths =
        atomic_load_explicit(&win->breaths, memory_order_relaxed);

    /* Threads may count one for two. */
    atomic_store_explicit(&win->breaths, breaths + 1, memory_order_relaxed);
    if (breaths % BREATHE_EVERY == 0)
        (void)chempi_progress_poll();
}

int chempi_rma_await_peer(struct chempi_rma_peer *peer,
                          chempi_wait_report_fn *words)
{
    bool is_visit;
    bool is_done;
    int rc;

    chempi_lane_lock(&chempi_lane_main);
    is_done = is_peer_quiet(peer);
    chempi_lane_pause(&chempi_lane_main);
    if (!is_done)
        (void)chempi_progress_wait_for(is_peer_quiet, peer, words, peer);
    else
        chempi_rma_breathe(peer->win);
    is_visit = chempi_lane_enter(&chempi_lane_main);
    rc = take_error(peer);
    chempi_lane_exit(&chempi_lane_main, is_visit);
    return chempi_rma_loss(peer->win, rc);
}

int chempi_rma_flush_peer(struct chempi_rma_peer *peer)
{
    bool is_visit;
    bool is_done;
    int rc;

    order(peer->win);
    is_visit = chempi_lane_enter(&chempi_lane_main);
    is_done = !peer->is_dirty && chempi_list_is_empty(&peer->active) &&
              peer->error.error == MPI_SUCCESS;
    chempi_lane_exit(&chempi_lane_main, is_visit);
    if (CHEMPI_LIKELY(is_done)) {
        chempi_rma_breathe(peer->win);
        return chempi_rma_loss(peer->win, MPI_SUCCESS);
    }
    chempi_lane_lock(&chempi_lane_main);
    rc = chempi_rma_begin_flush(peer);
    if (rc) {
        chempi_lane_unlock(&chempi_lane_main);
        return chempi_rma_loss(peer->win, rc);
    }
    chempi_lane_pause(&chempi_lane_main); /* the wait goes on with it */
    return chempi_rma_await_peer(peer, chempi_rma_put_peer);
}

int chempi_rma_take_errors(struct chempi_win *win)
{
    int rc = MPI_SUCCESS;

    chempi_lane_lock(&chempi_lane_main);
    for (uint32_t i = 0; i < win->bucket_count; i++)
        for (struct chempi_rma_peer *p = win->buckets[i]; p; p = p->next) {
            int error = take_error(p);

            if (error && !rc)
                rc = error;
        }
    chempi_lane_unlock(&chempi_lane_main);
    return chempi_rma_loss(win, rc);
}

void chempi_rma_await_all(struct chempi_win *win)
{
    bool is_done;

    chempi_lane_lock(&chempi_lane_main);
    is_done = is_quiet(win);
    chempi_lane_unlock(&chempi_lane_main);
    if (!is_done)
        (void)chempi_progress_wait_for(is_quiet, win, put_win, win);
    else
        chempi_rma_breathe(win);
}

int chempi_rma_flush_all(struct chempi_win *win)
{
    int rc = MPI_SUCCESS;

    order(win);
    chempi_lane_lock(&chempi_lane_main);
    for (uint32_t i = 0; i < win->bucket_count; i++)
        for (struct chempi_rma_peer *p = win->buckets[i]; p; p = p->next)
            if (rc == MPI_SUCCESS || chempi_rma_lost(win))
                rc = chempi_rma_begin_flush(p);
    chempi_lane_unlock(&chempi_lane_main);
    if (rc && !chempi_rma_lost(win))
        return rc;
    chempi_rma_await_all(win);
    return chempi_rma_take_errors(win);
}
