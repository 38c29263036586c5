/* SPDX-License-Identifier: BSD-3-Clause */
/* What all files of this room ask of a window: its name and state in words. */
#include "libchempi/didl/rma/win.h"

#include "libchempi/didl/error/error.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/loss.h"

struct chempi_list chempi_rma_windows = {&chempi_rma_windows,
                                         &chempi_rma_windows};

void chempi_rma_owe(struct chempi_win *win)
{
    const bool is_owing = win->is_served && !win->no_locks;

    if (is_owing && !win->is_owing)
        chempi_lane_owe(&chempi_lane_main);
    else if (!is_owing && win->is_owing)
        chempi_lane_repay(&chempi_lane_main);
    win->is_owing = is_owing;
}

const char *chempi_rma_name(const struct chempi_win *win)
{
    return win->name[0] ? win->name : "the window";
}

static const char *const access_words[] = {
    [CHEMPI_RMA_NO_ACCESS] = "in no epoch",
    [CHEMPI_RMA_STARTED] = "in an epoch of MPI_Win_start",
    [CHEMPI_RMA_LOCKED] = "in an epoch of MPI_Win_lock",
    [CHEMPI_RMA_LOCKED_ALL] = "in an epoch of MPI_Win_lock_all",
};

const char *chempi_rma_access_words(const struct chempi_win *win)
{
    if (win->access == CHEMPI_RMA_NO_ACCESS && win->is_fenced)
        return "in an epoch of MPI_Win_fence";
    return access_words[win->access];
}

void chempi_rma_put_lock(struct chempi_wait_report *w,
                         const struct chempi_rma_peer *peer, bool is_exclusive)
{
    chempi_wait_report_put(w, " for the %s lock of rank %u of %s",
                           is_exclusive ? "exclusive" : "shared", peer->rank,
                           chempi_rma_name(peer->win));
}

/* A lock that is under way to the peer. */
static void put_asked(struct chempi_wait_report *w,
                      const struct chempi_rma_peer *peer)
{
    chempi_rma_put_lock(w, peer, peer->batch.asked == CHEMPI_RMA_EXCLUSIVE);
    if (peer->held_by >= 0)
        chempi_wait_report_put(w, ", which rank %d held when it was asked for",
                               peer->held_by);
}

void chempi_rma_put_peer(struct chempi_wait_report *w, const void *object)
{
    const struct chempi_rma_peer *peer = object;

    if (peer->batch.asked)
        put_asked(w, peer);
    else
        chempi_wait_report_put(w, " for operations at rank %u of %s",
                               peer->rank, chempi_rma_name(peer->win));
}

const char *chempi_rma_lost_words(const struct chempi_win *win)
{
    return chempi_loss_is_absent(win->comm, chempi_rma_lost(win) - 1)
               ? "not got the window"
               : "ended";
}

int chempi_rma_lock_loss(const struct chempi_rma_peer *peer, bool is_exclusive)
{
    if (CHEMPI_LIKELY(!chempi_rma_lost(peer->win)))
        return MPI_SUCCESS;
    return chempi_error_set(
        MPI_ERR_PROC_ABORTED,
        "%s: the %s lock of rank %u is not to be had, as rank %u of the window "
        "has %s; free the window",
        chempi_rma_name(peer->win), is_exclusive ? "exclusive" : "shared",
        peer->rank, chempi_rma_lost(peer->win) - 1,
        chempi_rma_lost_words(peer->win));
}
