/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduce and allreduce over messages (MPI 5.0, sections 6.9.1 and 6.9.6).
 *
 *   reduce     binomial tree; large data and a commutative operation: halving
 *              (below), then every process hands its part to the root; large
 *              data of two processes: segment behind segment
 *   allreduce  recursive doubling; large data and a commutative operation:
 *              Rabenseifner's algorithm, recursive halving of the vector and
 *              doubling back
 *
 * Operands are always combined in the order of ranks unless the operation is
 * commutative, and in a fixed order in any case, so that the same call gives
 * the same bits again. Data beyond SLICE_BYTES is reduced slice by slice,
 * which bounds the temporary memory.
 */
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/sched.h"

enum {
    SLICE_BYTES = 16 * 1024 * 1024,
    /* Two members: more goes in segments, which begin without a round trip
     * over tcp (1 MiB in two 131 us, in eight 162), and on one node in short
     * ones, which the caches have. */
    SEGMENT_BYTES = 512 * 1024,
    NODE_PAIR_BYTES = 256 * 1024,
    NODE_SEGMENT_BYTES = 128 * 1024
};

/* The vector that is being reduced. */
struct vector {
    MPI_Count count;
    struct chempi_datatype *type;
    const void *in; /* this process's contribution; not written */
    void *acc;      /* the result so far */
    void *tmp;      /* as much room again */
    bool has_acc;   /* acc has something; until then `in` stands for it */
};

/* A power of two of the processes takes part in halving and doubling; the
 * others hand their data to a neighbour first. */
struct fold {
    int pow2; /* largest power of two <= size */
    int rest; /* size - pow2 */
    int rank; /* in 0..pow2-1, or -1: folded away */
};

static struct fold fold_of(const struct chempi_coll_sched *s)
{
    struct fold f = {.pow2 = 1};

    while (f.pow2 * 2 <= s->size)
        f.pow2 *= 2;
    f.rest = s->size - f.pow2;
    if (s->rank >= 2 * f.rest)
        f.rank = s->rank - f.rest;
    else
        f.rank = s->rank % 2 ? s->rank / 2 : -1;
    return f;
}

/* The team rank behind a rank of the fold. */
static int unfold(const struct fold *f, int rank)
{
    return rank < f->rest ? 2 * rank + 1 : rank + f->rest;
}

static void swap(struct vector *v)
{
    void *t = v->acc;

    v->acc = v->tmp;
    v->tmp = t;
}

/* acc = acc combined with what has arrived in tmp from `peer`. */
static void take_in(struct chempi_coll_sched *s, struct vector *v, int peer)
{
    if (peer < s->rank || s->op->is_commutative) {
        chempi_coll_combine(s, v->tmp, v->acc, v->count, v->type);
        return;
    }
    chempi_coll_combine(s, v->acc, v->tmp, v->count, v->type);
    swap(v);
}

/* Let acc begin with this process's contribution. */
static void fill_acc(struct chempi_coll_sched *s, struct vector *v)
{
    if (!v->has_acc)
        chempi_coll_copy(s, v->in, v->count, v->type, v->acc, v->count,
                         v->type);
    v->has_acc = true;
}

/* May the first operand that comes be received into acc, and combined with
 * `in` there? That saves a copy. */
static bool is_direct(const struct chempi_coll_sched *s, const struct vector *v,
                      int peer)
{
    return !v->has_acc && (peer > s->rank || s->op->is_commutative);
}

/* Even ranks below 2 * rest give to their right neighbour. */
static void build_fold(struct chempi_coll_sched *s, const struct fold *f,
                       struct vector *v)
{
    if (s->rank >= 2 * f->rest)
        return;
    if (f->rank < 0) {
        chempi_coll_send(s, v->has_acc ? v->acc : v->in, v->count, v->type,
                         s->rank + 1);
        chempi_coll_fence(s);
        v->has_acc = true; /* build_unfold() brings it */
        return;
    }
    chempi_coll_recv(s, v->tmp, v->count, v->type, s->rank - 1);
    fill_acc(s, v);
    chempi_coll_fence(s);
    take_in(s, v, s->rank - 1);
}

/* And get the result back. */
static void build_unfold(struct chempi_coll_sched *s, const struct fold *f,
                         struct vector *v)
{
    if (s->rank >= 2 * f->rest)
        return;
    if (f->rank < 0)
        chempi_coll_recv(s, v->acc, v->count, v->type, s->rank + 1);
    else
        chempi_coll_send(s, v->acc, v->count, v->type, s->rank - 1);
    chempi_coll_fence(s);
}

static void build_doubling(struct chempi_coll_sched *s, const struct fold *f,
                           struct vector *v)
{
    if (f->rank < 0)
        return;
    for (int mask = 1; mask < f->pow2; mask *= 2) {
        int peer = unfold(f, f->rank ^ mask);

        if (is_direct(s, v, peer)) {
            chempi_coll_recv(s, v->acc, v->count, v->type, peer);
            chempi_coll_send(s, v->in, v->count, v->type, peer);
            chempi_coll_fence(s);
            chempi_coll_combine(s, v->in, v->acc, v->count, v->type);
            v->has_acc = true;
            continue;
        }
        fill_acc(s, v);
        chempi_coll_recv(s, v->tmp, v->count, v->type, peer);
        chempi_coll_send(s, v->acc, v->count, v->type, peer);
        chempi_coll_fence(s);
        take_in(s, v, peer);
    }
}

static MPI_Count part_at(const struct fold *f, const struct vector *v, int i)
{
    return chempi_coll_cut(v->count, f->pow2, i);
}

static void *part_of(const struct fold *f, const struct vector *v,
                     const void *buf, int i)
{
    return chempi_coll_at(buf, part_at(f, v, i), v->type);
}

/*
 * Recursive halving: with the peer at distance pow2/2, pow2/4, ... exchange
 * halves of what is left. Afterwards acc has part `f->rank` complete.
 */
static void build_halving(struct chempi_coll_sched *s, const struct fold *f,
                          struct vector *v)
{
    int first = 0;

    for (int mask = f->pow2 / 2; mask > 0; mask /= 2) {
        int peer = unfold(f, f->rank ^ mask);
        int middle = first + mask;
        bool is_low = !(f->rank & mask);
        int keep = is_low ? first : middle;
        int give = is_low ? middle : first;
        MPI_Count n = part_at(f, v, keep + mask) - part_at(f, v, keep);
        const void *from = v->has_acc ? v->acc : v->in;
        void *to = v->has_acc ? v->tmp : v->acc;

        chempi_coll_recv(s, part_of(f, v, to, keep), n, v->type, peer);
        chempi_coll_send(s, part_of(f, v, from, give),
                         part_at(f, v, give + mask) - part_at(f, v, give),
                         v->type, peer);
        chempi_coll_fence(s);
        chempi_coll_combine(s, part_of(f, v, v->has_acc ? v->tmp : v->in, keep),
                            part_of(f, v, v->acc, keep), n, v->type);
        v->has_acc = true; /* of what is kept */
        first = keep;
    }
}

/* The way back: parts double until everyone has all. */
static void build_gathering(struct chempi_coll_sched *s, const struct fold *f,
                            const struct vector *v)
{
    for (int mask = 1; mask < f->pow2; mask *= 2) {
        int peer = unfold(f, f->rank ^ mask);
        int mine = f->rank & ~(mask - 1);
        int theirs = mine ^ mask;

        chempi_coll_recv(s, part_of(f, v, v->acc, theirs),
                         part_at(f, v, theirs + mask) - part_at(f, v, theirs),
                         v->type, peer);
        chempi_coll_send(s, part_of(f, v, v->acc, mine),
                         part_at(f, v, mine + mask) - part_at(f, v, mine),
                         v->type, peer);
        chempi_coll_fence(s);
    }
}

/* Two processes send as much either way: halving costs them a second round and
 * saves only half of the combining (8, 16, 32 KiB over tcp: 32, 37, 45 us;
 * exchanging all 20, 23, 33 us). */
#define TWO_HALVE_FROM 32 /* times the size from which more do */

static bool is_halving_good(const struct chempi_coll_sched *s,
                            const struct vector *v)
{
    MPI_Count min = chempi_setting_signed(CHEMPI_SET_COLL_REDUCE_HALVING);

    if (s->size == 2)
        min *= TWO_HALVE_FROM;
    return s->op->is_commutative && v->count >= s->size &&
           v->count * v->type->size >= min;
}

static void allreduce_slice(struct chempi_coll_sched *s, struct vector *v,
                            void *result)
{
    struct fold f = fold_of(s);

    v->acc = result;
    v->has_acc = v->in == result;
    if (s->size == 1)
        fill_acc(s, v);
    build_fold(s, &f, v);
    if (is_halving_good(s, v)) {
        if (f.rank >= 0) {
            build_halving(s, &f, v);
            build_gathering(s, &f, v);
        }
    } else {
        build_doubling(s, &f, v);
    }
    build_unfold(s, &f, v);
    if (v->acc != result) {
        chempi_coll_copy(s, v->acc, v->count, v->type, result, v->count,
                         v->type);
        swap(v);
    }
}

static MPI_Count slice_count(const struct chempi_coll_call *c)
{
    MPI_Count most = c->recv.type->size > 0 ? SLICE_BYTES / c->recv.type->size
                                            : c->recv.count;

    if (most == 0)
        most = 1;
    return c->recv.count < most ? c->recv.count : most;
}

void chempi_coll_build_allreduce(struct chempi_coll_sched *s,
                                 const struct chempi_coll_call *c)
{
    const void *in = c->send.buf == MPI_IN_PLACE ? c->recv.buf : c->send.buf;
    MPI_Count slice = slice_count(c);
    struct vector v = {.type = c->recv.type};

    s->op = c->op;
    if (s->size > 1)
        v.tmp = chempi_coll_temp(s, slice, c->recv.type);
    for (MPI_Count at = 0; at < c->recv.count; at += slice) {
        v.count = c->recv.count - at < slice ? c->recv.count - at : slice;
        v.in = chempi_coll_at(in, at, c->recv.type);
        allreduce_slice(s, &v, chempi_coll_at(c->recv.buf, at, c->recv.type));
    }
}

/* ---- reduce ---- */

/* A binomial tree whose root is the team's rank `top`; acc of `top` has the
 * result. Contributions of processes without children are sent as they are. */
static void build_reduce_tree(struct chempi_coll_sched *s, struct vector *v,
                              int top)
{
    int me = (s->rank - top + s->size) % s->size;

    for (int mask = 1; mask < s->size; mask *= 2) {
        int peer;

        if (me & mask) {
            peer = (me - mask + top) % s->size;
            chempi_coll_send(s, v->has_acc ? v->acc : v->in, v->count, v->type,
                             peer);
            chempi_coll_fence(s);
            return;
        }
        if (me + mask >= s->size)
            continue;
        peer = (me + mask + top) % s->size;
        if (is_direct(s, v, peer)) {
            chempi_coll_recv(s, v->acc, v->count, v->type, peer);
            chempi_coll_fence(s);
            chempi_coll_combine(s, v->in, v->acc, v->count, v->type);
            v->has_acc = true;
            continue;
        }
        chempi_coll_recv(s, v->tmp, v->count, v->type, peer);
        fill_acc(s, v);
        chempi_coll_fence(s);
        take_in(s, v, peer);
    }
}

/*
 * Two processes: one gives segments of one size, the other combines one while
 * the next one arrives. The giver does not know whether the taker reduces in
 * place, so both go by segments always.
 */
static MPI_Count pair_step(const struct vector *v, MPI_Count segment)
{
    MPI_Count parts = (v->count * v->type->size - 1) / segment + 1;

    return (v->count + parts - 1) / parts;
}

/* Bytes of a segment at most; 0: the vector goes whole. */
static MPI_Count pair_segment(const struct chempi_coll_sched *s,
                              const struct vector *v)
{
    MPI_Count len = v->count * v->type->size;

    if (len <= NODE_PAIR_BYTES)
        return 0;
    if (chempi_coll_is_on_one_node(s))
        return NODE_SEGMENT_BYTES;
    return len > SEGMENT_BYTES ? SEGMENT_BYTES : 0;
}

static void give_parts(struct chempi_coll_sched *s, const struct vector *v,
                       MPI_Count step, int peer)
{
    const void *from = v->has_acc ? v->acc : v->in;

    for (MPI_Count at = 0; at < v->count; at += step) {
        MPI_Count left = v->count - at;

        chempi_coll_send(s, chempi_coll_at(from, at, v->type),
                         left < step ? left : step, v->type, peer);
        chempi_coll_throttle(s);
    }
    chempi_coll_fence(s);
}

static void take_parts(struct chempi_coll_sched *s, struct vector *v,
                       MPI_Count step, int peer)
{
    void *to = v->has_acc ? v->tmp : v->acc;
    bool is_kept = v->has_acc && s->op->is_commutative; /* where acc is */
    const void *from = is_kept ? v->tmp : v->has_acc ? v->acc : v->in;
    MPI_Count had = 0;

    for (MPI_Count at = 0; at < v->count + step; at += step) {
        MPI_Count left = v->count - at;
        MPI_Count last = at - step;
        MPI_Count n = left < step ? left : step;

        if (left > 0)
            chempi_coll_recv(s, chempi_coll_at(to, at, v->type), n, v->type,
                             peer);
        if (at > 0) {
            chempi_coll_fence_but(s, left > 0);
            chempi_coll_combine(
                s, chempi_coll_at(from, last, v->type),
                chempi_coll_at(is_kept ? v->acc : to, last, v->type), had,
                v->type);
        }
        had = n;
    }
    if (v->has_acc && !is_kept)
        swap(v);
    v->has_acc = true;
}

static void build_pair(struct chempi_coll_sched *s, struct vector *v,
                       MPI_Count segment, int top)
{
    const MPI_Count step = pair_step(v, segment);

    if (s->rank == top)
        take_parts(s, v, step, 1 - top);
    else
        give_parts(s, v, step, top);
}

/* Parts of the fold's members to the root. */
static void build_parts_to_root(struct chempi_coll_sched *s,
                                const struct fold *f, const struct vector *v,
                                int root)
{
    if (s->rank != root) {
        if (f->rank >= 0)
            chempi_coll_send(s, part_of(f, v, v->acc, f->rank),
                             part_at(f, v, f->rank + 1) -
                                 part_at(f, v, f->rank),
                             v->type, root);
        chempi_coll_fence(s);
        return;
    }
    for (int i = 0; i < f->pow2; i++) {
        if (i == f->rank)
            continue;
        chempi_coll_recv(s, part_of(f, v, v->acc, i),
                         part_at(f, v, i + 1) - part_at(f, v, i), v->type,
                         unfold(f, i));
        chempi_coll_throttle(s);
    }
    chempi_coll_fence(s);
}

/* All but the root bring memory for the result along in v->acc. */
static void reduce_slice(struct chempi_coll_sched *s, struct vector *v,
                         int root)
{
    void *result = v->acc;
    struct fold f = fold_of(s);
    int top = s->op->is_commutative ? root : 0;
    MPI_Count segment = s->size == 2 ? pair_segment(s, v) : 0;

    v->has_acc = v->in == v->acc;
    if (s->size >= 4 && is_halving_good(s, v)) {
        build_fold(s, &f, v);
        if (f.rank >= 0)
            build_halving(s, &f, v);
        build_parts_to_root(s, &f, v, root);
        return;
    }
    if (s->size == 1)
        fill_acc(s, v);
    if (segment)
        build_pair(s, v, segment, top);
    else
        build_reduce_tree(s, v, top);
    if (s->rank == top && top != root) {
        chempi_coll_send(s, v->acc, v->count, v->type, root);
    } else if (s->rank == root && top != root) {
        chempi_coll_recv(s, result, v->count, v->type, top);
    } else if (s->rank == root && v->acc != result) {
        chempi_coll_copy(s, v->acc, v->count, v->type, result, v->count,
                         v->type);
    }
    chempi_coll_fence(s);
    if (v->acc != result)
        swap(v);
}

void chempi_coll_build_reduce(struct chempi_coll_sched *s,
                              const struct chempi_coll_call *c)
{
    bool is_root = s->rank == c->root;
    const void *in = c->send.buf == MPI_IN_PLACE ? c->recv.buf : c->send.buf;
    MPI_Count slice = slice_count(c);
    struct vector v = {.type = c->recv.type};
    void *own = NULL;

    s->op = c->op;
    if (s->size > 1) {
        v.tmp = chempi_coll_temp(s, slice, c->recv.type);
        if (!is_root)
            own = chempi_coll_temp(s, slice, c->recv.type);
    }
    for (MPI_Count at = 0; at < c->recv.count; at += slice) {
        v.count = c->recv.count - at < slice ? c->recv.count - at : slice;
        v.in = chempi_coll_at(in, at, c->recv.type);
        v.acc = is_root ? chempi_coll_at(c->recv.buf, at, c->recv.type) : own;
        reduce_slice(s, &v, c->root);
    }
}
