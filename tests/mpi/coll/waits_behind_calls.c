/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-blocking and persistent collectives whose waits come right behind their
 * calls, as those of blocking ones: many in a row, of lengths that take all
 * ways through a node's memory. Now and then a member comes late, or computes
 * between call and wait.
 */
#include "check.h"

enum { ROUNDS = 40, FEW = 18, WORK = 20000, MOST = 17000 };

static const int lengths[] = {1, 13, 500, 5000, MOST};
#define LENGTHS ((int)(sizeof(lengths) / sizeof(lengths[0])))

enum kind {
    BARRIER,
    BCAST,
    GATHER,
    ALLREDUCE,
    ALLTOALLV,
    SCAN,
    SCATTER,
    KINDS
};

static int rank;
static int size;
static int *in;
static int *out;
static int *counts;
static int *displs;

static void compute(int steps)
{
    static volatile int sink;

    for (int i = 0; i < steps; i++)
        sink = i;
}

/* n ints of each, for each where they differ. */
static void begin(enum kind kind, int n, int root, MPI_Request *r)
{
    const MPI_Comm comm = MPI_COMM_WORLD;

    switch (kind) {
    case BARRIER:
        MPI_Ibarrier(comm, r);
        break;
    case BCAST:
        MPI_Ibcast(rank == root ? in : out, n, MPI_INT, root, comm, r);
        break;
    case GATHER:
        MPI_Igather(in, n, MPI_INT, out, n, MPI_INT, root, comm, r);
        break;
    case ALLREDUCE:
        MPI_Iallreduce(in, out, n, MPI_INT, MPI_SUM, comm, r);
        break;
    case ALLTOALLV:
        MPI_Ialltoallv(in, counts, displs, MPI_INT, out, counts, displs,
                       MPI_INT, comm, r);
        break;
    case SCAN:
        MPI_Iscan(in, out, n, MPI_INT, MPI_SUM, comm, r);
        break;
    default:
        MPI_Iscatter(in, n, MPI_INT, out, n, MPI_INT, root, comm, r);
    }
}

static void prepare(enum kind kind, int n, int root, MPI_Request *r)
{
    const MPI_Comm comm = MPI_COMM_WORLD;
    const MPI_Info info = MPI_INFO_NULL;

    switch (kind) {
    case BARRIER:
        MPI_Barrier_init(comm, info, r);
        break;
    case BCAST:
        MPI_Bcast_init(rank == root ? in : out, n, MPI_INT, root, comm, info,
                       r);
        break;
    case GATHER:
        MPI_Gather_init(in, n, MPI_INT, out, n, MPI_INT, root, comm, info, r);
        break;
    case ALLREDUCE:
        MPI_Allreduce_init(in, out, n, MPI_INT, MPI_SUM, comm, info, r);
        break;
    case ALLTOALLV:
        MPI_Alltoallv_init(in, counts, displs, MPI_INT, out, counts, displs,
                           MPI_INT, comm, info, r);
        break;
    case SCAN:
        MPI_Scan_init(in, out, n, MPI_INT, MPI_SUM, comm, info, r);
        break;
    default:
        MPI_Scatter_init(in, n, MPI_INT, out, n, MPI_INT, root, comm, info, r);
    }
}

static int value(int round, int from, int i)
{
    return round * 7 + from * 3 + i;
}

static void fill(int round, int n)
{
    for (int i = 0; i < n * size; i++) {
        in[i] = value(round, rank, i);
        out[i] = -1;
    }
}

/* Of members [0, last] */
static int sum(int round, int last, int i)
{
    int total = 0;

    for (int m = 0; m <= last; m++)
        total += value(round, m, i);
    return total;
}

/* What element i of member m's block in the result is; false: nothing. */
static bool expect(enum kind kind, int round, int n, int root, int m, int i,
                   int *number)
{
    switch (kind) {
    case BCAST:
        *number = value(round, root, i);
        return m == 0 && rank != root;
    case ALLREDUCE:
        *number = sum(round, size - 1, i);
        return m == 0;
    case SCAN:
        *number = sum(round, rank, i);
        return m == 0;
    case SCATTER:
        *number = value(round, root, rank * n + i);
        return m == 0;
    case GATHER:
        *number = value(round, m, i);
        return rank == root;
    case ALLTOALLV:
        *number = value(round, m, rank * n + i);
        return true;
    default:
        return false;
    }
}

static void verify(enum kind kind, int round, int n, int root)
{
    int number;
    int wrong = 0;

    for (int m = 0; m < size; m++)
        for (int i = 0; i < n; i++)
            if (expect(kind, round, n, root, m, i, &number))
                wrong += out[m * n + i] != number;
    CHECK(wrong == 0, "kind %d, %d ints, round %d: %d are wrong", (int)kind, n,
          round, wrong);
}

static void run(enum kind kind, int n, int is_persistent)
{
    MPI_Request r;
    const int fixed = n % size;
    const int rounds = n < 1000 ? ROUNDS : FEW;

    if (is_persistent)
        prepare(kind, n, fixed, &r);
    for (int round = 0; round < rounds; round++) {
        const int root = is_persistent ? fixed : (round / 8) % size;

        fill(round, n);
        if (round % 11 == rank)
            compute(WORK);
        if (is_persistent)
            MPI_Start(&r);
        else
            begin(kind, n, root, &r);
        if (round % 13 == rank)
            compute(WORK);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        verify(kind, round, n, root);
    }
    if (is_persistent)
        MPI_Request_free(&r);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    rank = check_rank();
    size = check_size();
    in = check_alloc(sizeof(int) * (size_t)(MOST * size));
    out = check_alloc(sizeof(int) * (size_t)(MOST * size));
    counts = check_alloc(sizeof(int) * (size_t)size);
    displs = check_alloc(sizeof(int) * (size_t)size);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int l = 0; l < (size > 4 ? LENGTHS - 1 : LENGTHS); l++) {
        for (int m = 0; m < size; m++) {
            counts[m] = lengths[l];
            displs[m] = m * lengths[l];
        }
        for (int kind = 0; kind < KINDS; kind++)
            for (int is = 0; is < 2; is++)
                run((enum kind)kind, lengths[l], is);
    }
    free(in);
    free(out);
    free(counts);
    free(displs);
    return check_finish();
}
