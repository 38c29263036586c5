/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchanges of large blocks when a member takes other cores for far ones
 * (distance.h): it is enough that one does; what others can copy they copy;
 * where somebody sends or receives blocks with gaps, or short ones, all go
 * through rings. Each exchange, blocking and not, is right.
 */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/coll/node/distance.h"
#include "libchempi/didl/coll/node/node.h"
#include "tests/mpi/check.h"

enum {
    COUNT = 8000, /* ints of a block */
    LEAST = 4096, /* of one that is not short */
    RANKS_MAX = 8,
    ROUNDS = 5,
    FAR_POINTS = 32
};

static int out[2 * COUNT * RANKS_MAX];
static int in[2 * COUNT * RANKS_MAX];
static MPI_Datatype gaps; /* an int and as much again */

static _Atomic uint32_t *distance(void)
{
    return &chempi_comm_lookup(MPI_COMM_WORLD)->coll->crowd.distance;
}

/* What this member thinks when the next exchange begins, which looks, if it is
 * blocking. */
static uint32_t points(bool is_far)
{
    return is_far ? FAR_POINTS : 0;
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

/* Of members; -1: none. */
struct exchange {
    int far;           /* who takes others for far ones */
    int sends_gaps;    /* whose blocks have gaps, */
    int receives_gaps; /* as they are sent or received */
    int count;
};

static void fill(int count, int stride)
{
    for (int m = 0; m < check_size(); m++)
        for (int i = 0; i < count; i++)
            out[(m * count + i) * stride] = value(check_rank(), m, i);
    for (int i = 0; i < 2 * COUNT * check_size(); i++)
        in[i] = -1;
}

static void check_received(int count, int stride)
{
    for (int m = 0; m < check_size(); m++)
        for (int i = 0; i < count; i++) {
            const int *at = &in[(m * count + i) * stride];

            CHECK_OR_DIE(*at == value(m, check_rank(), i), "%d from %d is %d",
                         i, m, *at);
            CHECK_OR_DIE(stride == 1 || at[1] == -1, "gap %d from %d", i, m);
        }
}

static void do_exchange(const struct exchange *x, bool is_blocking)
{
    const bool has_out_gaps = check_rank() == x->sends_gaps;
    const bool has_in_gaps = check_rank() == x->receives_gaps;
    const MPI_Datatype out_type = has_out_gaps ? gaps : MPI_INT;
    const MPI_Datatype in_type = has_in_gaps ? gaps : MPI_INT;
    MPI_Request request;

    fill(x->count, has_out_gaps ? 2 : 1);
    if (is_blocking) {
        MPI_Alltoall(out, x->count, out_type, in, x->count, in_type,
                     MPI_COMM_WORLD);
    } else {
        MPI_Ialltoall(out, x->count, out_type, in, x->count, in_type,
                      MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check_received(x->count, has_in_gaps ? 2 : 1);
}

/* Has the next exchange, as these members see it, gone through rings? */
static bool goes_by_rings(struct exchange x, bool is_blocking)
{
    const uint64_t before = chempi_coll_counted(CHEMPI_COLL_WAY_RINGS);

    atomic_store(distance(), points(check_rank() == x.far));
    do_exchange(&x, is_blocking);
    CHECK(is_blocking || *distance() == points(check_rank() == x.far),
          "looks at old lines");
    return chempi_coll_counted(CHEMPI_COLL_WAY_RINGS) > before;
}

static void check_exchanges(bool is_blocking)
{
    const int last = check_size() - 1;
    const struct exchange near = {-1, -1, -1, COUNT};

    CHECK(goes_by_rings(near, is_blocking), "near cores");
    CHECK(!goes_by_rings((struct exchange){0, -1, -1, COUNT}, is_blocking) ||
              is_refused(),
          "far from member 0");
    CHECK(!goes_by_rings((struct exchange){last, -1, -1, LEAST}, is_blocking) ||
              is_refused(),
          "far from the last one");
    CHECK(
        goes_by_rings((struct exchange){last, -1, -1, LEAST - 1}, is_blocking),
        "short blocks");
    CHECK(goes_by_rings((struct exchange){last, 0, -1, COUNT}, is_blocking),
          "gaps that are sent");
    CHECK(goes_by_rings((struct exchange){last, -1, 0, COUNT}, is_blocking),
          "gaps that are received");
    CHECK(goes_by_rings(near, is_blocking), "near again");
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
