/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scans in a node's shared memory: a chain. Each member takes the sum of those
 * before it out of an SPSC ring, adds its own, and puts that into the SPSC ring
 * to the next; long data in pieces that stay in the cache on their way. Nobody
 * waits for those after it until the SPSC ring is full. A reduction of long
 * data is the same around the circle of all SPSC rings, from the member after
 * the root to the root, who alone keeps what comes out.
 *
 *   X1  all pieces of an operation carry its amount of data, so a member with
 *       another amount finds out; it reads on to the last piece and tells those
 *       after it with VOID
 *   X2  a member that has found an SPSC ring damaged reads no more of them,
 * makes the one before it useless, so that nobody waits for room there, and
 *       tells those after it with VOID, in every scan of this communicator
 *   X3  while there are no SPSC rings, members of a reduction that bring more
 * than goes through SPSC rings (node_fold.c, F3) are at the meeting of those
 * who make theirs, with another length in their line: all get MPI_ERR_COUNT,
 *       nobody has SPSC rings, and the next operation begins anew
 */
#include <string.h>

#include "libchempi/didl/base/error.h"
#include "libchempi/didl/coll/node/shm_slot.h"
#include "libchempi/didl/coll/node/spsc_ring.h"

enum {
    MOST_EXTENT = CHEMPI_SPSC_RING_LEAST / 4 - CHEMPI_SPSC_RING_GRAIN,
    MESSAGE_ABOVE = 16 << 10, /* bytes; an exscan of two */
    LONG = 1024,              /* bytes of a piece */
    PIECES_BUSY = 512         /* before others' progress is looked after */
};

#define VOID UINT32_MAX

struct job {
    struct chempi_spsc_ring_writer *out; /* NULL: the last member */
    struct chempi_spsc_ring_reader *in;
    const struct chempi_coll_call *c;
    const unsigned char *input;
    uint64_t len; /* bytes of the vector */
    uint32_t mark;
    uint32_t pieces;
    bool is_ex;
    bool is_scan; /* all keep a result */
};

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

/* Every member makes its own; all learn whether all have. */
static CHEMPI_COLD int make_rings(struct chempi_coll_state *st)
{
    struct chempi_node_chain *p = &st->chain;
    int next = (st->rank + 1) % st->size;
    int before = (st->rank + st->size - 1) % st->size;
    struct cell cell;
    int code;
    int rc;

    cell_open_sync(st, &cell);
    cell_mine(&cell)->len = 0;
    if (chempi_spsc_ring_create(ring_after(st, st->rank)) < 0)
        cell_mine(&cell)->len = CELL_NO_ROOM;
    rc = chempi_coll_shm_slot_meet(&cell);
    code = learn_rings(p, &cell);
    if (CHEMPI_UNLIKELY(code))
        return cell_first_error(rc, code);
    chempi_spsc_ring_open_writer(&p->out, ring_after(st, st->rank),
                                 st->local_ranks[next]);
    chempi_spsc_ring_open_reader(&p->in, ring_after(st, before),
                                 st->local_ranks[before]);
    p->out.st = p->in.st = st;
    p->is_made = true;
    return rc;
}

/* ---- pieces ---- */

static inline void *result_at(const struct job *j, uint64_t at)
{
    return (unsigned char *)j->c->rbuf + at;
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
    struct chempi_datatype *type = j->c->rtype;

    if (CHEMPI_LIKELY(type->is_contiguous))
        copy(result_at(j, at), from, len);
    else
        cell_take(result_at(j, at), from, (MPI_Count)len / type->extent, type);
}

static void combine(const struct job *j, const void *before, void *inout,
                    uint64_t len)
{
    MPI_Count count =
        len == j->len ? j->c->rcount : (MPI_Count)len / j->c->rtype->extent;

    chempi_op_apply(j->c->op, before, inout, count, j->c->rtype);
}

/* How much of the rest goes into one piece. */
static uint64_t cut(const struct job *j, uint64_t rest)
{
    uint64_t most = ring_most(j->out);

    if (CHEMPI_LIKELY(rest <= most))
        return rest;
    return most - most % (uint64_t)j->c->rtype->extent;
}

static void push(struct job *j, uint64_t len, bool is_last)
{
    ring_push(j->out, len, is_last, j->mark);
    chempi_progress_rouse_local(j->out->reader);
    if (CHEMPI_UNLIKELY(len >= LONG))
        chempi_spsc_ring_ask_early(j->out, len);
    if (CHEMPI_UNLIKELY(++j->pieces % PIECES_BUSY == 0))
        (void)chempi_progress_poll();
}

/* ---- the members ---- */

static int run_first(struct job *j)
{
    bool is_copied = j->is_scan && !j->is_ex && j->c->sbuf != MPI_IN_PLACE;
    unsigned char *to;
    uint64_t at = 0;
    uint64_t len;
    int rc;

    do {
        len = cut(j, j->len - at);
        rc = ring_room(j->out, len, &to);
        if (CHEMPI_UNLIKELY(rc))
            return rc;
        copy(to, j->input + at, len);
        push(j, len, at + len == j->len);
        if (is_copied)
            put_result(j, at, j->input + at, len);
        at += len;
    } while (at < j->len);
    return MPI_SUCCESS;
}

/* The last member, with what comes before its bytes [at, at + len). */
static void end_with(struct job *j, const unsigned char *before, uint64_t at,
                     uint64_t len)
{
    if (j->is_ex) {
        put_result(j, at, before, len);
        return;
    }
    if (j->c->sbuf != MPI_IN_PLACE)
        put_result(j, at, j->input + at, len);
    combine(j, before, result_at(j, at), len);
}

/* Another member. */
static int pass_on(struct job *j, const unsigned char *before, uint64_t at,
                   uint64_t len)
{
    uint64_t end = at + len;
    unsigned char *to;
    int rc;

    do {
        len = cut(j, end - at);
        rc = ring_room(j->out, len, &to);
        if (CHEMPI_UNLIKELY(rc))
            return rc;
        copy(to, j->input + at, len);
        combine(j, before, to, len);
        push(j, len, at + len == j->len);
        if (CHEMPI_LIKELY(j->is_scan))
            put_result(j, at, j->is_ex ? before : to, len);
        before += len;
        at += len;
    } while (at < end);
    return MPI_SUCCESS;
}

/* X1: the operation's last piece, for those after this member. */
static CHEMPI_COLD int push_void(struct job *j)
{
    unsigned char *to;
    int rc;

    if (!j->out)
        return MPI_SUCCESS;
    rc = ring_room(j->out, 0, &to);
    if (rc)
        return rc;
    j->mark = VOID;
    push(j, 0, true);
    return MPI_SUCCESS;
}

/* From this piece on; the first failure. */
static CHEMPI_COLD int void_rest(struct job *j,
                                 struct chempi_spsc_ring_piece *piece)
{
    int rc = MPI_SUCCESS;

    while (!rc && !piece->is_last) {
        ring_drop(j->in, piece->len);
        rc = ring_next(j->in, piece);
    }
    if (!rc)
        ring_drop(j->in, piece->len);
    return cell_first_error(rc, push_void(j));
}

/* A member that brings nothing. */
static CHEMPI_COLD int run_void(struct job *j, bool is_first)
{
    struct chempi_spsc_ring_piece piece;
    int rc = is_first ? MPI_SUCCESS : ring_next(j->in, &piece);

    if (is_first || rc)
        return cell_first_error(rc, push_void(j));
    return void_rest(j, &piece);
}

static bool is_expected(const struct job *j,
                        const struct chempi_spsc_ring_piece *piece, uint64_t at)
{
    uint64_t rest = j->len - at;

    return piece->mark == j->mark && piece->len <= rest &&
           piece->is_last == (piece->len == rest) &&
           (piece->is_last || piece->len % (uint64_t)j->c->rtype->extent == 0);
}

static int run_after(struct job *j, bool *is_void)
{
    struct chempi_spsc_ring_piece piece;
    uint64_t at = 0;
    int rc;

    do {
        rc = ring_next(j->in, &piece);
        if (CHEMPI_UNLIKELY(rc))
            return cell_first_error(rc, push_void(j)); /* X2 */
        if (CHEMPI_UNLIKELY(!is_expected(j, &piece, at))) {
            *is_void = true;
            return void_rest(j, &piece);
        }
        if (j->out)
            rc = pass_on(j, piece.data, at, piece.len);
        else
            end_with(j, piece.data, at, piece.len);
        ring_drop(j->in, piece.len);
        at += piece.len;
    } while (!rc && !piece.is_last);
    return rc;
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

static CHEMPI_COLD int run_broken(struct job *j)
{
    (void)push_void(j);
    return chempi_error_set(MPI_ERR_INTERN,
                            "an earlier call on this communicator has found "
                            "shared memory damaged");
}

static int run(struct chempi_coll_state *st, const struct chempi_coll_call *c,
               uint64_t len)
{
    struct chempi_node_chain *p = &st->chain;
    bool is_scan = c->kind != CHEMPI_COLL_REDUCE;
    int last = is_scan ? st->size - 1 : c->root;
    bool is_first = st->rank == (last + 1 < st->size ? last + 1 : 0);
    bool is_void = false;
    struct job j = {
        .out = st->rank != last ? &p->out : NULL,
        .in = &p->in,
        .c = c,
        .input = c->sbuf == MPI_IN_PLACE ? c->rbuf : c->sbuf,
        .len = len,
        .mark = mark_of(c, len),
        .is_ex = c->kind == CHEMPI_COLL_EXSCAN,
        .is_scan = is_scan,
    };
    int rc;

    if (CHEMPI_UNLIKELY(p->is_broken))
        return run_broken(&j);
    if (j.out && CHEMPI_UNLIKELY(len > ring_most(j.out)))
        chempi_spsc_ring_widen(j.out);
    if (CHEMPI_UNLIKELY(c->is_void))
        rc = run_void(&j, is_first);
    else
        rc = is_first ? run_first(&j) : run_after(&j, &is_void);

    if (CHEMPI_UNLIKELY(rc))
        give_up(p);
    else if (CHEMPI_UNLIKELY(is_void))
        rc = chempi_error_set(MPI_ERR_COUNT,
                              "the ranks take part with different amounts of "
                              "data");
    return rc;
}

/* Must it go by messages? All members get the same answer. */
static inline bool is_unsuited(const struct chempi_coll_state *st,
                               const struct chempi_coll_call *c)
{
    const struct chempi_datatype *type = c->rtype;

    if (!(type->is_predefined || type->is_contiguous) || type->true_lb != 0)
        return true;
    if (CHEMPI_UNLIKELY(type->extent > MOST_EXTENT))
        return true;
    /* Elements are combined in the order of ranks, from rank 0 on. */
    if (c->kind == CHEMPI_COLL_REDUCE)
        return !c->op->is_commutative && c->root != st->size - 1;
    /* An exscan of two just moves data: one copy instead of two. */
    return st->size == 2 && c->kind == CHEMPI_COLL_EXSCAN &&
           c->rcount * type->extent > MESSAGE_ABOVE;
}

bool chempi_coll_node_scan(struct chempi_coll_state *st,
                           const struct chempi_coll_call *c, int tag, int *rc)
{
    (void)tag;
    if (is_unsuited(st, c))
        return false;
    *rc = MPI_SUCCESS;
    if (CHEMPI_UNLIKELY(!st->chain.is_made))
        *rc = make_rings(st);
    if (CHEMPI_UNLIKELY(st->chain.is_off))
        return false;
    if (CHEMPI_LIKELY(!*rc))
        *rc = run(st, c, (uint64_t)(c->rcount * c->rtype->extent));
    return true;
}
