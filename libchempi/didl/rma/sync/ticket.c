/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Win_lock where all members are on this node: tickets in shared memory.
 * struct chempi_rma_line has the rules.
 */
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/lane.h"

#define HOLDERS_MAX 4u /* of a lock that are named */

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

static bool is_served_or_lost(void *arg)
{
    return is_served(arg) ||
           chempi_rma_lost(((const struct ticket *)arg)->peer->win);
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
    if (seat < win->local_count && seat != win->me_local)
        chempi_progress_rouse_local(
            chempi_ctx.services.local_rank_of_proc[chempi_comm_proc(
                win->comm, win->locals[seat])]);
}

static _Atomic uint8_t *mark_of(const struct chempi_rma_peer *peer,
                                uint32_t member)
{
    const struct chempi_win *win = peer->win;

    return &win->marks[(uint32_t)peer->local * win->local_count + member];
}

static void put_wait(struct chempi_wait_report *w, const void *object)
{
    const struct ticket *t = object;
    const struct chempi_win *win = t->peer->win;
    uint32_t named = 0;

    chempi_rma_put_lock(w, t->peer, t->is_exclusive);
    for (uint32_t i = 0; i < win->local_count && named <= HOLDERS_MAX; i++) {
        if (!atomic_load_explicit(mark_of(t->peer, i), memory_order_relaxed))
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

/* One that was not served stays in the line for good: nobody waits there any
 * more. */
int chempi_rma_take_ticket(struct chempi_rma_peer *peer, bool is_exclusive)
{
    struct chempi_rma_line *line = line_of(peer);
    struct ticket t = {.peer = peer, .is_exclusive = is_exclusive};

    t.number = atomic_fetch_add(&line->next, 1);
    if (!is_served(&t)) { /* who need not wait needs no seat */
        atomic_store(seat_of(peer, t.number), peer->win->me_local);
        count_wait(peer->win);
        (void)chempi_progress_wait_for(is_served_or_lost, &t, put_wait, &t);
        if (CHEMPI_UNLIKELY(chempi_rma_lost(peer->win)))
            return chempi_rma_lock_loss(peer, is_exclusive);
    }
    if (!is_exclusive) {
        (void)atomic_fetch_add(&line->read, 1);
        call_ticket(peer, t.number + 1);
    }
    atomic_store_explicit(mark_of(peer, peer->win->me_local), 1,
                          memory_order_relaxed);
    return MPI_SUCCESS;
}

void chempi_rma_leave_ticket(struct chempi_rma_peer *peer, bool is_exclusive)
{
    struct chempi_rma_line *line = line_of(peer);
    uint32_t write;
    uint32_t read;

    atomic_store_explicit(mark_of(peer, peer->win->me_local), 0,
                          memory_order_relaxed);
    /* All before have left and all behind wait: nobody else writes it. */
    if (is_exclusive)
        atomic_store_explicit(
            &line->read,
            atomic_load_explicit(&line->read, memory_order_relaxed) + 1,
            memory_order_release);
    write = atomic_fetch_add(&line->write, 1) + 1;
    read = atomic_load(&line->read);
    call_ticket(peer, write);
    if (read != write)
        call_ticket(peer, read);
}
