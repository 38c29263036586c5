/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scans in a node's shared memory: a chain. Each member takes the sum of those
 * before it out of an SPSC ring, adds its own, and puts that into the SPSC ring
 * to the next; long data in pieces that stay in the cache on their way. Nobody
 * waits for those after it until the SPSC ring is full. A reduction of long
 * data is the same around the circle of all SPSC rings, from the member after
 * the root to the root, who alone keeps what comes out.
 *
 * A member goes on until it lacks a piece or room for one. A blocking call
 * waits for that; a non-blocking one is a task (node_task.h), whose steps do
 * the same.
 *
 *   X1  all pieces of an operation carry its amount of data, so a member with
 *       another amount finds out; it reads on to the last piece and tells those
 *       after it with VOID
 *   X2  a member that has found an SPSC ring damaged reads no more of them,
 * makes the one before it useless, so that nobody waits for room there, and
 *       tells those after it with VOID, in every scan of this communicator
 *   X3  while there are no SPSC rings, members of a reduction that bring what
 *       does not go through them (node_fold.c, F3) are at the meeting of those
 *       who make theirs, with another length in their line: all get
 *       MPI_ERR_COUNT, nobody has SPSC rings, and the next operation begins
 *       anew
 *   X4  who begins a non-blocking one behind a blocking one tells the member
 *       before it how far it has read: that one may compute, and wait for room
 *       without an agent that has heard of it. What is read from then on it
 *       hears in time (spsc_ring.h, Q6)
 *   X5  rings are pages, which the first operations along them pay for (64 of
 *       each member within ten reductions of 32 KiB). So reductions go to
 *       workers, who copy from where the data lies, until those of this
 *       communicator have come to FOLD_FIRST bytes; all count alike those to
 *       which all brought the same amount. Scans need rings, and where there
 *       are some, reductions take them. What does not commute takes rings at
 *       once: workers combine it from the right, and the same call would come
 *       to other bits later
 */
#include <string.h>

#include "common/base/clock.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/coll/node/chain_calls.h"
#include "libchempi/didl/coll/node/copy/nt_copy.h"
#include "libchempi/didl/coll/node/cores/distance.h"
#include "libchempi/didl/coll/node/later/node_parts.h"
#include "libchempi/didl/coll/node/later/node_task.h"
#include "libchempi/didl/coll/node/ring/spsc_ring.h"
#include "libchempi/didl/error/error.h"

enum {
    LONG = 1024,          /* bytes of a piece */
    FAR_LEAST = 16 << 10, /* bytes; how far cores are matters */
    PIECES_BUSY = 128     /* before others' progress is looked after */
};

#define VOID UINT32_MAX

struct job {
    struct chempi_spsc_ring_writer *out; /* NULL: the last member */
    struct chempi_spsc_ring_reader *in;
    const struct chempi_coll_state *st;
    const struct chempi_coll_call *c;
    const unsigned char *input;
    uint64_t len; /* bytes of the vector */
    uint64_t at;  /* .. that are done */
    uint32_t mark;
    uint32_t pieces;
    bool is_ex;
    bool is_scan; /* all keep a result */
    bool is_first;
    bool is_far;     /* the next member, on a far core (distance.h) */
    bool is_curious; /* .. and is the one before? It will look */
    bool is_void;    /* X1, X2: VOID is the last piece for those after it */
    bool is_through; /* it has read, and passed on, what there is */
    bool has_piece;  /* one has been looked at */
    bool has_pushed; /* since it went on, and who computes has not heard */
    int rc;          /* first failure */
    uint32_t whole;  /* bytes of it */
    struct chempi_spsc_ring_piece piece; /* what is left of it */
    struct chempi_spsc_ring_room room;
};

/* Why a member does not go on. */
enum stop { OVER, LACKS_PIECE, LACKS_ROOM, HAS_DONE_MUCH };

/* ---- SPSC rings ---- */

static inline struct chempi_spsc_ring *
ring_after(const struct chempi_coll_state *st, int m)
{
    return (void *)(st->chain_memory + (size_t)m * CHEMPI_SPSC_RING_STRIDE);
}

/* After the meeting of make_rings(): do all want SPSC rings, and have all got
 * one? X3 */
static int learn_rings(struct chempi_node_chain *p, const struct cell *cell)
{
    bool is_off = false;
    uint64_t len;

    for (int i = 0; i < cell->st->size; i++) {
        len = cell_line(cell, i)->len;
        if (CHEMPI_UNLIKELY(len != 0 && len != CELL_NO_ROOM))
            return chempi_coll_shm_slot_mismatch(cell, i);
        is_off |= len != 0;
    }
    p->is_off = is_off;
    return MPI_SUCCESS;
}

/* Every member makes its own, and shows whether it has; then all meet. */
static void show_ring(const struct cell *cell)
{
    struct chempi_coll_state *st = cell->st;

    cell_mine(cell)->len = 0;
    cell_mine(cell)->mark = 0;
    cell_mine(cell)->place.reply = 0;
    if (chempi_spsc_ring_create(ring_after(st, st->rank)) < 0)
        cell_mine(cell)->len = CELL_NO_ROOM;
}

/* All have met. */
static int open_rings(const struct cell *cell)
{
    struct chempi_coll_state *st = cell->st;
    struct chempi_node_chain *p = &st->chain;
    int next = (st->rank + 1) % st->size;
    int before = (st->rank + st->size - 1) % st->size;
    int rc = learn_rings(p, cell);

    if (CHEMPI_UNLIKELY(rc))
        return rc;
    chempi_spsc_ring_open_writer(&p->out, ring_after(st, st->rank),
                                 st->local_ranks[next]);
    chempi_spsc_ring_open_reader(&p->in, ring_after(st, before),
                                 st->local_ranks[before]);
    p->is_made = true;
    return MPI_SUCCESS;
}

static CHEMPI_COLD int make_rings(struct chempi_coll_state *st)
{
    struct cell cell;
    int code;
    int rc;

    cell_open_sync(st, &cell);
    show_ring(&cell);
    rc = chempi_coll_shm_slot_meet(&cell);
    code = open_rings(&cell);
    return cell_first_error(rc, code);
}

/* ---- pieces ---- */

static inline void *result_at(const struct job *j, uint64_t at)
{
    return (unsigned char *)j->c->recv.buf + at;
}

static inline void copy(void *to, const void *from, uint64_t len)
{
    if (CHEMPI_LIKELY(len == sizeof(uint64_t)))
        memcpy(to, from, sizeof(uint64_t));
    else
        chempi_spsc_ring_copy(to, from, len);
}

/* Into the result: what lies between its numbers is the user's. */
static inline void put_result(const struct job *j, uint64_t at,
                              const void *from, uint64_t len)
{
    struct chempi_datatype *type = j->c->recv.type;

    if (CHEMPI_LIKELY(type->is_contiguous))
        copy(result_at(j, at), from, len);
    else
        cell_take(result_at(j, at), from, (MPI_Count)len / type->extent, type);
}

static void combine(const struct job *j, const void *before, void *inout,
                    uint64_t len)
{
    MPI_Count count = len == j->len ? j->c->recv.count
                                    : (MPI_Count)len / j->c->recv.type->extent;

    chempi_op_apply(j->c->op, before, inout, count, j->c->recv.type);
}

/* How much of the rest goes into one piece. */
static uint64_t cut(const struct job *j, uint64_t rest)
{
    uint64_t most = ring_most(j->out);

    if (CHEMPI_LIKELY(rest <= most))
        return rest;
    return most - most % (uint64_t)j->c->recv.type->extent;
}

static void push(struct job *j, uint64_t len, bool is_last)
{
    ring_push(j->out, len, is_last, j->mark);
    j->has_pushed = j->out->is_urgent;
    if (!j->has_pushed || !is_last)
        chempi_progress_rouse_local(j->out->reader);
    if (CHEMPI_UNLIKELY(len >= LONG) && !j->is_far)
        chempi_spsc_ring_ask_early(j->out, len);
    j->pieces++;
}

/* Where the next piece goes. False: there is no room as yet, or j->rc. */
static inline bool find_room(struct job *j, uint64_t len, unsigned char **to)
{
    return ring_room(j->out, len, &j->room, to, &j->rc) && !j->rc;
}

static inline enum stop no_room(const struct job *j)
{
    return j->rc ? OVER : LACKS_ROOM;
}

/* ---- the members ---- */

static enum stop go_first(struct job *j)
{
    bool is_copied = j->is_scan && !j->is_ex && j->c->send.buf != MPI_IN_PLACE;
    unsigned char *to;
    uint64_t len;

    for (;;) {
        len = cut(j, j->len - j->at);
        if (CHEMPI_UNLIKELY(!find_room(j, len, &to)))
            return no_room(j);
        if (CHEMPI_UNLIKELY(j->is_far))
            chempi_coll_nt_copy_bytes(to, j->input + j->at, len, true);
        else
            copy(to, j->input + j->at, len);
        push(j, len, j->at + len == j->len);
        if (is_copied)
            put_result(j, j->at, j->input + j->at, len);
        j->at += len;
        if (j->at == j->len)
            return OVER;
        if (CHEMPI_UNLIKELY(j->pieces % PIECES_BUSY == 0))
            return HAS_DONE_MUCH;
    }
}

/* The last member, with what comes before its next bytes. */
static void end_with(struct job *j)
{
    const unsigned char *before = j->piece.data;
    uint64_t len = j->piece.len;

    if (j->is_ex) {
        put_result(j, j->at, before, len);
    } else {
        if (j->c->send.buf != MPI_IN_PLACE)
            put_result(j, j->at, j->input + j->at, len);
        combine(j, before, result_at(j, j->at), len);
    }
    j->at += len;
    j->pieces++;
}

/* The same of pass_on() for a far reader: what it gets is not read again. */
static CHEMPI_NOINLINE void pass_far(struct job *j, unsigned char *to,
                                     uint64_t len)
{
    _Alignas(CHEMPI_CACHE_LINE) unsigned char sum[CHEMPI_SPSC_RING_PIECE];

    copy(sum, j->input + j->at, len);
    combine(j, j->piece.data, sum, len);
    chempi_coll_nt_copy_bytes(to, sum, len, true);
    push(j, len, j->at + len == j->len);
    if (j->is_scan)
        put_result(j, j->at, j->is_ex ? j->piece.data : sum, len);
}

/* Another member; what is left of the piece shrinks. False: no_room(). */
static bool pass_on(struct job *j)
{
    struct chempi_spsc_ring_piece *piece = &j->piece;
    unsigned char *to;

    do {
        uint64_t len = cut(j, piece->len);

        if (CHEMPI_UNLIKELY(!find_room(j, len, &to)))
            return false;
        if (CHEMPI_LIKELY(!j->is_far)) {
            copy(to, j->input + j->at, len);
            combine(j, piece->data, to, len);
            push(j, len, j->at + len == j->len);
            if (CHEMPI_LIKELY(j->is_scan))
                put_result(j, j->at, j->is_ex ? piece->data : to, len);
        } else {
            pass_far(j, to, len);
        }
        piece->data += len;
        piece->len -= (uint32_t)len;
        j->at += len;
    } while (piece->len > 0);
    return true;
}

static bool is_expected(const struct job *j)
{
    const struct chempi_spsc_ring_piece *piece = &j->piece;
    uint64_t rest = j->len - j->at;

    return piece->mark == j->mark && piece->len <= rest &&
           piece->is_last == (piece->len == rest) &&
           (piece->is_last ||
            piece->len % (uint64_t)j->c->recv.type->extent == 0);
}

/* The member before has said when it came, before it put anything in. */
static CHEMPI_NOINLINE void look_far(struct job *j)
{
    const struct chempi_coll_state *st = j->st;

    j->is_curious = false;
    chempi_distance_look_at_time(&st->yield_policy,
                                 (st->rank + st->size - 1) % st->size,
                                 &j->in->ring->came_ns);
}

/* Look at the next piece; false: it is not there yet. */
static inline bool look(struct job *j)
{
    if (!ring_has_more(j->in))
        return false;
    j->rc = ring_piece(j->in, &j->piece);
    j->has_piece = !j->rc;
    if (CHEMPI_UNLIKELY(j->rc)) { /* X2 */
        j->is_void = true;
        j->is_through = true;
        return true;
    }
    j->whole = j->piece.len;
    if (CHEMPI_UNLIKELY(j->is_curious))
        look_far(j);
    if (CHEMPI_UNLIKELY(!j->is_void && !is_expected(j)))
        j->is_void = true;
    return true;
}

static enum stop go_after(struct job *j)
{
    while (!j->is_through) {
        if (!j->has_piece && !look(j))
            return LACKS_PIECE;
        if (CHEMPI_UNLIKELY(j->is_through))
            break;
        if (CHEMPI_LIKELY(!j->is_void)) {
            if (!j->out)
                end_with(j);
            else if (CHEMPI_UNLIKELY(!pass_on(j)))
                return no_room(j);
        }
        ring_drop(j->in, j->whole);
        j->has_piece = false;
        j->is_through = j->piece.is_last;
        if (CHEMPI_UNLIKELY(j->pieces >= PIECES_BUSY) && !j->is_through) {
            j->pieces = 0;
            return HAS_DONE_MUCH;
        }
    }
    return OVER;
}

/* X1: the operation's last piece, for those after this member. */
static CHEMPI_COLD enum stop push_void(struct job *j)
{
    const int rc = j->rc;
    unsigned char *to;

    if (!j->out)
        return OVER;
    j->rc = MPI_SUCCESS;
    if (!find_room(j, 0, &to)) {
        enum stop stop = no_room(j);

        j->rc = cell_first_error(rc, j->rc);
        return stop;
    }
    j->rc = rc;
    j->mark = VOID;
    push(j, 0, true);
    return OVER;
}

/* As far as it can. An agent is woken once for all pieces: that waits until
 * their data is stored. */
static inline enum stop go_on(struct job *j)
{
    enum stop stop = OVER;

    j->has_pushed = false;
    if (CHEMPI_LIKELY(!j->is_through))
        stop = j->is_first ? go_first(j) : go_after(j);
    if (CHEMPI_UNLIKELY(stop == OVER && j->is_void))
        stop = push_void(j);
    if (j->has_pushed)
        chempi_progress_urge_local(j->out->reader);
    return stop;
}

/* ---- the operation ---- */

static uint32_t mark_of(const struct chempi_coll_call *c, uint64_t len)
{
    uint32_t folded = (uint32_t)(len ^ len >> 31);
    uint32_t kind = c->kind == CHEMPI_COLL_REDUCE   ? 2
                    : c->kind == CHEMPI_COLL_EXSCAN ? 1
                                                    : 0;

    return (folded & 0x1fffffff) << 2 | kind;
}

/* X2 */
static CHEMPI_COLD void give_up(struct chempi_node_chain *p)
{
    p->is_broken = true;
    chempi_spsc_ring_spoil(&p->in);
}

static inline bool is_scan(const struct chempi_coll_call *c)
{
    return c->kind != CHEMPI_COLL_REDUCE;
}

/* Who combines the last piece of all. */
static inline int last_member(const struct chempi_coll_state *st,
                              const struct chempi_coll_call *c)
{
    return is_scan(c) ? st->size - 1 : c->root;
}

static inline bool is_first(const struct chempi_coll_state *st,
                            const struct chempi_coll_call *c)
{
    const int next = last_member(st, c) + 1;

    return st->rank == (next < st->size ? next : 0);
}

/* Say where this member is, and when it came; how far is the next one? */
static CHEMPI_NOINLINE void set_up_distance(struct job *j,
                                            struct chempi_coll_state *st)
{
    chempi_yield_policy_say_here(&st->yield_policy);
    j->is_curious = !j->is_first;
    if (!j->out)
        return;
    j->is_far = chempi_coll_shm_slot_goes_past(
        st, st->rank + 1 < st->size ? st->rank + 1 : 0);
    atomic_store_explicit(&j->out->ring->came_ns, chempi_clock_ns(),
                          memory_order_relaxed);
}

/* It begins; the rings are there. What is not set here is set before it is
 * read. */
CHEMPI_INLINE void set_up(struct job *j, struct chempi_coll_state *st,
                          const struct chempi_coll_call *c, bool is_later)
{
    struct chempi_node_chain *p = &st->chain;
    const uint64_t len = (uint64_t)(c->recv.count * c->recv.type->extent);

    p->out.is_urgent = p->in.is_urgent = is_later;
    j->out = st->rank != last_member(st, c) ? &p->out : NULL;
    j->in = &p->in;
    j->st = st;
    j->c = c;
    j->input = c->send.buf == MPI_IN_PLACE ? c->recv.buf : c->send.buf;
    j->len = len;
    j->at = 0;
    j->mark = mark_of(c, len);
    j->pieces = 0;
    j->is_ex = c->kind == CHEMPI_COLL_EXSCAN;
    j->is_scan = is_scan(c);
    j->is_first = is_first(st, c);
    j->is_through = false;
    j->has_piece = false;
    j->rc = MPI_SUCCESS;
    j->whole = 0;
    if (CHEMPI_UNLIKELY(p->is_broken)) {
        j->rc = chempi_error_set(MPI_ERR_INTERN,
                                 "an earlier call on this communicator has "
                                 "found shared memory damaged");
        j->is_through = true;
    }
    j->is_far = false;
    j->is_curious = false;
    if (CHEMPI_UNLIKELY(len >= FAR_LEAST))
        set_up_distance(j, st);
    j->is_void = p->is_broken || c->is_void;
    j->is_through |= c->is_void && j->is_first;
    if (j->out && CHEMPI_UNLIKELY(len > ring_most(j->out)))
        chempi_spsc_ring_widen(j->out);
}

/* What it came to. */
static int end(struct chempi_coll_state *st, const struct job *j)
{
    if (CHEMPI_UNLIKELY(j->rc && !st->chain.is_broken))
        give_up(&st->chain);
    else if (CHEMPI_UNLIKELY(!j->rc && j->is_void && !j->c->is_void))
        return chempi_error_set(MPI_ERR_COUNT,
                                "the ranks take part with different amounts of "
                                "data");
    return j->rc;
}

static bool is_more(void *reader)
{
    return ring_has_more(reader);
}

static int run(struct chempi_coll_state *st, const struct chempi_coll_call *c)
{
    struct job j;
    enum stop stop;
    int rc = MPI_SUCCESS;

    set_up(&j, st, c, false);
    while (!rc && (stop = go_on(&j)) != OVER) {
        if (stop == LACKS_PIECE)
            rc = chempi_coll_shm_slot_await(st, is_more, j.in);
        else if (stop == LACKS_ROOM)
            rc = chempi_coll_shm_slot_await(st, chempi_spsc_ring_is_room,
                                            &j.room);
        else
            (void)chempi_progress_poll();
    }
    j.rc = cell_first_error(j.rc, rc);
    return end(st, &j);
}

/* ---- which ---- */

/* X5; at this member's turn. */
static bool is_too_early(const struct chempi_coll_state *st,
                         const struct chempi_coll_call *c)
{
    return c->kind == CHEMPI_COLL_REDUCE && c->op->is_commutative &&
           st->chain.folded < CHEMPI_NODE_FOLD_FIRST &&
           chempi_coll_node_has_workers(st) &&
           chempi_coll_node_is_for_workers(c);
}

bool chempi_coll_node_scan(struct chempi_coll_state *st,
                           const struct chempi_coll_call *c, int tag, int *rc)
{
    (void)tag;
    if (chain_is_unsuited(c))
        return false;
    *rc = MPI_SUCCESS;
    if (CHEMPI_UNLIKELY(!chempi_coll_node_has_turn(st)))
        *rc = chempi_coll_node_task_turn(st);
    if (CHEMPI_UNLIKELY(!st->chain.is_made) && !*rc) {
        if (is_too_early(st, c))
            return false;
        *rc = make_rings(st);
    }
    if (CHEMPI_UNLIKELY(st->chain.is_off))
        return false;
    if (CHEMPI_LIKELY(!*rc))
        *rc = run(st, c);
    return true;
}

/* ---- in steps ---- */

/* A reduction for which there are no rings becomes one by workers. */
union chain_task {
    struct chempi_node_task task;
    struct chain {
        struct chempi_node_task task;
        struct job job;
    } chain;
    unsigned char room[CHEMPI_NODE_TASK_MAX];
};

static struct job *of_task(struct chempi_node_task *t)
{
    return &CHEMPI_CONTAINER_OF(t, union chain_task, task)->chain.job;
}

static bool has_more(struct chempi_node_task *t)
{
    return ring_has_more(of_task(t)->in);
}

static bool is_room(struct chempi_node_task *t)
{
    return chempi_spsc_ring_is_room(&of_task(t)->room);
}

static void await_member(struct chempi_node_task *t, int way,
                         bool (*is_due)(struct chempi_node_task *t),
                         chempi_node_step_fn *next)
{
    const struct chempi_coll_state *st = t->cell.st;

    t->is_due = is_due;
    task_await(t, (st->rank + way + st->size) % st->size, NULL, 0, next);
}

static chempi_node_step_fn chain_on;

/* What comes next. */
static void stop_at(struct chempi_node_task *t, enum stop stop)
{
    switch (stop) {
    case OVER:
        task_note(t, end(t->cell.st, of_task(t)));
        task_end(t);
        break;
    case LACKS_PIECE:
        await_member(t, -1, has_more, chain_on);
        break;
    case LACKS_ROOM:
        await_member(t, 1, is_room, chain_on);
        break;
    default:
        task_go_on(t, chain_on);
    }
}

static void chain_on(struct chempi_node_task *t)
{
    struct job *j = of_task(t);

    j->c = t->c;
    stop_at(t, go_on(j));
}

/* As far as it can. */
static inline enum stop begin(struct job *j, struct chempi_coll_state *st,
                              const struct chempi_coll_call *c)
{
    struct chempi_node_chain *p = &st->chain;
    const bool was_urgent = p->in.is_urgent;

    set_up(j, st, c, true);
    if (CHEMPI_UNLIKELY(!was_urgent) && !p->is_broken)
        chempi_spsc_ring_tell(&p->in); /* X4 */
    if (c->kind == CHEMPI_COLL_REDUCE)
        chempi_coll_count(CHEMPI_COLL_WAY_CHAIN);
    return go_on(j);
}

static void chain_begin(struct chempi_node_task *t)
{
    stop_at(t, begin(of_task(t), t->cell.st, t->c));
}

/* All have met. */
static void chain_met(struct chempi_node_task *t)
{
    task_note(t, open_rings(&t->cell));
    t->is_void = !t->rc && t->cell.st->chain.is_off;
    if (t->rc || t->is_void)
        task_end(t);
    else
        chain_begin(t);
}

/* A task is made only of what is not over at once. */
enum chempi_node_later_begun
chempi_coll_node_chain_at_once(struct chempi_node_task *t,
                               struct chempi_coll_state *st,
                               const struct chempi_coll_call *c, int *rc)
{
    struct job *j = of_task(t);
    enum stop stop;

    if (!chempi_coll_node_has_chain(st) || !later_is_alone(st) ||
        !c->op->is_predefined || !chain_is_for(c))
        return CHEMPI_NODE_LATER_HAS_NOT_BEGUN;
    stop = begin(j, st, c);
    if (CHEMPI_LIKELY(stop == OVER)) {
        *rc = end(st, j);
        later_end_next(st);
        return CHEMPI_NODE_LATER_HAS_ENDED;
    }
    *t = (struct chempi_node_task){.c = c};
    later_open_cell(st, st->later.started + 1, c, &t->cell);
    stop_at(t, stop);
    return CHEMPI_NODE_LATER_HAS_BEGUN;
}

static void chain_first(struct chempi_node_task *t)
{
    const struct chempi_coll_state *st = t->cell.st;

    if (CHEMPI_LIKELY(chempi_coll_node_has_chain(st))) {
        chain_begin(t);
    } else if (!st->chain.is_off && !is_too_early(st, t->c)) {
        show_ring(&t->cell);
        chempi_coll_node_task_meet(t, chain_met);
    } else if (t->c->kind == CHEMPI_COLL_REDUCE &&
               chempi_coll_node_is_for_workers(t->c)) {
        memset(t + 1, 0, chempi_node_steps_fold.cleared - sizeof(*t));
        chempi_node_steps_fold.first(t);
    } else {
        t->is_void = true;
        task_end(t);
    }
}

static_assert(sizeof(union chain_task) == CHEMPI_NODE_TASK_MAX,
              "a schedule has room for it");

const struct chempi_node_steps chempi_node_steps_chain = {
    .size = sizeof(union chain_task),
    .cleared = sizeof(struct chain),
    .first = chain_first,
};
