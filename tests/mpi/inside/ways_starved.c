/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who has no memory for the ways through gateways to a process finds them when
 * there is some: the process is not taken for one that no way leads to.
 */
#include <errno.h>

#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/routed/internal.h"
#include "tests/mpi/check.h"
#include "tests/mpi/inside/starve.h"

enum { KNOWN = 1, NEW = 3, TAG = 1 };

static struct chempi_routed *find_routed(void)
{
    struct chempi_ep *ep =
        chempi_conn_route(chempi_conn_peer(&chempi_lane_main, KNOWN), 0)->ep;

    return (struct chempi_routed *)(void *)ep->dev;
}

/* The flow itself is given, the ways are not. */
static void miss_ways(void)
{
    struct chempi_routed_flow *flow = NULL;
    struct chempi_routed *routed;
    int rc;

    chempi_lane_lock(&chempi_lane_main);
    routed = find_routed();
    CHECK(!routed->flows[NEW], "it was known before");
    starve_one(1);
    rc = chempi_routed_flow_get(routed, NEW, &flow);
    starve_end();
    CHECK(rc == -ENOMEM && starve_refused() == 1, "no memory: %d", rc);
    CHECK(!routed->flows[NEW], "it is known without its ways");
    rc = chempi_routed_flow_get(routed, NEW, &flow);
    CHECK_OR_DIE(rc == 0, "with memory: %d", rc);
    CHECK(chempi_routed_way_find(flow, 0), "no way is found");
    chempi_lane_unlock(&chempi_lane_main);
}

int main(int argc, char **argv)
{
    starve_start((struct starve_sizes){sizeof(struct chempi_routed_way), 0});
    check_start(&argc, &argv);
    check_need(NEW + 1);
    if (check_rank() == 0) {
        MPI_Send(NULL, 0, MPI_CHAR, KNOWN, TAG, MPI_COMM_WORLD);
        (void)starve_refused();
        miss_ways();
        MPI_Send(NULL, 0, MPI_CHAR, NEW, TAG, MPI_COMM_WORLD);
    } else if (check_rank() == KNOWN || check_rank() == NEW) {
        MPI_Recv(NULL, 0, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return check_finish();
}
