/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The blocking collectives as the MPI functions call them: check what the
 * generated layer cannot know, try the node's shared memory and the hierarchy,
 * else run a schedule of messages.
 */
#define _GNU_SOURCE /* nanosleep */
#include <time.h>

#include "common/base/clock.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/coll/check.h"
#include "libchempi/didl/coll/hier/hier_ops.h"
#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/coll/sched.h"
#include "libchempi/didl/control/daemon.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/loss.h"
#include "libchempi/didl/transport/progress/progress.h"

/* How long to wait for the news of a loss that another member seems to have
 * had, and between looks, ns. */
#define NEWS_MAX_NS UINT64_C(5000000000)
#define LOOK_NS 200000L

/*
 * In a job that survives, and among several worlds: a member that has heard of
 * a loss goes on with empty messages (hier_ops.h, K2), and those who have not
 * yet find them too short. The news are on their way then.
 */
static CHEMPI_COLD int await_news(const struct chempi_comm *comm, int rc)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    const uint64_t start_ns = chempi_clock_ns();

    while (!chempi_loss_is_in(comm) && !chempi_loss_has_finished(comm)) {
        if (chempi_clock_ns() - start_ns > NEWS_MAX_NS)
            return rc;
        (void)nanosleep(&pause, NULL);
        chempi_lane_lock(&chempi_lane_main);
        chempi_daemon_poll();
        chempi_lane_unlock(&chempi_lane_main);
        (void)chempi_progress_poll();
    }
    return MPI_ERR_PROC_ABORTED;
}

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
                        rc == MPI_ERR_INTERN) &&
        (chempi_ctx.job->survives || c->comm->has_foreign))
        return await_news(c->comm, rc);
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
