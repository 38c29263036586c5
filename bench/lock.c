/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the lock of MPI_THREAD_MULTIPLE adds to a call while nobody else wants
 * it: the time of calls that take it once each, less that of the same calls
 * without it, in one process. Blocks of both kinds take turns, each in a
 * session of its own.
 *
 * usage: lock
 */
#include "bench.h"

#include <stdlib.h>

#define PAIRS 41 /* of blocks */
#define CALLS 2  /* in a step */
#define STEPS_MIN 1000

/* Nothing is sent, so that little else takes time. */
static double steps(MPI_Comm comm, int count)
{
    double start = MPI_Wtime();

    for (int i = 0; i < count; i++) {
        MPI_Request request;

        MPI_Irecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return (MPI_Wtime() - start) / count;
}

/* Seconds of one call. */
static double run_block(const char *level, double block_s)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Info info;
    double once;
    double took;

    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", level);
    MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Info_free(&info);
    MPI_Group_from_session_pset(session, "mpi://SELF", &group);
    MPI_Comm_create_from_group(group, "lock", MPI_INFO_NULL,
                               MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    once = steps(comm, STEPS_MIN);
    took = steps(comm, STEPS_MIN + (int)(block_s / once));
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return took / CALLS;
}

int main(void)
{
    const char *ms = getenv("BENCH_POINT_MS");
    const double block_s = (ms != NULL ? strtod(ms, NULL) : 20) / 1e3;
    const struct bench bench = {0};
    double added[PAIRS];

    for (int pair = 0; pair < PAIRS; pair++) {
        double with = 0;
        double without = 0;

        for (int turn = 0; turn < 2; turn++) {
            if ((turn + pair) % 2 == 1)
                with = run_block("MPI_THREAD_MULTIPLE", block_s);
            else
                without = run_block("MPI_THREAD_SINGLE", block_s);
        }
        added[pair] = (with - without) * 1e9;
    }
    bench_point(&bench, "lock", 0, bench_median(added, PAIRS), "ns");
    return 0;
}
