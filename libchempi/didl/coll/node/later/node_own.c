/* SPDX-License-Identifier: BSD-3-Clause */
/* How members agree on the area of a persistent operation; see node_own.h. */
#include "libchempi/didl/coll/node/later/node_own.h"

#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/coll/sched.h"

/* What member 0 says, and the least of what all say. */
static int tell_area(struct chempi_comm *comm, int32_t *number)
{
    return chempi_coll_do_flat(&(struct chempi_coll_call){
        .kind = CHEMPI_COLL_BCAST,
        .comm = comm,
        .recv.buf = number,
        .recv.count = 1,
        .recv.type = chempi_datatype_lookup(MPI_INT32_T),
    });
}

static int find_least(struct chempi_comm *comm, int32_t *number)
{
    return chempi_coll_do_flat(&(struct chempi_coll_call){
        .kind = CHEMPI_COLL_ALLREDUCE,
        .comm = comm,
        .op = chempi_op_lookup(MPI_MIN),
        .send.buf = MPI_IN_PLACE,
        .recv.buf = number,
        .recv.count = 1,
        .recv.type = chempi_datatype_lookup(MPI_INT32_T),
    });
}

bool chempi_node_own_share(struct chempi_comm *comm,
                           struct chempi_coll_state *own, int *rc)
{
    int32_t area = own ? own->area : -1;
    const bool is_told = tell_area(comm, &area) == MPI_SUCCESS;
    int32_t is_there = is_told && chempi_coll_node_enter_own(comm, own, area);

    *rc = find_least(comm, &is_there);
    if (CHEMPI_UNLIKELY(!is_told))
        chempi_coll_node_leave_own(comm, !*rc);
    return !*rc && is_there;
}
