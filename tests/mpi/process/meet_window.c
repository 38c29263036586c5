/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a window over two jobs costs few messages: members of a world meet
 * at its first one, and these meet each other, where no world survives the loss
 * of a rank. Counted are messages that were matched, in both jobs.
 *
 * meet_window accept|connect FIFO MESSAGES: at most so many, of all.
 */
#include "check.h"
#include "matched.h"

static long long count_end(MPI_Comm both)
{
    long long count;
    long long sum;
    MPI_Win win;
    int *memory;

    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, both, &memory,
                     &win);
    MPI_Barrier(both);
    count = (long long)matched_count();
    MPI_Win_free(&win);
    count = (long long)matched_count() - count;
    MPI_Allreduce(&count, &sum, 1, MPI_LONG_LONG, MPI_SUM, both);
    return sum;
}

int main(int argc, char **argv)
{
    char name[MPI_MAX_PORT_NAME] = "";
    MPI_Comm both, inter;
    long long count;
    bool accepts;

    check_start(&argc, &argv);
    CHECK_OR_DIE(argc > 3, "usage: meet_window accept|connect FIFO MESSAGES");
    matched_start();
    accepts = strcmp(argv[1], "accept") == 0;
    if (accepts && check_rank() == 0)
        MPI_Open_port(MPI_INFO_NULL, name);
    check_pass_port(accepts, argv[2], name);
    if (accepts)
        MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    else
        MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    MPI_Intercomm_merge(inter, !accepts, &both);
    count = count_end(both);
    CHECK(count > 0 && count <= atoll(argv[3]), "%lld messages", count);
    MPI_Comm_free(&both);
    MPI_Comm_disconnect(&inter);
    matched_end();
    return check_finish();
}
