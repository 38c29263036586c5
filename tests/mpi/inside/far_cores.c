/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In each exchange of large blocks, blocking, non-blocking or persistent,
 * members look how far cores are (distance.h). What they learn is unit-coll's:
 * on a busy machine nobody may read a line soon enough.
 *
 * Linked with looks that are counted.
 */
#include "common/base/clock.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/coll/node/cores/distance.h"
#include "libchempi/didl/locality/affinity.h"
#include "tests/mpi/check.h"
#include "tests/mpi/inside/looks.h"

enum {
    RANKS_MAX = 8,
    LOOK_COUNT = 5000, /* so long that members spread over cores */
    TRIES = 100,       /* exchanges after which members ask each other */
    TRIES_MOST = 20000
};

enum form { BLOCKING, STARTED, PERSISTENT, FORMS };
static const char *const words[] = {"blocking", "non-blocking", "persistent"};

static int out[LOOK_COUNT * RANKS_MAX];
static int in[LOOK_COUNT * RANKS_MAX];

static void start(enum form form, MPI_Request *request)
{
    if (form == BLOCKING)
        MPI_Alltoall(out, LOOK_COUNT, MPI_INT, in, LOOK_COUNT, MPI_INT,
                     MPI_COMM_WORLD);
    else if (form == STARTED)
        MPI_Ialltoall(out, LOOK_COUNT, MPI_INT, in, LOOK_COUNT, MPI_INT,
                      MPI_COMM_WORLD, request);
    else
        MPI_Start(request);
}

/* Does anybody look? Who comes last is not always on another core. */
static bool is_looked_in(enum form form)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int has_looked = 0;

    if (form == PERSISTENT)
        MPI_Alltoall_init(out, LOOK_COUNT, MPI_INT, in, LOOK_COUNT, MPI_INT,
                          MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int k = 0; k < TRIES_MOST / TRIES && !has_looked; k++) {
        looks.since_ns = chempi_clock_ns();
        MPI_Barrier(MPI_COMM_WORLD);
        looks.count = 0; /* those of the barrier */
        for (int i = 0; i < TRIES; i++) {
            start(form, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        looks.since_ns = 0;
        has_looked = looks.count > 0;
        MPI_Allreduce(MPI_IN_PLACE, &has_looked, 1, MPI_INT, MPI_MAX,
                      MPI_COMM_WORLD);
    }
    if (form == PERSISTENT)
        MPI_Request_free(&request);
    return has_looked;
}

/* Where each rank has a core, or all have one, there is nothing to learn. */
static void check_looks(void)
{
    const bool is_crowd =
        !chempi_affinity_is_roomy() && chempi_affinity_cores() > 1;

    for (enum form form = 0; form < FORMS; form++)
        CHECK(!is_crowd || is_looked_in(form), "no looks in %s exchanges",
              words[form]);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    check_looks();
    return check_finish();
}
