/* SPDX-License-Identifier: BSD-3-Clause */
/* Which file has the algorithm of a call. */
#include "libchempi/didl/coll/sched.h"

void chempi_coll_build_flat(struct chempi_coll_sched *s,
                            const struct chempi_coll_call *c)
{
    static chempi_coll_build_fn *const intra[CHEMPI_COLL_KIND_COUNT] = {
        [CHEMPI_COLL_BARRIER] = chempi_coll_build_barrier,
        [CHEMPI_COLL_BCAST] = chempi_coll_build_bcast,
        [CHEMPI_COLL_REDUCE] = chempi_coll_build_reduce,
        [CHEMPI_COLL_ALLREDUCE] = chempi_coll_build_allreduce,
        [CHEMPI_COLL_GATHER] = chempi_coll_build_gather,
        [CHEMPI_COLL_GATHERV] = chempi_coll_build_gather,
        [CHEMPI_COLL_SCATTER] = chempi_coll_build_scatter,
        [CHEMPI_COLL_SCATTERV] = chempi_coll_build_scatter,
        [CHEMPI_COLL_ALLGATHER] = chempi_coll_build_allgather,
        [CHEMPI_COLL_ALLGATHERV] = chempi_coll_build_allgather,
        [CHEMPI_COLL_ALLTOALL] = chempi_coll_build_alltoall,
        [CHEMPI_COLL_ALLTOALLV] = chempi_coll_build_alltoall,
        [CHEMPI_COLL_ALLTOALLW] = chempi_coll_build_alltoall,
        [CHEMPI_COLL_REDUCE_SCATTER] = chempi_coll_build_reduce_scatter,
        [CHEMPI_COLL_REDUCE_SCATTER_BLOCK] = chempi_coll_build_reduce_scatter,
        [CHEMPI_COLL_SCAN] = chempi_coll_build_scan,
        [CHEMPI_COLL_EXSCAN] = chempi_coll_build_scan,
    };
    /* Gather, scatter and alltoall know both kinds of communicator. */
    bool is_both =
        c->kind >= CHEMPI_COLL_GATHER && c->kind <= CHEMPI_COLL_ALLTOALLW &&
        c->kind != CHEMPI_COLL_ALLGATHER && c->kind != CHEMPI_COLL_ALLGATHERV;

    if (c->comm->is_inter && c->root == MPI_PROC_NULL)
        return; /* in the root's group, but not the root: nothing to do */
    if (c->comm->is_inter && !is_both)
        chempi_coll_build_inter(s, c);
    else
        intra[c->kind](s, c);
}
