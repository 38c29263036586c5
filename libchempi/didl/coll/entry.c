/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The blocking collectives as the MPI functions call them: check what the
 * generated layer cannot know, try the node's shared memory and the hierarchy,
 * else run a schedule of messages.
 */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/coll/check.h"
#include "libchempi/didl/coll/hier/hier_ops.h"
#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/coll/sched.h"
#include "libchempi/didl/transport/loss.h"

static inline int do_it(const struct chempi_coll_call *c)
{
    int tag;
    int rc;

    if (!chempi_coll_node_begin(c->comm, &tag, &rc) ||
        chempi_coll_node_try(c, tag, &rc) || chempi_hier_try(c, tag, &rc))
        return rc;
    return chempi_coll_do_messages(c, tag);
}

int chempi_coll_do(const struct chempi_coll_call *c)
{
    int rc = do_it(c);

    /* INTERN: who has heard spoils its SPSC rings (node_scan.c, X2). */
    if (CHEMPI_UNLIKELY(rc == MPI_ERR_COUNT || rc == MPI_ERR_TRUNCATE ||
                        rc == MPI_ERR_INTERN))
        return chempi_loss_await_news(c->comm, rc);
    return rc;
}

int chempi_coll_perform(struct chempi_coll_call *c)
{
    int rc = chempi_coll_check(c);

    /* Only now: a call that failed here has not taken part in anything, and
     * may be made again while others wait in their first one. */
    return CHEMPI_UNLIKELY(rc) ? rc : chempi_coll_do(c);
}

int chempi_coll_barrier(struct chempi_comm *comm)
{
    if (CHEMPI_LIKELY(comm->coll &&
                      chempi_coll_node_stage(comm->coll) == CHEMPI_NODE_MEMORY))
        return chempi_coll_node_barrier(comm->coll);
    return chempi_coll_perform(
        &(struct chempi_coll_call){.kind = CHEMPI_COLL_BARRIER, .comm = comm});
}
