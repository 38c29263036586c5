/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers of non-blocking collectives wrap: a task (node_task.h) begins though
 * the one before was more than half of all numbers ago, and an operation in a
 * cell though it is as long ago that anybody needed one.
 */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/coll/node/node.h"
#include "tests/mpi/check.h"

enum { COUNT = 30000, SHORT = 40, TURNS = 4, AHEAD = 300 };
#define HALF (UINT32_C(1) << 31)

/* As if so many operations had been, and the last that needed a cell had seen
 * so many of them end. */
static void skip_to(uint32_t number, uint32_t seen)
{
    struct chempi_comm *comm = chempi_comm_lookup(MPI_COMM_WORLD);
    struct chempi_coll_state *st = comm->coll;

    CHECK_OR_DIE(st && st->later_cells > 0, "no area");
    st->later.started = number;
    st->later.begun = number;
    st->later.all_finished = seen;
    atomic_store(&st->later.finished, number);
    atomic_store(&st->later.ended[st->rank].number, number);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void broadcast(int id)
{
    static int data[COUNT];

    for (int i = 0; i < COUNT; i++)
        data[i] = check_rank() == 0 ? id + i : -1;
    MPI_Bcast(data, COUNT, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        CHECK_OR_DIE(data[i] == id + i, "%d is %d", i, data[i]);
}

static void barriers(void)
{
    MPI_Request request;

    for (int i = 0; i < SHORT; i++) {
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* Nobody writes to a cell that others still read. */
static void run_ahead(void)
{
    static MPI_Request requests[AHEAD];
    static int data[AHEAD];
    const int is_root = check_rank() == 0;

    for (int i = 0; i < AHEAD; i++)
        data[i] = is_root ? i : -1;
    if (!is_root)
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < AHEAD; i++)
        MPI_Ibcast(&data[i], 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[i]);
    for (int i = 1; is_root && i < check_size(); i++)
        MPI_Send(NULL, 0, MPI_INT, i, 0, MPI_COMM_WORLD);
    MPI_Waitall(AHEAD, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < AHEAD; i++)
        CHECK_OR_DIE(data[i] == i, "%d is %d", i, data[i]);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    skip_to(HALF - SHORT / 2, HALF - SHORT / 2);
    for (int turn = 0; turn < TURNS; turn++) {
        barriers();
        broadcast(turn);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    skip_to(HALF + 2 * AHEAD, AHEAD);
    run_ahead();
    return check_finish();
}
