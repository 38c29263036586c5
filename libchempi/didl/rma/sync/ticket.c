/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Win_lock where all members are on this node, in shared memory.
 * struct chempi_rma_line has the rules.
 */
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/lane.h"

#define HOLDERS_MAX 4u /* of a lock that are named */

/* Of marks, of who has the lock and who waits for a writer to leave. */
enum { IS_IN = 1, IS_GUEST = 2 };

/* A process that waits. */
struct ticket {
    struct chempi_rma_peer *peer;
    uint32_t number; /* not of guests */
    bool is_guest;
    bool is_exclusive;
    bool is_in;
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

static _Atomic uint8_t *mark_of(const struct chempi_rma_peer *peer,
                                uint32_t member)
{
    const struct chempi_win *win = peer->win;

    return &win->marks[(uint32_t)peer->local * win->local_count + member];
}

static void set_mark(const struct chempi_rma_peer *peer, uint8_t mark)
{
    atomic_store_explicit(mark_of(peer, peer->win->me_local), mark,
                          memory_order_relaxed);
}

static bool try_enter(struct chempi_rma_line *line, bool is_exclusive)
{
    uint32_t inside = 0;

    if (is_exclusive) /* a guest that enters calls when it leaves */
        return atomic_load(&line->guests) == 0 &&
               atomic_compare_exchange_strong(&line->inside, &inside,
                                              CHEMPI_RMA_WRITER);
    inside = atomic_load(&line->inside);
    while (!(inside & CHEMPI_RMA_WRITER))
        if (atomic_compare_exchange_weak(&line->inside, &inside, inside + 1))
            return true;
    return false;
}

static bool is_served(void *arg)
{
    struct ticket *t = arg;
    struct chempi_rma_line *line = line_of(t->peer);

    if (!t->is_in && (t->is_guest || atomic_load(&line->turn) == t->number))
        t->is_in = try_enter(line, t->is_exclusive);
    return t->is_in;
}

static bool is_served_or_lost(void *arg)
{
    return is_served(arg) ||
           chempi_rma_lost(((const struct ticket *)arg)->peer->win);
}

static void wake(const struct chempi_win *win, uint32_t member)
{
    chempi_progress_rouse_local(
        chempi_ctx.services.local_rank_of_proc[chempi_comm_proc(
            win->comm, win->locals[member])]);
}

/* Wake who holds a ticket, if anybody does. The seat is taken before its owner
 * looks at the line again, and the line has changed before the seat is read
 * here, so one of the two sees the other. A seat that is still that of an older
 * ticket costs a wakeup in vain. */
static void call_ticket(const struct chempi_rma_peer *peer, uint32_t number)
{
    const struct chempi_win *win = peer->win;
    uint32_t seat;

    if (atomic_load(&line_of(peer)->next) == number)
        return;
    seat = atomic_load(seat_of(peer, number));
    if (seat < win->local_count)
        wake(win, seat);
}

/* A writer has left. A guest marks itself and is counted before it looks
 * whether one is inside, so one of the two sees the other. */
static void call_guests(const struct chempi_rma_peer *peer)
{
    const struct chempi_win *win = peer->win;

    if (atomic_load(&line_of(peer)->guests) == 0)
        return;
    for (uint32_t i = 0; i < win->local_count; i++)
        if (atomic_load_explicit(mark_of(peer, i), memory_order_relaxed) ==
            IS_GUEST)
            wake(win, i);
}

static void put_wait(struct chempi_wait_report *w, const void *object)
{
    const struct ticket *t = object;
    const struct chempi_win *win = t->peer->win;
    uint32_t named = 0;

    chempi_rma_put_lock(w, t->peer, t->is_exclusive);
    for (uint32_t i = 0; i < win->local_count && named <= HOLDERS_MAX; i++) {
        if (atomic_load_explicit(mark_of(t->peer, i), memory_order_relaxed) !=
            IS_IN)
            continue;
        if (named++ < HOLDERS_MAX)
            chempi_wait_report_put(w, "%s rank %u",
                                   named == 1 ? ", held by" : " and",
                                   win->locals[i]);
        else
            chempi_wait_report_put(w, " and others");
    }
}

static void count_wait(struct chempi_win *win)
{
    chempi_lane_lock(&chempi_lane_main);
    chempi_rma_count(win, CHEMPI_RMA_COUNT_LOCK_WAITS, 1);
    chempi_lane_unlock(&chempi_lane_main);
}

/* Until a writer has left. One that is lost meanwhile is a guest for good:
 * nobody waits there any more. */
static void wait_as_guest(struct ticket *t)
{
    struct chempi_rma_line *line = line_of(t->peer);

    set_mark(t->peer, IS_GUEST);
    (void)atomic_fetch_add(&line->guests, 1);
    (void)chempi_progress_wait_for(is_served_or_lost, t, put_wait, t);
    if (t->is_in)
        (void)atomic_fetch_sub(&line->guests, 1);
}

/* Until those before have entered and it may. */
static void wait_in_line(struct ticket *t)
{
    struct chempi_rma_line *line = line_of(t->peer);

    t->number = atomic_fetch_add(&line->next, 1);
    atomic_store(seat_of(t->peer, t->number), t->peer->win->me_local);
    (void)chempi_progress_wait_for(is_served_or_lost, t, put_wait, t);
    if (!t->is_in)
        return;
    atomic_store(&line->turn, t->number + 1);
    if (!t->is_exclusive)
        call_ticket(t->peer, t->number + 1);
}

int chempi_rma_take_ticket(struct chempi_rma_peer *peer)
{
    struct chempi_rma_line *line = line_of(peer);
    struct ticket t = {.peer = peer,
                       .is_guest = peer->wanted == CHEMPI_RMA_OVERTAKING,
                       .is_exclusive = peer->wanted == CHEMPI_RMA_EXCLUSIVE};

    if (t.is_guest ||
        atomic_load_explicit(&line->next, memory_order_relaxed) ==
            atomic_load_explicit(&line->turn, memory_order_relaxed))
        t.is_in = try_enter(line, t.is_exclusive);
    if (!t.is_in) {
        count_wait(peer->win);
        if (t.is_guest)
            wait_as_guest(&t);
        else
            wait_in_line(&t);
        if (CHEMPI_UNLIKELY(chempi_rma_lost(peer->win)))
            return chempi_rma_lock_loss(peer, t.is_exclusive);
    }
    set_mark(peer, IS_IN);
    return MPI_SUCCESS;
}

void chempi_rma_leave_ticket(struct chempi_rma_peer *peer, bool is_exclusive)
{
    struct chempi_rma_line *line = line_of(peer);

    set_mark(peer, 0);
    if (is_exclusive) {
        atomic_store(&line->inside, 0);
        call_guests(peer);
    } else if (atomic_fetch_sub(&line->inside, 1) > 1) {
        return; /* who leaves last calls */
    }
    call_ticket(peer, atomic_load(&line->turn));
}
