/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A gateway is lost while its rank has no memory to send by another one what
 * lay there: it is sent when there is some, and all of it arrives.
 */
#define _GNU_SOURCE
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/routed/internal.h"
#include "tests/mpi/check.h"
#include "tests/mpi/inside/gateways.h"
#include "tests/mpi/inside/starve.h"

enum { LEN = 3000, MESSAGES = 20, REFUSALS = 50, HELLO = MESSAGES };

static char data[MESSAGES][LEN];

/* The number of the one that leads from here to there. */
static int find_way(int to)
{
    const struct chempi_routed_flow *flow;
    int number;

    chempi_lane_lock(&chempi_lane_main);
    flow = (struct chempi_routed_flow *)(void *)chempi_conn_route(
               chempi_conn_peer(&chempi_lane_main, (uint32_t)to), LEN)
               ->ep;
    number = (int)(chempi_routed_way_find(flow, LEN)->gateways[0] -
                   chempi_routed_of(flow)->rank_count);
    chempi_lane_unlock(&chempi_lane_main);
    return number;
}

static void send_all(void)
{
    MPI_Request sends[MESSAGES];
    int is_there;

    MPI_Ssend(NULL, 0, MPI_CHAR, 1, HELLO, MPI_COMM_WORLD);
    gateways_stop();
    for (int i = 0; i < MESSAGES; i++) {
        memset(data[i], i + 1, LEN);
        MPI_Isend(data[i], LEN, MPI_CHAR, 1, i, MPI_COMM_WORLD, &sends[i]);
    }
    (void)starve_refused();
    starve_some(0, REFUSALS);
    gateways_kill(find_way(1));
    for (int refused = 0; refused < REFUSALS; refused += starve_refused())
        MPI_Iprobe(MPI_ANY_SOURCE, HELLO, MPI_COMM_SELF, &is_there,
                   MPI_STATUS_IGNORE);
    gateways_go_on();
    MPI_Waitall(MESSAGES, sends, MPI_STATUSES_IGNORE);
}

static void receive_all(void)
{
    MPI_Recv(NULL, 0, MPI_CHAR, 0, HELLO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Recv(data[i], LEN, MPI_CHAR, 0, i, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        CHECK(data[i][0] == i + 1 && data[i][LEN - 1] == i + 1,
              "message %d: %d", i, data[i][0]);
    }
}

int main(int argc, char **argv)
{
    starve_start((struct starve_sizes){LEN, 0});
    check_start(&argc, &argv);
    check_need(2);
    gateways_find(2);
    if (check_rank() == 0)
        send_all();
    else if (check_rank() == 1)
        receive_all();
    return check_finish();
}
