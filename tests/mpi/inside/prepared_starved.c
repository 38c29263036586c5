/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that has no memory for the state of a persistent operation, more often
 * than the node has areas for these: later ones have areas all the same.
 */
#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/comm/comm.h"
#include "tests/mpi/check.h"
#include "tests/mpi/inside/starve.h"

enum { TIMES = 100 };

/* The way of a persistent operation; whether it has an area. */
static bool has_area(void)
{
    struct chempi_comm *comm = chempi_comm_lookup(MPI_COMM_WORLD);
    struct chempi_coll_state *own = chempi_coll_node_make_own(comm);
    int32_t area = own ? own->area : -1;
    bool has;

    CHECK_OR_DIE(own, "memory for a state");
    MPI_Bcast(&area, 1, MPI_INT32_T, 0, MPI_COMM_WORLD);
    has = chempi_coll_node_enter_own(comm, own, area);
    chempi_coll_node_release(own);
    return has;
}

int main(int argc, char **argv)
{
    int refused = 0;

    starve_start((struct starve_sizes){sizeof(struct chempi_coll_state), 0});
    check_start(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < TIMES; i++) {
        MPI_Request req;

        if (check_rank() == 1)
            starve_one(0);
        CHECK_OR_DIE(!MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &req),
                     "MPI_Barrier_init");
        starve_end();
        refused += starve_refused();
        CHECK_OR_DIE(!MPI_Start(&req) && !MPI_Wait(&req, MPI_STATUS_IGNORE),
                     "a barrier by messages");
        MPI_Request_free(&req);
    }
    if (check_rank() == 1)
        CHECK_OR_DIE(refused == TIMES, "%d refused", refused);
    CHECK_OR_DIE(has_area(), "areas are lost");
    return check_finish();
}
