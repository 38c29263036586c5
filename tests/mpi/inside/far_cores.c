/* SPDX-License-Identifier: BSD-3-Clause */
/* In each exchange of large blocks, blocking, non-blocking or persistent,
 * members look how far cores are (distance.h). */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/coll/node/cores/distance.h"
#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/locality/affinity.h"
#include "tests/mpi/check.h"

enum {
    RANKS_MAX = 8,
    LOOK_POINTS = 20,  /* neither the least nor the most */
    LOOK_COUNT = 5000, /* so long that members spread over cores */
    LOOKS = 100,       /* exchanges after which members ask each other */
    LOOKS_MOST = 400000
};

enum form { BLOCKING, STARTED, PERSISTENT, FORMS };
static const char *const words[] = {"blocking", "non-blocking", "persistent"};

static int out[LOOK_COUNT * RANKS_MAX];
static int in[LOOK_COUNT * RANKS_MAX];

static struct chempi_yield_policy *crowd(void)
{
    return &chempi_comm_lookup(MPI_COMM_WORLD)->coll->crowd;
}

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

/* Do members learn anything? Who comes last is not always on another core. */
static bool is_learned_in(enum form form)
{
    _Atomic uint32_t *distance = crowd()->distance;
    MPI_Request request = MPI_REQUEST_NULL;
    int has_changed = 0;

    atomic_store(distance, LOOK_POINTS);
    MPI_Barrier(MPI_COMM_WORLD);
    if (form == PERSISTENT)
        MPI_Alltoall_init(out, LOOK_COUNT, MPI_INT, in, LOOK_COUNT, MPI_INT,
                          MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int i = 0; i < LOOKS_MOST && !has_changed; i++) {
        start(form, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (i % LOOKS == 0) {
            has_changed = atomic_load(distance) != LOOK_POINTS;
            MPI_Allreduce(MPI_IN_PLACE, &has_changed, 1, MPI_INT, MPI_MAX,
                          MPI_COMM_WORLD);
        }
    }
    if (form == PERSISTENT)
        MPI_Request_free(&request);
    return has_changed;
}

/* Where each rank has a core, or all have one, there is nothing to learn. */
static void check_looks(void)
{
    const bool is_crowd =
        !chempi_affinity_is_roomy() && chempi_affinity_cores() > 1;

    for (enum form form = 0; form < FORMS; form++)
        CHECK(!is_crowd || is_learned_in(form), "no looks in %s exchanges",
              words[form]);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    check_looks();
    return check_finish();
}
