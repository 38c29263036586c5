/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers of non-blocking collectives wrap: a task (node_task.h) begins though
 * the one before was more than half of all numbers ago.
 */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/coll/node/node.h"
#include "tests/mpi/check.h"

enum { COUNT = 30000, SHORT = 40, TURNS = 4 };

/* As if so many operations had been, none of them a task. */
static void skip_to(uint32_t number)
{
    struct chempi_comm *comm = chempi_comm_lookup(MPI_COMM_WORLD);
    struct chempi_coll_state *st = comm->coll;

    CHECK_OR_DIE(st && st->is_on && st->later_cells > 0, "no area");
    st->later.started = number;
    st->later.begun = number;
    st->later.all_finished = number;
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

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    skip_to((UINT32_C(1) << 31) - SHORT / 2);
    for (int turn = 0; turn < TURNS; turn++) {
        barriers();
        broadcast(turn);
    }
    return check_finish();
}
