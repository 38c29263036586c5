/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The news that a rank has ended are here before anybody has looked at what it
 * sent: over two connections, the later message over the one that is read
 * first, so that it waits for the other. Both are received, also by a receive
 * that was posted before.
 */
#define _GNU_SOURCE /* sigwait */
#include <signal.h>
#include <unistd.h>

#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "tests/mpi/check.h"

enum { LONG = 32 << 10, SHORT = 16 << 10 }; /* see forks.yaml */

static unsigned char data[LONG];
static unsigned char posted[SHORT];

static bool is_drained(struct chempi_dev *dev)
{
    bool is;

    chempi_lane_lock(&chempi_lane_main);
    is = dev->ops->is_drained(dev);
    chempi_lane_unlock(&chempi_lane_main);
    return is;
}

/* Until the other process's kernel has it all. */
static void send_all(int first_tag)
{
    check_fill(data, LONG, 7);
    MPI_Send(data, LONG, MPI_BYTE, 0, first_tag, MPI_COMM_WORLD);
    MPI_Send(data, SHORT, MPI_BYTE, 0, first_tag + 1, MPI_COMM_WORLD);
    for (uint32_t i = 0; i < chempi_conn_device_count(&chempi_lane_main); i++) {
        struct chempi_dev *dev = chempi_conn_device(&chempi_lane_main, i);

        while (!is_drained(dev))
            (void)chempi_progress_poll();
    }
}

static void receive(int tag, int len)
{
    CHECK_OR_DIE(!MPI_Recv(data, len, MPI_BYTE, 1, tag, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE),
                 "tag %d", tag);
    CHECK_OR_DIE(check_differs(data, (size_t)len, 7) == SIZE_MAX, "tag %d",
                 tag);
}

static void sender(void)
{
    pid_t pid;

    send_all(1);
    MPI_Recv(&pid, sizeof(pid), MPI_BYTE, 0, 0, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    send_all(3);
    (void)kill(pid, SIGUSR1);
    (void)kill(getpid(), SIGKILL);
}

int main(int argc, char **argv)
{
    const pid_t pid = getpid();
    MPI_Request req;
    sigset_t wake;
    int rc;

    check_start(&argc, &argv);
    check_need(2);
    if (check_rank() == 1)
        sender();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    receive(1, LONG); /* the connections are there */
    receive(2, SHORT);
    (void)sigemptyset(&wake);
    (void)sigaddset(&wake, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &wake, NULL);
    MPI_Irecv(posted, SHORT, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &req);
    MPI_Send(&pid, sizeof(pid), MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    (void)sigwait(&wake, &(int){0});
    chempi_lane_lock(&chempi_lane_main);
    chempi_conn_set_lost(&chempi_lane_main, 1, "the test says so");
    chempi_engine_settle(&chempi_lane_main);
    chempi_lane_unlock(&chempi_lane_main);
    rc = MPI_Wait(&req, MPI_STATUS_IGNORE);
    CHECK_OR_DIE(!rc && check_differs(posted, SHORT, 7) == SIZE_MAX,
                 "MPI_Wait: %d", rc);
    receive(3, LONG);
    CHECK_OR_DIE(
        MPI_Recv(data, 1, MPI_BYTE, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
        "there was no more");
    printf("all was received\n");
    MPI_Finalize();
    return 0;
}
