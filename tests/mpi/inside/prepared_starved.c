/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that has no memory for the state of a persistent operation, more often
 * than the node has areas for these: later ones have areas all the same.
 */
#include <errno.h>

#include "common/base/sys.h"
#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/comm/comm.h"
#include "tests/mpi/check.h"

enum { TIMES = 100 };

static struct {
    bool is_armed;
    int refused;
} memory;

static void *take_zeroed(size_t n, size_t len)
{
    if (!memory.is_armed || n * len < sizeof(struct chempi_coll_state))
        return calloc(n, len);
    memory.is_armed = false;
    memory.refused++;
    errno = ENOMEM;
    return NULL;
}

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
    struct chempi_sys rigged = chempi_sys_libc;

    rigged.calloc = take_zeroed;
    check_start(&argc, &argv);
    chempi_sys = &rigged;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < TIMES; i++) {
        MPI_Request req;

        memory.is_armed = check_rank() == 1;
        CHECK_OR_DIE(!MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &req),
                     "MPI_Barrier_init");
        memory.is_armed = false;
        CHECK_OR_DIE(!MPI_Start(&req) && !MPI_Wait(&req, MPI_STATUS_IGNORE),
                     "a barrier by messages");
        MPI_Request_free(&req);
    }
    if (check_rank() == 1)
        CHECK_OR_DIE(memory.refused == TIMES, "%d refused", memory.refused);
    CHECK_OR_DIE(has_area(), "areas are lost");
    chempi_sys = &chempi_sys_libc;
    return check_finish();
}
