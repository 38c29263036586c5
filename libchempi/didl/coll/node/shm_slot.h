/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One operation in its cell of a node's area: opening it, publishing, meeting,
 * and users' data in and out of slots. See node.h for the rules.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_SHM_SLOT_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_SHM_SLOT_H

#include <string.h>

#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/datatype/datatype.h"
#include "libchempi/didl/transport/progress/progress.h"

struct cell {
    struct chempi_coll_state *st;
    uint32_t seq;
    uint32_t index;
    uint32_t slot;                  /* index of its members' slots */
    bool is_later;                  /* of a non-blocking operation */
    bool has_few;                   /* or cell_few() */
    bool is_handed;                 /* they have hands (A12) */
    int root;                       /* then */
    struct chempi_node_line *lines; /* of member 0; see cell_line() */
};

/* A line's len when its writer could not get the pages of the slot. */
#define CELL_NO_ROOM UINT64_MAX
/* Of a member that takes part without data. */
#define CELL_VOID (UINT64_MAX - 1)

enum { CELL_AHEAD = 2 }; /* operations */

/* The common line's mark where all have met and that is all; somebody may have
 * expected the result of a reduction there. */
#define CELL_NO_RESULT UINT32_MAX

/* ---- waiting and waking ---- */

/* Until *word == value, which whoever stores it rouses this process for. */
int chempi_coll_shm_slot_wait(const struct chempi_coll_state *st,
                              const _Atomic uint32_t *word, uint32_t value);

/* The same for who has come to a meeting (yield_policy.h) and waits for the
 * others. */
int chempi_coll_shm_slot_wait_for_all(struct chempi_coll_state *st,
                                      const _Atomic uint32_t *word,
                                      uint32_t value);

/* The same for any condition; see chempi_progress_wait(). st names the
 * communicator to whoever asks what is waited for, and may be NULL. */
int chempi_coll_shm_slot_await(const struct chempi_coll_state *st,
                               chempi_progress_done_fn *done, void *arg);

/* The same for what one member does, which is named; and for the lines of all
 * members but this one, of which those before *next are there. */
int chempi_coll_shm_slot_wait_member(const struct chempi_coll_state *st,
                                     int member, const _Atomic uint32_t *word,
                                     uint32_t value);
int chempi_coll_shm_slot_await_member(const struct chempi_coll_state *st,
                                      int member, chempi_progress_done_fn *done,
                                      void *arg);
int chempi_coll_shm_slot_await_lines(const struct cell *cell, const int *next,
                                     chempi_progress_done_fn *done, void *arg);

/* The same for what several do; misses(arg, member): is it one of them? */
int chempi_coll_shm_slot_await_some(const struct chempi_coll_state *st,
                                    chempi_yield_policy_misses_fn *misses,
                                    chempi_progress_done_fn *done, void *arg);

/* Before a wait makes progress for all: wait a moment for what is likely to
 * come next; misses(object, member) may be NULL. Returns done(arg). It makes no
 * progress, nor do done and misses: what has begun and what has ended here stay
 * as they were, so that an operation whose turn it was still has it. */
bool chempi_coll_shm_slot_tarry(struct chempi_coll_state *st,
                                chempi_yield_policy_misses_fn *misses,
                                const void *object,
                                chempi_progress_done_fn *done, void *arg);

/* Who computes while it has a non-blocking operation under way, or a task
 * behind that, may have an agent, which is woken, too. */
static inline void cell_rouse(const struct cell *cell, int member)
{
    if (cell->is_later)
        chempi_progress_urge_local(cell->st->local_ranks[member]);
    else
        chempi_progress_rouse_local(cell->st->local_ranks[member]);
}

/* All others; and also if it is for a non-blocking one of theirs. */
void chempi_coll_shm_slot_rouse_all(const struct cell *cell);
void chempi_coll_shm_slot_urge_all(const struct chempi_coll_state *st);

/* ---- parts of a cell; member st->size is the common one ---- */

static inline struct chempi_node_line *cell_line(const struct cell *cell, int m)
{
    return cell->lines + (size_t)m * (cell->st->cells + cell->st->later_cells);
}

static inline struct chempi_node_line *cell_common(const struct cell *cell)
{
    return cell_line(cell, cell->st->size);
}

static inline struct chempi_node_line *cell_mine(const struct cell *cell)
{
    return cell_line(cell, cell->st->rank);
}

/* The other slot that members may have (node_later.h, L7). */
static inline uint32_t cell_few(const struct cell *cell)
{
    return cell->st->cells + CHEMPI_NODE_SYNC_SLOTS + CHEMPI_NODE_LATER_CELLS +
           cell->seq % CHEMPI_NODE_LATER_SLOTS;
}

/* Once the line says which. */
static inline uint32_t cell_slot_of(const struct cell *cell, int m)
{
    return cell->has_few && cell_line(cell, m)->place.is_few ? cell_few(cell)
                                                             : cell->slot;
}

static inline unsigned char *cell_slot(const struct cell *cell, int m)
{
    return cell->st->bulk +
           ((size_t)m * cell->st->slots + cell_slot_of(cell, m)) *
               CHEMPI_NODE_BULK_BYTES;
}

/* Where len bytes begin in it. Slots begin at the start of pages: there short
 * data of many operations would lie in the same few sets of a cache, and which
 * pages these share would decide how long each takes. (Two members had better
 * find what the other's cache has lost; A11.) */
static inline unsigned char *cell_in_slot(const struct cell *cell, int m,
                                          uint64_t len)
{
    const bool is_spread =
        len <= CHEMPI_NODE_PAGE_BYTES / 2 && cell->st->size > 2;
    const uint32_t places =
        is_spread ? CHEMPI_NODE_PAGE_BYTES / 2 / CHEMPI_CACHE_LINE : 1;

    return cell_slot(cell, m) +
           cell_slot_of(cell, m) % places * CHEMPI_CACHE_LINE;
}

static inline unsigned char *cell_hand(const struct cell *cell, int m)
{
    return cell->st->hands + (size_t)m * CHEMPI_NODE_HAND_BYTES;
}

/* Where member m's data is when it has len bytes, len <= BULK_BYTES. */
static inline const unsigned char *cell_data(const struct cell *cell, int m,
                                             uint64_t len)
{
    uint32_t at;

    if (len <= CHEMPI_NODE_LINE_BYTES)
        return cell_line(cell, m)->data;
    if (!cell->is_handed)
        return cell_in_slot(cell, m, len);
    at = atomic_load_explicit(&cell_line(cell, m)->place.at,
                              memory_order_relaxed);
    return at <= CHEMPI_NODE_HAND_BYTES - len ? cell_hand(cell, m) + at
                                              : cell_in_slot(cell, m, len);
}

/* The same for writing, once the line's len is set. NULL when out of shared
 * memory: then *rc is set, and len is what no reader takes for a length. In a
 * hand it waits for room. */
unsigned char *chempi_coll_shm_slot_room(const struct cell *cell, int m,
                                         uint64_t len, int *rc);

static inline struct chempi_node_count *cell_count(const struct cell *cell)
{
    return &cell->st->counts[cell->index];
}

static inline uint32_t *cell_expected(const struct cell *cell)
{
    return &cell->st->expected[cell->index];
}

/* Have all members ended so many non-blocking operations, as their words say
 * now? They say so in groups (node_later.h, L3 and L7); who finds that they
 * have not is roused when somebody says more. */
bool chempi_coll_shm_slot_have_ended(struct chempi_coll_state *st,
                                     uint32_t needed);
void chempi_coll_shm_slot_say_ended(struct chempi_coll_state *st,
                                    uint32_t number);

/* Before the one of this number: has it been seen that all have ended so many?
 * Any number of operations ago, since tasks need no cell. */
static inline bool cell_has_seen_ended(const struct chempi_coll_state *st,
                                       uint32_t number, uint32_t needed)
{
    return number - st->later.all_finished <= number - needed;
}

/* Is what this member is about to write for another one, or if that is < 0 for
 * several, to go past the caches (distance.h)? */
bool chempi_coll_shm_slot_goes_past(const struct chempi_coll_state *st,
                                    int member);

/* A member says in its line when it came: one for whom the others wait, before
 * it publishes that, or each before they meet. Then they look at the line, of
 * the one that came last, how far cores are; nobody has read it before. The
 * first on another core does: with it the line comes near to all others there.
 */
void chempi_coll_shm_slot_say_came(const struct cell *cell);
void chempi_coll_shm_slot_look_far(const struct cell *cell, int member);
void chempi_coll_shm_slot_look_far_at_last(const struct cell *cell);

/* ---- the operation ---- */

/* One in which some may leave before others have come (A2). */
int chempi_coll_shm_slot_open(struct chempi_coll_state *st, struct cell *cell);

/* The same for what members hand in to a root (A12), who says when it has read
 * what does not fit lines. */
int chempi_coll_shm_slot_open_hand_in(struct chempi_coll_state *st,
                                      struct cell *cell, int root);
void chempi_coll_shm_slot_say_taken(const struct cell *cell);

static inline void cell_open_next(struct chempi_coll_state *st,
                                  struct cell *cell)
{
    cell->st = st;
    cell->seq = ++st->seq;
    cell->index = cell->seq & (st->cells - 1);
    cell->slot = cell->index;
    cell->is_later = false;
    cell->has_few = false;
    cell->is_handed = false;
    cell->lines = st->lines + cell->index;
}

/* One in which all meet (A11). */
static inline void cell_open_sync(struct chempi_coll_state *st,
                                  struct cell *cell)
{
    cell_open_next(st, cell);
    st->last_sync = cell->seq;
    /* Whatever comes of it, it waits for all, or a member is lost: who hands in
     * after it knows that all operations before it have ended everywhere. */
    st->hand.head = 0;
    st->hand.tail = 0;
    st->hand.count = 0;
    st->hand.first = 0;
    if (st->size > 2)
        cell->slot = st->cells + st->syncs++ % CHEMPI_NODE_SYNC_SLOTS;
}

static inline void cell_publish(struct chempi_node_line *line, uint32_t seq)
{
    /* Orders the line's data before its number; partner: the acquire load in
     * chempi_coll_shm_slot_wait(). */
    atomic_store_explicit(&line->seq, seq, memory_order_release);
    /* Its readers still have the lines of the next operations: ask for them
     * before the stores stand in a queue for them, one after the other. */
    CHEMPI_PREFETCH_WRITE(line + CELL_AHEAD);
}

/* Of the common line: who is the root for itself takes it before it writes.
 * False: another one has. */
static inline uint32_t cell_claim_of(uint32_t seq)
{
    return seq ^ UINT32_C(1) << 31; /* nobody waits for that */
}

static inline bool cell_claim(const struct cell *cell)
{
    struct chempi_node_line *line = cell_common(cell);
    uint32_t before = atomic_load_explicit(&line->seq, memory_order_relaxed);

    return before != cell->seq && before != cell_claim_of(cell->seq) &&
           atomic_compare_exchange_strong_explicit(
               &line->seq, &before, cell_claim_of(cell->seq),
               memory_order_acquire, memory_order_relaxed);
}

/* This member comes to a meeting in this cell; true: as the last one. Who waits
 * for a non-blocking one is not said: another thread may come for this one. */
static inline bool cell_come(const struct cell *cell)
{
    uint32_t before;

    *cell_expected(cell) += (uint32_t)cell->st->size;
    if (cell->is_later) /* its line says that it is not missing */
        cell_publish(cell_mine(cell), cell->seq);
    else
        chempi_yield_policy_come(&cell->st->yield_policy);
    before = atomic_fetch_add_explicit(&cell_count(cell)->arrived, 1,
                                       memory_order_acq_rel);
    return before + 1 == *cell_expected(cell);
}

/* Is line m of this operation complete? Orders reading it after. */
static inline bool cell_is_there(const struct cell *cell, int m)
{
    return atomic_load_explicit(&cell_line(cell, m)->seq,
                                memory_order_acquire) == cell->seq;
}

/* Towards a root: this member's line is complete. No word that several write:
 * that would cost more than looking at all lines costs the root. */
static inline void cell_hand_in(const struct cell *cell, int root)
{
    cell_publish(cell_mine(cell), cell->seq);
    cell_rouse(cell, root);
}

/* The root: are the lines of all others complete? And wait for it. */
bool chempi_coll_shm_slot_is_collected(const struct cell *cell);
int chempi_coll_shm_slot_collect(const struct cell *cell);

/* All meet, the first time in an operation: come, and wait until all have. */
void chempi_coll_shm_slot_come(const struct cell *cell);
int chempi_coll_shm_slot_await_others(const struct cell *cell);
int chempi_coll_shm_slot_meet(const struct cell *cell);

/* Where the first meeting is seen: then it has the operation's number. */
const _Atomic uint32_t *chempi_coll_shm_slot_meeting(const struct cell *cell);

/* All meet once more, as often as they like: when all have come, the count's
 * `met` is what this member expects. */
void chempi_coll_shm_slot_come_again(const struct cell *cell);

/* After a phase in which all have copied from or to each other's memory: say
 * before they meet once more what this member's copies came to (0, or the code
 * of the first failure), and ask when they have met whether one has failed in
 * this phase or an earlier one, which all learn. Phases are numbered from 1;
 * place.reply was 0 when all met before. */
void chempi_coll_shm_slot_reply(const struct cell *cell, uint32_t phase,
                                int code);
bool chempi_coll_shm_slot_is_refused(const struct cell *cell, uint32_t phase);

/* Has a member told before the phase that it cannot take part? */
bool chempi_coll_shm_slot_has_failed(const struct cell *cell, uint32_t phase);

int chempi_coll_shm_slot_barrier(struct chempi_coll_state *st);

/* ---- boards, two of each member, used in turn (A9) ---- */

/* The same answer everywhere. */
bool chempi_coll_streams_are_on(const struct chempi_coll_state *st);

/* Has this member so many bytes of its boards? */
bool chempi_coll_stream_is_there(struct chempi_coll_state *st, uint64_t len);

/* Member m's board in this round. */
static inline unsigned char *
chempi_coll_stream_of(const struct chempi_coll_state *st, int m)
{
    size_t i = (st->streamed % 2) * (size_t)st->size + (size_t)m;

    return st->streams + i * st->stream_len;
}

/* ---- users' data in and out ---- */

/* memcpy(), with one number as the usual case. */
static inline void cell_copy(void *to, const void *from, uint64_t len)
{
    if (CHEMPI_LIKELY(len == sizeof(uint64_t)))
        memcpy(to, from, sizeof(uint64_t));
    else if (len > 0)
        memcpy(to, from, (size_t)len);
}

/* Into member m's room. */
int chempi_coll_shm_slot_put(const struct cell *cell, int m, const void *buf,
                             MPI_Count count, struct chempi_datatype *type,
                             uint64_t len);

/* The class of error when a member (that of the common line: the root, or the
 * last one) takes part with another amount than this one. */
int chempi_coll_shm_slot_different_amounts(const struct cell *cell, int member);

/* What it means that len bytes have come from a member where `room` were
 * expected. */
int chempi_coll_shm_slot_wrong_amount(int member, uint64_t len, uint64_t room);

/* len: what the sender, a member, says; at most BULK_BYTES. */
int chempi_coll_shm_slot_get(int member, const void *slot, uint64_t len,
                             void *buf, MPI_Count count,
                             struct chempi_datatype *type);

/* Of two error classes the first one, but for the loss of a member, which says
 * more: what others brought, or did not, may come of it. */
static inline int cell_first_error(int a, int b)
{
    if (CHEMPI_LIKELY(!a))
        return b;
    return b == MPI_ERR_PROC_ABORTED ? b : a;
}

/* What member `member` did, when its line's len is not what it should be. */
int chempi_coll_shm_slot_mismatch(const struct cell *cell, int member);

/* Do all lines have this length? */
int chempi_coll_shm_slot_check(const struct cell *cell, uint64_t len);

/* Elements of a reduce-scatter's part i. */
static inline MPI_Count chempi_coll_part_count(const struct chempi_coll_call *c,
                                               int i)
{
    return c->kind == CHEMPI_COLL_REDUCE_SCATTER_BLOCK
               ? c->recv.count
               : chempi_count_array_get(c->recv.counts, (size_t)i);
}

static inline bool cell_is_root(const struct cell *cell,
                                const struct chempi_coll_call *c)
{
    return cell->st->rank == c->root;
}

/* is_ready of operations in which all meet */
bool chempi_coll_shm_slot_is_over(const struct cell *cell,
                                  const struct chempi_coll_call *c);

/* Elements that every member of a reduction brings. */
MPI_Count chempi_coll_node_whole_count(const struct chempi_coll_call *c,
                                       int size);
/* Do elements of this type lie in slots as operations want them? */
static inline bool cell_has_plain(const struct chempi_datatype *type)
{
    return (type->is_predefined || type->is_contiguous) && type->true_lb == 0;
}

/* Are all tasks over that were started before (node_task.h, K2)? */
static inline bool chempi_coll_node_has_turn(const struct chempi_coll_state *st)
{
    uint32_t finished =
        atomic_load_explicit(&st->later.finished, memory_order_acquire);

    return (int32_t)(finished - st->later.last_task) >= 0;
}

/* ---- the operations, by file ---- */

typedef bool chempi_coll_node_fn(struct chempi_coll_state *st,
                                 const struct chempi_coll_call *c, int tag,
                                 int *rc);

/* node_bcast.c */
chempi_coll_node_fn chempi_coll_node_bcast;
/* Its root has spoken: does it send more than what lies in the cell? */
bool chempi_coll_node_bcast_is_long(const struct cell *cell);
/* node_blocks.c */
chempi_coll_node_fn chempi_coll_node_gather;
chempi_coll_node_fn chempi_coll_node_scatter;
/* Bytes of the longest block that this member knows of. */
uint64_t chempi_coll_node_longest_block(const struct chempi_coll_call *c);
/* node_pipe.c: broadcasts of more than fits a slot (node_task.h). Can this
 * process send? */
bool chempi_coll_pipe_is_open(struct chempi_coll_state *st);
/* node_allgather.c */
chempi_coll_node_fn chempi_coll_node_allgather;
/* node_alltoall.c */
chempi_coll_node_fn chempi_coll_node_alltoall;
/* node_pair.c: the same of two members. Do both blocks fit boards? */
chempi_coll_node_fn chempi_coll_node_pair;
bool chempi_coll_node_pair_is_for_boards(const struct chempi_coll_call *c);
/* node_reduce.c */
chempi_coll_node_fn chempi_coll_node_reduction;
/* node_scan.c: scans, and reductions of some length to a root (chain_calls.h)
 */
chempi_coll_node_fn chempi_coll_node_scan;
/* Are there SPSC rings? All know alike when the task before has ended. */
static inline bool
chempi_coll_node_has_chain(const struct chempi_coll_state *st)
{
    return st->chain.is_made && !st->chain.is_off;
}
/* node_fold.c: reductions of more than fits a slot, by workers. Can they be,
 * and are there any? */
bool chempi_coll_node_is_for_workers(const struct chempi_coll_call *c);
bool chempi_coll_node_has_workers(const struct chempi_coll_state *st);
bool chempi_coll_node_fold(struct chempi_coll_state *st,
                           const struct chempi_coll_call *c, int tag, int *rc);

/* Elements as their sender has them into a result, without the padding of
 * pairs: what lies between the numbers of a result is the user's. */
static inline void cell_take(void *result, const void *from, MPI_Count count,
                             struct chempi_datatype *type)
{
    if (CHEMPI_LIKELY(type->is_contiguous))
        memcpy(result, from, (size_t)(count * type->extent));
    else
        (void)chempi_datatype_copy(from, count, type, result, count, type);
}

#endif
