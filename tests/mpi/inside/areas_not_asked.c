/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A non-blocking operation of a communicator of several nodes, which gets no
 * area, does not look which way through an area it would go.
 *
 * Linked with a chempi_coll_node_is_for_workers() that is counted.
 */
#include "libchempi/didl/coll/node/shm_slot.h"
#include "tests/mpi/check.h"

enum { COUNT = 20000, TIMES = 3 };

static int looks;

bool __real_chempi_coll_node_is_for_workers(const struct chempi_coll_call *c);
bool __wrap_chempi_coll_node_is_for_workers(const struct chempi_coll_call *c);

bool __wrap_chempi_coll_node_is_for_workers(const struct chempi_coll_call *c)
{
    looks++;
    return __real_chempi_coll_node_is_for_workers(c);
}

static int in[COUNT];
static int out[COUNT];

int main(int argc, char **argv)
{
    MPI_Request req;
    MPI_Comm comm;
    bool is_one_node;

    check_start(&argc, &argv);
    check_need(3);
    is_one_node = check_is_one_node();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    looks = 0;
    for (int i = 0; i < TIMES; i++) {
        in[COUNT - 1] = check_rank() + i;
        MPI_Iallreduce(in, out, COUNT, MPI_INT, MPI_MAX, comm, &req);
        MPI_Wait(&req, MPI_STATUS_IGNORE);
        CHECK(out[COUNT - 1] == check_size() - 1 + i, "maximum %d",
              out[COUNT - 1]);
    }
    CHECK((looks > 0) == is_one_node, "%d looks", looks);
    MPI_Comm_free(&comm);
    return check_finish();
}
