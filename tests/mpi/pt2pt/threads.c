/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_THREAD_MULTIPLE: several threads of each rank exchange with their own
 * tags, share any-source receives, probe with matched probe, complete
 * requests that other threads started, run collectives on communicators of
 * their own, and ask for the hints of one, and for MPI_INFO_ENV, that nobody
 * has asked before.
 *
 * usage: threads [threads [rounds]]
 */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define THREADS_MAX 16
#define LEN_MAX 200000
#define SHARED_TAG 500
#define MATCHED_TAG 501
#define ASLEEP_TAG 502
#define AWAKE_TAG 503
#define HANDED_TAG 504  /* and up */
#define LARGE (4 << 20) /* bytes */
#define ASKED 50        /* communicators whose hints are asked for */

static struct {
    int threads;
    int rounds;
    int peer_up;   /* rank */
    int peer_down; /* rank */
    MPI_Comm comms[THREADS_MAX];
    MPI_Comm asked[ASKED];
    MPI_Request handed[THREADS_MAX];
    int handed_value[THREADS_MAX];
    atomic_int taken;
    atomic_llong sum;
    pthread_barrier_t together;
} test;

static size_t len_of(int thread, int round)
{
    uint64_t x = check_mix((uint64_t)thread, (uint64_t)round);

    return (size_t)(x % 8 == 0 ? (x >> 8) % LEN_MAX : (x >> 8) % 500);
}

static uint64_t seed_of(int rank, int thread, int round)
{
    return check_mix((uint64_t)(rank * 100 + thread), (uint64_t)round);
}

/* Thread t speaks only with thread t of the neighbours: tag t. */
static void exchange(int t)
{
    char *out = check_alloc(LEN_MAX);
    char *in = check_alloc(LEN_MAX);

    for (int i = 0; i < test.rounds; i++) {
        size_t len = len_of(t, i);
        MPI_Status status;
        MPI_Request requests[2];
        int count = -1;
        check_fill(out, len, seed_of(check_rank(), t, i));
        if (i % 2 == 0) {
            MPI_Sendrecv(out, (int)len, MPI_BYTE, test.peer_up, t, in, LEN_MAX,
                         MPI_BYTE, test.peer_down, t, MPI_COMM_WORLD, &status);
        } else {
            MPI_Status both[2];
            MPI_Irecv(in, LEN_MAX, MPI_BYTE, MPI_ANY_SOURCE, t, MPI_COMM_WORLD,
                      &requests[0]);
            MPI_Isend(out, (int)len, MPI_BYTE, test.peer_up, t, MPI_COMM_WORLD,
                      &requests[1]);
            MPI_Waitall(2, requests, both);
            status = both[0];
        }
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(count == (int)len && status.MPI_SOURCE == test.peer_down &&
                  check_differs(in, len, seed_of(test.peer_down, t, i)) ==
                      SIZE_MAX,
              "thread %d, round %d: wrong message", t, i);
    }
    free(in);
    free(out);
}

/* All threads receive from anyone with one tag: each message once. */
static void share(int t)
{
    for (int i = 0; i < test.rounds; i++) {
        long long value = (long long)t * test.rounds + i;
        long long got = -1;
        MPI_Request request;
        MPI_Isend(&value, 1, MPI_LONG_LONG, test.peer_up, SHARED_TAG,
                  MPI_COMM_WORLD, &request);
        MPI_Recv(&got, 1, MPI_LONG_LONG, MPI_ANY_SOURCE, SHARED_TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        atomic_fetch_add(&test.sum, got);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* A probed message belongs to the thread that probed it. */
static void matched(int t)
{
    for (int i = 0; i < test.rounds; i++) {
        int len = 1 + (t * 31 + i * 7) % 3000;
        char *out = check_alloc((size_t)len);
        MPI_Message message;
        MPI_Status status;
        MPI_Request request;
        int count = -1;
        check_fill(out, (size_t)len, (uint64_t)len);
        MPI_Isend(out, len, MPI_BYTE, test.peer_up, MATCHED_TAG, MPI_COMM_WORLD,
                  &request);
        MPI_Mprobe(MPI_ANY_SOURCE, MATCHED_TAG, MPI_COMM_WORLD, &message,
                   &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        char *in = check_alloc((size_t)count);
        MPI_Mrecv(in, count, MPI_BYTE, &message, &status);
        CHECK(check_differs(in, (size_t)count, (uint64_t)count) == SIZE_MAX,
              "matched message of %d bytes is wrong", count);
        atomic_fetch_add(&test.taken, 1);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        free(in);
        free(out);
    }
}

/* A thread sleeps in a receive while another takes a large message that was
 * announced before: taking it must get the sleeper to work. */
static void asleep(int t)
{
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Request request;
    char *out;
    char *in;
    int found = 0;

    if (t == 1)
        MPI_Recv(NULL, 0, MPI_BYTE, test.peer_down, AWAKE_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (t != 0)
        return;
    out = check_alloc(LARGE);
    in = check_alloc(LARGE);
    check_fill(out, LARGE, LARGE);
    for (int i = 0; i < 2; i++) {
        MPI_Isend(out, LARGE, MPI_BYTE, test.peer_up, ASLEEP_TAG,
                  MPI_COMM_WORLD, &request);
        for (found = 0; !found; sched_yield())
            MPI_Improbe(test.peer_down, ASLEEP_TAG, MPI_COMM_WORLD, &found,
                        &message, MPI_STATUS_IGNORE);
        poll(NULL, 0, 200); /* long enough to fall asleep again */
        if (i == 0) {
            MPI_Mrecv(in, LARGE, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        } else {
            MPI_Request taken;

            MPI_Imrecv(in, LARGE, MPI_BYTE, &message, &taken);
            MPI_Wait(&taken, MPI_STATUS_IGNORE);
        }
        CHECK(check_differs(in, LARGE, LARGE) == SIZE_MAX,
              "large matched message %d is wrong", i);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (test.threads > 1)
        MPI_Send(NULL, 0, MPI_BYTE, test.peer_up, AWAKE_TAG, MPI_COMM_WORLD);
    free(in);
    free(out);
}

/* Requests started by the first thread are waited for by all the others
 * while it goes on and sends what completes them. */
static void handed(int t)
{
    if (t == 0)
        for (int k = 0; k < test.threads; k++)
            MPI_Irecv(&test.handed_value[k], 1, MPI_INT, test.peer_down,
                      HANDED_TAG + k, MPI_COMM_WORLD, &test.handed[k]);
    pthread_barrier_wait(&test.together);
    if (t == 0)
        for (int k = test.threads - 1; k >= 0; k--)
            MPI_Send(&k, 1, MPI_INT, test.peer_up, HANDED_TAG + k,
                     MPI_COMM_WORLD);
    MPI_Wait(&test.handed[t], MPI_STATUS_IGNORE);
    CHECK(test.handed_value[t] == t, "handed request %d got %d", t,
          test.handed_value[t]);
    pthread_barrier_wait(&test.together);
}

static void collectives(int t)
{
    for (int i = 0; i < test.rounds / 4 + 1; i++) {
        int mine = check_rank() + t + i;
        int sum = 0;
        int want =
            check_size() * (check_size() - 1) / 2 + check_size() * (t + i);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, test.comms[t]);
        CHECK(sum == want, "thread %d, allreduce %d: %d, not %d", t, i, sum,
              want);
        MPI_Barrier(test.comms[t]);
    }
}

/* All threads at once. */
static void hints(int t)
{
    char command[2] = "";
    int is_set = 0;
    void *memory = NULL;

    pthread_barrier_wait(&test.together);
    if (t % 2 == 0) {
        MPI_Info_get(MPI_INFO_ENV, "command", 1, command, &is_set);
        CHECK(is_set, "MPI_INFO_ENV has no command");
    } else {
        CHECK(!MPI_Alloc_mem(8, MPI_INFO_ENV, &memory), "memory");
        MPI_Free_mem(memory);
    }
    for (int i = 0; i < ASKED; i++) {
        MPI_Info info = MPI_INFO_NULL;
        char value[8] = "";
        int flag = 0;

        pthread_barrier_wait(&test.together);
        MPI_Comm_get_info(test.asked[i], &info);
        MPI_Info_get(info, "mpi_assert_no_any_tag", sizeof(value) - 1, value,
                     &flag);
        CHECK(flag && strcmp(value, "false") == 0, "hint %s of communicator %d",
              flag ? value : "(none)", i);
        MPI_Info_free(&info);
    }
}

static void *run(void *arg)
{
    int t = *(int *)arg;

    exchange(t);
    pthread_barrier_wait(&test.together);
    share(t);
    pthread_barrier_wait(&test.together);
    matched(t);
    pthread_barrier_wait(&test.together);
    asleep(t);
    pthread_barrier_wait(&test.together);
    handed(t);
    collectives(t);
    hints(t);
    return NULL;
}

int main(int argc, char **argv)
{
    int numbers[THREADS_MAX];
    int is_main = 0;

    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    test.threads = (int)check_arg(argc, argv, 1, 4);
    test.rounds = (int)check_arg(argc, argv, 2, 100);
    CHECK_OR_DIE(test.threads >= 1 && test.threads <= THREADS_MAX,
                 "1 to %d threads", THREADS_MAX);
    test.peer_up = (check_rank() + 1) % check_size();
    test.peer_down = (check_rank() + check_size() - 1) % check_size();
    pthread_barrier_init(&test.together, NULL, (unsigned)test.threads);
    for (int t = 0; t < test.threads; t++)
        MPI_Comm_dup(MPI_COMM_WORLD, &test.comms[t]);
    for (int i = 0; i < ASKED; i++)
        MPI_Comm_dup(MPI_COMM_SELF, &test.asked[i]);
    for (int t = 0; t < test.threads; t++)
        numbers[t] = t;
    check_run_threads(test.threads, run, numbers, sizeof(numbers[0]));
    long long count = (long long)test.threads * test.rounds;
    CHECK(atomic_load(&test.sum) == count * (count - 1) / 2,
          "shared receives lost or doubled a message");
    CHECK(atomic_load(&test.taken) == count, "matched probes took %d",
          atomic_load(&test.taken));
    MPI_Is_thread_main(&is_main);
    CHECK(is_main, "the main thread is not main");
    for (int t = 0; t < test.threads; t++)
        MPI_Comm_free(&test.comms[t]);
    for (int i = 0; i < ASKED; i++)
        MPI_Comm_free(&test.asked[i]);
    pthread_barrier_destroy(&test.together);
    return check_finish();
}
