/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions within a node of more data than fits a slot. Everyone says where
 * its input lies, all meet; then the vector is shared out among workers, each
 * of whom reads its part from all inputs, chunk by chunk, and combines it
 * while it is in the cache. How many workers there are depends on the size
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
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/error.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/coll/node/cma_copy.h"
#include "libchempi/didl/coll/node/node_task.h"
#include "libchempi/didl/coll/node/shm_slot.h"

enum {
    CHUNK = 32 << 10,      /* bytes */
    CHUNKS_BUSY = 128,     /* before others' progress is looked after */
    SCRATCH_KEPT = 1 << 20 /* bytes; more is given back after each use */
};

struct job {
    const struct cell *cell;
    const struct chempi_coll_call *c;
    uint64_t len;            /* bytes of the vector */
    MPI_Count count;         /* elements of it */
    const unsigned char *in; /* this member's input */
    unsigned char *out;      /* its result, where the vector would begin */
    unsigned char *temp[2];  /* CHUNK bytes each */
    unsigned char *extra;    /* copy of the input, or of the result */
    int workers;
    int me;          /* this worker's number, < 0: none */
    int code;        /* first failure of a copy */
    uint32_t chunks; /* done */
    /* F6: where member 0's input is, then the others', stream_len apart; NULL:
     * they are copied from where they lie. */
    const unsigned char *boards;
};

/* In the mark of a line. */
enum { ON_BOARD = 1 };

/* ---- chunks ---- */

struct range {
    MPI_Count first;
    MPI_Count count;
};

static int member_of(const struct job *j, int worker)
{
    int root = j->c->kind == CHEMPI_COLL_REDUCE ? j->c->root : 0;

    return (worker + root) % j->cell->st->size;
}

/* F4 */
static bool has_padding(const struct job *j)
{
    return !j->c->rtype->is_contiguous;
}

static uint64_t bytes(const struct job *j, MPI_Count count)
{
    return (uint64_t)(count * j->c->rtype->extent);
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
    MPI_Count most = CHUNK / j->c->rtype->extent;

    if (rest->count <= 0 || j->code)
        return false;
    if (++j->chunks % CHUNKS_BUSY == 0)
        (void)chempi_progress_poll();
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
            cell_take(j->temp[0], src, r.count, j->c->rtype);
        src = j->temp[0];
    }
    if (!j->code)
        note(j, chempi_coll_cma_copy_write(rank, to, src, len));
}

static void combine(const struct job *j, const void *in, void *inout,
                    struct range r)
{
    if (!j->code)
        chempi_op_apply(j->c->op, in, inout, r.count, j->c->rtype);
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
        cell_take(result, j->temp[1], r.count, j->c->rtype);
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

/* A vector that fits a board: this member's input goes there if it can. */
static bool is_for_board(const struct job *j)
{
    const struct chempi_coll_state *st = j->cell->st;

    return chempi_coll_streams_are_on(st) && j->len <= st->stream_len;
}

static uint32_t put_on_board(const struct job *j)
{
    struct chempi_coll_state *st = j->cell->st;

    if (!is_for_board(j) || j->code || j->c->is_void ||
        !chempi_coll_stream_is_there(st))
        return 0;
    memcpy(chempi_coll_stream_of(st, st->rank), j->in, j->len);
    return ON_BOARD;
}

/* All have met, and bring the same amount. */
static void begin_round(struct job *j)
{
    struct chempi_coll_state *st = j->cell->st;
    uint32_t all = ON_BOARD;

    if (!is_for_board(j))
        return;
    for (int i = 0; i < st->size; i++)
        all &= cell_line(j->cell, i)->mark;
    if (all) {
        j->boards = chempi_coll_stream_of(st, 0);
        chempi_coll_count(CHEMPI_COLL_WAY_BOARDS);
    }
    st->streamed++;
}

/* Say where input and result are, and meet. When it fails all know, and must
 * not meet again: those with less data are in node_reduce.c (F3), and their
 * lines hold data instead of a reply. */
static int show(struct job *j)
{
    struct chempi_node_line *line = cell_mine(j->cell);
    int rc;

    line->len = CHEMPI_LIKELY(!j->c->is_void) ? j->len : CELL_VOID;
    line->place.in = (uint64_t)(uintptr_t)j->in;
    line->place.out = (uint64_t)(uintptr_t)j->out;
    line->place.reply = j->code ? 1 : 0;
    line->mark = put_on_board(j);
    rc = chempi_coll_shm_slot_meet(j->cell);
    rc = cell_first_error(rc, chempi_coll_shm_slot_check(j->cell, j->len));
    if (CHEMPI_UNLIKELY(!rc && chempi_coll_shm_slot_has_failed(j->cell, 1)))
        return no_scratch(); /* F5 */
    if (!rc)
        begin_round(j);
    return rc;
}

/* Meet again at the end of a phase; true: the operation is void (F2). */
static bool meet_again(const struct job *j, uint32_t phase, int *rc)
{
    bool is_void;

    *rc = cell_first_error(*rc, chempi_coll_shm_slot_end_copies(
                                    j->cell, phase, j->code, &is_void));
    return is_void;
}

/* ---- the operations ---- */

static bool reduce(struct job *j, int *rc)
{
    bool is_root = j->cell->st->rank == j->c->root;
    bool is_in_place = is_root && j->c->sbuf == MPI_IN_PLACE && !j->c->is_void;
    bool is_void;
    struct range chunk;

    j->out = is_root ? j->c->rbuf : NULL;
    if (!get_scratch(j, is_in_place ? j->len : 0)) {
        j->code = -ENOMEM;
    } else if (is_in_place) {
        memcpy(j->extra, j->c->rbuf, j->len);
        j->in = j->extra;
    }
    *rc = show(j);
    if (*rc)
        return true;
    if (j->me >= 0) {
        struct range rest = part_of(j, j->me);

        while (next_chunk(j, &rest, &chunk)) {
            if (is_root) {
                fold_into_result(j, chunk, j->out + bytes(j, chunk.first));
                continue;
            }
            fold_chunk(j, chunk, j->temp[1]);
            store(j, j->c->root, chunk, j->temp[1]);
        }
    }
    is_void = meet_again(j, 2, rc);
    if (is_void && is_in_place && j->in == j->extra)
        memcpy(j->c->rbuf, j->extra, j->len);
    return !is_void;
}

/* A part of member i's result into the own. */
static void take_part(struct job *j, int i, struct range part)
{
    const struct chempi_coll_state *st = j->cell->st;
    uint64_t from = cell_line(j->cell, i)->place.out;
    unsigned char *to = j->c->rbuf;
    struct range r;
    uint64_t at;

    if (!has_padding(j)) {
        at = bytes(j, part.first);
        note(j, chempi_coll_cma_copy_read(st->local_ranks[i], from + at,
                                          to + at, bytes(j, part.count)));
        return;
    }
    while (next_chunk(j, &part, &r)) {
        at = bytes(j, r.first);
        note(j, chempi_coll_cma_copy_read(st->local_ranks[i], from + at,
                                          j->temp[0], bytes(j, r.count)));
        if (!j->code)
            cell_take(to + at, j->temp[0], r.count, j->c->rtype);
    }
}

/* The workers have their parts of the result; fetch those of the others. */
static void spread(struct job *j)
{
    const struct chempi_coll_state *st = j->cell->st;
    unsigned char *to = j->c->rbuf;

    for (int k = 0; k < j->workers && !j->code; k++) {
        int w =
            j->me >= 0 ? (j->me + k) % j->workers : (st->rank + k) % j->workers;
        struct range r = part_of(j, w);
        uint64_t at = bytes(j, r.first);

        if (w != j->me)
            take_part(j, member_of(j, w), r);
        else if (j->out != to)
            cell_take(to + at, j->out + at, r.count, j->c->rtype);
    }
}

/* The workers' parts of the result go on boards, too. */
static bool allreduce_by_boards(struct job *j, struct range part, int *rc)
{
    struct chempi_coll_state *st = j->cell->st;
    unsigned char *to = j->c->rbuf;
    struct range chunk;

    j->out = chempi_coll_stream_of(st, st->rank);
    while (next_chunk(j, &part, &chunk))
        fold_chunk(j, chunk, j->out + bytes(j, chunk.first));
    *rc = chempi_coll_shm_slot_meet_again(j->cell);
    for (int w = 0; !*rc && w < j->workers; w++) {
        struct range r = part_of(j, w);
        uint64_t at = bytes(j, r.first);

        cell_take(to + at, chempi_coll_stream_of(st, member_of(j, w)) + at,
                  r.count, j->c->rtype);
    }
    st->streamed++;
    return true;
}

static bool allreduce(struct job *j, int *rc)
{
    bool is_in_place = j->c->sbuf == MPI_IN_PLACE;
    struct range rest = {0, 0};
    struct range chunk;
    bool is_void;

    if (j->me >= 0)
        rest = part_of(j, j->me);
    j->out = j->c->rbuf;
    if (!get_scratch(j, is_in_place ? bytes(j, rest.count) : 0))
        j->code = -ENOMEM;
    else if (is_in_place)
        j->out = chempi_coll_plus(j->extra, -(MPI_Count)bytes(j, rest.first));
    *rc = show(j);
    if (*rc)
        return true;
    if (j->boards)
        return allreduce_by_boards(j, rest, rc);
    while (next_chunk(j, &rest, &chunk)) {
        unsigned char *out = j->out + bytes(j, chunk.first);

        if (is_in_place)
            fold_chunk(j, chunk, out);
        else
            fold_into_result(j, chunk, out);
    }
    if (meet_again(j, 2, rc))
        return false;
    if (!*rc)
        spread(j);
    is_void = meet_again(j, 3, rc);
    if (is_void && is_in_place) {
        /* The input is gone; but own memory of others is always readable. */
        *rc = chempi_error_set(MPI_ERR_OTHER, "the system refuses to copy "
                                              "from another process");
        return true;
    }
    return !is_void;
}

static bool reduce_scatter(struct job *j, int *rc)
{
    bool is_in_place = j->c->sbuf == MPI_IN_PLACE;
    struct range own = part_of(j, j->cell->st->rank);
    struct range rest = own;
    unsigned char *result = j->c->rbuf;
    struct range chunk;
    bool is_void;

    if (!get_scratch(j, is_in_place ? bytes(j, own.count) : 0))
        j->code = -ENOMEM;
    else if (is_in_place)
        result = j->extra;
    *rc = show(j);
    if (*rc)
        return true;
    while (next_chunk(j, &rest, &chunk)) {
        unsigned char *out = result + bytes(j, chunk.first - own.first);

        if (is_in_place)
            fold_chunk(j, chunk, out);
        else
            fold_into_result(j, chunk, out);
    }
    is_void = !j->boards && meet_again(j, 2, rc);
    if (!is_void && !*rc && result != j->c->rbuf)
        cell_take(j->c->rbuf, result, own.count, j->c->rtype);
    return !is_void;
}

/* ---- which ---- */

/* One more for every so many bytes. */
static int worker_count(uint64_t len, int size)
{
    uint64_t n = len / chempi_setting(CHEMPI_SET_COLL_NODE_SHARE);

    if (n < 1)
        return 1;
    return n < (uint64_t)size ? (int)n : size;
}

bool chempi_coll_node_fold(struct chempi_coll_state *st,
                           const struct chempi_coll_call *c, uint64_t len,
                           int *rc)
{
    struct cell cell;
    struct job j = {
        .cell = &cell,
        .c = c,
        .len = len,
        .count = (MPI_Count)len / c->rtype->extent,
        .in = c->sbuf == MPI_IN_PLACE ? c->rbuf : c->sbuf,
        .workers = worker_count(len, st->size),
        .me = -1,
    };
    bool is_done;

    *rc = chempi_coll_node_task_turn(st);
    if (st->is_refused || !chempi_coll_cma_copy_is_on() ||
        c->rtype->extent > CHUNK)
        return false;
    cell_open_sync(st, &cell);
    for (int w = 0; w < j.workers; w++)
        if (member_of(&j, w) == st->rank)
            j.me = w;
    switch (c->kind) {
    case CHEMPI_COLL_REDUCE:
        is_done = reduce(&j, rc);
        break;
    case CHEMPI_COLL_ALLREDUCE:
        is_done = allreduce(&j, rc);
        break;
    default:
        is_done = reduce_scatter(&j, rc);
        break;
    }
    give_scratch(st);
    return is_done;
}
