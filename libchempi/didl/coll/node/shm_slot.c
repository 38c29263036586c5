/* SPDX-License-Identifier: BSD-3-Clause */
/* One operation in its cell; see shm_slot.h. */
#include "libchempi/didl/coll/node/shm_slot.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/wake/wake.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/coll/node/cores/distance.h"
#include "libchempi/didl/coll/sched.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/locality/affinity.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/loss.h"

enum { YIELDS = 2 }; /* before progress is made */

/* ---- waiting and waking ---- */

struct wait {
    const _Atomic uint32_t *word;
    uint32_t value;
};

static bool is_reached(void *arg)
{
    const struct wait *w = arg;

    return atomic_load_explicit(w->word, memory_order_acquire) == w->value;
}

static void put_comm(struct chempi_wait_report *w, const void *object)
{
    const struct chempi_coll_state *st = object;

    if (st)
        chempi_wait_report_put_comm(w, st->comm);
}

/* In a meeting. */
static void put_missing(struct chempi_wait_report *w, const void *object)
{
    const struct chempi_coll_state *st = object;
    int count = 0;

    put_comm(w, st);
    for (int m = 0; m < st->size; m++)
        if (chempi_yield_policy_is_missed(&st->yield_policy, m))
            chempi_wait_report_put_missing(w, st->comm, m, count++);
    chempi_wait_report_put_rest(w, count);
}

/* Of a wait for what one member does. */
struct whom {
    const struct chempi_coll_state *st;
    int member;
};

static void put_member(struct chempi_wait_report *w, const void *object)
{
    const struct whom *whom = object;

    put_comm(w, whom->st);
    chempi_wait_report_put_missing(w, whom->st->comm, whom->member, 0);
}

/* Of a wait for members' lines. */
struct absent {
    const struct cell *cell;
    const int *next; /* those before it are there */
};

static void put_absent(struct chempi_wait_report *w, const void *object)
{
    const struct absent *absent = object;
    const struct chempi_coll_state *st = absent->cell->st;
    int count = 0;

    put_comm(w, st);
    for (int m = *absent->next; m < st->size; m++)
        if (m != st->rank && !cell_is_there(absent->cell, m))
            chempi_wait_report_put_missing(w, st->comm, m, count++);
    chempi_wait_report_put_rest(w, count);
}

/* Of a wait for several members. */
struct some {
    const struct chempi_coll_state *st;
    chempi_yield_policy_misses_fn *misses;
    const void *arg;
};

static void put_some(struct chempi_wait_report *w, const void *object)
{
    const struct some *some = object;
    const struct chempi_coll_state *st = some->st;
    int count = 0;

    put_comm(w, st);
    for (int m = 0; m < st->size; m++)
        if (some->misses(some->arg, m))
            chempi_wait_report_put_missing(w, st->comm, m, count++);
    chempi_wait_report_put_rest(w, count);
}

int chempi_coll_shm_slot_wait(const struct chempi_coll_state *st,
                              const _Atomic uint32_t *word, uint32_t value)
{
    struct wait w = {word, value};

    return chempi_coll_shm_slot_await(st, is_reached, &w);
}

/* Who will not come any more ends the wait. */
struct meeting {
    chempi_progress_done_fn *done;
    void *arg;
    const struct chempi_comm *comm;
};

static bool is_done_or_lost(void *arg)
{
    const struct meeting *m = arg;

    return m->done(m->arg) || chempi_loss_is_in(m->comm);
}

static int wait_or_lose(const struct chempi_coll_state *st,
                        chempi_progress_done_fn *done, void *arg,
                        chempi_wait_report_fn *words, const void *object)
{
    struct meeting m = {done, arg, st->comm};

    (void)chempi_progress_wait_for(is_done_or_lost, &m, words, object);
    return done(arg) ? MPI_SUCCESS : MPI_ERR_PROC_ABORTED;
}

static bool tarry(chempi_progress_done_fn *done, void *arg)
{
    uint64_t most = chempi_setting(CHEMPI_SET_COLL_NODE_SPINS);
    uint32_t spins = chempi_progress_spins();

    if (spins == 0) {
        /* More ranks than cores: most often the one waited for comes next. */
        for (int i = 0; i < YIELDS; i++) {
            (void)sched_yield();
            if (done(arg))
                return true;
        }
    }
    spins = spins < most ? spins : (uint32_t)most;
    while (spins-- > 0) {
        CHEMPI_CPU_RELAX();
        if (done(arg))
            return true;
    }
    return false;
}

bool chempi_coll_shm_slot_tarry(struct chempi_coll_state *st,
                                chempi_yield_policy_misses_fn *misses,
                                const void *object,
                                chempi_progress_done_fn *done, void *arg)
{
    if (misses && chempi_progress_spins() == 0)
        return chempi_yield_policy_wait(&st->yield_policy, misses, object, done,
                                        arg);
    return tarry(done, arg);
}

static int await_or_tell(const struct chempi_coll_state *st,
                         chempi_progress_done_fn *done, void *arg,
                         chempi_wait_report_fn *words, const void *object)
{
    if (done(arg) || tarry(done, arg))
        return MPI_SUCCESS;
    return wait_or_lose(st, done, arg, words, object);
}

int chempi_coll_shm_slot_await(const struct chempi_coll_state *st,
                               chempi_progress_done_fn *done, void *arg)
{
    return await_or_tell(st, done, arg, put_comm, st);
}

int chempi_coll_shm_slot_await_member(const struct chempi_coll_state *st,
                                      int member, chempi_progress_done_fn *done,
                                      void *arg)
{
    const struct whom whom = {st, member};

    return await_or_tell(st, done, arg, put_member, &whom);
}

int chempi_coll_shm_slot_wait_member(const struct chempi_coll_state *st,
                                     int member, const _Atomic uint32_t *word,
                                     uint32_t value)
{
    struct wait w = {word, value};

    return chempi_coll_shm_slot_await_member(st, member, is_reached, &w);
}

int chempi_coll_shm_slot_await_lines(const struct cell *cell, const int *next,
                                     chempi_progress_done_fn *done, void *arg)
{
    const struct absent absent = {cell, next};

    return await_or_tell(cell->st, done, arg, put_absent, &absent);
}

int chempi_coll_shm_slot_await_some(const struct chempi_coll_state *st,
                                    chempi_yield_policy_misses_fn *misses,
                                    chempi_progress_done_fn *done, void *arg)
{
    const struct some some = {st, misses, arg};

    return await_or_tell(st, done, arg, put_some, &some);
}

void chempi_coll_shm_slot_urge_all(const struct chempi_coll_state *st)
{
    chempi_progress_order_looks();
    for (int i = 0; i < st->size; i++)
        if (i != st->rank)
            chempi_progress_look_urgently_local(st->local_ranks[i]);
}

void chempi_coll_shm_slot_rouse_all(const struct cell *cell)
{
    const struct chempi_coll_state *st = cell->st;
    const bool is_later = cell->is_later;

    chempi_progress_order_looks();
    for (int i = 0; i < st->size; i++) {
        if (i == st->rank)
            continue;
        if (is_later)
            chempi_progress_look_urgently_local(st->local_ranks[i]);
        else
            chempi_progress_look_local(st->local_ranks[i]);
    }
}

/* ---- slots ---- */

static uint32_t count_ended(const struct chempi_coll_state *st)
{
    uint32_t least =
        atomic_load_explicit(&st->later.finished, memory_order_relaxed);

    for (int i = 0; i < st->size; i++) {
        /* Sequentially consistent for who waits for a cell; and
         * orders the members' last looks into a cell, or a slot, before what is
         * written there next. */
        uint32_t number = atomic_load(&st->later.ended[i].number);

        if ((int32_t)(number - least) < 0)
            least = number;
    }
    return least;
}

CHEMPI_NOINLINE bool
chempi_coll_shm_slot_have_ended(struct chempi_coll_state *st, uint32_t needed)
{
    struct chempi_node_later *later = &st->later;

    later->all_finished = count_ended(st);
    if (CHEMPI_LIKELY((int32_t)(later->all_finished - needed) >= 0))
        return true;
    /* Either who says so sees this or its word is seen here. */
    atomic_store(&later->ended[st->size].is_starved, 1);
    later->all_finished = count_ended(st);
    return (int32_t)(later->all_finished - needed) >= 0;
}

/* Somebody may wait for the end of a group. */
static CHEMPI_NOINLINE void say_group_ended(struct chempi_coll_state *st,
                                            uint32_t number)
{
    struct chempi_node_later *later = &st->later;

    atomic_store(&later->ended[st->rank].number, number);
    if (atomic_load(&later->ended[st->size].is_starved) &&
        atomic_exchange(&later->ended[st->size].is_starved, 0))
        chempi_coll_shm_slot_urge_all(st);
}

void chempi_coll_shm_slot_say_ended(struct chempi_coll_state *st,
                                    uint32_t number)
{
    if (number % CHEMPI_NODE_LATER_GROUP == 0)
        say_group_ended(st, number);
    else /* orders as in count_ended(); a fence here would wait for all that
            other cores are to get */
        atomic_store_explicit(&st->later.ended[st->rank].number, number,
                              memory_order_release);
}

/* Is the slot that the cell shares with others free? node_later.h, L7. */
static bool has_free_few(const struct cell *cell)
{
    const uint32_t needed = cell->seq - CHEMPI_NODE_LATER_SLOTS;
    struct chempi_coll_state *st = cell->st;

    if (!cell->has_few)
        return false;
    if (!cell_has_seen_ended(st, cell->seq, needed))
        st->later.all_finished = count_ended(st);
    return cell_has_seen_ended(st, cell->seq, needed);
}

/* A slot's bit in a row of masks. Non-blocking operations, which have the lane
 * lock, and others, which have not, share no word. */
static uint32_t bit_of(const struct cell *cell, uint32_t slot)
{
    return cell->is_later ? CHEMPI_NODE_BLOCKING_MASKS * 64 + slot -
                                cell->st->cells - CHEMPI_NODE_SYNC_SLOTS
                          : slot;
}

/* Where a bit of member m's slots is; of whole slots, or of their first
 * pages. */
static uint64_t *reserved_mask(const struct cell *cell, int m, uint32_t bit,
                               bool is_whole)
{
    size_t row = (size_t)m * 2 + is_whole;

    return &cell->st->reserved[row * CHEMPI_NODE_MASKS + bit / 64];
}

static CHEMPI_COLD int reserve(const struct cell *cell, int m, uint32_t bit,
                               bool is_whole)
{
    struct chempi_err err = {.text = ""};
    int rc = chempi_region_reserve(
        chempi_ctx.services.region, cell_slot(cell, m),
        is_whole ? CHEMPI_NODE_BULK_BYTES : CHEMPI_NODE_PAGE_BYTES, &err);

    if (rc < 0)
        return chempi_error_set(MPI_ERR_NO_MEM, "%s", err.text);
    *reserved_mask(cell, m, bit, false) |= UINT64_C(1) << bit % 64;
    if (is_whole)
        *reserved_mask(cell, m, bit, true) |= UINT64_C(1) << bit % 64;
    return MPI_SUCCESS;
}

/* ---- hands (A12) ---- */

/* Has the root of the hand's operation number i read it? */
struct handed {
    const struct chempi_coll_state *st;
    uint32_t i;
};

/* Is that so of operation seq, when the root has read this one? No further: it
 * had a line of each member's each time. */
static bool is_covered(const struct chempi_coll_state *st, uint32_t taken,
                       uint32_t seq)
{
    return taken - seq < st->cells;
}

static bool is_taken(void *arg)
{
    const struct handed *handed = arg;
    const struct chempi_coll_state *st = handed->st;
    const uint32_t taken = atomic_load_explicit(
        &st->taken[st->hand.ops[handed->i].root].seq, memory_order_acquire);

    return is_covered(st, taken, st->hand.ops[handed->i].seq);
}

/* Once it waits, then for as much as makes it worth while. */
static CHEMPI_NOINLINE int await_half(struct handed *handed)
{
    const struct chempi_coll_state *st = handed->st;
    const struct chempi_node_hand *hand = &st->hand;
    struct chempi_node_taken *mine = &st->taken[st->rank];
    struct chempi_node_taken *all = &st->taken[st->size];
    int rc;

    while (handed->i + 1 < hand->count &&
           hand->ops[handed->i].end - hand->tail < CHEMPI_NODE_HAND_BYTES / 2)
        handed->i++;
    atomic_store_explicit(&mine->goal, hand->ops[handed->i].seq,
                          memory_order_relaxed);
    /* Orders the goal before it; partner: rouse_waiting(). Both are ordered
     * before the last look by whoever sleeps; partner:
     * chempi_coll_shm_slot_say_taken(). */
    atomic_store_explicit(&mine->waits, 1, memory_order_release);
    (void)atomic_fetch_add(&all->waits, 1);
    /* Who sleeps may be another thread, since before (progress.c, P1): it does
     * not order this against the root, which has no fence where it is
     * registered. */
    if (CHEMPI_UNLIKELY(chempi_lane_main.is_locking) &&
        chempi_ctx.services.is_wake_registered)
        (void)chempi_wake_barrier();
    rc = chempi_coll_shm_slot_await_member(st, hand->ops[handed->i].root,
                                           is_taken, handed);
    (void)atomic_fetch_sub(&all->waits, 1);
    atomic_store_explicit(&mine->waits, 0, memory_order_relaxed);
    return rc;
}

/* Until so many bytes are free behind head. */
static int make_room(struct chempi_coll_state *st, uint64_t len)
{
    struct chempi_node_hand *hand = &st->hand;
    int rc = MPI_SUCCESS;

    while (!rc && hand->head + len - hand->tail > CHEMPI_NODE_HAND_BYTES) {
        struct handed handed = {st, hand->first};

        if (!is_taken(&handed))
            rc = await_half(&handed);
        hand->tail = hand->ops[handed.i].end;
        hand->first = handed.i + 1;
    }
    return rc;
}

static CHEMPI_COLD int reserve_hand(const struct cell *cell, uint64_t end)
{
    struct chempi_node_hand *hand = &cell->st->hand;
    const uint64_t goal = (end + CHEMPI_NODE_HAND_STEP - 1) /
                          CHEMPI_NODE_HAND_STEP * CHEMPI_NODE_HAND_STEP;
    struct chempi_err err = {.text = ""};

    if (chempi_region_reserve(chempi_ctx.services.region,
                              cell_hand(cell, cell->st->rank) + hand->reserved,
                              goal - hand->reserved, &err) < 0)
        return chempi_error_set(MPI_ERR_NO_MEM, "%s", err.text);
    hand->reserved = goal;
    return MPI_SUCCESS;
}

static unsigned char *room_in_hand(const struct cell *cell, uint64_t len,
                                   int *rc)
{
    struct chempi_coll_state *st = cell->st;
    struct chempi_node_hand *hand = &st->hand;
    const uint64_t size =
        (len + CHEMPI_CACHE_LINE - 1) & ~(uint64_t)(CHEMPI_CACHE_LINE - 1);
    uint64_t at = hand->head % CHEMPI_NODE_HAND_BYTES;

    if (at + size > CHEMPI_NODE_HAND_BYTES) {
        hand->head += CHEMPI_NODE_HAND_BYTES - at;
        at = 0;
    }
    *rc = make_room(st, size);
    if (CHEMPI_UNLIKELY(!*rc && at + size > hand->reserved))
        *rc = reserve_hand(cell, at + size);
    if (CHEMPI_UNLIKELY(*rc)) {
        cell_mine(cell)->len = CELL_NO_ROOM;
        return NULL;
    }
    hand->head += size;
    hand->ops[hand->count].seq = cell->seq;
    hand->ops[hand->count].root = cell->root;
    hand->ops[hand->count++].end = hand->head;
    atomic_store_explicit(&cell_mine(cell)->place.at, (uint32_t)at,
                          memory_order_relaxed);
    return cell_hand(cell, st->rank) + at;
}

int chempi_coll_shm_slot_open_hand_in(struct chempi_coll_state *st,
                                      struct cell *cell, int root)
{
    int rc = chempi_coll_shm_slot_open(st, cell);

    cell->is_handed = true;
    cell->root = root;
    return rc;
}

/* Those who have room enough now: to wake one that goes on sleeping costs the
 * root more than an operation takes. */
static CHEMPI_NOINLINE void rouse_waiting(const struct cell *cell)
{
    const struct chempi_coll_state *st = cell->st;

    for (int i = 0; i < st->size; i++) {
        const struct chempi_node_taken *other = &st->taken[i];

        if (atomic_load_explicit(&other->waits, memory_order_acquire) &&
            is_covered(
                st, cell->seq,
                atomic_load_explicit(&other->goal, memory_order_relaxed)))
            chempi_progress_look_local(st->local_ranks[i]);
    }
}

void chempi_coll_shm_slot_say_taken(const struct cell *cell)
{
    const struct chempi_coll_state *st = cell->st;

    /* Orders the reading before what is written there next; partner:
     * is_taken(). */
    atomic_store_explicit(&st->taken[st->rank].seq, cell->seq,
                          memory_order_release);
    chempi_progress_order_looks();
    if (CHEMPI_UNLIKELY(atomic_load_explicit(&st->taken[st->size].waits,
                                             memory_order_relaxed) > 0))
        rouse_waiting(cell);
}

/* ---- rooms ---- */

unsigned char *chempi_coll_shm_slot_room(const struct cell *cell, int m,
                                         uint64_t len, int *rc)
{
    bool is_whole = len > CHEMPI_NODE_PAGE_BYTES;
    bool is_few;
    uint32_t bit;
    uint64_t mask;
    int code;

    if (len <= CHEMPI_NODE_LINE_BYTES)
        return cell_line(cell, m)->data;
    if (cell->is_handed && !chempi_affinity_is_roomy())
        return room_in_hand(cell, len, rc);
    if (cell->is_handed)
        atomic_store_explicit(&cell_line(cell, m)->place.at,
                              CHEMPI_NODE_IN_SLOT, memory_order_relaxed);
    is_few = has_free_few(cell);
    if (cell->has_few)
        cell_line(cell, m)->place.is_few = is_few;
    bit = bit_of(cell, is_few ? cell_few(cell) : cell->slot);
    mask = *reserved_mask(cell, m, bit, is_whole);
    if (CHEMPI_UNLIKELY(!(mask >> bit % 64 & 1u))) {
        code = reserve(cell, m, bit, is_whole);
        if (code) {
            cell_line(cell, m)->len = CELL_NO_ROOM;
            *rc = code;
            return NULL;
        }
    }
    return cell_in_slot(cell, m, len);
}

/* ---- meeting ---- */

/* Members' lines, one after the other. */
struct lines {
    const struct cell *cell;
    int next; /* those before it are there */
};

static bool are_lines_there(void *arg)
{
    struct lines *l = arg;
    const struct cell *cell = l->cell;

    for (; l->next < cell->st->size; l->next++)
        if (l->next != cell->st->rank && !cell_is_there(cell, l->next))
            return false;
    return true;
}

bool chempi_coll_shm_slot_is_collected(const struct cell *cell)
{
    return are_lines_there(&(struct lines){.cell = cell});
}

int chempi_coll_shm_slot_collect(const struct cell *cell)
{
    struct lines l = {.cell = cell};

    return chempi_coll_shm_slot_await_lines(cell, &l.next, are_lines_there, &l);
}

/*
 * Two members: each sees the other's line. Both have published their data
 * before, so that no third party is needed. More: the last one says so in the
 * common line.
 */
static inline const struct chempi_node_line *
meeting_line(const struct cell *cell)
{
    int size = cell->st->size;

    return cell_line(cell, size == 2 ? 1 - cell->st->rank : size);
}

static bool is_missed(const void *policy, int member)
{
    return chempi_yield_policy_is_missed(policy, member);
}

int chempi_coll_shm_slot_wait_for_all(struct chempi_coll_state *st,
                                      const _Atomic uint32_t *word,
                                      uint32_t value)
{
    struct wait w = {word, value};

    if (is_reached(&w) || chempi_coll_shm_slot_tarry(
                              st, is_missed, &st->yield_policy, is_reached, &w))
        return MPI_SUCCESS;
    return wait_or_lose(st, is_reached, &w, put_missing, st);
}

void chempi_coll_shm_slot_come(const struct cell *cell)
{
    if (cell->st->size == 2) {
        cell_publish(cell_mine(cell), cell->seq);
        cell_rouse(cell, 1 - cell->st->rank);
        return;
    }
    if (!cell_come(cell))
        return;
    cell_common(cell)->mark = CELL_NO_RESULT;
    cell_common(cell)->place.last = (uint32_t)cell->st->rank;
    cell_publish(cell_common(cell), cell->seq);
    chempi_coll_shm_slot_rouse_all(cell);
}

const _Atomic uint32_t *chempi_coll_shm_slot_meeting(const struct cell *cell)
{
    return &meeting_line(cell)->seq;
}

bool chempi_coll_shm_slot_is_over(const struct cell *cell,
                                  const struct chempi_coll_call *c)
{
    struct wait w = {&meeting_line(cell)->seq, cell->seq};

    (void)c;
    return is_reached(&w);
}

int chempi_coll_shm_slot_await_others(const struct cell *cell)
{
    const _Atomic uint32_t *word = &meeting_line(cell)->seq;

    return cell->st->size == 2
               ? chempi_coll_shm_slot_wait_member(cell->st, 1 - cell->st->rank,
                                                  word, cell->seq)
               : chempi_coll_shm_slot_wait_for_all(cell->st, word, cell->seq);
}

int chempi_coll_shm_slot_meet(const struct cell *cell)
{
    chempi_coll_shm_slot_come(cell);
    return chempi_coll_shm_slot_await_others(cell);
}

void chempi_coll_shm_slot_come_again(const struct cell *cell)
{
    if (cell->is_later)
        (void)atomic_fetch_add_explicit(&cell_mine(cell)->place.met, 1,
                                        memory_order_relaxed);
    if (!cell_come(cell))
        return;
    /* Orders what all did before they arrived; partner: as in publish. */
    atomic_store_explicit(&cell_count(cell)->met, *cell_expected(cell),
                          memory_order_release);
    chempi_coll_shm_slot_rouse_all(cell);
}

bool chempi_coll_shm_slot_has_failed(const struct cell *cell, uint32_t phase)
{
    for (int i = 0; i < cell->st->size; i++) {
        uint32_t reply = cell_line(cell, i)->place.reply;

        if (CHEMPI_UNLIKELY(reply != 0 && reply <= phase))
            return true;
    }
    return false;
}

void chempi_coll_shm_slot_reply(const struct cell *cell, uint32_t phase,
                                int code)
{
    struct chempi_node_line *line = cell_mine(cell);

    if (code && line->place.reply == 0)
        line->place.reply = phase;
}

bool chempi_coll_shm_slot_is_refused(const struct cell *cell, uint32_t phase)
{
    bool has_failed = chempi_coll_shm_slot_has_failed(cell, phase);

    if (has_failed)
        cell->st->is_refused = true;
    return has_failed;
}

int chempi_coll_shm_slot_barrier(struct chempi_coll_state *st)
{
    struct cell cell;

    cell_open_sync(st, &cell);
    return chempi_coll_shm_slot_meet(&cell);
}

int chempi_coll_shm_slot_open(struct chempi_coll_state *st, struct cell *cell)
{
    int rc = MPI_SUCCESS;

    if (st->seq + 1 - st->last_sync >= st->cells - 1)
        rc = chempi_coll_shm_slot_barrier(st);
    cell_open_next(st, cell);
    return rc;
}

/* ---- boards ---- */

bool chempi_coll_streams_are_on(const struct chempi_coll_state *st)
{
    return st->stream_len > 0 && chempi_setting(CHEMPI_SET_COLL_NODE_STREAM);
}

/* Whole chunks of both, of which a board may have a last one that is short. */
static CHEMPI_COLD bool reserve_streams(struct chempi_coll_state *st,
                                        uint64_t len)
{
    struct chempi_region *region = chempi_ctx.services.region;
    const size_t board = (size_t)st->stream_len;
    const uint64_t rounded =
        (len + st->stream_chunk - 1) / st->stream_chunk * st->stream_chunk;
    const uint64_t goal = rounded < board ? rounded : board;
    const size_t more = (size_t)(goal - st->stream_reserved);
    unsigned char *first =
        st->streams + (size_t)st->rank * board + st->stream_reserved;
    unsigned char *second = first + (size_t)st->size * board;

    if (chempi_region_reserve(region, first, more, NULL) < 0 ||
        chempi_region_reserve(region, second, more, NULL) < 0)
        return false;
    st->stream_reserved = goal;
    return true;
}

bool chempi_coll_stream_is_there(struct chempi_coll_state *st, uint64_t len)
{
    /* K5 (node_task.h): an operation may have ended here by a loss while others
     * are still at its boards, and this member's would be those again. */
    return chempi_coll_streams_are_on(st) && !chempi_loss_is_in(st->comm) &&
           (CHEMPI_LIKELY(len <= st->stream_reserved) ||
            reserve_streams(st, len));
}

/* ---- users' data in and out ---- */

CHEMPI_COLD int chempi_coll_shm_slot_different_amounts(const struct cell *cell,
                                                       int member)
{
    char who[32] = "another rank";

    if (member < cell->st->size)
        (void)snprintf(who, sizeof(who), "rank %d", member);
    return chempi_error_set(MPI_ERR_COUNT,
                            "%s and this rank, %d, take part with different "
                            "amounts of data: all members must give amounts "
                            "that match",
                            who, cell->st->rank);
}

int chempi_coll_shm_slot_put(const struct cell *cell, int m, const void *buf,
                             MPI_Count count, struct chempi_datatype *type,
                             uint64_t len)
{
    int rc = MPI_SUCCESS;
    unsigned char *slot = chempi_coll_shm_slot_room(cell, m, len, &rc);

    if (CHEMPI_UNLIKELY(!slot))
        return rc;
    if (CHEMPI_LIKELY(type->is_contiguous)) {
        cell_copy(slot, chempi_coll_plus(buf, type->true_lb), len);
        return MPI_SUCCESS;
    }
    return chempi_datatype_copy(buf, count, type, slot, (MPI_Count)len,
                                chempi_coll_byte());
}

CHEMPI_COLD int chempi_coll_shm_slot_wrong_amount(int member, uint64_t len,
                                                  uint64_t room)
{
    if (len > room)
        return chempi_message_note_too_much(member, len, room);
    return chempi_message_note_too_little(member, len, room);
}

int chempi_coll_shm_slot_get(int member, const void *slot, uint64_t len,
                             void *buf, MPI_Count count,
                             struct chempi_datatype *type)
{
    uint64_t room = (uint64_t)(count * type->size);

    if (CHEMPI_UNLIKELY(len != room))
        return chempi_coll_shm_slot_wrong_amount(member, len, room);
    if (CHEMPI_LIKELY(type->is_contiguous)) {
        cell_copy(chempi_coll_plus(buf, type->true_lb), slot, len);
        return MPI_SUCCESS;
    }
    return chempi_datatype_copy(slot, (MPI_Count)len, chempi_coll_byte(), buf,
                                count, type);
}

int chempi_coll_shm_slot_mismatch(const struct cell *cell, int member)
{
    if (cell_line(cell, member)->len == CELL_NO_ROOM)
        return chempi_error_set(MPI_ERR_NO_MEM,
                                "a rank of this node is out of shared memory; "
                                "raise the memory limit of the job's control "
                                "group (or of the machine), or start fewer "
                                "ranks on this node");
    return chempi_coll_shm_slot_different_amounts(cell, member);
}

int chempi_coll_shm_slot_check(const struct cell *cell, uint64_t len)
{
    for (int i = 0; i < cell->st->size; i++)
        if (CHEMPI_UNLIKELY(cell_line(cell, i)->len != len))
            return chempi_coll_shm_slot_mismatch(cell, i);
    return MPI_SUCCESS;
}

MPI_Count chempi_coll_node_whole_count(const struct chempi_coll_call *c,
                                       int size)
{
    MPI_Count total = 0;

    if (c->kind != CHEMPI_COLL_REDUCE_SCATTER &&
        c->kind != CHEMPI_COLL_REDUCE_SCATTER_BLOCK)
        return c->recv.count;
    for (int i = 0; i < size; i++)
        total += chempi_coll_part_count(c, i);
    return total;
}

bool chempi_coll_shm_slot_goes_past(const struct chempi_coll_state *st,
                                    int member)
{
    return member < 0 ? chempi_distance_is_far(&st->yield_policy)
                      : chempi_distance_is_far_from(&st->yield_policy, member);
}

void chempi_coll_shm_slot_say_came(const struct cell *cell)
{
    atomic_store_explicit(&cell_mine(cell)->place.came_ns, chempi_clock_ns(),
                          memory_order_relaxed);
}

void chempi_coll_shm_slot_look_far(const struct cell *cell, int member)
{
    const struct chempi_yield_policy *policy = &cell->st->yield_policy;
    _Atomic uint32_t *seen = &cell_common(cell)->place.met;

    if (member == cell->st->rank ||
        !chempi_distance_is_elsewhere(policy, member) ||
        atomic_load_explicit(seen, memory_order_relaxed) == cell->seq ||
        atomic_exchange_explicit(seen, cell->seq, memory_order_relaxed) ==
            cell->seq)
        return;
    chempi_distance_look_at_time(policy, member,
                                 &cell_line(cell, member)->place.came_ns);
}

/* In a non-blocking one others' lines are read by who waits for them. */
void chempi_coll_shm_slot_look_far_at_last(const struct cell *cell)
{
    const uint32_t last = cell_common(cell)->place.last;

    if (!cell->is_later && last < (uint32_t)cell->st->size)
        chempi_coll_shm_slot_look_far(cell, (int)last);
}
