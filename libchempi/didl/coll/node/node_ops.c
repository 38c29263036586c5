/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations in a node's shared memory: which is where; see node.h. */
#include "libchempi/didl/coll/node/shm_slot.h"

bool chempi_coll_node_run(struct chempi_coll_state *st,
                          const struct chempi_coll_call *c, int tag, int *rc)
{
    static chempi_coll_node_fn *const fns[CHEMPI_COLL_KIND_COUNT] = {
        [CHEMPI_COLL_BCAST] = chempi_coll_node_bcast,
        [CHEMPI_COLL_REDUCE] = chempi_coll_node_reduction,
        [CHEMPI_COLL_ALLREDUCE] = chempi_coll_node_reduction,
        [CHEMPI_COLL_GATHER] = chempi_coll_node_gather,
        [CHEMPI_COLL_GATHERV] = chempi_coll_node_gather,
        [CHEMPI_COLL_SCATTER] = chempi_coll_node_scatter,
        [CHEMPI_COLL_SCATTERV] = chempi_coll_node_scatter,
        [CHEMPI_COLL_ALLGATHER] = chempi_coll_node_allgather,
        [CHEMPI_COLL_ALLGATHERV] = chempi_coll_node_allgather,
        [CHEMPI_COLL_ALLTOALL] = chempi_coll_node_alltoall,
        [CHEMPI_COLL_ALLTOALLV] = chempi_coll_node_alltoall,
        [CHEMPI_COLL_ALLTOALLW] = chempi_coll_node_alltoall,
        [CHEMPI_COLL_REDUCE_SCATTER] = chempi_coll_node_reduction,
        [CHEMPI_COLL_REDUCE_SCATTER_BLOCK] = chempi_coll_node_reduction,
        [CHEMPI_COLL_SCAN] = chempi_coll_node_scan,
        [CHEMPI_COLL_EXSCAN] = chempi_coll_node_scan,
    };

    if (c->kind == CHEMPI_COLL_BARRIER) {
        *rc = chempi_coll_shm_slot_barrier(st);
        return true;
    }
    return fns[c->kind](st, c, tag, rc);
}

int chempi_coll_node_barrier(struct chempi_coll_state *st)
{
    return chempi_coll_shm_slot_barrier(st);
}
