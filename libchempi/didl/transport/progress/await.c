/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for one request, see request.h, or for news of a loss, see loss.h. */
#define _GNU_SOURCE /* nanosleep */
#include <time.h>

#include "common/base/clock.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/control/daemon.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/loss.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/request.h"

static bool is_done(void *arg)
{
    return chempi_request_is_complete(arg);
}

int chempi_request_await(struct chempi_request *req)
{
    struct chempi_lane *lane = req->lane;
    int rc;

    chempi_lane_lock(lane);
    rc = chempi_progress_wait_in(lane, is_done, req,
                                 chempi_wait_report_put_request, req);
    chempi_lane_unlock(lane);
    return rc;
}

int chempi_request_await_locked(struct chempi_request *req)
{
    if (req->kind == CHEMPI_REQUEST_COLL && req->ops->await &&
        !chempi_lane_main.is_locking)
        return req->ops->await(req);
    return chempi_progress_wait_in(req->lane, is_done, req,
                                   chempi_wait_report_put_request, req);
}

/* How long to wait for the news of a loss that another member seems to have
 * had, and between looks, ns. */
#define NEWS_MAX_NS UINT64_C(5000000000)
#define LOOK_NS 200000L

CHEMPI_COLD int chempi_loss_await_news(const struct chempi_comm *comm, int rc)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    const uint64_t start_ns = chempi_clock_ns();

    if (!chempi_loss_may_be_in(comm))
        return rc;
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
