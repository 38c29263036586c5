/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passive targets: MPI_Win_lock and its relatives, flushes (MPI 5.0, section
 * 12.5). Where all members are on this node a lock is a ticket in shared
 * memory; else the target's process keeps a gate and grants in the order of
 * asking, also to itself and to its own node, so that all meet at one place.
 */
#include <stdio.h>
#include <stdlib.h>

#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/error.h"
#include "libchempi/didl/rma/count.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/lane.h"

#define LOCK_ASSERTS MPI_MODE_NOCHECK
#define BREATHE_EVERY 8u /* flushes that had nothing to wait for */
#define HOLDERS_MAX 4u   /* of a lock that are named */

/* ---- tickets ---- */

struct ticket {
    struct chempi_rma_peer *peer;
    uint32_t number;
    bool is_exclusive;
};

static struct chempi_rma_line *line_of(const struct chempi_rma_peer *peer)
{
    return &peer->win->lines[peer->local];
}

static _Atomic uint32_t *seat_of(const struct chempi_rma_peer *peer,
                                 uint32_t number)
{
    const struct chempi_win *win = peer->win;

    return &win->seats[(uint32_t)peer->local * win->seat_count +
                       (number & (win->seat_count - 1))];
}

static bool is_served(void *arg)
{
    const struct ticket *t = arg;
    struct chempi_rma_line *line = line_of(t->peer);

    return atomic_load(t->is_exclusive ? &line->write : &line->read) ==
           t->number;
}

/* Wake who holds a ticket, if anybody does. The seat is taken before its owner
 * looks at the line, and the line has changed before the seat is read here, so
 * one of the two sees the other. */
static void call_ticket(const struct chempi_rma_peer *peer, uint32_t number)
{
    const struct chempi_win *win = peer->win;
    uint32_t seat;

    if (atomic_load(&line_of(peer)->next) == number)
        return;
    seat = atomic_load(seat_of(peer, number));
    if (seat < win->local_count && seat != win->me_local)
        chempi_progress_rouse_local(
            chempi_ctx.services.local_rank_of_proc[chempi_comm_proc(
                win->comm, win->locals[seat])]);
}

static void put_lock_words(struct chempi_where *w,
                           const struct chempi_rma_peer *peer,
                           bool is_exclusive)
{
    chempi_where_put(w, " for the %s lock of rank %u of %s",
                     is_exclusive ? "exclusive" : "shared", peer->rank,
                     chempi_rma_name(peer->win));
}

static _Atomic uint8_t *mark_of(const struct chempi_rma_peer *peer,
                                uint32_t member)
{
    const struct chempi_win *win = peer->win;

    return &win->marks[(uint32_t)peer->local * win->local_count + member];
}

static void put_wait(struct chempi_where *w, const void *object)
{
    const struct ticket *t = object;
    const struct chempi_win *win = t->peer->win;
    uint32_t named = 0;

    put_lock_words(w, t->peer, t->is_exclusive);
    for (uint32_t i = 0; i < win->local_count && named <= HOLDERS_MAX; i++) {
        if (!atomic_load_explicit(mark_of(t->peer, i), memory_order_relaxed))
            continue;
        if (named++ < HOLDERS_MAX)
            chempi_where_put(w, "%s rank %u", named == 1 ? ", held by" : " and",
                             win->locals[i]);
        else
            chempi_where_put(w, " and others");
    }
}

static void count_wait(struct chempi_win *win)
{
    chempi_lane_lock(&chempi_lane_main);
    chempi_rma_count(win, CHEMPI_RMA_COUNT_LOCK_WAITS, 1);
    chempi_lane_unlock(&chempi_lane_main);
}

static void take_ticket(struct chempi_rma_peer *peer, bool is_exclusive)
{
    struct chempi_rma_line *line = line_of(peer);
    struct ticket t = {.peer = peer, .is_exclusive = is_exclusive};

    t.number = atomic_fetch_add(&line->next, 1);
    atomic_store(seat_of(peer, t.number), peer->win->me_local);
    if (!is_served(&t)) {
        count_wait(peer->win);
        (void)chempi_progress_wait_for(is_served, &t, put_wait, &t);
    }
    if (!is_exclusive) {
        (void)atomic_fetch_add(&line->read, 1);
        call_ticket(peer, t.number + 1);
    }
    atomic_store_explicit(mark_of(peer, peer->win->me_local), 1,
                          memory_order_relaxed);
}

static void leave_ticket(struct chempi_rma_peer *peer, bool is_exclusive)
{
    struct chempi_rma_line *line = line_of(peer);
    uint32_t write;
    uint32_t read;

    atomic_store_explicit(mark_of(peer, peer->win->me_local), 0,
                          memory_order_relaxed);
    if (is_exclusive)
        (void)atomic_fetch_add(&line->read, 1);
    write = atomic_fetch_add(&line->write, 1) + 1;
    read = atomic_load(&line->read);
    call_ticket(peer, write);
    if (read != write)
        call_ticket(peer, read);
}

/* ---- the gate ---- */

static bool may_enter(const struct chempi_rma_gate *gate, bool is_exclusive)
{
    return !gate->is_exclusive && (!is_exclusive || gate->readers == 0);
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
    const struct chempi_rma_verdict granted = {.error = MPI_SUCCESS};

    peer->granted =
        claim->is_exclusive ? CHEMPI_RMA_EXCLUSIVE : CHEMPI_RMA_SHARED;
    peer->claim = NULL;
    if (claim->id)
        chempi_rma_answer(peer, claim->id, &granted, sizeof(granted));
    chempi_rma_serve_rest(peer, claim->rest, claim->rest_len);
    chempi_rma_free_claim(claim);
}

static void grant(struct chempi_win *win, struct chempi_rma_claim *claim)
{
    chempi_list_remove(&claim->link);
    if (claim->is_exclusive)
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
    if (win->gate.is_pumping)
        return;
    win->gate.is_pumping = true;
    while (!chempi_list_is_empty(&win->gate.waiting)) {
        struct chempi_rma_claim *claim =
            CHEMPI_CONTAINER_OF(chempi_list_first(&win->gate.waiting),
                                struct chempi_rma_claim, link);

        if (!may_enter(&win->gate, claim->is_exclusive))
            break;
        grant(win, claim);
    }
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
    const bool is_free = chempi_list_is_empty(&win->gate.waiting) &&
                         may_enter(&win->gate, claim->is_exclusive);

    chempi_list_append(&win->gate.waiting, &claim->link);
    if (is_free) {
        grant(win, claim);
        return;
    }
    claim->held_by = holder_of(win);
    if (!claim->is_own)
        chempi_rma_tell_holder(claim->peer, claim->held_by);
}

void chempi_rma_gate_leave(struct chempi_win *win, bool is_exclusive)
{
    if (is_exclusive)
        win->gate.is_exclusive = false;
    else if (win->gate.readers > 0)
        win->gate.readers--;
    pump(win);
    chempi_progress_nudge();
}

static bool is_granted(void *arg)
{
    return ((const struct chempi_rma_claim *)arg)->is_granted;
}

static void put_claim(struct chempi_where *w, const void *object)
{
    const struct chempi_rma_claim *claim = object;

    put_lock_words(w, claim->peer, claim->is_exclusive);
    if (claim->held_by >= 0)
        chempi_where_put(w, ", which rank %d held when it was asked for",
                         claim->held_by);
}

/* Without the lock. */
static void enter_own_gate(struct chempi_rma_peer *peer, bool is_exclusive)
{
    struct chempi_rma_claim claim = {.peer = peer,
                                     .held_by = -1,
                                     .is_own = true,
                                     .is_exclusive = is_exclusive};

    chempi_lane_lock(&chempi_lane_main);
    chempi_rma_gate_ask(peer->win, &claim);
    if (!claim.is_granted)
        chempi_rma_count(peer->win, CHEMPI_RMA_COUNT_LOCK_WAITS, 1);
    chempi_lane_unlock(&chempi_lane_main);
    (void)chempi_progress_wait_for(is_granted, &claim, put_claim, &claim);
}

/* ---- waiting for what is out ---- */

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

/* A lock that is under way to the peer. */
static void put_asked(struct chempi_where *w,
                      const struct chempi_rma_peer *peer)
{
    put_lock_words(w, peer, peer->batch.asked == CHEMPI_RMA_EXCLUSIVE);
    if (peer->held_by >= 0)
        chempi_where_put(w, ", which rank %d held when it was asked for",
                         peer->held_by);
}

static void put_peer(struct chempi_where *w, const void *object)
{
    const struct chempi_rma_peer *peer = object;

    if (peer->batch.asked)
        put_asked(w, peer);
    else
        chempi_where_put(w, " for operations at rank %u of %s", peer->rank,
                         chempi_rma_name(peer->win));
}

/* The first peer that keeps the window waiting for a lock, if any does. */
static void put_win(struct chempi_where *w, const void *object)
{
    const struct chempi_win *win = object;

    CHEMPI_LIST_FOR (link, &win->active) {
        const struct chempi_rma_peer *peer =
            CHEMPI_CONTAINER_OF(link, struct chempi_rma_peer, active);

        if (peer->batch.asked) {
            put_asked(w, peer);
            return;
        }
    }
    chempi_where_put(w, " for operations of %s", chempi_rma_name(win));
}

/* What went wrong since it was asked last. */
static int take_error(struct chempi_rma_peer *peer)
{
    const struct chempi_rma_verdict v = peer->error;
    const bool is_range = v.error == MPI_ERR_RMA_RANGE;
    char place[96] = "";

    peer->error = (struct chempi_rma_verdict){0};
    if (v.error == MPI_SUCCESS)
        return MPI_SUCCESS;
    if (v.is_placed)
        (void)snprintf(place, sizeof(place),
                       " of %llu bytes at displacement %lld",
                       (unsigned long long)v.len, (long long)v.disp);
    if (is_range && peer->win->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return chempi_error_set(
            v.error,
            "%s: rank %u refused an operation%s: not all of that memory is "
            "attached there; call MPI_Win_attach first",
            chempi_rma_name(peer->win), peer->rank, place);
    return chempi_error_set(v.error, "%s: rank %u refused an operation%s: %s",
                            chempi_rma_name(peer->win), peer->rank, place,
                            is_range ? "it goes beyond the window there"
                                     : "it could not be executed");
}

/* Programs wait for others by loops of direct operations and flushes, which
 * would never make progress for the rest of the process. */
static void breathe(struct chempi_win *win)
{
    if (atomic_fetch_add_explicit(&win->breaths, 1, memory_order_relaxed) %
            BREATHE_EVERY ==
        0)
        (void)chempi_progress_poll();
}

static int await_peer(struct chempi_rma_peer *peer, chempi_where_fn *words)
{
    bool is_done;
    int rc;

    chempi_lane_lock(&chempi_lane_main);
    is_done = is_peer_quiet(peer);
    chempi_lane_unlock(&chempi_lane_main);
    if (!is_done)
        (void)chempi_progress_wait_for(is_peer_quiet, peer, words, peer);
    else
        breathe(peer->win);
    chempi_lane_lock(&chempi_lane_main);
    rc = take_error(peer);
    chempi_lane_unlock(&chempi_lane_main);
    return rc;
}

int chempi_rma_flush_peer(struct chempi_rma_peer *peer)
{
    int rc;

    atomic_thread_fence(memory_order_seq_cst);
    chempi_lane_lock(&chempi_lane_main);
    rc = chempi_rma_begin_flush(peer);
    chempi_lane_unlock(&chempi_lane_main);
    return rc ? rc : await_peer(peer, put_peer);
}

static int take_errors(struct chempi_win *win)
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
    return rc;
}

static void await_all(struct chempi_win *win)
{
    bool is_done;

    chempi_lane_lock(&chempi_lane_main);
    is_done = is_quiet(win);
    chempi_lane_unlock(&chempi_lane_main);
    if (!is_done)
        (void)chempi_progress_wait_for(is_quiet, win, put_win, win);
    else
        breathe(win);
}

int chempi_rma_flush_all(struct chempi_win *win)
{
    int rc = MPI_SUCCESS;

    atomic_thread_fence(memory_order_seq_cst);
    chempi_lane_lock(&chempi_lane_main);
    for (uint32_t i = 0; i < win->bucket_count; i++)
        for (struct chempi_rma_peer *p = win->buckets[i]; p; p = p->next)
            if (rc == MPI_SUCCESS)
                rc = chempi_rma_begin_flush(p);
    chempi_lane_unlock(&chempi_lane_main);
    if (rc)
        return rc;
    await_all(win);
    return take_errors(win);
}

/* ---- taking and leaving ---- */

static bool is_not_wanted(void *arg)
{
    return ((const struct chempi_rma_peer *)arg)->wanted == CHEMPI_RMA_UNLOCKED;
}

static void put_lock(struct chempi_where *w, const void *object)
{
    const struct chempi_rma_peer *peer = object;

    put_lock_words(w, peer, peer->wanted == CHEMPI_RMA_EXCLUSIVE);
    if (peer->held_by >= 0)
        chempi_where_put(w, ", which rank %d held when it was asked for",
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
        (void)chempi_progress_wait_for(has_lock, peer, put_peer, peer);
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
    return rc ? rc : await_peer(peer, put_lock);
}

/* The same for all ways. */
static int get_lock(struct chempi_rma_peer *peer)
{
    const bool is_exclusive = peer->wanted == CHEMPI_RMA_EXCLUSIVE;

    if (peer->wanted != CHEMPI_RMA_UNCHECKED && !peer->win->has_shared_locks &&
        peer->reach != CHEMPI_RMA_SELF)
        return ask_lock(peer);
    chempi_lane_unlock(&chempi_lane_main);
    if (peer->wanted == CHEMPI_RMA_UNCHECKED)
        ; /* nobody else wants it */
    else if (peer->win->has_shared_locks)
        take_ticket(peer, is_exclusive);
    else
        enter_own_gate(peer, is_exclusive);
    return MPI_SUCCESS;
}

int chempi_rma_take_lock(struct chempi_rma_peer *peer,
                         enum chempi_rma_lock kind)
{
    struct chempi_win *win = peer->win;
    int rc = CHEMPI_UNLIKELY(late != NULL) ? catch_up() : MPI_SUCCESS;

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
    peer->wanted = (uint8_t)kind;
    rc = get_lock(peer);
    chempi_lane_lock(&chempi_lane_main);
    if (rc == MPI_SUCCESS) {
        peer->lock = (uint8_t)kind;
        chempi_list_append(&win->held, &peer->held);
    }
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
    atomic_thread_fence(memory_order_seq_cst);
    chempi_lane_lock(&chempi_lane_main);
    peer->lock = CHEMPI_RMA_UNLOCKED;
    chempi_list_remove(&peer->held);
    if (is_left_by_message(peer, kind)) {
        rc = send_unlock(peer);
        chempi_lane_unlock(&chempi_lane_main);
        return rc ? rc : await_peer(peer, put_peer);
    }
    chempi_lane_unlock(&chempi_lane_main);
    rc = chempi_rma_flush_peer(peer);
    if (kind == CHEMPI_RMA_UNCHECKED)
        return rc;
    if (win->has_shared_locks) {
        leave_ticket(peer, is_exclusive);
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
static int lock_mapped(struct chempi_win *win, enum chempi_rma_lock kind)
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
static int leave_by_messages(struct chempi_win *win)
{
    int rc = MPI_SUCCESS;

    chempi_lane_lock(&chempi_lane_main);
    CHEMPI_LIST_FOR_SAFE (link, &win->held) {
        struct chempi_rma_peer *peer =
            CHEMPI_CONTAINER_OF(link, struct chempi_rma_peer, held);

        if (rc || !is_left_by_message(peer, peer->lock))
            continue;
        peer->lock = CHEMPI_RMA_UNLOCKED;
        chempi_list_remove(&peer->held);
        rc = send_unlock(peer);
    }
    chempi_lane_unlock(&chempi_lane_main);
    return rc;
}

/* What is held, until nothing is. Without the lane lock. */
static int leave_all(struct chempi_win *win)
{
    int rc = leave_by_messages(win);

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

/* ---- the calls ---- */

static int check_lock(struct chempi_win *win, int assert, const char *what)
{
    if (assert & ~LOCK_ASSERTS)
        return chempi_error_set(MPI_ERR_ASSERT,
                                "argument assert is %d; %s knows "
                                "MPI_MODE_NOCHECK only",
                                assert, what);
    if (win->no_locks)
        return chempi_error_set(MPI_ERR_RMA_SYNC,
                                "%s was made with the info key no_locks",
                                chempi_rma_name(win));
    if (win->is_fenced && win->fence_used)
        return chempi_error_set(MPI_ERR_RMA_SYNC,
                                "%s is in an epoch of MPI_Win_fence that has "
                                "operations; close it with another fence",
                                chempi_rma_name(win));
    return MPI_SUCCESS;
}

static int find_peer(struct chempi_win *win, int rank,
                     struct chempi_rma_peer **out)
{
    if (rank < 0 || (uint32_t)rank >= win->comm->size)
        return chempi_error_set(
            MPI_ERR_RANK, "argument rank is %d; %s has ranks 0 to %u", rank,
            chempi_rma_name(win), win->comm->size - 1);
    chempi_lane_lock(&chempi_lane_main);
    *out = chempi_rma_peer(win, (uint32_t)rank);
    chempi_lane_unlock(&chempi_lane_main);
    return *out
               ? MPI_SUCCESS
               : chempi_error_set(MPI_ERR_NO_MEM, "no memory for rank %d of %s",
                                  rank, chempi_rma_name(win));
}

static const char *const access_words[] = {
    [CHEMPI_RMA_NO_ACCESS] = "in no epoch",
    [CHEMPI_RMA_STARTED] = "in an epoch of MPI_Win_start",
    [CHEMPI_RMA_LOCKED] = "in an epoch of MPI_Win_lock",
    [CHEMPI_RMA_LOCKED_ALL] = "in an epoch of MPI_Win_lock_all",
};

const char *chempi_rma_access_words(const struct chempi_win *win)
{
    return access_words[win->access];
}

/* Threads may lock several targets at a time. */
static void enter_epoch(struct chempi_win *win)
{
    chempi_lane_lock(&chempi_lane_main);
    win->access = CHEMPI_RMA_LOCKED;
    win->is_fenced = false; /* its epoch, without operations, is over */
    win->lock_count++;
    chempi_lane_unlock(&chempi_lane_main);
}

static void leave_epoch(struct chempi_win *win)
{
    chempi_lane_lock(&chempi_lane_main);
    if (--win->lock_count == 0)
        win->access = CHEMPI_RMA_NO_ACCESS;
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
    rc = find_peer(win, rank, &peer);
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
    rc = find_peer(win, rank, out);
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
    rc = lock_mapped(win, win->is_unchecked ? CHEMPI_RMA_UNCHECKED
                                            : CHEMPI_RMA_SHARED);
    if (rc) {
        (void)leave_all(win);
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
    rc = leave_by_messages(win);
    error = chempi_rma_flush_all(win);
    if (!rc)
        rc = error;
    error = leave_all(win);
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
    return rc ? rc : await_peer(peer, put_peer);
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
    await_all(win);
    return take_errors(win);
}

int chempi_win_sync(struct chempi_win *win)
{
    (void)win; /* the unified model: order is all that is missing */
    atomic_thread_fence(memory_order_seq_cst);
    (void)chempi_progress_poll();
    return MPI_SUCCESS;
}
