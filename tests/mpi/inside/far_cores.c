/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchanges of large blocks when a member takes other cores for far ones
 * (distance.h): it is enough that one does; what others can copy they copy;
 * where somebody's blocks have gaps all go through rings. Each exchange,
 * blocking and not, is right.
 */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/coll/node/distance.h"
#include "libchempi/didl/coll/node/node.h"
#include "tests/mpi/check.h"

enum { COUNT = 8000, RANKS_MAX = 8, ROUNDS = 5, FAR_POINTS = 32 };

static int out[2 * COUNT * RANKS_MAX];
static int in[COUNT * RANKS_MAX];
static MPI_Datatype gaps; /* an int and as much again */

/* What this member thinks when the next exchange begins, which looks. */
static void think(bool is_far)
{
    struct chempi_comm *comm = chempi_comm_lookup(MPI_COMM_WORLD);

    atomic_store(&comm->coll->crowd.distance, is_far ? FAR_POINTS : 0);
}

/* Where the kernel copies nothing, rings are what there is. */
static bool is_refused(void)
{
    return chempi_comm_lookup(MPI_COMM_WORLD)->coll->is_refused;
}

static int value(int from, int to, int i)
{
    return from * 1000003 + to * 10007 + i;
}

static void fill(int stride)
{
    for (int m = 0; m < check_size(); m++)
        for (int i = 0; i < COUNT; i++)
            out[(m * COUNT + i) * stride] = value(check_rank(), m, i);
    for (int i = 0; i < COUNT * check_size(); i++)
        in[i] = -1;
}

static void exchange(bool has_gaps, bool is_blocking)
{
    const MPI_Datatype type = has_gaps ? gaps : MPI_INT;
    MPI_Request request;

    fill(has_gaps ? 2 : 1);
    if (is_blocking) {
        MPI_Alltoall(out, COUNT, type, in, COUNT, MPI_INT, MPI_COMM_WORLD);
    } else {
        MPI_Ialltoall(out, COUNT, type, in, COUNT, MPI_INT, MPI_COMM_WORLD,
                      &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int m = 0; m < check_size(); m++)
        for (int i = 0; i < COUNT; i++)
            CHECK_OR_DIE(in[m * COUNT + i] == value(m, check_rank(), i),
                         "%d from %d is %d", i, m, in[m * COUNT + i]);
}

/* Has the next exchange, as these members see it, gone through rings? */
static bool goes_by_rings(int who_is_far, int whose_has_gaps, bool is_blocking)
{
    const uint64_t before = chempi_coll_counted(CHEMPI_COLL_WAY_RINGS);

    think(check_rank() == who_is_far);
    exchange(check_rank() == whose_has_gaps, is_blocking);
    return chempi_coll_counted(CHEMPI_COLL_WAY_RINGS) > before;
}

static void check_exchanges(bool is_blocking)
{
    const int last = check_size() - 1;

    CHECK(goes_by_rings(-1, -1, is_blocking), "near cores");
    CHECK(!goes_by_rings(0, -1, is_blocking) || is_refused(),
          "far from member 0");
    CHECK(!goes_by_rings(last, -1, is_blocking) || is_refused(),
          "far from the last one");
    CHECK(goes_by_rings(last, 0, is_blocking), "gaps");
    CHECK(goes_by_rings(-1, -1, is_blocking), "near again");
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < ROUNDS; i++) {
        check_exchanges(true);
        check_exchanges(false);
    }
    MPI_Type_free(&gaps);
    return check_finish();
}
