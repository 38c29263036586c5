/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Comm_disconnect (MPI 5.0, section 11.10.4). */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/transport/loss.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/request.h"

static bool is_quiet(void *arg)
{
    return chempi_request_lull_is_there(arg);
}

/* Requests that are over, or that may be started again, keep the communicator
 * until the user lets go of them; they may do so later. */
static int wait_for_lull(struct chempi_comm *comm)
{
    struct chempi_request_lull lull;
    int rc;

    chempi_request_lull_open(&lull, comm);
    rc = chempi_progress_wait_among(1u | 1u << comm->lane->number, is_quiet,
                                    &lull, NULL, NULL);
    chempi_request_lull_close(&lull);
    return rc;
}

/* Where worlds part, nobody goes before all have come: who ends then is not
 * waited for any more. Who is lost does not come. */
static void meet_last(struct chempi_comm *comm)
{
    struct chempi_comm_channel members;
    int64_t nothing = 0;

    if (!comm->has_foreign || chempi_loss_is_in(comm))
        return;
    members = chempi_comm_channel(comm);
    (void)chempi_comm_max(&members, MPI_SUCCESS, &nothing, 1);
}

int chempi_comm_disconnect(MPI_Comm *comm)
{
    struct chempi_comm *old = chempi_comm_lookup(*comm);
    int rc = MPI_SUCCESS;

    if (old && old != &chempi_comm_world && old != &chempi_comm_self)
        rc = wait_for_lull(old);
    if (old && rc == MPI_SUCCESS)
        meet_last(old);
    return rc ? rc : chempi_comm_free(comm);
}
