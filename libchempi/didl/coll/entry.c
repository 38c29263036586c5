/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The blocking collectives as the MPI functions call them: check what the
 * generated layer cannot know, try the node's shared memory and the hierarchy,
 * else run a schedule of messages.
 */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/coll/args.h"
#include "libchempi/didl/coll/check.h"
#include "libchempi/didl/coll/hier_ops.h"
#include "libchempi/didl/coll/node.h"
#include "libchempi/didl/coll/sched.h"

int chempi_coll_do(const struct chempi_coll_call *c)
{
    int tag = chempi_coll_next_tag(c->comm);
    int rc;

    if (chempi_coll_node_try(c, tag, &rc) || chempi_hier_try(c, tag, &rc))
        return rc;
    return chempi_coll_do_messages(c, tag, MPI_SUCCESS);
}

static int run(struct chempi_coll_call *c)
{
    int rc = chempi_coll_check(c);

    /* Only now: a call that failed here has not taken part in anything, and
     * may be made again while others wait in their first one. */
    return CHEMPI_LIKELY(!rc) ? chempi_coll_do(c) : rc;
}

#define BLOCKING(name, NAME)                                                   \
    int name(NAME##_ARGS)                                                      \
    {                                                                          \
        struct chempi_coll_call c = NAME##_CALL;                               \
                                                                               \
        return run(&c);                                                        \
    }

int chempi_coll_barrier(struct chempi_comm *comm)
{
    struct chempi_coll_call c = BARRIER_CALL;

    if (CHEMPI_LIKELY(comm->coll && comm->coll->is_on))
        return chempi_coll_node_barrier(comm->coll);
    return run(&c);
}

BLOCKING(chempi_coll_bcast, BCAST)
BLOCKING(chempi_coll_reduce, REDUCE)
BLOCKING(chempi_coll_allreduce, ALLREDUCE)
BLOCKING(chempi_coll_gather, GATHER)
BLOCKING(chempi_coll_gatherv, GATHERV)
BLOCKING(chempi_coll_scatter, SCATTER)
BLOCKING(chempi_coll_scatterv, SCATTERV)
BLOCKING(chempi_coll_allgather, ALLGATHER)
BLOCKING(chempi_coll_allgatherv, ALLGATHERV)
BLOCKING(chempi_coll_alltoall, ALLTOALL)
BLOCKING(chempi_coll_alltoallv, ALLTOALLV)
BLOCKING(chempi_coll_alltoallw, ALLTOALLW)
BLOCKING(chempi_coll_reduce_scatter, REDUCE_SCATTER)
BLOCKING(chempi_coll_reduce_scatter_block, REDUCE_SCATTER_BLOCK)
BLOCKING(chempi_coll_scan, SCAN)
BLOCKING(chempi_coll_exscan, EXSCAN)
