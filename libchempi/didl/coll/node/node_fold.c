/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions within a node of more data than fits a slot. Everyone says where
 * its input lies, all meet; then the vector is shared out among workers, each
 * of whom reads its part from all inputs, chunk by chunk, and combines it
 * while it is in the cache. How many workers there are depends on the sizes
 * alone, so that results are the same again.
 *
 *   F1  before all have met again nobody changes what others may read: with
 *       MPI_IN_PLACE results go to memory of their own, or the input has been
 *       copied before
 *   F2  when a copy fails somewhere, all learn it at the next meeting, and all
 *       begin again by messages; the input is as it was
 *   F3  members that bring different amounts, perhaps so little that they are
 *       not here, all find that out at the first meeting, and have no other
 *       (but of a reduce only as long as there are no SPSC rings: X3,
 *       node_scan.c)
 *   F4  whole elements are copied, with what lies between the numbers of
 *       pairs; the user's result gets the numbers alone, so that such elements
 *       are combined beside it, chunk by chunk
 *   F5  a member without scratch memory says so at the first meeting, and all
 *       return the same error: it would have no memory for messages, either,
 *       for which the others would wait
 *   F6  inputs that fit a board (A9) are on everybody's, if all have one, and
 *       so are an allreduce's parts of the result, in the next round. Nothing
 *       is read from elsewhere then, so nobody need wait at the end
 *   F7  two members exchange messages, at which both copy, if both have memory
 *       for that, which they say at the first meeting; a reduce in place does
 *       without
 *   F8  longer ones of an allreduce or reduce-scatter go around a ring
 *       (reduce_ring.h), if all have boards
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/coll/node/chain_calls.h"
#include "libchempi/didl/coll/node/copy/cma_copy.h"
#include "libchempi/didl/coll/node/copy/nt_copy.h"
#include "libchempi/didl/coll/node/later/node_task.h"
#include "libchempi/didl/coll/node/ring/reduce_ring.h"
#include "libchempi/didl/coll/node/shm_slot.h"
#include "libchempi/didl/error/error.h"

enum {
    CHUNK = 32 << 10,      /* bytes */
    STEP_BYTES = 1 << 20,  /* read in a step */
    SCRATCH_KEPT = 1 << 20 /* bytes; more is given back after each use */
};

/* Elements of the vector. */
struct range {
    MPI_Count first;
    MPI_Count count;
};

struct kind;

/* Elements that a member moves within its own memory. */
struct move {
    unsigned char *to;
    const unsigned char *from;
    MPI_Count left;
    bool is_whole; /* F4: with what lies between the numbers */
    chempi_node_step_fn *then;
};

/* One member's part; st->scratch is its task's. */
struct job {
    struct chempi_node_task task; /* first */
    const struct cell *cell;      /* of the task, as c */
    const struct chempi_coll_call *c;
    const struct kind *kind;
    uint64_t len;            /* bytes of the vector */
    MPI_Count count;         /* elements of it */
    const unsigned char *in; /* this member's input */
    unsigned char *out;      /* its result, where the vector would begin */
    unsigned char *temp[2];  /* CHUNK bytes each */
    unsigned char *extra;    /* copy of the input, or of the result */
    bool is_in_place;
    int workers;
    int me;            /* this worker's number, < 0: none */
    struct range rest; /* of its part, to be combined */
    int taken;         /* workers whose parts of the result are here */
    struct range left; /* of the next one's part */
    struct move move;  /* a copy of its own that is under way */
    int code;          /* first failure of a copy */
    /* F6: where member 0's input is, then the others', stream_len apart; NULL:
     * they are copied from where they lie. */
    const unsigned char *boards;
    bool is_ring; /* F8 */
    struct chempi_reduce_ring ring;
};

/* What differs between the operations. */
struct kind {
    uint64_t (*prepare)(struct job *j); /* set out; bytes of `extra` needed */
    void (*fold)(struct job *j, struct range chunk);
    chempi_node_step_fn *folded; /* the whole part is */
};

static struct job *of_task(struct chempi_node_task *t)
{
    return CHEMPI_CONTAINER_OF(t, struct job, task);
}

/* In the mark of a line. */
enum { ON_BOARD = 1, BY_MESSAGES = 2 };

/* ---- chunks ---- */

static int member_of(const struct job *j, int worker)
{
    int root = j->c->kind == CHEMPI_COLL_REDUCE ? j->c->root : 0;

    return (worker + root) % j->cell->st->size;
}

/* F4 */
static bool has_padding(const struct job *j)
{
    return !j->c->recv.type->is_contiguous;
}

static uint64_t bytes(const struct job *j, MPI_Count count)
{
    return (uint64_t)(count * j->c->recv.type->extent);
}

/*
 * What comes before a worker, in parts as small as one likes. In a reduction
 * all but the root, who is the first, also write what they have combined to
 * the root. To copy takes about twice as long as to combine, so of n members
 * one that does not write takes as long for 3 n - 1 elements as the others for
 * 3 n - 3: the root takes over 5 of 8 elements of two.
 */
static int weight_before(const struct job *j, int worker)
{
    int each = 3 * j->cell->st->size - 3;

    if (j->c->kind != CHEMPI_COLL_REDUCE)
        return worker;
    return worker ? worker * each + 2 : 0;
}

/* The part of a worker. */
static struct range part_of(const struct job *j, int worker)
{
    int total = weight_before(j, j->workers);
    MPI_Count first = 0;

    if (j->c->kind == CHEMPI_COLL_REDUCE_SCATTER ||
        j->c->kind == CHEMPI_COLL_REDUCE_SCATTER_BLOCK) {
        for (int i = 0; i < worker; i++)
            first += chempi_coll_part_count(j->c, i);
        return (struct range){first, chempi_coll_part_count(j->c, worker)};
    }
    first = chempi_coll_cut(j->count, total, weight_before(j, worker));
    return (struct range){
        first,
        chempi_coll_cut(j->count, total, weight_before(j, worker + 1)) - first};
}

/* Cut the next chunk from a range; false at its end. */
static bool next_chunk(struct job *j, struct range *rest, struct range *chunk)
{
    MPI_Count most = CHUNK / j->c->recv.type->extent;

    if (rest->count <= 0 || j->code)
        return false;
    chunk->first = rest->first;
    chunk->count = rest->count < most ? rest->count : most;
    rest->first += chunk->count;
    rest->count -= chunk->count;
    return true;
}

static void note(struct job *j, int code)
{
    if (CHEMPI_UNLIKELY(code) && !j->code)
        j->code = code;
}

/* Where a piece of member i's input can be read; NULL: it must be fetched. */
static const unsigned char *piece_of(const struct job *j, int i, struct range r)
{
    const struct chempi_coll_state *st = j->cell->st;
    uint64_t at = bytes(j, r.first);

    if (i == st->rank)
        return j->in + at;
    return j->boards ? j->boards + (size_t)i * st->stream_len + at : NULL;
}

static void fetch(struct job *j, int i, struct range r, void *dst)
{
    const struct chempi_coll_state *st = j->cell->st;
    uint64_t at = bytes(j, r.first);

    if (!j->code)
        note(j, chempi_coll_cma_copy_read(st->local_ranks[i],
                                          cell_line(j->cell, i)->place.in + at,
                                          dst, bytes(j, r.count)));
}

/* A piece of the result of member i, another one; F4: with what has been
 * between the numbers there. */
static void store(struct job *j, int i, struct range r, const void *src)
{
    uint32_t rank = j->cell->st->local_ranks[i];
    uint64_t to = cell_line(j->cell, i)->place.out + bytes(j, r.first);
    uint64_t len = bytes(j, r.count);

    if (has_padding(j) && !j->code) {
        note(j, chempi_coll_cma_copy_read(rank, to, j->temp[0], len));
        if (!j->code)
            cell_take(j->temp[0], src, r.count, j->c->recv.type);
        src = j->temp[0];
    }
    if (!j->code)
        note(j, chempi_coll_cma_copy_write(rank, to, src, len));
}

static void combine(const struct job *j, const void *in, void *inout,
                    struct range r)
{
    if (!j->code)
        chempi_op_apply(j->c->op, in, inout, r.count, j->c->recv.type);
}

/* Who comes k-th, from 1 on, when inputs are combined. Where the order does not
 * matter a member's own is the last, so that it need not be copied; but in a
 * reduce it is the root's, as along SPSC rings (node_scan.c): results are the
 * same bits if there is no memory for SPSC rings. To exchange the first two
 * makes no difference, and saves the copy. */
static int member_in_turn(const struct job *j, int k)
{
    const struct chempi_coll_state *st = j->cell->st;
    int last = j->c->kind == CHEMPI_COLL_REDUCE ? j->c->root : st->rank;

    if (!j->c->op->is_commutative)
        return st->size - k;
    if (k <= 2 && (last + 1) % st->size == st->rank)
        k = 3 - k;
    return (last + k) % st->size;
}

/* dst = the inputs of all, combined. */
static void fold_chunk(struct job *j, struct range r, void *dst)
{
    const struct chempi_coll_state *st = j->cell->st;

    for (int k = 1; k <= st->size; k++) {
        int i = member_in_turn(j, k);
        const unsigned char *piece = piece_of(j, i, r);

        if (!piece) {
            fetch(j, i, r, k == 1 ? dst : j->temp[0]);
            piece = j->temp[0];
        } else if (k == 1) {
            memcpy(dst, piece, bytes(j, r.count));
        }
        if (k > 1)
            combine(j, piece, dst, r);
    }
}

/* The same, into the user's result; F4. */
static void fold_into_result(struct job *j, struct range r, void *result)
{
    if (!has_padding(j)) {
        fold_chunk(j, r, result);
        return;
    }
    fold_chunk(j, r, j->temp[1]);
    if (!j->code)
        cell_take(result, j->temp[1], r.count, j->c->recv.type);
}

/* A piece of the move in each step. */
static void go_on_moving(struct chempi_node_task *t)
{
    struct job *j = of_task(t);
    struct move *m = &j->move;
    const MPI_Count most = CHEMPI_COLL_CMA_PIECE_MAX / j->c->recv.type->extent;
    const MPI_Count n = m->left < most ? m->left : most;

    if (n > 0 && m->is_whole)
        memcpy(m->to, m->from, bytes(j, n));
    else if (n > 0)
        cell_take(m->to, m->from, n, j->c->recv.type);
    t->copied += bytes(j, n);
    m->to += bytes(j, n);
    m->from += bytes(j, n);
    m->left -= n;
    if (m->left > 0)
        task_go_on(t, go_on_moving);
    else
        m->then(t);
}

static void move(struct job *j, const struct move *m)
{
    j->move = *m;
    go_on_moving(&j->task);
}

/* ---- beginning and end ---- */

/* Scratch memory of the communicator: chunks, then `extra` bytes. They begin
 * with a line of the caches: the kernel copies faster to there. */
static bool get_scratch(struct job *j, uint64_t extra)
{
    struct chempi_coll_state *st = j->cell->st;
    uint64_t need = CHEMPI_CACHE_LINE + 2 * (uint64_t)CHUNK + extra;
    unsigned char *start;

    if (st->scratch_len < need) {
        free(st->scratch);
        st->scratch = chempi_sys->malloc(need);
        st->scratch_len = st->scratch ? need : 0;
    }
    if (!st->scratch)
        return false;
    start = st->scratch +
            (CHEMPI_CACHE_LINE - (uintptr_t)st->scratch % CHEMPI_CACHE_LINE);
    j->temp[0] = start;
    j->temp[1] = start + CHUNK;
    j->extra = start + 2 * (size_t)CHUNK;
    return true;
}

static void give_scratch(struct chempi_coll_state *st)
{
    if (st->scratch_len <= SCRATCH_KEPT)
        return;
    free(st->scratch);
    st->scratch = NULL;
    st->scratch_len = 0;
}

static CHEMPI_COLD int no_scratch(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM,
                            "a rank of this node is out of memory for the "
                            "reduction; raise its limit of memory, or start "
                            "fewer ranks on this node");
}

/* A vector that fits a board; F7. What is to go along SPSC rings later makes no
 * pages of boards before (X5, node_scan.c). */
static bool is_for_board(const struct job *j)
{
    const struct chempi_coll_state *st = j->cell->st;

    return st->size > 2 && chempi_coll_streams_are_on(st) &&
           j->len <= st->stream_len && !chain_is_for(j->c);
}

/* This member's input, or the beginning of the ring, goes to its board if it
 * can. */
static uint32_t put_on_board(struct job *j)
{
    struct chempi_coll_state *st = j->cell->st;

    if (j->code || j->c->is_void || st->size == 2)
        return 0;
    if (j->c->kind != CHEMPI_COLL_REDUCE && !is_for_board(j))
        return chempi_reduce_ring_begin(&j->ring, j->cell, j->c, j->in)
                   ? ON_BOARD
                   : 0;
    if (!is_for_board(j) || !chempi_coll_stream_is_there(st, j->len))
        return 0;
    chempi_coll_nt_copy_bytes(chempi_coll_stream_of(st, st->rank), j->in,
                              j->len, chempi_coll_shm_slot_goes_past(st, -1));
    return ON_BOARD;
}

static void end(struct chempi_node_task *t)
{
    give_scratch(t->cell.st);
    task_end(t);
}

/* The rest of this worker's part, as much of it as a step may take. */
static void fold_rest(struct chempi_node_task *t)
{
    struct job *j = of_task(t);
    const uint64_t before = t->copied;
    struct range chunk;

    while (next_chunk(j, &j->rest, &chunk)) {
        j->kind->fold(j, chunk);
        t->copied += bytes(j, chunk.count) * (uint64_t)j->cell->st->size;
        if (t->copied - before >= STEP_BYTES) {
            task_go_on(t, fold_rest);
            return;
        }
    }
    j->kind->folded(t);
}

static bool is_step_due(struct chempi_node_task *t)
{
    return chempi_reduce_ring_is_due(&of_task(t)->ring);
}

/* F8. Steps up to the end of the round. */
static void go_around(struct chempi_node_task *t)
{
    struct job *j = of_task(t);
    const uint64_t before = t->copied;

    while (!chempi_reduce_ring_is_round_over(&j->ring)) {
        if (!chempi_reduce_ring_is_due(&j->ring)) {
            t->is_due = is_step_due;
            task_await(t, chempi_reduce_ring_member_before(&j->ring), NULL, 0,
                       go_around);
            return;
        }
        t->copied += chempi_reduce_ring_step(&j->ring);
        if (t->copied - before >= STEP_BYTES) {
            task_go_on(t, go_around);
            return;
        }
    }
    j->kind->folded(t);
}

/* All have met, and bring the same amount. */
static void begin(struct chempi_node_task *t)
{
    struct job *j = of_task(t);
    struct chempi_coll_state *st = j->cell->st;
    uint32_t all = ON_BOARD;
    int odd;

    for (int i = 0; i < st->size; i++)
        all &= cell_line(j->cell, i)->mark;
    if (all)
        chempi_coll_count(CHEMPI_COLL_WAY_BOARDS);
    j->is_ring = all && !is_for_board(j);
    odd = j->is_ring ? chempi_reduce_ring_find_odd(&j->ring) : -1;
    if (CHEMPI_UNLIKELY(odd >= 0)) {
        task_note(t, chempi_coll_shm_slot_different_amounts(j->cell, odd));
        end(t);
        return;
    }
    if (j->is_ring) {
        go_around(t);
        return;
    }
    if (all)
        j->boards = chempi_coll_stream_of(st, 0);
    if (is_for_board(j))
        st->streamed++;
    fold_rest(t);
}

/* F7; true: both have said so, and what they have prepared comes next. */
static bool exchange(struct job *j)
{
    struct chempi_node_task *t = &j->task;

    if (!t->holds_messages)
        return false;
    t->holds_messages = false;
    if (cell_line(j->cell, 1 - j->cell->st->rank)->mark & BY_MESSAGES)
        return true;
    chempi_coll_sched_fini(t->messages);
    return false;
}

/* All have said where input and result are. When it fails all know, and must
 * not meet again: those with less data are in node_reduce.c (F3), and their
 * lines hold data instead of a reply. */
static void have_shown(struct chempi_node_task *t)
{
    struct job *j = of_task(t);

    chempi_coll_shm_slot_look_far_at_last(j->cell);
    task_note(t, chempi_coll_shm_slot_check(j->cell, j->len));
    if (CHEMPI_UNLIKELY(!t->rc && chempi_coll_shm_slot_has_failed(j->cell, 1)))
        task_note(t, no_scratch()); /* F5 */
    if (CHEMPI_UNLIKELY(t->rc)) {
        end(t);
        return;
    }
    if (j->c->kind == CHEMPI_COLL_REDUCE)
        t->cell.st->chain.folded += j->len;
    if (exchange(j))
        task_go_on(t, end);
    else
        begin(t);
}

/* F7; before it is known whether the other one can. */
static uint32_t prepare_messages(struct job *j)
{
    struct chempi_node_task *t = &j->task;

    if (j->cell->st->size > 2 || j->c->is_void ||
        (j->is_in_place && j->in == j->extra))
        return 0;
    t->messages->is_silent = true; /* perhaps they do not come */
    chempi_coll_build_flat(t->messages, j->c);
    t->messages->is_silent = false;
    t->holds_messages = !t->messages->error;
    if (t->holds_messages)
        return BY_MESSAGES;
    chempi_coll_sched_fini(t->messages);
    t->messages->error = MPI_SUCCESS;
    return 0;
}

static void show(struct chempi_node_task *t)
{
    struct job *j = of_task(t);
    struct chempi_node_line *line = cell_mine(j->cell);

    line->len = CHEMPI_LIKELY(!j->c->is_void) ? j->len : CELL_VOID;
    line->place.in = (uint64_t)(uintptr_t)j->in;
    line->place.out = (uint64_t)(uintptr_t)j->out;
    line->place.reply = j->code ? 1 : 0;
    line->mark = put_on_board(j) | prepare_messages(j);
    chempi_coll_shm_slot_say_came(j->cell);
    chempi_coll_node_task_meet(t, have_shown);
}

/* Meet again at the end of a phase, which may have made the operation void
 * (F2).
 */
static void end_phase(struct job *j, uint32_t phase, chempi_node_step_fn *next)
{
    chempi_coll_shm_slot_reply(j->cell, phase, j->code);
    chempi_coll_node_task_meet_again(&j->task, next);
}

/* ---- reduce ---- */

static bool is_root(const struct job *j)
{
    return j->cell->st->rank == j->c->root;
}

static uint64_t prepare_reduce(struct job *j)
{
    j->is_in_place = is_root(j) && j->is_in_place && !j->c->is_void;
    j->out = is_root(j) ? j->c->recv.buf : NULL;
    return j->is_in_place ? j->len : 0;
}

static void reduce_chunk(struct job *j, struct range chunk)
{
    if (is_root(j)) {
        fold_into_result(j, chunk, j->out + bytes(j, chunk.first));
        return;
    }
    fold_chunk(j, chunk, j->temp[1]);
    store(j, j->c->root, chunk, j->temp[1]);
}

static void end_reduce(struct chempi_node_task *t)
{
    struct job *j = of_task(t);

    t->is_void = chempi_coll_shm_slot_is_refused(j->cell, 2);
    if (t->is_void && j->is_in_place)
        move(j, &(struct move){j->c->recv.buf, j->extra, j->count, true, end});
    else
        end(t);
}

static void reduce_folded(struct chempi_node_task *t)
{
    end_phase(of_task(t), 2, end_reduce);
}

static const struct kind reduce = {prepare_reduce, reduce_chunk, reduce_folded};

/* ---- allreduce ---- */

static uint64_t prepare_allreduce(struct job *j)
{
    j->out = j->c->recv.buf;
    return j->is_in_place ? bytes(j, j->rest.count) : 0;
}

static void allreduce_chunk(struct job *j, struct range chunk)
{
    struct chempi_coll_state *st = j->cell->st;

    if (j->boards) /* the workers' parts of the result go there, too */
        fold_chunk(j, chunk,
                   chempi_coll_stream_of(st, st->rank) + bytes(j, chunk.first));
    else if (j->is_in_place)
        fold_chunk(j, chunk, j->out + bytes(j, chunk.first));
    else
        fold_into_result(j, chunk, j->out + bytes(j, chunk.first));
}

static void end_allreduce(struct chempi_node_task *t)
{
    struct job *j = of_task(t);

    t->is_void = chempi_coll_shm_slot_is_refused(j->cell, 3);
    if (t->is_void && j->is_in_place) {
        /* The input is gone; but own memory of others is always readable. */
        task_note(t, chempi_error_set(MPI_ERR_OTHER,
                                      "the system refuses to copy from another "
                                      "process"));
        t->is_void = false;
    }
    end(t);
}

/* Of member i's part of the result, into the own. */
static void take_range(struct job *j, int i, struct range r)
{
    const struct chempi_coll_state *st = j->cell->st;
    uint64_t at = bytes(j, r.first);
    uint64_t from = cell_line(j->cell, i)->place.out + at;
    unsigned char *to = (unsigned char *)j->c->recv.buf + at;
    unsigned char *first = has_padding(j) ? j->temp[0] : to;

    note(j, chempi_coll_cma_copy_read(st->local_ranks[i], from, first,
                                      bytes(j, r.count)));
    if (!j->code && first != to)
        cell_take(to, first, r.count, j->c->recv.type);
}

/* The next piece of the parts of others; their pieces are in order. */
static bool take_piece(struct job *j, int worker)
{
    MPI_Count most = (has_padding(j) ? CHUNK : CHEMPI_COLL_CMA_PIECE_MAX) /
                     j->c->recv.type->extent;
    struct range r = j->left;

    if (r.count <= 0 || j->code)
        return false;
    r.count = r.count < most ? r.count : most;
    take_range(j, member_of(j, worker), r);
    j->task.copied += bytes(j, r.count);
    j->left.first += r.count;
    j->left.count -= r.count;
    return true;
}

/* The workers have their parts of the result; fetch those of the others, a
 * piece in each step. */
static void spread(struct chempi_node_task *t)
{
    struct job *j = of_task(t);
    int first = j->me >= 0 ? j->me : j->cell->st->rank;

    while (j->taken < j->workers) {
        int w = (first + j->taken) % j->workers;

        if (w != j->me && take_piece(j, w)) {
            task_go_on(t, spread);
            return;
        }
        j->taken++;
        j->left = part_of(j, (first + j->taken) % j->workers);
    }
    end_phase(j, 3, end_allreduce);
}

static void begin_spread(struct chempi_node_task *t)
{
    struct job *j = of_task(t);

    j->left = part_of(j, (j->me >= 0 ? j->me : j->cell->st->rank) % j->workers);
    spread(t);
}

static void allreduce_is_there(struct chempi_node_task *t)
{
    struct job *j = of_task(t);
    struct range own;
    uint64_t at;

    t->is_void = chempi_coll_shm_slot_is_refused(j->cell, 2);
    if (t->is_void) {
        end(t);
    } else if (j->me >= 0 && j->is_in_place) {
        own = part_of(j, j->me);
        at = bytes(j, own.first);
        move(j, &(struct move){(unsigned char *)j->c->recv.buf + at,
                               j->out + at, own.count, false, begin_spread});
    } else {
        begin_spread(t);
    }
}

static void take_boards(struct chempi_node_task *t)
{
    struct job *j = of_task(t);
    struct chempi_coll_state *st = j->cell->st;
    unsigned char *to = j->c->recv.buf;

    for (int w = 0; w < j->workers; w++) {
        struct range r = part_of(j, w);
        uint64_t at = bytes(j, r.first);

        cell_take(to + at, chempi_coll_stream_of(st, member_of(j, w)) + at,
                  r.count, j->c->recv.type);
    }
    st->streamed++;
    end(t);
}

static void take_slice(struct job *j, void *result, int part)
{
    const struct chempi_reduce_ring_slice slice =
        chempi_reduce_ring_slice(&j->ring, part);

    if (slice.count > 0)
        cell_take((unsigned char *)result + bytes(j, slice.first), slice.data,
                  slice.count, j->c->recv.type);
    j->task.copied += bytes(j, slice.count);
}

/* F8; true: there is one. */
static bool begin_next_round(struct job *j)
{
    if (!chempi_reduce_ring_next_round(&j->ring))
        return false;
    task_go_on(&j->task, go_around);
    return true;
}

/* F8. All have done the round. */
static void take_round(struct chempi_node_task *t)
{
    struct job *j = of_task(t);

    for (int i = 0; i < t->cell.st->size; i++)
        take_slice(j, j->c->recv.buf, i);
    if (!begin_next_round(j))
        end(t);
}

static void allreduce_folded(struct chempi_node_task *t)
{
    struct job *j = of_task(t);

    if (j->is_ring)
        chempi_coll_node_task_meet_again(t, take_round);
    else if (j->boards)
        chempi_coll_node_task_meet_again(t, take_boards);
    else
        end_phase(j, 2, allreduce_is_there);
}

static const struct kind allreduce = {prepare_allreduce, allreduce_chunk,
                                      allreduce_folded};

/* ---- reduce-scatter ---- */

static uint64_t prepare_scatter(struct job *j)
{
    j->out =
        chempi_coll_plus(j->c->recv.buf, -(MPI_Count)bytes(j, j->rest.first));
    return j->is_in_place ? bytes(j, j->rest.count) : 0;
}

static void scatter_chunk(struct job *j, struct range chunk)
{
    unsigned char *out = j->out + bytes(j, chunk.first);

    if (j->is_in_place)
        fold_chunk(j, chunk, out);
    else
        fold_into_result(j, chunk, out);
}

static void end_scatter(struct chempi_node_task *t)
{
    struct job *j = of_task(t);
    struct range own = part_of(j, j->cell->st->rank);

    t->is_void = !j->boards && !j->is_ring &&
                 chempi_coll_shm_slot_is_refused(j->cell, 2);
    if (!t->is_void && !t->rc && j->is_in_place)
        move(j,
             &(struct move){j->c->recv.buf, j->extra, own.count, false, end});
    else
        end(t);
}

static void scatter_folded(struct chempi_node_task *t)
{
    struct job *j = of_task(t);

    if (j->is_ring)
        take_slice(j, j->out, t->cell.st->rank);
    if (j->is_ring && begin_next_round(j))
        return;
    if (j->boards || j->is_ring)
        end_scatter(t);
    else
        end_phase(j, 2, end_scatter);
}

static const struct kind scatter = {prepare_scatter, scatter_chunk,
                                    scatter_folded};

/* ---- which ---- */

/* One more for every so many bytes; but as many as have parts of what may go
 * around a ring: the order of operands is the same then. */
static int worker_count(const struct job *j)
{
    const struct chempi_coll_state *st = j->cell->st;
    uint64_t n = j->len / chempi_setting(CHEMPI_SET_COLL_NODE_SHARE);

    if (j->kind == &scatter ||
        (j->kind == &allreduce && j->len > st->stream_len &&
         chempi_reduce_ring_is_for(st, j->c, j->len)))
        return st->size;
    if (n < 1)
        return 1;
    return n < (uint64_t)st->size ? (int)n : st->size;
}

/* The same answer everywhere, at this member's turn (node_task.h, K2). */
bool chempi_coll_node_has_workers(const struct chempi_coll_state *st)
{
    return !st->is_refused && chempi_coll_cma_copy_is_on();
}

static const struct kind *kind_of(const struct chempi_coll_call *c)
{
    if (c->kind == CHEMPI_COLL_REDUCE)
        return &reduce;
    return c->kind == CHEMPI_COLL_ALLREDUCE ? &allreduce : &scatter;
}

/* What it is about: all but memory. */
static void set_up(struct job *j)
{
    const struct chempi_coll_call *c = j->task.c;
    const struct chempi_coll_state *st = j->task.cell.st;

    j->cell = &j->task.cell;
    j->c = c;
    j->kind = kind_of(c);
    j->count = chempi_coll_node_whole_count(c, st->size);
    j->len = bytes(j, j->count);
    j->is_in_place = c->send.buf == MPI_IN_PLACE;
    j->in = j->is_in_place ? c->recv.buf : c->send.buf;
    j->workers = worker_count(j);
    j->me = -1;
    for (int w = 0; w < j->workers; w++)
        if (member_of(j, w) == st->rank)
            j->me = w;
    if (j->me >= 0)
        j->rest = part_of(j, j->me);
}

static void fold_first(struct chempi_node_task *t)
{
    struct job *j = of_task(t);
    uint64_t extra;

    if (!chempi_coll_node_has_workers(t->cell.st)) {
        t->is_void = true;
        task_end(t);
        return;
    }
    set_up(j);
    task_spread(t, bytes(j, j->count));
    extra = j->kind->prepare(j);
    if (!get_scratch(j, extra)) {
        j->code = -ENOMEM;
    } else if (j->kind == &reduce && j->is_in_place) {
        j->in = j->extra;
        move(j, &(struct move){j->extra, j->c->recv.buf, j->count, true, show});
        return;
    } else if (j->is_in_place) {
        j->out =
            chempi_coll_plus(j->extra, -(MPI_Count)bytes(j, j->rest.first));
    }
    show(t);
}

const struct chempi_node_steps chempi_node_steps_fold =
    CHEMPI_NODE_STEPS(struct job, fold_first);

bool chempi_coll_node_is_for_workers(const struct chempi_coll_call *c)
{
    return cell_has_plain(c->recv.type) && c->recv.type->extent <= CHUNK;
}

bool chempi_coll_node_fold(struct chempi_coll_state *st,
                           const struct chempi_coll_call *c, int tag, int *rc)
{
    struct job j = {.task = {.c = c}};

    (void)chempi_coll_node_task_turn(st);
    if (!chempi_coll_node_has_workers(st) ||
        !chempi_coll_node_is_for_workers(c))
        return false;
    cell_open_sync(st, &j.task.cell);
    return chempi_coll_node_task_run(&j.task, fold_first, tag, rc);
}
