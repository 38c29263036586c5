/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passive targets: MPI_Win_lock and its relatives, flushes (MPI 5.0, section
 * 12.5): which epoch is open, and what is wrong with a call.
 */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/lane.h"

#define LOCK_ASSERTS MPI_MODE_NOCHECK

static int check_lock(struct chempi_win *win, int assert, const char *what)
{
    if (assert & ~LOCK_ASSERTS)
        return chempi_error_set(MPI_ERR_ASSERT,
                                "argument assert is %d; %s knows "
                                "MPI_MODE_NOCHECK only",
                                assert, what);
    if (win->no_locks)
        return chempi_error_set(MPI_ERR_RMA_SYNC,
                                "%s has the info key no_locks",
                                chempi_rma_name(win));
    if (win->is_fenced && win->fence_used)
        return chempi_error_set(MPI_ERR_RMA_SYNC,
                                "%s is in an epoch of MPI_Win_fence that has "
                                "operations; close it with another fence",
                                chempi_rma_name(win));
    return MPI_SUCCESS;
}

/* Threads may lock several targets at a time. */
static void enter_epoch(struct chempi_win *win)
{
    chempi_lane_lock(&chempi_lane_main);
    atomic_store_explicit(&win->access, CHEMPI_RMA_LOCKED,
                          memory_order_release);
    win->is_fenced = false; /* its epoch, without operations, is over */
    win->lock_count++;
    chempi_lane_unlock(&chempi_lane_main);
}

static void leave_epoch(struct chempi_win *win)
{
    chempi_lane_lock(&chempi_lane_main);
    if (--win->lock_count == 0)
        atomic_store_explicit(&win->access, CHEMPI_RMA_NO_ACCESS,
                              memory_order_release);
    chempi_lane_unlock(&chempi_lane_main);
}

int chempi_win_lock(int lock_type, int rank, int assert, struct chempi_win *win)
{
    struct chempi_rma_peer *peer;
    enum chempi_rma_lock kind = CHEMPI_RMA_SHARED;
    int rc = check_lock(win, assert, "MPI_Win_lock");

    if (rc)
        return rc;
    if (lock_type != MPI_LOCK_EXCLUSIVE && lock_type != MPI_LOCK_SHARED)
        return chempi_error_set(MPI_ERR_LOCKTYPE,
                                "argument lock_type is %d; expected "
                                "MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE",
                                lock_type);
    if (win->access != CHEMPI_RMA_NO_ACCESS && win->access != CHEMPI_RMA_LOCKED)
        return chempi_error_set(MPI_ERR_RMA_SYNC, "%s is already %s",
                                chempi_rma_name(win),
                                chempi_rma_access_words(win));
    if (rank == MPI_PROC_NULL) {
        win->is_null_locked = true;
        enter_epoch(win);
        return MPI_SUCCESS;
    }
    rc = chempi_rma_find(win, rank, "rank", &peer);
    if (rc)
        return rc;
    if (peer->lock)
        return chempi_error_set(MPI_ERR_RMA_SYNC,
                                "%s: this process holds the lock of rank %d "
                                "already; unlock it first",
                                chempi_rma_name(win), rank);
    if (assert & MPI_MODE_NOCHECK)
        kind = CHEMPI_RMA_UNCHECKED;
    else if (lock_type == MPI_LOCK_EXCLUSIVE)
        kind = CHEMPI_RMA_EXCLUSIVE;
    rc = chempi_rma_take_lock(peer, kind);
    if (rc == MPI_SUCCESS)
        enter_epoch(win);
    return rc;
}

/* A peer for which this process holds a lock, or none for MPI_PROC_NULL. */
static int find_locked(struct chempi_win *win, int rank, const char *call,
                       struct chempi_rma_peer **out)
{
    int rc;

    *out = NULL;
    if (rank == MPI_PROC_NULL &&
        (win->is_null_locked || win->access == CHEMPI_RMA_LOCKED_ALL))
        return MPI_SUCCESS;
    if (rank == MPI_PROC_NULL)
        return chempi_error_set(MPI_ERR_RMA_SYNC,
                                "%s without a lock of MPI_PROC_NULL of %s",
                                call, chempi_rma_name(win));
    rc = chempi_rma_find(win, rank, "rank", out);
    if (rc)
        return rc;
    if (win->access == CHEMPI_RMA_LOCKED_ALL ||
        (win->access == CHEMPI_RMA_LOCKED && (*out)->lock))
        return MPI_SUCCESS;
    return chempi_error_set(
        MPI_ERR_RMA_SYNC, "%s without a lock of rank %d: %s is %s", call, rank,
        chempi_rma_name(win),
        win->access == CHEMPI_RMA_LOCKED ? "locked at other ranks"
                                         : chempi_rma_access_words(win));
}

int chempi_win_unlock(int rank, struct chempi_win *win)
{
    struct chempi_rma_peer *peer;
    int rc = find_locked(win, rank, "MPI_Win_unlock", &peer);

    if (rc)
        return rc;
    if (win->access == CHEMPI_RMA_LOCKED_ALL)
        return chempi_error_set(MPI_ERR_RMA_SYNC,
                                "%s is in an epoch of MPI_Win_lock_all, which "
                                "MPI_Win_unlock_all ends",
                                chempi_rma_name(win));
    if (!peer)
        win->is_null_locked = false;
    else
        rc = chempi_rma_leave_lock(peer);
    leave_epoch(win);
    return rc;
}

int chempi_win_lock_all(int assert, struct chempi_win *win)
{
    int rc = check_lock(win, assert, "MPI_Win_lock_all");

    if (rc)
        return rc;
    if (win->access != CHEMPI_RMA_NO_ACCESS)
        return chempi_error_set(MPI_ERR_RMA_SYNC, "%s is already %s",
                                chempi_rma_name(win),
                                chempi_rma_access_words(win));
    win->is_unchecked = (assert &MPI_MODE_NOCHECK) != 0;
    rc = chempi_rma_lock_mapped(win, win->is_unchecked ? CHEMPI_RMA_UNCHECKED
                                                       : CHEMPI_RMA_OVERTAKING);
    if (rc) {
        (void)chempi_rma_leave_all(win);
        return rc;
    }
    win->access = CHEMPI_RMA_LOCKED_ALL;
    win->is_fenced = false;
    return MPI_SUCCESS;
}

int chempi_win_unlock_all(struct chempi_win *win)
{
    int error;
    int rc;

    if (win->access != CHEMPI_RMA_LOCKED_ALL)
        return chempi_error_set(MPI_ERR_RMA_SYNC,
                                "MPI_Win_unlock_all without MPI_Win_lock_all: "
                                "%s is %s",
                                chempi_rma_name(win),
                                chempi_rma_access_words(win));
    rc = chempi_rma_leave_by_messages(win);
    error = chempi_rma_flush_all(win);
    if (!rc)
        rc = error;
    error = chempi_rma_leave_all(win);
    if (!rc)
        rc = error;
    win->access = CHEMPI_RMA_NO_ACCESS;
    return rc;
}

int chempi_win_flush(int rank, struct chempi_win *win)
{
    struct chempi_rma_peer *peer;
    int rc = find_locked(win, rank, "MPI_Win_flush", &peer);

    return rc || !peer ? rc : chempi_rma_flush_peer(peer);
}

/* Nothing that is out may need the origin's memory any more. */
int chempi_win_flush_local(int rank, struct chempi_win *win)
{
    struct chempi_rma_peer *peer;
    int rc = find_locked(win, rank, "MPI_Win_flush_local", &peer);

    if (rc || !peer)
        return rc;
    chempi_lane_lock(&chempi_lane_main);
    rc = chempi_rma_push(peer);
    chempi_lane_unlock(&chempi_lane_main);
    return rc ? rc : chempi_rma_await_peer(peer, chempi_rma_put_peer);
}

static int need_passive(const struct chempi_win *win, const char *call)
{
    if (win->access == CHEMPI_RMA_LOCKED ||
        win->access == CHEMPI_RMA_LOCKED_ALL)
        return MPI_SUCCESS;
    return chempi_error_set(MPI_ERR_RMA_SYNC, "%s without a lock: %s is %s",
                            call, chempi_rma_name(win),
                            chempi_rma_access_words(win));
}

int chempi_win_flush_all(struct chempi_win *win)
{
    int rc = need_passive(win, "MPI_Win_flush_all");

    return rc ? rc : chempi_rma_flush_all(win);
}

int chempi_win_flush_local_all(struct chempi_win *win)
{
    int rc = need_passive(win, "MPI_Win_flush_local_all");

    if (rc)
        return rc;
    chempi_rma_await_all(win);
    return chempi_rma_take_errors(win);
}

int chempi_win_sync(struct chempi_win *win)
{
    /* The unified model: order is all that is missing. */
    atomic_thread_fence(memory_order_seq_cst);
    chempi_rma_take_turns(win);
    (void)chempi_progress_poll();
    return chempi_rma_loss(win, MPI_SUCCESS);
}
