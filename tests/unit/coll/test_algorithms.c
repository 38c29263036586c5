/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every algorithm over messages against a serial reference, for all numbers of
 * ranks up to MAX_RANKS and sizes on both sides of each switch.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "libchempi/didl/coll/hier/hier.h"
#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/op/op.h"
#include "tests/unit/coll/fake_message.h"

enum { MAX_RANKS = 17, PRIME = 65521 };

/* ---- an operation that does not commute: x -> a x + b, composed ---- */

struct affine {
    int32_t a;
    int32_t b;
};

static struct affine compose(struct affine f, struct affine g)
{
    return (struct affine){
        (int32_t)((int64_t)f.a * g.a % PRIME),
        (int32_t)(((int64_t)f.a * g.b + f.b) % PRIME),
    };
}

static void compose_all(void *in_, void *inout_, int *len, MPI_Datatype *type)
{
    struct affine *in = in_;
    struct affine *inout = inout_;

    (void)type;
    for (int i = 0; i < *len; i++)
        inout[i] = compose(in[i], inout[i]);
}

static struct chempi_op user_op = {
    .obj = {.magic = CHEMPI_MAGIC_OP, .refs = 1},
    .fn = compose_all,
};

static struct chempi_datatype affine_type = {
    .obj = {.magic = CHEMPI_MAGIC_DATATYPE, .refs = 1},
    .is_contiguous = true,
    .is_committed = true,
    .is_predefined = true, /* so that nobody counts references */
    .size = sizeof(struct affine),
    .extent = sizeof(struct affine),
    .true_extent = sizeof(struct affine),
};

/* The same bits serve as two summands or as one function. */
static struct affine value(int rank, MPI_Count i)
{
    return (struct affine){(int32_t)((rank * 31 + i * 7 + 2) % PRIME),
                           (int32_t)((rank * 17 + i * 3 + 1) % PRIME)};
}

static struct affine combine(const struct chempi_op *op, struct affine x,
                             struct affine y)
{
    if (op == &user_op)
        return compose(x, y);
    return (struct affine){x.a + y.a, x.b + y.b};
}

/* Ranks [first, last] combined in order. */
static struct affine expected(const struct chempi_op *op, int first, int last,
                              MPI_Count i)
{
    struct affine acc = value(last, i);

    for (int r = last - 1; r >= first; r--)
        acc = combine(op, value(r, i), acc);
    return acc;
}

/* ---- one case ---- */

struct test_case {
    enum chempi_coll_kind kind;
    int count; /* elements of one block */
    int root;
    struct chempi_op *op;
    bool is_in_place;
    bool is_commutative_case; /* elements are pairs of ints in MPI_SUM */
};

static struct affine *blocks_of(int n)
{
    size_t len = (size_t)(n > 0 ? n : 1) * sizeof(struct affine);
    struct affine *p = malloc(len);

    memset(p, 0xee, len);
    return p;
}

static void fill(struct affine *p, int rank, MPI_Count from, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = value(rank, from + i);
}

static int differs(const struct affine *p, struct affine q)
{
    return p->a != q.a || p->b != q.b;
}

/* ---- where the ranks are ---- */

struct layout {
    const char *name;
    uint32_t nodes[MAX_RANKS];
    int networks;
};

static const struct layout layouts[] = {
    {"one node", {0}, 0},
    {"in blocks", {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5}, 0},
    {"in turn", {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1}, 0},
    {"unevenly", {7, 3, 3, 3, 0, 2, 2, 3, 4, 4, 4, 5, 6, 7, 7, 0, 2}, 3},
    {"each alone",
     {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
     3},
    {"in large blocks", {0, 0, 0, 0, 0, 0, 0, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7}, 3},
};
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

static const struct layout *layout = &layouts[0];

/* Two fast networks that overlap, as in the demo cluster, and a slow one. */
static bool attachment(const void *arg, uint32_t node, uint32_t i, int *network)
{
    const bool is_there[] = {node % 8 <= 4, node % 8 >= 3 && node % 8 <= 6,
                             true};
    const int networks = *(const int *)arg;

    if ((int)i >= networks)
        return false;
    *network = is_there[i] ? (int)i : -1;
    return true;
}

static uint32_t node_of(const void *arg, int rank)
{
    (void)arg;
    return layout->nodes[rank];
}

static struct chempi_hier *make_hier(const struct chempi_comm *comm)
{
    static const uint64_t costs[] = {100, 120, 900};
    struct chempi_hier_plan plan = {
        .size = (int)comm->size,
        .rank = comm->rank,
        .node_of = node_of,
        .node_limit = MAX_RANKS,
        .network_count = layout->networks,
        .costs = costs,
        .attachment = attachment,
        .arg = &layout->networks,
        .similar_percent = 10,
    };

    return chempi_hier_create(&plan);
}

/* A rank that runs out of memory in the call. */
static struct starving {
    int rank; /* -1: nobody does */
    int pieces;
    bool is_starved;
    int rc; /* the rank's */
} starving = {.rank = -1};

static int build_and_run(struct chempi_coll_sched *s,
                         const struct chempi_coll_call *c)
{
    int rc;

    if (c->comm->rank == starving.rank)
        fake_starve(starving.pieces);
    chempi_coll_build(s, c);
    rc = chempi_coll_run(s);
    if (c->comm->rank == starving.rank) {
        starving.is_starved = fake_is_starved();
        starving.rc = rc;
    }
    fake_starve(-1);
    return rc;
}

static int run_call(const struct chempi_coll_call *c)
{
    struct chempi_coll_state st = {.hier = make_hier(c->comm)};
    struct chempi_coll_sched s;
    int rc;

    c->comm->coll = &st;
    chempi_coll_sched_init(&s, c->comm, chempi_coll_next_tag(c->comm));
    rc = build_and_run(&s, c);
    if (starving.rank < 0 && rc == MPI_SUCCESS &&
        c->kind == CHEMPI_COLL_BARRIER)
        rc = chempi_coll_run(&s); /* a schedule can be run again */
    chempi_coll_sched_fini(&s);
    chempi_hier_destroy(st.hier);
    c->comm->coll = NULL;
    return rc != MPI_SUCCESS;
}

/* Pairs of ints are reduced by MPI_SUM as twice as many ints. */
static void set_type(struct chempi_coll_call *c, const struct test_case *t,
                     MPI_Count elements)
{
    bool is_user = t->op == &user_op;

    c->op = t->op;
    c->recv.type = is_user ? &affine_type : chempi_datatype_lookup(MPI_INT);
    c->recv.count = is_user ? elements : 2 * elements;
}

static int test_bcast(struct chempi_comm *comm, void *arg)
{
    const struct test_case *t = arg;
    struct affine *buf = blocks_of(t->count);
    struct chempi_coll_call c = {.kind = t->kind,
                                 .root = t->root,
                                 .comm = comm,
                                 .recv.buf = buf,
                                 .recv.count = t->count,
                                 .recv.type = &affine_type};
    int wrong;

    if (comm->rank == t->root)
        fill(buf, t->root, 0, t->count);
    wrong = run_call(&c);
    for (int i = 0; i < t->count; i++)
        wrong += differs(&buf[i], value(t->root, i));
    free(buf);
    return wrong;
}

static int test_reduction(struct chempi_comm *comm, void *arg)
{
    const struct test_case *t = arg;
    int last = (int)comm->size - 1;
    struct affine *in = blocks_of(t->count);
    struct affine *out = blocks_of(t->count);
    bool is_here = t->kind != CHEMPI_COLL_REDUCE || comm->rank == t->root;
    bool is_in_place = t->is_in_place && is_here;
    struct chempi_coll_call c = {.kind = t->kind,
                                 .root = t->root,
                                 .comm = comm,
                                 .send.buf = is_in_place ? MPI_IN_PLACE : in,
                                 .recv.buf = out};
    int wrong;

    set_type(&c, t, t->count);
    fill(is_in_place ? out : in, comm->rank, 0, t->count);
    wrong = run_call(&c);
    if (t->kind == CHEMPI_COLL_SCAN)
        last = comm->rank;
    if (t->kind == CHEMPI_COLL_EXSCAN)
        last = comm->rank - 1;
    if (is_here && last >= 0)
        for (int i = 0; i < t->count; i++)
            wrong += differs(&out[i], expected(t->op, 0, last, i));
    free(in);
    free(out);
    return wrong;
}

/* Blocks of different lengths: rank i's has count + i % 3 elements. */
static int block_len(const struct test_case *t, int i)
{
    return t->kind == CHEMPI_COLL_REDUCE_SCATTER ? t->count + i % 3 : t->count;
}

static int test_reduce_scatter(struct chempi_comm *comm, void *arg)
{
    const struct test_case *t = arg;
    int counts[FAKE_RANKS_MAX];
    int total = 0;
    int before = 0;
    int wide = t->op == &user_op ? 1 : 2;
    struct affine *in;
    struct affine *out;
    struct chempi_coll_call c = {
        .kind = t->kind, .comm = comm, .recv.counts = {counts, false}};
    int wrong;

    for (int i = 0; i < (int)comm->size; i++) {
        counts[i] = block_len(t, i) * wide;
        before += i < comm->rank ? block_len(t, i) : 0;
        total += block_len(t, i);
    }
    in = blocks_of(total);
    out = blocks_of(total);
    set_type(&c, t, t->count);
    c.send.buf = t->is_in_place ? MPI_IN_PLACE : in;
    c.recv.buf = out;
    fill(t->is_in_place ? out : in, comm->rank, 0, total);
    wrong = run_call(&c);
    for (int i = 0; i < block_len(t, comm->rank); i++)
        wrong += differs(&out[i],
                         expected(t->op, 0, (int)comm->size - 1, before + i));
    free(in);
    free(out);
    return wrong;
}

/* v-forms: rank i's block has (count + i) % (count + 3) elements and lies two
 * elements behind the one before. */
static int v_count(const struct test_case *t, int i)
{
    return (t->count + i) % (t->count + 3);
}

static int lay_out(const struct test_case *t, int n, int64_t *counts,
                   int64_t *displs)
{
    int at = 0;

    for (int i = 0; i < n; i++) {
        counts[i] = v_count(t, i);
        displs[i] = at;
        at += v_count(t, i) + 2;
    }
    return at;
}

static int test_gather(struct chempi_comm *comm, void *arg)
{
    const struct test_case *t = arg;
    int n = (int)comm->size;
    bool is_v =
        t->kind == CHEMPI_COLL_GATHERV || t->kind == CHEMPI_COLL_ALLGATHERV;
    bool is_all =
        t->kind == CHEMPI_COLL_ALLGATHER || t->kind == CHEMPI_COLL_ALLGATHERV;
    bool is_here = is_all || comm->rank == t->root;
    bool is_in_place = t->is_in_place && is_here;
    int64_t counts[FAKE_RANKS_MAX];
    int64_t displs[FAKE_RANKS_MAX];
    int total = lay_out(t, n, counts, displs);
    int own = is_v ? v_count(t, comm->rank) : t->count;
    struct affine *in = blocks_of(own);
    struct affine *out = blocks_of(total + n * t->count);
    struct chempi_coll_call c = {.kind = t->kind,
                                 .root = t->root,
                                 .comm = comm,
                                 .send.buf = is_in_place ? MPI_IN_PLACE : in,
                                 .send.count = own,
                                 .send.type = &affine_type,
                                 .recv.buf = out,
                                 .recv.count = t->count,
                                 .recv.type = &affine_type,
                                 .recv.counts = {counts, true},
                                 .recv.displs = {displs, true}};
    int wrong;

    fill(is_in_place ? out + (is_v ? displs[comm->rank] : comm->rank * t->count)
                     : in,
         comm->rank, 0, own);
    wrong = run_call(&c);
    for (int r = 0; is_here && r < n; r++) {
        const struct affine *p = out + (is_v ? displs[r] : r * t->count);

        for (int i = 0; i < (is_v ? v_count(t, r) : t->count); i++)
            wrong += differs(&p[i], value(r, i));
    }
    free(in);
    free(out);
    return wrong;
}

static int test_scatter(struct chempi_comm *comm, void *arg)
{
    const struct test_case *t = arg;
    int n = (int)comm->size;
    bool is_v = t->kind == CHEMPI_COLL_SCATTERV;
    bool is_root = comm->rank == t->root;
    bool is_in_place = t->is_in_place && is_root;
    int64_t counts[FAKE_RANKS_MAX];
    int64_t displs[FAKE_RANKS_MAX];
    int total = lay_out(t, n, counts, displs);
    int own = is_v ? v_count(t, comm->rank) : t->count;
    struct affine *in = blocks_of(total + n * t->count);
    struct affine *out = blocks_of(own);
    struct chempi_coll_call c = {.kind = t->kind,
                                 .root = t->root,
                                 .comm = comm,
                                 .send.buf = in,
                                 .send.count = t->count,
                                 .send.type = &affine_type,
                                 .send.counts = {counts, true},
                                 .send.displs = {displs, true},
                                 .recv.buf = is_in_place ? MPI_IN_PLACE : out,
                                 .recv.count = own,
                                 .recv.type = &affine_type};
    int wrong;

    for (int r = 0; r < n; r++)
        fill(in + (is_v ? displs[r] : r * t->count), r, 0,
             is_v ? v_count(t, r) : t->count);
    wrong = run_call(&c);
    for (int i = 0; !is_in_place && i < own; i++)
        wrong += differs(&out[i], value(comm->rank, i));
    free(in);
    free(out);
    return wrong;
}

/* From rank r to rank q of the v- and w-form: (count + r + q) % (count + 2)
 * elements, which is symmetric as the forms in place demand. */
static int pair_count(const struct test_case *t, int r, int q)
{
    return t->kind == CHEMPI_COLL_ALLTOALL
               ? t->count
               : (t->count + r + q) % (t->count + 2);
}

struct exchange {
    struct chempi_coll_call c;
    int64_t counts[FAKE_RANKS_MAX];
    int64_t displs[FAKE_RANKS_MAX];
    int64_t at[FAKE_RANKS_MAX]; /* elements */
    MPI_Datatype types[FAKE_RANKS_MAX];
    struct affine *in;
    struct affine *out;
};

static void set_exchange(struct exchange *x, const struct test_case *t,
                         struct chempi_comm *comm)
{
    int n = (int)comm->remote_size;
    int at = 0;
    int unit =
        t->kind == CHEMPI_COLL_ALLTOALLW ? (int)sizeof(struct affine) : 1;

    for (int i = 0; i < n; i++) {
        x->counts[i] = pair_count(t, comm->rank, i);
        x->at[i] = at;
        x->displs[i] = at * unit;
        x->types[i] = (MPI_Datatype)(void *)&affine_type;
        at += pair_count(t, comm->rank, i);
    }
    x->in = blocks_of(at);
    x->out = blocks_of(at);
    x->c = (struct chempi_coll_call){.kind = t->kind,
                                     .comm = comm,
                                     .send.count = t->count,
                                     .recv.count = t->count,
                                     .send.type = &affine_type,
                                     .recv.type = &affine_type,
                                     .send.buf =
                                         t->is_in_place ? MPI_IN_PLACE : x->in,
                                     .recv.buf = x->out,
                                     .send.counts = {x->counts, true},
                                     .recv.counts = {x->counts, true},
                                     .send.displs = {x->displs, true},
                                     .recv.displs = {x->displs, true},
                                     .send.types = x->types,
                                     .recv.types = x->types};
}

static int test_alltoall(struct chempi_comm *comm, void *arg)
{
    const struct test_case *t = arg;
    int n = (int)comm->remote_size;
    struct exchange *x = malloc(sizeof(*x));
    int wrong;

    set_exchange(x, t, comm);
    for (int i = 0; i < n; i++)
        fill((t->is_in_place ? x->out : x->in) + x->at[i], comm->rank, i * 100,
             pair_count(t, comm->rank, i));
    wrong = run_call(&x->c);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < pair_count(t, comm->rank, r); i++)
            wrong +=
                differs(&x->out[x->at[r] + i], value(r, comm->rank * 100 + i));
    free(x->in);
    free(x->out);
    free(x);
    return wrong;
}

static int test_barrier(struct chempi_comm *comm, void *arg)
{
    struct chempi_coll_call c = {.kind = CHEMPI_COLL_BARRIER, .comm = comm};

    (void)arg;
    return run_call(&c);
}

/* ---- all cases ---- */

static void check_here(int n, fake_rank_fn *fn, struct test_case *t)
{
    int wrong = fake_run(n, fn, t);

    cr_assert_eq(wrong, 0,
                 "%d wrong: kind %d, %d ranks %s, count %d, root %d, %s%s",
                 wrong, (int)t->kind, n, layout->name, t->count, t->root,
                 t->op == &user_op ? "in order" : "sum",
                 t->is_in_place ? ", in place" : "");
    cr_assert_eq(fake_leftovers(), 0);
}

static void check(int n, fake_rank_fn *fn, struct test_case *t)
{
    for (int i = 0; i < LAYOUTS; i++) {
        layout = &layouts[i];
        if (i == 0 || n == 2 || n == 9 || n == MAX_RANKS)
            check_here(n, fn, t);
    }
}

static void check_roots(int n, fake_rank_fn *fn, struct test_case *t)
{
    int roots[] = {0, n - 1, n / 2};

    for (int i = 0; i < 3; i++) {
        t->root = roots[i];
        check(n, fn, t);
    }
}

static void check_both(int n, fake_rank_fn *fn, struct test_case *t)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        t->is_in_place = in_place;
        check_roots(n, fn, t);
    }
}

static void check_ops(fake_rank_fn *fn, enum chempi_coll_kind kind,
                      const int *counts, int len)
{
    struct chempi_op *ops[] = {chempi_op_lookup(MPI_SUM), &user_op};

    for (int n = 1; n <= MAX_RANKS; n++)
        for (int k = 0; k < 2 * len; k++) {
            struct test_case t = {
                .kind = kind, .count = counts[k / 2], .op = ops[k % 2]};

            check_both(n, fn, &t);
        }
}

static void check_kind(fake_rank_fn *fn, enum chempi_coll_kind kind,
                       const int *counts, int len)
{
    for (int n = 1; n <= MAX_RANKS; n++)
        for (int k = 0; k < len; k++) {
            struct test_case t = {.kind = kind, .count = counts[k]};

            check_both(n, fn, &t);
        }
}

static const int small_and_large[] = {0, 1, 5, 1300};

TestSuite(algorithms, .init = fake_init, .timeout = 100);

Test(algorithms, barrier_ends_for_every_number_of_ranks)
{
    struct test_case t = {.kind = CHEMPI_COLL_BARRIER};

    for (int n = 1; n <= MAX_RANKS; n++)
        check(n, test_barrier, &t);
}

Test(algorithms, bcast_hands_the_roots_data_to_all)
{
    const int counts[] = {0, 1, 100, 20000, 50000};

    check_kind(test_bcast, CHEMPI_COLL_BCAST, counts, 5);
}

Test(algorithms, reduce_combines_in_the_order_of_ranks)
{
    check_ops(test_reduction, CHEMPI_COLL_REDUCE, small_and_large, 4);
}

Test(algorithms, allreduce_gives_all_the_same)
{
    check_ops(test_reduction, CHEMPI_COLL_ALLREDUCE, small_and_large, 4);
}

Test(algorithms, scan_and_exscan_combine_the_ranks_before)
{
    const int counts[] = {0, 1, 40};

    check_ops(test_reduction, CHEMPI_COLL_SCAN, counts, 3);
    check_ops(test_reduction, CHEMPI_COLL_EXSCAN, counts, 3);
}

Test(algorithms, long_scans_go_along_the_ranks_in_segments)
{
    const int ranks[] = {3, 8, MAX_RANKS};

    for (int k = 0; k < 24; k++) {
        struct test_case t = {
            .kind = k % 2 ? CHEMPI_COLL_SCAN : CHEMPI_COLL_EXSCAN,
            .count = 18000,
            .op = k / 2 % 2 ? chempi_op_lookup(MPI_SUM) : &user_op,
            .is_in_place = k / 4 % 2};

        fake_spread(1 + k % 3);
        check(ranks[k / 8], test_reduction, &t);
    }
}

Test(algorithms, scans_on_one_node_go_along_the_ranks_from_32_kib_on)
{
    struct test_case t = {.kind = CHEMPI_COLL_SCAN,
                          .count = 4096, /* of 8 bytes */
                          .op = chempi_op_lookup(MPI_SUM)};

    layout = &layouts[0];
    for (int n = 3; n <= MAX_RANKS; n++) {
        fake_spread(1);
        (void)fake_sent();
        check_here(n, test_reduction, &t);
        cr_expect_eq(fake_sent(), (n - 1) * 4, "segments of 8 KiB");
        fake_spread(2);
        check_here(n, test_reduction, &t);
        cr_expect_neq(fake_sent(), (n - 1) * 4, "a chain between nodes");
    }
}

/* Does a step write what a message is still sent from? */
static bool is_any_overwritten(const struct chempi_coll_sched *s)
{
    const void *sent[CHEMPI_COLL_WINDOW + 1];
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->count; i++) {
        const struct chempi_coll_step *step = &s->steps[i];

        for (uint32_t k = 0; step->kind != CHEMPI_COLL_SEND && k < n; k++)
            if (step->dst == sent[k])
                return true;
        if (step->kind == CHEMPI_COLL_SEND && n < CHEMPI_COLL_WINDOW)
            sent[n++] = step->src;
        if (step->has_fence)
            n = 0;
    }
    return false;
}

/* Of so many ranks that doubling pays, whose memory is for one slice; nothing
 * is done. */
Test(algorithms, a_slice_of_a_scan_waits_until_the_last_one_has_left)
{
    enum { RANKS = 2048, COUNT = 17 << 17 }; /* of 8 bytes */
    static char in[1], out[1];
    struct chempi_comm comm = {.size = RANKS, .remote_size = RANKS};
    struct chempi_coll_call c = {.kind = CHEMPI_COLL_SCAN,
                                 .comm = &comm,
                                 .op = chempi_op_lookup(MPI_SUM),
                                 .send.buf = in,
                                 .send.count = COUNT,
                                 .recv.buf = out,
                                 .recv.count = COUNT};

    c.send.type = chempi_datatype_lookup(MPI_INT64_T);
    c.recv.type = c.send.type;
    for (int k = 0; k < 4; k++) {
        struct chempi_coll_sched s;

        c.kind = k % 2 ? CHEMPI_COLL_SCAN : CHEMPI_COLL_EXSCAN;
        comm.rank = k / 2 * (RANKS - 1);
        chempi_coll_sched_init(&s, &comm, 1);
        chempi_coll_build(&s, &c);
        cr_assert_eq(s.error, MPI_SUCCESS);
        cr_expect_not(is_any_overwritten(&s), "rank %d", comm.rank);
        chempi_coll_sched_fini(&s);
    }
}

Test(algorithms, long_scans_of_two_go_in_long_segments)
{
    const int counts[] = {18000, 33000, 90001, 170000}; /* of 8 bytes */

    for (int k = 0; k < 32; k++) {
        struct test_case t = {
            .kind = k % 2 ? CHEMPI_COLL_SCAN : CHEMPI_COLL_EXSCAN,
            .count = counts[k / 8],
            .op = k / 2 % 2 ? chempi_op_lookup(MPI_SUM) : &user_op,
            .is_in_place = k / 4 % 2};

        check(2, test_reduction, &t);
    }
}

Test(algorithms, long_reductions_of_two_go_in_segments)
{
    const int counts[] = {33000, 90001}; /* of 8 bytes */

    for (int k = 0; k < 4; k++) {
        struct test_case t = {.kind = CHEMPI_COLL_REDUCE,
                              .count = counts[k / 2],
                              .op =
                                  k % 2 ? chempi_op_lookup(MPI_SUM) : &user_op};

        check_both(2, test_reduction, &t);
    }
}

Test(algorithms, reduce_scatter_keeps_every_rank_its_part)
{
    const int counts[] = {0, 1, 400};

    check_ops(test_reduce_scatter, CHEMPI_COLL_REDUCE_SCATTER, counts, 3);
    check_ops(test_reduce_scatter, CHEMPI_COLL_REDUCE_SCATTER_BLOCK, counts, 3);
}

Test(algorithms, gather_and_allgather_collect_in_the_order_of_ranks)
{
    check_kind(test_gather, CHEMPI_COLL_GATHER, small_and_large, 4);
    check_kind(test_gather, CHEMPI_COLL_GATHERV, small_and_large, 4);
    check_kind(test_gather, CHEMPI_COLL_ALLGATHER, small_and_large, 4);
    check_kind(test_gather, CHEMPI_COLL_ALLGATHERV, small_and_large, 4);
}

Test(algorithms, scatter_deals_out_in_the_order_of_ranks)
{
    check_kind(test_scatter, CHEMPI_COLL_SCATTER, small_and_large, 4);
    check_kind(test_scatter, CHEMPI_COLL_SCATTERV, small_and_large, 4);
}

Test(algorithms, alltoall_exchanges_blocks)
{
    const int counts[] = {0, 1, 20, 90};

    check_kind(test_alltoall, CHEMPI_COLL_ALLTOALL, counts, 4);
    check_kind(test_alltoall, CHEMPI_COLL_ALLTOALLV, counts, 4);
    check_kind(test_alltoall, CHEMPI_COLL_ALLTOALLW, counts, 4);
}

/* ---- a rank without memory ---- */

/* All ranks end, and nothing is left under way; who had no memory says so.
 * Whether it ran out of any. */
static bool starve(int n, fake_rank_fn *fn, struct test_case *t, int rank,
                   int pieces)
{
    starving = (struct starving){.rank = rank, .pieces = pieces};
    (void)fake_run(n, fn, t);
    cr_assert_eq(fake_leftovers(), 0);
    cr_assert_eq(starving.rc == MPI_ERR_NO_MEM, starving.is_starved,
                 "%d: kind %d, %d ranks %s, count %d, rank %d, %d pieces",
                 starving.rc, (int)t->kind, n, layout->name, t->count, rank,
                 pieces);
    starving.rank = -1;
    return starving.is_starved;
}

static int starve_each(fake_rank_fn *fn, struct test_case *t)
{
    const int sizes[] = {2, 9, MAX_RANKS};
    int starved = 0;

    for (int i = 0; i < 3 * LAYOUTS; i++) {
        int n = sizes[i % 3];

        layout = &layouts[i / 3];
        for (int rank = 0; rank < n; rank += n / 3 + 1)
            for (int pieces = 0; pieces < 2; pieces++)
                if (starve(n, fn, t, rank, pieces))
                    starved++;
                else
                    break;
    }
    return starved;
}

static const struct poor {
    enum chempi_coll_kind kind;
    fake_rank_fn *fn;
    bool is_ordered; /* the operation does not commute */
    int count;
} poor[] = {
    {CHEMPI_COLL_REDUCE, test_reduction, false, 300},
    {CHEMPI_COLL_REDUCE, test_reduction, true, 300},
    {CHEMPI_COLL_ALLREDUCE, test_reduction, false, 300},
    {CHEMPI_COLL_ALLREDUCE, test_reduction, false, 3000},
    {CHEMPI_COLL_ALLREDUCE, test_reduction, true, 300},
    {CHEMPI_COLL_SCAN, test_reduction, false, 300},
    {CHEMPI_COLL_SCAN, test_reduction, true, 18000},
    {CHEMPI_COLL_EXSCAN, test_reduction, false, 300},
    {CHEMPI_COLL_EXSCAN, test_reduction, false, 18000},
    {CHEMPI_COLL_REDUCE_SCATTER, test_reduce_scatter, false, 100},
    {CHEMPI_COLL_REDUCE_SCATTER, test_reduce_scatter, true, 100},
    {CHEMPI_COLL_REDUCE_SCATTER_BLOCK, test_reduce_scatter, false, 400},
    {CHEMPI_COLL_GATHER, test_gather, false, 100},
    {CHEMPI_COLL_GATHERV, test_gather, false, 100},
    {CHEMPI_COLL_SCATTER, test_scatter, false, 100},
    {CHEMPI_COLL_SCATTERV, test_scatter, false, 100},
    {CHEMPI_COLL_ALLGATHER, test_gather, false, 5},
    {CHEMPI_COLL_ALLGATHER, test_gather, false, 1300},
    {CHEMPI_COLL_ALLGATHERV, test_gather, false, 5},
    {CHEMPI_COLL_ALLTOALL, test_alltoall, false, 1},
    {CHEMPI_COLL_ALLTOALL, test_alltoall, false, 90},
    {CHEMPI_COLL_ALLTOALLW, test_alltoall, false, 20},
};

Test(algorithms, nobody_waits_for_a_rank_without_memory)
{
    for (size_t i = 0; i < sizeof(poor) / sizeof(poor[0]); i++) {
        struct test_case t = {
            .kind = poor[i].kind,
            .count = poor[i].count,
            .op = poor[i].is_ordered ? &user_op : chempi_op_lookup(MPI_SUM)};

        cr_assert_gt(starve_each(poor[i].fn, &t), 0, "kind %d, count %d",
                     (int)t.kind, t.count);
    }
}
