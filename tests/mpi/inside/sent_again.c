/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A gateway is lost that has passed all of the largest window on to another
 * one, whose destination does not read: all of it comes there again, by a third
 * one, and is no more than may be.
 *
 *   inside-sent_again FILE
 */
#include <fcntl.h>
#include <unistd.h>

#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/routed/internal.h"
#include "tests/mpi/check.h"
#include "tests/mpi/inside/gateways.h"

enum {
    LEN = 60000,
    MESSAGES = 69,      /* as many as may be sent before they are received */
    FULL = 4000 * 1000, /* bytes of them that are on their way */
    TAG = 1
};

static char data[MESSAGES][LEN];

static const struct chempi_routed_flow *flow_to(int to)
{
    return (struct chempi_routed_flow *)(void *)chempi_conn_route(
               chempi_conn_peer(&chempi_lane_main, (uint32_t)to), LEN)
        ->ep;
}

/* All that may be is under way, frames were sent again or not, and the first
 * gateway has it. */
static bool has_left(const struct chempi_routed_flow *flow, bool is_again)
{
    const struct chempi_routed *routed = chempi_routed_of(flow);

    return flow->unacked_bytes >= FULL && is_again == (routed->resent > 0) &&
           routed->neighbors.queued == 0;
}

/* Until it lies in the last one. */
static void push(bool is_again)
{
    bool has;

    do {
        int is_there;

        MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_SELF, &is_there,
                   MPI_STATUS_IGNORE);
        chempi_lane_lock(&chempi_lane_main);
        has = has_left(flow_to(1), is_again);
        chempi_lane_unlock(&chempi_lane_main);
    } while (!has);
    gateways_await_rest();
}

/* The number of the first gateway that leads to rank 1. */
static int find_first(void)
{
    const struct chempi_routed_flow *flow;
    int number;

    chempi_lane_lock(&chempi_lane_main);
    flow = flow_to(1);
    number = (int)(chempi_routed_way_find(flow, LEN)->gateways[0] -
                   chempi_routed_of(flow)->rank_count);
    chempi_lane_unlock(&chempi_lane_main);
    return number;
}

static void send_all(const char *file)
{
    MPI_Request sends[MESSAGES];
    int fd;

    for (int i = 0; i < MESSAGES; i++) {
        check_fill(data[i], LEN, (uint64_t)i);
        MPI_Isend(data[i], LEN, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, &sends[i]);
    }
    push(false);
    gateways_kill(find_first());
    push(true);
    fd = open(file, O_CREAT | O_WRONLY, 0600);
    CHECK_OR_DIE(fd >= 0, "cannot create %s", file);
    close(fd);
    MPI_Waitall(MESSAGES, sends, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    CHECK_OR_DIE(argc > 1, "name a file");
    gateways_find(3);
    if (check_rank() == 0)
        send_all(argv[1]);
    else if (check_rank() == 1)
        check_receive_late(argv[1], LEN, MESSAGES, TAG);
    return check_finish();
}
