/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Behind gateways, each kind of what is to be sent has a time of its own in
 * which it waits for memory. By its argument:
 *
 *   small   a small message is refused a few times, after pieces of a long one
 * have waited for as long as they may: it goes all the same large   pieces of a
 * long message are refused for too long while small messages go: the receiver
 * is lost (chempirun --survive)
 */
#define _GNU_SOURCE /* kill */
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/routed/internal.h"
#include "tests/mpi/check.h"
#include "tests/mpi/inside/starve.h"

/* No piece of a long message is as small as PIECE, with its frame. */
enum { SHORT = 3000, LONG = 600000, PIECE = 8000, MESSAGES = 20, REFUSALS = 5 };

static char data[LONG];

static struct chempi_routed_flow *flow_to(int rank)
{
    return (struct chempi_routed_flow *)(void *)chempi_conn_route(
               chempi_conn_peer(&chempi_lane_main, (uint32_t)rank), LONG)
        ->ep;
}

/* What the frame of a short one takes. */
static size_t short_bytes(void)
{
    const struct chempi_neighbor_frame f = {.kind = CHEMPI_NEIGHBOR_EAGER,
                                            .gateway_count = 1};
    uint8_t head[CHEMPI_NEIGHBOR_FIXED_MAX];

    return sizeof(struct chempi_neighbor_buf) +
           chempi_neighbor_frame_put(head, &f) + SHORT;
}

static bool have_waited(void)
{
    bool have;

    chempi_lane_lock(&chempi_lane_main);
    have = flow_to(1)->shortages[CHEMPI_ROUTED_FOR_DATA].since_ns > 0;
    chempi_lane_unlock(&chempi_lane_main);
    return have;
}

/* They have waited for as long as they may. */
static void age(void)
{
    chempi_lane_lock(&chempi_lane_main);
    flow_to(1)->shortages[CHEMPI_ROUTED_FOR_DATA] = (struct chempi_shortage){
        .since_ns = 1, .refused_ns = chempi_clock_ns()};
    chempi_lane_unlock(&chempi_lane_main);
}

static void send_small(void)
{
    int code;

    age();
    starve_some(0, REFUSALS);
    code = check_class(MPI_Send(data, SHORT, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
    CHECK_OR_DIE(code == MPI_SUCCESS, "class %d", code);
    CHECK(starve_refused() == REFUSALS, "there was memory");
}

static void send_long(void)
{
    MPI_Request request;
    int code = MPI_SUCCESS;
    int pid;

    MPI_Recv(&pid, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    starve_all(0);
    MPI_Isend(data, LONG, MPI_CHAR, 1, MESSAGES, MPI_COMM_WORLD, &request);
    while (!have_waited())
        MPI_Test(&request, &(int){0}, MPI_STATUS_IGNORE);
    for (int i = 0; i < MESSAGES && code == MPI_SUCCESS; i++) {
        age();
        code = MPI_Send(data, 1, MPI_CHAR, 1, i, MPI_COMM_WORLD);
    }
    CHECK(chempi_conn_missing_count() == 1, "it waits for ever");
    starve_end();
    (void)kill(pid, SIGKILL);
    code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(code != MPI_SUCCESS, "it was sent");
    puts("the long one has ended");
}

static void receive_long(void)
{
    const int pid = (int)getpid();
    MPI_Request request;

    MPI_Irecv(data, LONG, MPI_CHAR, 0, MESSAGES, MPI_COMM_WORLD, &request);
    MPI_Send(&pid, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    const bool is_small = argc > 1 && strcmp(argv[1], "small") == 0;

    starve_start(is_small ? (struct starve_sizes){SIZE_MAX, short_bytes()}
                          : (struct starve_sizes){PIECE, 0});
    check_start(&argc, &argv);
    check_need(2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD); /* all are connected */
    if (is_small && check_rank() == 0)
        send_small();
    else if (is_small)
        MPI_Recv(data, SHORT, MPI_CHAR, 0, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    else if (check_rank() == 0)
        send_long();
    else
        receive_long();
    return check_finish();
}
