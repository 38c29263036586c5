/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that probes a communicator in a lane of its own, and waits for all,
 * does not hold up threads of the first lane while somebody is in that one.
 */
#include <pthread.h>
#include <sched.h>

#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/transport/lane.h"
#include "tests/mpi/check.h"

enum { LATE = 1, TURN, TURNS = 100 };

static MPI_Comm own;

static void *probe(void *arg)
{
    MPI_Status status;

    MPI_Probe(MPI_ANY_SOURCE, LATE, own, &status);
    CHECK(status.MPI_SOURCE == 1, "from rank %d", status.MPI_SOURCE);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, LATE, own, MPI_STATUS_IGNORE);
    return arg;
}

static void take_turns(void)
{
    for (int i = 0; i < TURNS; i++) {
        int got = -1;

        MPI_Sendrecv(&i, 1, MPI_INT, 1 - check_rank(), TURN, &got, 1, MPI_INT,
                     1 - check_rank(), TURN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(got == i, "turn %d: %d", i, got);
    }
}

int main(int argc, char **argv)
{
    struct chempi_lane *lane;
    pthread_t thread;

    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK_OR_DIE(check_size() == 2, "two ranks");
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    lane = chempi_comm_lookup(own)->lane;
    CHECK_OR_DIE(lane->number > 0, "it is in the first lane");
    if (check_rank() == 1) {
        take_turns();
        MPI_Send(NULL, 0, MPI_BYTE, 0, LATE, own);
    } else {
        CHECK_OR_DIE(pthread_create(&thread, NULL, probe, NULL) == 0,
                     "no thread");
        while (atomic_load(&lane->joined) == 0)
            (void)sched_yield();
        chempi_lane_lock(lane);
        take_turns();
        chempi_lane_unlock(lane);
        pthread_join(thread, NULL);
    }
    MPI_Comm_free(&own);
    return check_finish();
}
