/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every rank exchanges ROUNDS messages with the next one and the one before,
 * and then the job comes to the end that is asked for, by rank 1's doing. What
 * a job tells when it fails (tests/fault/traces.py).
 *
 * usage: endings well|abort|threads|leave|kill|late|hang
 *
 * threads: abort while another thread is in MPI
 */
#include <pthread.h>
#include <signal.h>

#include "check.h"

#define ROUNDS 50
#define LEN 100
#define TAG 5

static void exchange(void)
{
    const int next = (check_rank() + 1) % check_size();
    const int last = (check_rank() + check_size() - 1) % check_size();
    char out[LEN];
    char in[LEN];

    check_fill(out, LEN, 1);
    for (int i = 0; i < ROUNDS; i++)
        MPI_Sendrecv(out, LEN, MPI_BYTE, next, TAG, in, LEN, MPI_BYTE, last,
                     TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(check_differs(in, LEN, 1) == SIZE_MAX, "not what was sent");
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Nobody sends this. */
static void hang(void)
{
    char none;

    MPI_Recv(&none, 1, MPI_BYTE, MPI_ANY_SOURCE, TAG + 1, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}

static void *wait_in_vain(void *arg)
{
    hang();
    return arg;
}

static void abort_among_threads(void)
{
    pthread_t other;

    CHECK_OR_DIE(pthread_create(&other, NULL, wait_in_vain, NULL) == 0,
                 "no thread");
    MPI_Abort(MPI_COMM_WORLD, 7);
}

int main(int argc, char **argv)
{
    const bool has_threads = argc == 2 && strcmp(argv[1], "threads") == 0;
    int status;

    check_start_thread(&argc, &argv,
                       has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    check_need(2);
    CHECK_OR_DIE(argc == 2,
                 "usage: endings well|abort|threads|leave|kill|late|hang");
    exchange();
    if (check_rank() == 1) {
        if (strcmp(argv[1], "abort") == 0)
            MPI_Abort(MPI_COMM_WORLD, 7);
        if (has_threads)
            abort_among_threads();
        if (strcmp(argv[1], "leave") == 0)
            exit(3);
        if (strcmp(argv[1], "kill") == 0)
            raise(SIGKILL);
    }
    if (strcmp(argv[1], "well") != 0 && strcmp(argv[1], "late") != 0)
        hang();
    status = check_finish();
    return strcmp(argv[1], "late") == 0 && check_rank() == 1 ? 5 : status;
}
