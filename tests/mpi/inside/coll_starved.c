/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that runs out of memory in a collective operation gets an error, but
 * nobody waits for it for ever, and the next operation is right again: each
 * operation, blocking and not, on a communicator of all, a grid, and between
 * two halves, with each rank starved after some pieces of memory.
 */
#include "libchempi/didl/transport/request.h"
#include "tests/mpi/check.h"
#include "tests/mpi/inside/starve.h"

enum { LONG = 140000, MEDIUM = 60, SHORT = 3, PIECES = 3 };

/* ---- the operations ---- */

struct place {
    MPI_Comm comm;
    int size; /* of it, or of its other side; a grid's neighbours */
    int root; /* as this rank gives it */
};

static int in[LONG + 8]; /* an alltoall rounds up */
static int out[LONG * 8];
static int counts[8];
static int displs[8];

static int reduce(const struct place *p, int n, MPI_Request *r)
{
    return r ? MPI_Ireduce(in, out, n, MPI_INT, MPI_SUM, p->root, p->comm, r)
             : MPI_Reduce(in, out, n, MPI_INT, MPI_SUM, p->root, p->comm);
}

static int bcast(const struct place *p, int n, MPI_Request *r)
{
    return r ? MPI_Ibcast(out, n, MPI_INT, p->root, p->comm, r)
             : MPI_Bcast(out, n, MPI_INT, p->root, p->comm);
}

static int allreduce(const struct place *p, int n, MPI_Request *r)
{
    return r ? MPI_Iallreduce(in, out, n, MPI_INT, MPI_SUM, p->comm, r)
             : MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, p->comm);
}

static int gather(const struct place *p, int n, MPI_Request *r)
{
    return r ? MPI_Igather(in, n, MPI_INT, out, n, MPI_INT, p->root, p->comm, r)
             : MPI_Gather(in, n, MPI_INT, out, n, MPI_INT, p->root, p->comm);
}

static int gatherv(const struct place *p, int n, MPI_Request *r)
{
    for (int i = 0; i < p->size; i++) {
        counts[i] = n;
        displs[i] = i * n;
    }
    return r ? MPI_Igatherv(in, n, MPI_INT, out, counts, displs, MPI_INT,
                            p->root, p->comm, r)
             : MPI_Gatherv(in, n, MPI_INT, out, counts, displs, MPI_INT,
                           p->root, p->comm);
}

static int scatter(const struct place *p, int n, MPI_Request *r)
{
    return r ? MPI_Iscatter(out, n, MPI_INT, in, n, MPI_INT, p->root, p->comm,
                            r)
             : MPI_Scatter(out, n, MPI_INT, in, n, MPI_INT, p->root, p->comm);
}

/* The last rank's block is of those that go by the first member of its node. */
static int scattered(const struct place *p, int rank, int n)
{
    return rank == p->size - 1 && n > MEDIUM ? MEDIUM : n;
}

static int scatterv(const struct place *p, int n, MPI_Request *r)
{
    int rank;

    MPI_Comm_rank(p->comm, &rank);
    for (int i = 0; i < p->size; i++) {
        counts[i] = scattered(p, i, n);
        displs[i] = i * n;
    }
    n = scattered(p, rank, n);
    return r ? MPI_Iscatterv(out, counts, displs, MPI_INT, in, n, MPI_INT,
                             p->root, p->comm, r)
             : MPI_Scatterv(out, counts, displs, MPI_INT, in, n, MPI_INT,
                            p->root, p->comm);
}

static int allgather(const struct place *p, int n, MPI_Request *r)
{
    return r ? MPI_Iallgather(in, n, MPI_INT, out, n, MPI_INT, p->comm, r)
             : MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, p->comm);
}

static int alltoall(const struct place *p, int n, MPI_Request *r)
{
    n = n / p->size + 1;
    return r ? MPI_Ialltoall(in, n, MPI_INT, out, n, MPI_INT, p->comm, r)
             : MPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, p->comm);
}

static int reduce_scatter(const struct place *p, int n, MPI_Request *r)
{
    n = n / p->size + 1;
    return r ? MPI_Ireduce_scatter_block(in, out, n, MPI_INT, MPI_SUM, p->comm,
                                         r)
             : MPI_Reduce_scatter_block(in, out, n, MPI_INT, MPI_SUM, p->comm);
}

static int barrier(const struct place *p, int n, MPI_Request *r)
{
    (void)n;
    return r ? MPI_Ibarrier(p->comm, r) : MPI_Barrier(p->comm);
}

static int scan(const struct place *p, int n, MPI_Request *r)
{
    return r ? MPI_Iscan(in, out, n, MPI_INT, MPI_SUM, p->comm, r)
             : MPI_Scan(in, out, n, MPI_INT, MPI_SUM, p->comm);
}

static int exscan(const struct place *p, int n, MPI_Request *r)
{
    return r ? MPI_Iexscan(in, out, n, MPI_INT, MPI_SUM, p->comm, r)
             : MPI_Exscan(in, out, n, MPI_INT, MPI_SUM, p->comm);
}

static int near_gather(const struct place *p, int n, MPI_Request *r)
{
    return r ? MPI_Ineighbor_allgather(in, n, MPI_INT, out, n, MPI_INT, p->comm,
                                       r)
             : MPI_Neighbor_allgather(in, n, MPI_INT, out, n, MPI_INT, p->comm);
}

static int near_all(const struct place *p, int n, MPI_Request *r)
{
    n = n / p->size + 1;
    return r ? MPI_Ineighbor_alltoall(in, n, MPI_INT, out, n, MPI_INT, p->comm,
                                      r)
             : MPI_Neighbor_alltoall(in, n, MPI_INT, out, n, MPI_INT, p->comm);
}

typedef int operation(const struct place *p, int n, MPI_Request *r);

static operation *const everywhere[] = {
    bcast,    reduce,  allreduce, gather,   gatherv,        scatter,
    scatterv, barrier, allgather, alltoall, reduce_scatter, NULL};
static operation *const within[] = {scan, exscan, NULL};
static operation *const near[] = {near_gather, near_all, NULL};

/* ---- one case ---- */

static bool is_known(int code)
{
    int class = check_class(code);

    return class == MPI_SUCCESS || class == MPI_ERR_NO_MEM ||
           class == MPI_ERR_COUNT || class == MPI_ERR_TRUNCATE ||
           class == MPI_ERR_OTHER;
}

static int run(operation *op, const struct place *p, int n, bool is_blocking)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int code = op(p, n, is_blocking ? NULL : &request);
    int late = MPI_Wait(&request, MPI_STATUS_IGNORE);

    return code ? code : late;
}

/* Everybody has to be in step, on that communicator and with its way. */
static void check_next(const struct place *p, operation *op, int n,
                       bool is_blocking)
{
    CHECK(run(op, p, n, is_blocking) == MPI_SUCCESS, "the next operation");
}

static void starve(const struct place *p, operation *op, int n,
                   bool is_blocking, int who, int pieces)
{
    int code;

    check_next(p, op, n, is_blocking);
    starve_refused();
    if (check_rank() == who)
        starve_all(pieces);
    code = run(op, p, n, is_blocking);
    starve_end();
    CHECK(is_known(code), "code %d", code);
    CHECK(!code || check_rank() != who || starve_refused() > 0,
          "an error without a reason: %d", code);
    check_next(p, op, n, is_blocking);
}

/* What one without memory comes to; those that went before have left some, and
 * what needs no more than the library has is not starved. */
static bool is_starved(int code, int has_room)
{
    return check_class(code) == MPI_ERR_NO_MEM ||
           ((has_room || !getenv("CHEMPI_REQUEST_POOL")) &&
            code == MPI_SUCCESS);
}

/* Without memory from the first piece on: for one the library has room of
 * its own, where it may do without a schedule; the other one has that, if the
 * first is over, or is done in its call. */
static void starve_twice(const struct place *p, operation *op, int n, int who)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int is_over[2] = {0, 0};
    int codes[2];

    check_next(p, op, n, false);
    starve_refused();
    if (check_rank() == who)
        starve_all(0);
    for (int i = 0; i < 2; i++) {
        codes[i] = op(p, n, &requests[i]);
        if (!codes[i])
            MPI_Request_get_status(requests[i], &is_over[i], MPI_STATUS_IGNORE);
    }
    starve_end();
    for (int i = 0; i < 2; i++) {
        int late = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);

        if (!codes[i])
            codes[i] = late;
        CHECK(is_known(codes[i]), "code %d", codes[i]);
    }
    CHECK(check_rank() != who ||
              (is_starved(codes[0], true) &&
               is_starved(codes[1], is_over[0] || is_over[1])),
          "codes %d and %d", codes[0], codes[1]);
    CHECK(check_rank() != who || starve_refused() > 1 ||
              codes[0] == MPI_SUCCESS,
          "an error without a reason: %d", codes[0]);
    check_next(p, op, n, false);
}

static void starve_each(const struct place *p, operation *const *ops)
{
    operation *const *first = ops;

    for (; *ops; ops++)
        for (int who = 0; who < check_size(); who++)
            for (int i = 0; i < 4 * PIECES; i++)
                starve(p, *ops, i % 2 ? LONG : SHORT, i / 2 % 2, who, i / 4);
    for (ops = first; *ops; ops++)
        for (int who = 0; who < check_size(); who++)
            starve_twice(p, *ops, SHORT, who);
}

/* ---- where ---- */

static void set_up(struct place *p, int size)
{
    p->size = size;
    MPI_Comm_set_errhandler(p->comm, MPI_ERRORS_RETURN);
}

static MPI_Comm make_inter(void)
{
    MPI_Comm half;
    MPI_Comm inter;
    int is_high = check_rank() >= check_size() / 2;

    MPI_Comm_split(MPI_COMM_WORLD, is_high, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD,
                         is_high ? 0 : check_size() / 2, 1, &inter);
    MPI_Comm_free(&half);
    return inter;
}

static void starve_everywhere(void)
{
    struct place all = {.root = 1};
    struct place grid = {.root = 1};
    struct place inter = {.root = 0};
    const int periodic = 1;
    const int size = check_size();

    MPI_Comm_dup(MPI_COMM_WORLD, &all.comm);
    set_up(&all, size);
    starve_each(&all, everywhere);
    starve_each(&all, within);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &grid.comm);
    set_up(&grid, 2);
    starve_each(&grid, near);
    inter.comm = make_inter();
    set_up(&inter, size / 2);
    if (check_rank() < size / 2)
        inter.root = check_rank() == 0 ? MPI_ROOT : MPI_PROC_NULL;
    starve_each(&inter, everywhere);
    MPI_Comm_free(&all.comm);
    MPI_Comm_free(&grid.comm);
    MPI_Comm_free(&inter.comm);
}

int main(int argc, char **argv)
{
    starve_start((struct starve_sizes){512, sizeof(struct chempi_request)});
    check_start(&argc, &argv);
    check_need(2);
    starve_everywhere();
    return check_finish();
}
