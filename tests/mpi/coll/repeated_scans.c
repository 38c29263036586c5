/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scans and reductions in a row, of many amounts, so that what the ranks share
 * for them is gone through more than once and the first ranks run ahead of the
 * last: with an operation that does not commute, in place, with other
 * collectives in between, on several communicators by turns, and with elements
 * of any size.
 *
 * usage: chain [near]
 *
 * near: all ranks are on one node, which makes more scans a matter of a moment
 * (fewer of them for many ranks, which wait for each other's cores), and
 * different amounts of data an error that all later ranks get; with more than
 * two, some reductions must go the way of scans.
 */
#include "check.h"

#include <string.h>

enum { ROUNDS = 400, COMMS = 3, MOST = 30000 };

static const int counts[] = {1,   1,    2,    1, 509,  510,  511,  512, 3,
                             1,   1022, 1024, 0, 1,    4000, 8191, 5,   1,
                             257, MOST, 1,    1, 2044, 2046, 7,    64,  1};
#define COUNTS ((int)(sizeof(counts) / sizeof(counts[0])))

static struct check_affine element(int rank, int seed, int i)
{
    uint64_t mixed = check_mix((uint64_t)(rank * 1000003 + seed), (uint64_t)i);

    return (struct check_affine){(unsigned)mixed | 1, (unsigned)(mixed >> 32)};
}

/* Those of ranks [0, end) composed. */
static struct check_affine composed(int end, int seed, int i)
{
    struct check_affine sum = element(0, seed, i);
    int one = 1;

    for (int r = 1; r < end; r++) {
        struct check_affine next = element(r, seed, i);

        check_compose(&sum, &next, &one, NULL);
        sum = next;
    }
    return sum;
}

struct on {
    MPI_Comm comm;
    int rank;
    MPI_Datatype pair;
    MPI_Op compose;
};

static void scan(const struct on *on, int count, int seed)
{
    static struct check_affine in[MOST];
    static struct check_affine out[MOST];
    bool is_ex = seed % 3 == 0;
    bool is_in_place = seed % 5 < 2;
    const void *from = is_in_place ? MPI_IN_PLACE : in;
    int end = is_ex ? on->rank : on->rank + 1;
    int wrong = 0;

    for (int i = 0; i < count; i++)
        (is_in_place ? out : in)[i] = element(on->rank, seed, i);
    if (is_ex)
        MPI_Exscan(from, out, count, on->pair, on->compose, on->comm);
    else
        MPI_Scan(from, out, count, on->pair, on->compose, on->comm);
    /* Long ones are looked at here and there. */
    for (int i = 0; end > 0 && i < count; i += 1 + count / 600) {
        struct check_affine right = composed(end, seed, i);

        wrong += out[i].a != right.a || out[i].b != right.b;
    }
    CHECK(wrong == 0, "scan %d of %d: %d are wrong", seed, count, wrong);
}

/* All of them added, as two numbers each. */
static struct check_affine added(int size, int seed, int i)
{
    struct check_affine sum = {0, 0};

    for (int r = 0; r < size; r++) {
        struct check_affine next = element(r, seed, i);

        sum.a += next.a;
        sum.b += next.b;
    }
    return sum;
}

/* To any root, by an operation that commutes or by one that does not. */
static void reduce(const struct on *on, int count, int seed)
{
    static struct check_affine in[MOST];
    static struct check_affine out[MOST];
    bool commutes = seed % 4 != 0;
    bool is_in_place;
    int wrong = 0;
    int root;
    int size;

    MPI_Comm_size(on->comm, &size);
    root = seed / 3 % size;
    is_in_place = seed % 5 < 2 && on->rank == root;
    for (int i = 0; i < count; i++)
        (is_in_place ? out : in)[i] = element(on->rank, seed, i);
    if (commutes)
        MPI_Reduce(is_in_place ? MPI_IN_PLACE : in, out, 2 * count,
                   MPI_UNSIGNED, MPI_SUM, root, on->comm);
    else
        MPI_Reduce(is_in_place ? MPI_IN_PLACE : in, out, count, on->pair,
                   on->compose, root, on->comm);
    for (int i = 0; on->rank == root && i < count; i += 1 + count / 600) {
        struct check_affine right =
            commutes ? added(size, seed, i) : composed(size, seed, i);

        wrong += out[i].a != right.a || out[i].b != right.b;
    }
    CHECK(wrong == 0, "reduce %d of %d to %d: %d are wrong", seed, count, root,
          wrong);
}

/* Something else on the same communicator. */
static void intervene(const struct on *on, int seed)
{
    struct check_affine data = element(on->rank, seed, 0);
    int root = seed % 2;
    int size;

    MPI_Comm_size(on->comm, &size);
    if (root >= size)
        return;
    MPI_Bcast(&data, 1, on->pair, root, on->comm);
    CHECK(data.b == element(root, seed, 0).b, "bcast %d is wrong", seed);
    if (seed % 4 == 0)
        MPI_Barrier(on->comm);
}

static void scan_by_turns(struct on *ons)
{
    for (int k = 0; k < ROUNDS; k++) {
        const struct on *on = &ons[k / 7 % COMMS];

        scan(on, counts[k % COUNTS], k);
        if (k % 3 == 1)
            reduce(on, counts[k / 3 * 2 % COUNTS], k);
        if (k % 31 == 30)
            intervene(on, k);
    }
}

/* Short ones only: many fit into what is shared. */
static void scan_many(const struct on *on, int rounds)
{
    for (int k = 0; k < rounds; k++)
        scan(on, 1 + (k % 64 == 0), k);
}

/* ---- elements of any size ---- */

static int elem_len;

static void add_bytes(void *in, void *inout, int *len, MPI_Datatype *type)
{
    const unsigned char *f = in;
    unsigned char *g = inout;

    (void)type;
    for (int i = 0; i < *len * elem_len; i++)
        g[i] = (unsigned char)(f[i] + g[i]);
}

static void scan_elements(MPI_Comm comm, int len, int count)
{
    unsigned char *in = check_alloc((size_t)len * (size_t)count);
    unsigned char *out = check_alloc((size_t)len * (size_t)count);
    int rank = check_rank();
    int wrong = 0;
    MPI_Datatype type;
    MPI_Op op;

    elem_len = len;
    MPI_Type_contiguous(len, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(add_bytes, 1, &op);
    for (int i = 0; i < len * count; i++)
        in[i] = (unsigned char)(i + rank);
    MPI_Scan(in, out, count, type, op, comm);
    for (int i = 0; i < len * count; i++)
        wrong +=
            out[i] != (unsigned char)((rank + 1) * i + rank * (rank + 1) / 2);
    CHECK(wrong == 0, "%d elements of %d bytes: %d are wrong", count, len,
          wrong);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    free(in);
    free(out);
}

/* ---- different amounts ---- */

static void expect_error(int found, bool is_wrong, const char *what)
{
    int right = is_wrong ? MPI_ERR_COUNT : MPI_SUCCESS;

    CHECK(found == right, "%s: error %d", what, found);
}

/* Whoever comes after the one that differs is told; all goes on as before. */
static void differ(const struct on *on, int odd, int count, int other)
{
    struct check_affine *in = check_alloc(sizeof(*in) * MOST);
    struct check_affine *out = check_alloc(sizeof(*out) * MOST);
    int from = odd == 0 ? 1 : odd;
    int error;

    memset(in, 0, sizeof(*in) * MOST);
    error = MPI_Scan(in, out, on->rank == odd ? other : count, on->pair,
                     on->compose, on->comm);
    expect_error(error, on->rank >= from, "scan of different amounts");
    /* Rank 0 is the end of the way; short reductions go another one. */
    if (check_size() > 2 && count > 1000 && other > 1000) {
        error = MPI_Reduce(in, out, 2 * (on->rank == odd ? other : count),
                           MPI_UNSIGNED, MPI_SUM, 0, on->comm);
        if (on->rank == 0)
            expect_error(error, true, "reduce of different amounts");
    }
    /* Of two ranks, the long ones find nobody to tell. */
    if (check_size() > 2 || (count < 2000 && other < 2000)) {
        error = MPI_Exscan(in, out, on->rank == odd ? other : count, on->pair,
                           on->compose, on->comm);
        expect_error(error, on->rank >= from, "exscan of different amounts");
    }
    free(in);
    free(out);
}

static void different_amounts(const struct on *on)
{
    static const int pairs[][2] = {{1, 2},    {1, MOST},        {0, 1},
                                   {100, 99}, {MOST, MOST - 1}, {2000, 1100}};

    MPI_Comm_set_errhandler(on->comm, MPI_ERRORS_RETURN);
    for (int odd = 0; odd < check_size(); odd++)
        for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++) {
            differ(on, odd, pairs[k][0], pairs[k][1]);
            differ(on, odd, pairs[k][1], pairs[k][0]);
            scan(on, 1000, (int)k);
        }
}

/* Over nodes: all from the one that differs on are told, whichever phase of
 * the operation finds out, and all goes on as before. Every amount of a pair
 * goes the same way. */
static void differ_far(const struct on *on, int odd, int count, int other)
{
    struct check_affine *in = check_alloc(sizeof(*in) * MOST);
    struct check_affine *out = check_alloc(sizeof(*out) * MOST);
    int own = on->rank == odd ? other : count;
    int from = odd == 0 ? 1 : odd;

    memset(in, 0, sizeof(*in) * MOST);
    for (int is_ex = 0; is_ex < 2; is_ex++) {
        int error =
            is_ex ? MPI_Exscan(in, out, own, on->pair, on->compose, on->comm)
                  : MPI_Scan(in, out, own, on->pair, on->compose, on->comm);

        CHECK(on->rank < from || error != MPI_SUCCESS,
              "%s of %d, %d on rank %d: no error", is_ex ? "exscan" : "scan",
              count, other, odd);
    }
    free(in);
    free(out);
}

static void different_amounts_far(const struct on *on)
{
    static const int pairs[][2] = {{1, 2}, {10, 20}, {100, 99}, {5000, 4999}};

    MPI_Comm_set_errhandler(on->comm, MPI_ERRORS_RETURN);
    for (int odd = 0; odd < check_size(); odd++)
        for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++) {
            differ_far(on, odd, pairs[k][0], pairs[k][1]);
            differ_far(on, odd, pairs[k][1], pairs[k][0]);
            scan(on, 1000, (int)k);
        }
}

int main(int argc, char **argv)
{
    static const int lens[] = {3, 24, 1000, 4000, 4079, 4080, 4081, 9000};
    struct on on = {.comm = MPI_COMM_NULL};
    struct on ons[COMMS];
    bool is_near = argc > 1 && strcmp(argv[1], "near") == 0;

    check_start(&argc, &argv);
    MPI_Type_contiguous(2, MPI_UNSIGNED, &on.pair);
    MPI_Type_commit(&on.pair);
    MPI_Op_create(check_compose, 0, &on.compose);
    for (int i = 0; i < COMMS; i++) {
        ons[i] = on;
        MPI_Comm_split(MPI_COMM_WORLD, i == 1 ? check_rank() % 2 : 0,
                       i == 2 ? -check_rank() : 0, &ons[i].comm);
        MPI_Comm_rank(ons[i].comm, &ons[i].rank);
    }
    if (is_near && check_size() > 2)
        check_watch("chempi_coll_reductions_by_chain");
    scan_by_turns(ons);
    if (is_near && check_size() > 2)
        check_was_used();
    scan_many(&ons[0], !is_near ? 500 : check_size() > 4 ? 3000 : 10000);
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        scan_elements(MPI_COMM_WORLD, lens[i], 1);
        scan_elements(MPI_COMM_WORLD, lens[i], 50);
    }
    if (is_near)
        different_amounts(&ons[0]);
    if (argc > 1 && strcmp(argv[1], "far") == 0)
        different_amounts_far(&ons[0]);
    for (int i = 0; i < COMMS; i++)
        MPI_Comm_free(&ons[i].comm);
    MPI_Type_free(&on.pair);
    MPI_Op_free(&on.compose);
    return check_finish();
}
