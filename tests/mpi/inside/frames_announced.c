/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank announces frames to another one without an end, as no rank does: the
 * other one keeps no more of them than may be, and the job ends with words that
 * name the rank, its node and the device. Arguments: the two ranks.
 */
#define _GNU_SOURCE /* pause */
#include <errno.h>
#include <unistd.h>

#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/neighbors/neighbors.h"
#include "tests/mpi/check.h"

enum { LEN = 60000, HELLO = 1 };
enum { FRAMES = CHEMPI_NEIGHBOR_SENDING_MAX * CHEMPI_NEIGHBOR_WAYS_MAX + 1 };

static char data[LEN];
static struct chempi_tx frames[FRAMES];

/* Without progress nothing of what is announced leaves. */
_Noreturn static void announce_to(int to)
{
    struct chempi_ep *ep;

    chempi_lane_lock(&chempi_lane_main);
    ep = chempi_conn_route(chempi_conn_peer(&chempi_lane_main, (uint32_t)to),
                           LEN)
             ->ep;
    for (int i = 0; i < FRAMES; i++) {
        int rc;

        frames[i] = (struct chempi_tx){
            .env = {.len = LEN,
                    .context = CHEMPI_NEIGHBOR_CONTEXT,
                    .kind = CHEMPI_KIND_MESSAGE},
            .buf = data,
            .needs_consent = true,
        };
        do
            rc = ep->dev->ops->send(ep, &frames[i]);
        while (rc == -EAGAIN);
        CHECK_OR_DIE(rc == CHEMPI_PENDING, "frame %d: %d", i, rc);
    }
    chempi_lane_unlock(&chempi_lane_main);
    for (;;)
        (void)pause();
}

int main(int argc, char **argv)
{
    int from;
    int to;

    check_start(&argc, &argv);
    from = (int)check_arg(argc, argv, 1, 1);
    to = (int)check_arg(argc, argv, 2, 0);
    if (check_rank() == from) {
        MPI_Ssend(NULL, 0, MPI_CHAR, to, HELLO, MPI_COMM_WORLD);
        announce_to(to);
    }
    if (check_rank() == to)
        MPI_Recv(NULL, 0, MPI_CHAR, from, HELLO, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Recv(NULL, 0, MPI_CHAR, MPI_ANY_SOURCE, HELLO, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    return check_finish();
}
