/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking and leaving the lock of a target: a ticket in shared memory
 * (ticket.c), the process's own gate (gate.c), or a message to the target's.
 */
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/rma/count.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/lane.h"

static bool is_not_wanted(void *arg)
{
    return ((const struct chempi_rma_peer *)arg)->wanted == CHEMPI_RMA_UNLOCKED;
}

static void put_lock(struct chempi_wait_report *w, const void *object)
{
    const struct chempi_rma_peer *peer = object;

    chempi_rma_put_lock(w, peer, peer->wanted == CHEMPI_RMA_EXCLUSIVE);
    if (peer->held_by >= 0)
        chempi_wait_report_put(w, ", which rank %d held when it was asked for",
                               peer->held_by);
}

/*
 * A lock that only messages need may be asked for together with the first of
 * them. Not with several threads: each would have to wait for what the others
 * have not asked for yet. One at a time: a program that takes several locks in
 * an order of its own relies on that order (of lock_all, there is none).
 */
static struct chempi_rma_peer *late; /* under the lane lock */

static bool may_be_late(const struct chempi_rma_peer *peer)
{
    return peer->reach == CHEMPI_RMA_MESSAGE && !peer->is_mapped &&
           !chempi_lane_main.is_locking;
}

static bool has_lock(void *arg)
{
    const struct chempi_rma_batch *b = &((struct chempi_rma_peer *)arg)->batch;

    return !b->lazy && !b->lock && !b->asked &&
           chempi_list_is_empty(&b->sealed);
}

/* Have the lock that was left for later. Without the lane lock. */
static int catch_up(void)
{
    struct chempi_rma_peer *peer;
    int rc = MPI_SUCCESS;

    chempi_lane_lock(&chempi_lane_main);
    peer = late;
    late = NULL;
    if (peer && peer->batch.lazy)
        rc = chempi_rma_ask_lock(peer, peer->batch.lazy);
    else if (peer)
        rc = chempi_rma_push(peer);
    chempi_lane_unlock(&chempi_lane_main);
    if (peer && rc == MPI_SUCCESS)
        (void)chempi_progress_wait_for(has_lock, peer, chempi_rma_put_peer,
                                       peer);
    return rc;
}

/* By a message; the lane lock is held on entry, not on return. */
static int ask_lock(struct chempi_rma_peer *peer)
{
    int rc = MPI_SUCCESS;

    if (may_be_late(peer)) {
        peer->held_by = -1;
        peer->batch.lazy = peer->wanted;
        if (peer->win->access != CHEMPI_RMA_LOCKED_ALL)
            late = peer;
        chempi_lane_unlock(&chempi_lane_main);
        return rc;
    }
    rc = chempi_rma_ask_lock(peer, peer->wanted);
    chempi_lane_unlock(&chempi_lane_main);
    return rc ? rc : chempi_rma_await_peer(peer, put_lock);
}

static uint32_t held; /* locks of this process, of all windows */

static void hold(struct chempi_rma_peer *peer, enum chempi_rma_lock kind)
{
    peer->lock =
        kind == CHEMPI_RMA_OVERTAKING ? CHEMPI_RMA_SHARED : (uint8_t)kind;
    chempi_list_append(&peer->win->held, &peer->held);
    held++;
}

static void let_go(struct chempi_rma_peer *peer)
{
    peer->lock = CHEMPI_RMA_UNLOCKED;
    chempi_list_remove(&peer->held);
    held--;
}

/* The same for all ways. */
static int get_lock(struct chempi_rma_peer *peer)
{
    if (peer->wanted != CHEMPI_RMA_UNCHECKED && !peer->win->has_shared_locks &&
        peer->reach != CHEMPI_RMA_SELF)
        return ask_lock(peer);
    chempi_lane_unlock(&chempi_lane_main);
    if (peer->wanted == CHEMPI_RMA_UNCHECKED)
        return MPI_SUCCESS; /* nobody else wants it */
    if (peer->win->has_shared_locks)
        return chempi_rma_take_ticket(peer);
    return chempi_rma_enter_own_gate(peer);
}

int chempi_rma_take_lock(struct chempi_rma_peer *peer,
                         enum chempi_rma_lock kind)
{
    struct chempi_win *win = peer->win;
    int rc = chempi_rma_lock_loss(peer, kind == CHEMPI_RMA_EXCLUSIVE);

    if (rc == MPI_SUCCESS && CHEMPI_UNLIKELY(late != NULL))
        rc = catch_up();
    if (rc)
        return rc;
    chempi_lane_lock(&chempi_lane_main);
    while (peer->wanted) { /* another thread takes it */
        chempi_lane_unlock(&chempi_lane_main);
        (void)chempi_progress_wait_for(is_not_wanted, peer, put_lock, peer);
        chempi_lane_lock(&chempi_lane_main);
    }
    if (peer->lock) {
        chempi_lane_unlock(&chempi_lane_main);
        return MPI_SUCCESS;
    }
    chempi_rma_count(win, CHEMPI_RMA_COUNT_LOCKS, 1);
    if (kind == CHEMPI_RMA_SHARED && held > 0)
        kind = CHEMPI_RMA_OVERTAKING;
    peer->wanted = (uint8_t)kind;
    rc = get_lock(peer);
    chempi_lane_lock(&chempi_lane_main);
    if (rc == MPI_SUCCESS)
        hold(peer, kind);
    peer->wanted = CHEMPI_RMA_UNLOCKED;
    if (chempi_lane_main.is_locking)
        chempi_progress_notify();
    chempi_lane_unlock(&chempi_lane_main);
    return rc;
}

/* Does a message end the lock of this kind? */
static bool is_left_by_message(const struct chempi_rma_peer *peer, uint8_t kind)
{
    return kind != CHEMPI_RMA_UNCHECKED && !peer->win->has_shared_locks &&
           peer->reach != CHEMPI_RMA_SELF;
}

/* It flushes, too; quiet means that it is done. Under the lane lock. */
static int send_unlock(struct chempi_rma_peer *peer)
{
    int rc;

    if (late == peer)
        late = NULL;
    peer->is_dirty = false;
    rc = chempi_rma_ask_status(peer, CHEMPI_RMA_DO_UNLOCK);
    return rc ? rc : chempi_rma_push(peer);
}

int chempi_rma_leave_lock(struct chempi_rma_peer *peer)
{
    struct chempi_win *win = peer->win;
    const uint8_t kind = peer->lock;
    const bool is_exclusive = kind == CHEMPI_RMA_EXCLUSIVE;
    int rc = MPI_SUCCESS;

    if (kind == CHEMPI_RMA_UNLOCKED)
        return MPI_SUCCESS;
    chempi_lane_lock(&chempi_lane_main);
    let_go(peer);
    if (is_left_by_message(peer, kind)) {
        atomic_thread_fence(memory_order_seq_cst);
        rc = send_unlock(peer);
        chempi_lane_unlock(&chempi_lane_main);
        return rc ? rc : chempi_rma_await_peer(peer, chempi_rma_put_peer);
    }
    chempi_lane_unlock(&chempi_lane_main);
    rc = chempi_rma_flush_peer(peer);
    if (kind == CHEMPI_RMA_UNCHECKED)
        return rc;
    if (win->has_shared_locks) {
        chempi_rma_leave_ticket(peer, is_exclusive);
        return rc;
    }
    chempi_lane_lock(&chempi_lane_main);
    win->gate.is_mine = false;
    chempi_rma_gate_leave(win, is_exclusive);
    chempi_lane_unlock(&chempi_lane_main);
    return rc;
}

/* Locks whose absence loads and stores of the program's would not meet: of
 * its own memory, and of what is mapped here and was asked for. */
int chempi_rma_lock_mapped(struct chempi_win *win, enum chempi_rma_lock kind)
{
    const bool is_all =
        win->is_shared &&
        (win->flavor == MPI_WIN_FLAVOR_SHARED || win->is_queried);
    int rc = MPI_SUCCESS;

    for (uint32_t i = 0; i < win->local_count && rc == MPI_SUCCESS; i++) {
        struct chempi_rma_peer *peer;

        if (!is_all && i != win->me_local)
            continue;
        chempi_lane_lock(&chempi_lane_main);
        peer = chempi_rma_peer(win, win->locals[i]);
        chempi_lane_unlock(&chempi_lane_main);
        rc = peer ? chempi_rma_take_lock(peer, kind)
                  : chempi_error_set(MPI_ERR_NO_MEM,
                                     "no memory for rank %u of %s",
                                     win->locals[i], chempi_rma_name(win));
    }
    return rc;
}

/* Of what is held, that which messages end: all at a time. */
int chempi_rma_leave_by_messages(struct chempi_win *win)
{
    int rc = MPI_SUCCESS;

    chempi_lane_lock(&chempi_lane_main);
    CHEMPI_LIST_FOR_SAFE (link, &win->held) {
        struct chempi_rma_peer *peer =
            CHEMPI_CONTAINER_OF(link, struct chempi_rma_peer, held);

        if (rc || !is_left_by_message(peer, peer->lock))
            continue;
        let_go(peer);
        rc = send_unlock(peer);
    }
    chempi_lane_unlock(&chempi_lane_main);
    return rc;
}

/* What is held, until nothing is. Without the lane lock. */
int chempi_rma_leave_all(struct chempi_win *win)
{
    int rc = chempi_rma_leave_by_messages(win);

    for (;;) {
        struct chempi_rma_peer *peer = NULL;
        int error;

        chempi_lane_lock(&chempi_lane_main);
        if (!chempi_list_is_empty(&win->held))
            peer = CHEMPI_CONTAINER_OF(chempi_list_first(&win->held),
                                       struct chempi_rma_peer, held);
        chempi_lane_unlock(&chempi_lane_main);
        if (!peer)
            return rc;
        error = chempi_rma_leave_lock(peer);
        if (error && !rc)
            rc = error;
    }
}
