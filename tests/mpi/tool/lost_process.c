/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tool hears of a lost process before the job ends: each surviving rank,
 * blocked in a receive, says which one it was told of.
 *
 * usage: lost RANK
 */
#include "check.h"

#include <signal.h>
#include <unistd.h>

static void saw(MPI_T_event_instance instance, MPI_T_event_registration reg,
                MPI_T_cb_safety safety, void *user_data)
{
    int process = -1;

    (void)reg;
    (void)safety;
    CHECK(!MPI_T_event_read(instance, 0, &process), "element 0");
    printf("rank %d was told of %d\n", *(int *)user_data, process);
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    int who = (int)check_arg(argc, argv, 1, 0);
    MPI_T_event_registration reg;
    int provided;
    int event;
    int rank;

    CHECK_OR_DIE(!MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), "tool");
    CHECK_OR_DIE(!MPI_T_event_get_index("chempi_conn_process_lost", &event),
                 "no such event");
    CHECK_OR_DIE(!MPI_T_event_handle_alloc(event, NULL, MPI_INFO_NULL, &reg),
                 "registration");
    CHECK_OR_DIE(!MPI_T_event_register_callback(reg, MPI_T_CB_REQUIRE_NONE,
                                                MPI_INFO_NULL, &rank, saw),
                 "callback");
    check_start(&argc, &argv);
    rank = check_rank();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == who)
        (void)kill(getpid(), SIGKILL);
    for (;;)
        MPI_Recv(NULL, 0, MPI_BYTE, who, MPI_ANY_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}
