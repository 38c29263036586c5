/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that communicate over communicators of their own: every way to send
 * and to receive, sets of requests over several communicators, waits that go to
 * sleep while others poll, and communicators that are freed while something is
 * under way.
 *
 * usage: lanes [threads [rounds]]
 */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define THREADS_MAX 8
#define LARGE (1 << 20) /* bytes */
#define SETS 4          /* communicators of a thread */
#define MANY 16
#define NAP_MS 30

static struct {
    int threads;
    int rounds;
    int up; /* rank */
    int down;
    MPI_Comm own[THREADS_MAX][SETS];
    MPI_Request handed[THREADS_MAX];
    int handed_value[THREADS_MAX];
    pthread_barrier_t together;
} test;

static uint64_t seed(int rank, int t, int i)
{
    return check_mix((uint64_t)(rank * 100 + t), (uint64_t)i);
}

static size_t len_of(int t, int i)
{
    uint64_t x = check_mix((uint64_t)t, (uint64_t)i);

    return (size_t)(x % 16 == 0 ? (x >> 8) % LARGE : (x >> 8) % 3000);
}

static void check_got(const void *in, size_t len, int t, int i,
                      const MPI_Status *status)
{
    int count = -1;

    MPI_Get_count(status, MPI_BYTE, &count);
    CHECK(count == (int)len && status->MPI_SOURCE == test.down &&
              check_differs(in, len, seed(test.down, t, i)) == SIZE_MAX,
          "thread %d, message %d: %d bytes, not %zu, or others", t, i, count,
          len);
}

/* Start a send of one kind or another. */
static void start_send(int kind, void *out, int len, int tag, MPI_Comm comm,
                       MPI_Request *request)
{
    if (kind == 0)
        MPI_Isend(out, len, MPI_BYTE, test.up, tag, comm, request);
    else if (kind == 1)
        MPI_Issend(out, len, MPI_BYTE, test.up, tag, comm, request);
    else if (kind == 2)
        MPI_Ibsend(out, len, MPI_BYTE, test.up, tag, comm, request);
    else {
        MPI_Send_init(out, len, MPI_BYTE, test.up, tag, comm, request);
        MPI_Start(request);
    }
}

/* Receive it in one way or another. */
static void take(int way, void *in, int tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    int flag = 0;
    int count = 0;

    switch (way) {
    case 0:
        MPI_Recv(in, LARGE, MPI_BYTE, test.down, tag, comm, status);
        break;
    case 1:
        MPI_Recv(in, LARGE, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
                 status);
        break;
    case 2:
        MPI_Mprobe(MPI_ANY_SOURCE, tag, comm, &message, status);
        MPI_Get_count(status, MPI_BYTE, &count);
        MPI_Mrecv(in, count, MPI_BYTE, &message, status);
        break;
    case 3:
        while (!flag)
            MPI_Improbe(test.down, MPI_ANY_TAG, comm, &flag, &message, status);
        MPI_Get_count(status, MPI_BYTE, &count);
        MPI_Imrecv(in, count, MPI_BYTE, &message, &request);
        MPI_Wait(&request, status);
        break;
    case 4:
        MPI_Probe(test.down, tag, comm, status);
        MPI_Get_count(status, MPI_BYTE, &count);
        MPI_Recv(in, count, MPI_BYTE, status->MPI_SOURCE, status->MPI_TAG, comm,
                 status);
        break;
    default:
        MPI_Irecv(in, LARGE, MPI_BYTE, test.down, tag, comm, &request);
        while (!flag)
            MPI_Test(&request, &flag, status);
    }
}

static void every_way(int t)
{
    char *out = check_alloc(LARGE);
    char *in = check_alloc(LARGE);

    for (int i = 0; i < test.rounds; i++) {
        MPI_Comm comm = test.own[t][i % SETS];
        size_t len = len_of(t, i);
        MPI_Request request;
        MPI_Status status;

        check_fill(out, len, seed(check_rank(), t, i));
        if (i % 5 == 4) {
            MPI_Sendrecv(out, (int)len, MPI_BYTE, test.up, i, in, LARGE,
                         MPI_BYTE, test.down, i, comm, &status);
        } else {
            start_send(i % 4, out, (int)len, i, comm, &request);
            take(i % 6, in, i, comm, &status);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            if (request != MPI_REQUEST_NULL)
                MPI_Request_free(&request);
        }
        check_got(in, len, t, i, &status);
    }
    free(in);
    free(out);
}

/* One set of requests over all communicators of the thread, and the world. */
static void sets(int t)
{
    for (int i = 0; i < test.rounds; i++) {
        int out[MANY];
        int in[MANY];
        MPI_Request requests[2 * MANY];
        int left = 2 * MANY;
        int tag = t * test.rounds + i;

        for (int k = 0; k < MANY; k++) {
            MPI_Comm comm = k % (SETS + 1) < SETS ? test.own[t][k % (SETS + 1)]
                                                  : MPI_COMM_WORLD;

            out[k] = tag + k;
            in[k] = -1;
            MPI_Irecv(&in[k], 1, MPI_INT, test.down, tag, comm, &requests[k]);
            MPI_Isend(&out[k], 1, MPI_INT, test.up, tag, comm,
                      &requests[MANY + k]);
        }
        if (i % 4 == 0) {
            MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
            left = 0;
        }
        while (left > 0) {
            int indices[2 * MANY];
            int n = 0;

            if (i % 4 == 1) {
                MPI_Waitany(2 * MANY, requests, &indices[0], MPI_STATUS_IGNORE);
                n = 1;
            } else if (i % 4 == 2) {
                MPI_Waitsome(2 * MANY, requests, &n, indices,
                             MPI_STATUSES_IGNORE);
            } else {
                MPI_Testall(2 * MANY, requests, &n, MPI_STATUSES_IGNORE);
                n *= 2 * MANY;
            }
            left -= n;
        }
        for (int k = 0; k < MANY; k++)
            CHECK(in[k] == tag + k, "thread %d, set %d: %d is %d", t, i, k,
                  in[k]);
    }
}

/* A send that nobody receives is taken back; one that was is not. */
static void cancelled(int t)
{
    MPI_Comm comm = test.own[t][1];

    for (int i = 0; i < test.rounds / 8 + 1; i++) {
        MPI_Request request;
        MPI_Status status;
        int value = i;
        int is_cancelled = 0;

        MPI_Isend(&value, 1, MPI_INT, test.up, 1000, comm, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &is_cancelled);
        MPI_Sendrecv(&is_cancelled, 1, MPI_INT, test.up, 1001, &value, 1,
                     MPI_INT, test.down, 1001, comm, MPI_STATUS_IGNORE);
        if (!value)
            MPI_Recv(&value, 1, MPI_INT, test.down, 1000, comm,
                     MPI_STATUS_IGNORE);
        MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1002, comm, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &is_cancelled);
        CHECK(is_cancelled, "thread %d: a receive was not cancelled", t);
    }
}

/* All wait for what comes late: the first in the world, the others in their
 * own; the last one sends when they have fallen asleep. */
static void asleep(int t)
{
    for (int i = 0; i < 3; i++) {
        MPI_Comm comm = t == 0 ? MPI_COMM_WORLD : test.own[t][i % SETS];
        int value = -1;

        pthread_barrier_wait(&test.together);
        if (t == test.threads - 1) {
            poll(NULL, 0, NAP_MS);
            for (int k = 0; k < test.threads - 1; k++)
                MPI_Send(&k, 1, MPI_INT, test.up, 2000,
                         k == 0 ? MPI_COMM_WORLD : test.own[k][i % SETS]);
        } else if (i % 2) {
            MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 2000, comm,
                     MPI_STATUS_IGNORE);
        } else {
            MPI_Probe(test.down, 2000, comm, MPI_STATUS_IGNORE);
            MPI_Recv(&value, 1, MPI_INT, test.down, 2000, comm,
                     MPI_STATUS_IGNORE);
        }
        CHECK(value == t || t == test.threads - 1, "thread %d was sent %d", t,
              value);
    }
}

/* The first thread sleeps in the world, while the others keep their own busy;
 * then it is called. */
static void parked(int t)
{
    int value = t;

    pthread_barrier_wait(&test.together);
    if (t == 0) {
        MPI_Recv(&value, 1, MPI_INT, test.down, 3000, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        CHECK(value == 7, "the first thread was sent %d", value);
        return;
    }
    for (int i = 0; i < 20 * test.rounds; i++)
        MPI_Sendrecv(&i, 1, MPI_INT, test.up, i, &value, 1, MPI_INT, test.down,
                     i, test.own[t][0], MPI_STATUS_IGNORE);
    value = 7;
    if (t == test.threads - 1)
        MPI_Send(&value, 1, MPI_INT, test.up, 3000, MPI_COMM_WORLD);
}

/* Requests of each thread are waited for by the next one. */
static void handed(int t)
{
    const int next = (t + 1) % test.threads;

    for (int i = 0; i < test.rounds / 8 + 1; i++) {
        MPI_Irecv(&test.handed_value[t], 1, MPI_INT, test.down, 4000,
                  test.own[t][i % SETS], &test.handed[t]);
        pthread_barrier_wait(&test.together);
        if (t % 2 == i % 2) /* some later than others wait for them */
            poll(NULL, 0, 1);
        MPI_Send(&i, 1, MPI_INT, test.up, 4000, test.own[t][i % SETS]);
        MPI_Wait(&test.handed[next], MPI_STATUS_IGNORE);
        CHECK(test.handed_value[next] == i, "thread %d got %d", t,
              test.handed_value[next]);
        pthread_barrier_wait(&test.together);
    }
}

/* Communicators go while messages are under way in them. */
static void freed(int t)
{
    char *out = check_alloc(LARGE);
    char *in = check_alloc(LARGE);

    for (int i = 0; i < test.rounds / 16 + 1; i++) {
        MPI_Request requests[2];
        MPI_Comm comm;
        MPI_Status both[2];

        MPI_Comm_dup(test.own[t][i % SETS], &comm);
        check_fill(out, LARGE, seed(check_rank(), t, i));
        MPI_Irecv(in, LARGE, MPI_BYTE, test.down, 1, comm, &requests[0]);
        MPI_Isend(out, LARGE, MPI_BYTE, test.up, 1, comm, &requests[1]);
        if (i % 2) {
            MPI_Comm_disconnect(&comm);
        } else {
            MPI_Comm_free(&comm);
        }
        MPI_Waitall(2, requests, both);
        check_got(in, LARGE, t, i, &both[0]);
    }
    free(in);
    free(out);
}

static void *run(void *arg)
{
    int t = *(int *)arg;

    every_way(t);
    sets(t);
    cancelled(t);
    asleep(t);
    parked(t);
    handed(t);
    pthread_barrier_wait(&test.together);
    freed(t);
    return NULL;
}

int main(int argc, char **argv)
{
    static char buffer[THREADS_MAX * (LARGE + 4096)];
    int numbers[THREADS_MAX];
    void *detached = NULL;
    int size = 0;

    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    test.threads = (int)check_arg(argc, argv, 1, 3);
    test.rounds = (int)check_arg(argc, argv, 2, 60);
    CHECK_OR_DIE(test.threads >= 2 && test.threads <= THREADS_MAX,
                 "2 to %d threads", THREADS_MAX);
    test.up = (check_rank() + 1) % check_size();
    test.down = (check_rank() + check_size() - 1) % check_size();
    pthread_barrier_init(&test.together, NULL, (unsigned)test.threads);
    MPI_Buffer_attach(buffer, (int)sizeof(buffer));
    for (int t = 0; t < test.threads; t++)
        for (int s = 0; s < SETS; s++)
            MPI_Comm_dup(MPI_COMM_WORLD, &test.own[t][s]);
    for (int t = 0; t < test.threads; t++)
        numbers[t] = t;
    check_run_threads(test.threads, run, numbers, sizeof(numbers[0]));
    MPI_Buffer_detach(&detached, &size);
    CHECK(detached == buffer, "another buffer was attached");
    for (int t = 0; t < test.threads; t++)
        for (int s = 0; s < SETS; s++)
            MPI_Comm_free(&test.own[t][s]);
    pthread_barrier_destroy(&test.together);
    return check_finish();
}
