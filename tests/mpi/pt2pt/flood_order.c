/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All other ranks send rank 0 messages of several sizes, until one has to wait,
 * for rank 0 does not look: it waits for a file, which the last of them makes.
 * Then they send more, one with each look, so that some find room while others
 * still wait. All arrive in order, and none before another one of its sender.
 *
 * usage: flood_order FILE
 */
#define _GNU_SOURCE /* sched_yield, access */
#include <sched.h>
#include <unistd.h>

#include "check.h"

enum { TAG = 1, MOST = 400000, LATER = 20000, LOOKS = 200, LEN_MAX = 6000 };

static const int lens[] = {8, 0, 100, 8, 8, 3000, 8, LEN_MAX, 8, 1000, 8};

static int len_of(long i)
{
    /* Mostly short, so that many fit into little. */
    return i % 8 ? 8 : lens[i / 8 % (long)(sizeof(lens) / sizeof(lens[0]))];
}

static char data[LEN_MAX];

static void post(long i, MPI_Request *request)
{
    MPI_Isend(data + i % 8, len_of(i) ? len_of(i) - (int)(i % 8) : 0, MPI_BYTE,
              0, TAG, MPI_COMM_WORLD, request);
}

/* It is not taken, however often it is looked at. */
static bool waits(MPI_Request *request)
{
    int is_done = 0;

    for (int i = 0; i < LOOKS && !is_done; i++)
        MPI_Test(request, &is_done, MPI_STATUS_IGNORE);
    return !is_done;
}

static void send_all(const char *file)
{
    MPI_Request *requests =
        check_alloc(sizeof(*requests) * (size_t)(MOST + LATER));
    int left = check_size() - 1;
    long count = 0;
    int is_done;

    do
        post(count, &requests[count]);
    while (!waits(&requests[count++]) && count < MOST);
    /* All of them wait: through others than rank 0. */
    if (check_rank() > 1)
        MPI_Recv(NULL, 0, MPI_BYTE, check_rank() - 1, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (check_rank() < left)
        MPI_Send(NULL, 0, MPI_BYTE, check_rank() + 1, TAG, MPI_COMM_WORLD);
    else
        fclose(fopen(file, "w"));
    for (long i = 0; i < LATER; i++, count++) {
        post(count, &requests[count]);
        MPI_Test(&requests[count], &is_done, MPI_STATUS_IGNORE);
    }
    MPI_Send(&count, 1, MPI_LONG, 0, TAG + 1, MPI_COMM_WORLD);
    MPI_Waitall((int)count, requests, MPI_STATUSES_IGNORE);
    free(requests);
}

static void receive_all(const char *file)
{
    static char got[LEN_MAX];

    check_watch("chempi_conn_early");
    while (access(file, F_OK) != 0)
        (void)sched_yield();
    for (int from = 1; from < check_size(); from++) {
        long count;

        MPI_Recv(&count, 1, MPI_LONG, from, TAG + 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        for (long i = 0; i < count; i++) {
            int want = len_of(i) ? len_of(i) - (int)(i % 8) : 0;
            MPI_Status status;
            int len;

            MPI_Recv(got, LEN_MAX, MPI_BYTE, from, TAG, MPI_COMM_WORLD,
                     &status);
            MPI_Get_count(&status, MPI_BYTE, &len);
            CHECK(len == want && memcmp(got, data + i % 8, (size_t)want) == 0,
                  "message %ld from %d is not the one expected", i, from);
        }
    }
    CHECK(check_watched() == 0, "%llu came before their turn", check_watched());
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    check_fill(data, sizeof(data), 1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 0)
        receive_all(argv[1]);
    else
        send_all(argv[1]);
    return check_finish();
}
