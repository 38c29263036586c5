/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 1 sends COUNT messages of LEN bytes, and is killed when its system has
 * them (chempirun --survive). Rank 0 receives them and one more, which never
 * comes, and prints how many came right, how that one ended, and which part of
 * the time it has used a processor.
 *
 * usage: last_words COUNT LEN
 */
#define _GNU_SOURCE /* kill */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <mpi.h>

#define POLLS 1000 /* what is kept leaves with the first */

enum { HELLO, WORDS, NEVER };

_Noreturn static void send_and_die(char *data, int count, int len)
{
    int is_there;

    MPI_Recv(NULL, 0, MPI_CHAR, 0, HELLO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) {
        memset(data, i + 1, (size_t)len);
        MPI_Send(data, len, MPI_CHAR, 0, WORDS, MPI_COMM_WORLD);
    }
    for (int i = 0; i < POLLS; i++)
        MPI_Iprobe(0, NEVER, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    (void)kill(getpid(), SIGKILL);
    for (;;)
        (void)pause();
}

static double processor_s(void)
{
    struct rusage use;

    (void)getrusage(RUSAGE_SELF, &use);
    return (double)use.ru_utime.tv_sec + (double)use.ru_stime.tv_sec +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

static int receive(char *data, int len, int tag)
{
    const int code = MPI_Recv(data, len, MPI_CHAR, 1, tag, MPI_COMM_WORLD,
                              MPI_STATUS_IGNORE);
    int class = code;

    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    return class;
}

static void receive_all(char *data, int count, int len)
{
    const double start_s = MPI_Wtime();
    const double used_s = processor_s();
    int received = 0;
    int class;

    MPI_Send(NULL, 0, MPI_CHAR, 1, HELLO, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        received += receive(data, len, WORDS) == MPI_SUCCESS &&
                    data[0] == (char)(i + 1) && data[len - 1] == (char)(i + 1);
    class = receive(data, len, NEVER);
    printf("received %d, then class %d (%d), busy %.3f of %.3f s\n", received,
           class, MPI_ERR_PROC_ABORTED, processor_s() - used_s,
           MPI_Wtime() - start_s);
}

int main(int argc, char **argv)
{
    const int count = argc > 2 ? atoi(argv[1]) : 0;
    const int len = argc > 2 ? atoi(argv[2]) : 0;
    char *data = len > 0 ? malloc((size_t)len) : NULL;
    int rank;

    if (!data)
        return EXIT_FAILURE;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 1)
        send_and_die(data, count, len);
    if (rank == 0)
        receive_all(data, count, len);
    free(data);
    MPI_Finalize();
    return 0;
}
