/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short sends that are over when MPI_Isend returns: all calls that complete
 * requests know them, alone and among others that are pending, and MPI_Cancel
 * takes back each that nobody has received, by any copy of the handle, however
 * many were sent since.
 *
 * usage: light_sends [threads]
 */
#include "check.h"

enum { MANY = 200, EACH = 3, TAG = 3, WORD = 4, LATE = 5, LARGE = 1 << 21 };

enum way { WAIT, WAITALL, WAITANY, WAITSOME, TESTALL, TESTANY, TESTSOME, WAYS };

/* Whose messages they are: a communicator of their own. */
struct pair {
    MPI_Comm comm;
};

static void expect_empty(const MPI_Status *status, const char *call)
{
    int count = -1;
    int is_cancelled = 1;

    MPI_Get_count(status, MPI_BYTE, &count);
    MPI_Test_cancelled(status, &is_cancelled);
    CHECK(status->MPI_SOURCE == MPI_ANY_SOURCE &&
              status->MPI_TAG == MPI_ANY_TAG && count == 0 && !is_cancelled,
          "%s: source %d, tag %d, %d bytes, cancelled %d", call,
          status->MPI_SOURCE, status->MPI_TAG, count, is_cancelled);
}

static MPI_Status poison(void)
{
    MPI_Status status;

    memset(&status, 0x55, sizeof(status));
    return status;
}

static void send_one(MPI_Request *request)
{
    static const int value = 7;

    MPI_Isend(&value, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, request);
}

/* How many messages that sends. */
static int complete_single(void)
{
    MPI_Request request;
    MPI_Status status = poison();
    int flag = 0;

    send_one(&request);
    for (int i = 0; i < 2; i++) {
        MPI_Request_get_status(request, &flag, &status);
        CHECK(flag && request != MPI_REQUEST_NULL, "get_status");
        expect_empty(&status, "get_status");
        status = poison();
    }
    MPI_Wait(&request, &status);
    CHECK(request == MPI_REQUEST_NULL, "wait");
    expect_empty(&status, "wait");
    send_one(&request);
    status = poison();
    MPI_Test(&request, &flag, &status);
    CHECK(flag && request == MPI_REQUEST_NULL, "test");
    expect_empty(&status, "test");
    send_one(&request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL, "free");
    return 3;
}

/* Beside a receive that is pending, and a request that is none. */
static int complete_among(MPI_Request pending)
{
    MPI_Request r[5] = {MPI_REQUEST_NULL, pending};
    MPI_Status statuses[5];
    int indices[5];
    int index = -1;
    int count = -1;
    int flag = 0;

    for (int i = 2; i < 5; i++)
        send_one(&r[i]);
    MPI_Testall(5, r, &flag, statuses);
    CHECK(!flag && r[2] != MPI_REQUEST_NULL, "testall");
    statuses[0] = poison();
    MPI_Waitany(5, r, &index, &statuses[0]);
    CHECK(index == 2 && r[2] == MPI_REQUEST_NULL, "waitany: %d", index);
    expect_empty(&statuses[0], "waitany");
    MPI_Waitsome(5, r, &count, indices, statuses);
    CHECK(count == 2 && indices[0] == 3 && indices[1] == 4, "waitsome: %d",
          count);
    expect_empty(&statuses[0], "waitsome");
    expect_empty(&statuses[1], "waitsome");
    for (int i = 2; i < 5; i++)
        send_one(&r[i]);
    MPI_Testany(5, r, &index, &flag, &statuses[0]);
    CHECK(flag && index == 2, "testany: %d", index);
    MPI_Testsome(5, r, &count, indices, statuses);
    CHECK(count == 2 && indices[0] == 3 && r[4] == MPI_REQUEST_NULL,
          "testsome: %d", count);
    MPI_Testsome(5, r, &count, indices, statuses);
    CHECK(count == 0, "testsome of the pending one: %d", count);
    return 6;
}

/* The large one is pending until the receiver has heard of it. */
static int complete_all(MPI_Request pending, char *large)
{
    MPI_Request r[4] = {pending, MPI_REQUEST_NULL};
    MPI_Status statuses[4];

    send_one(&r[1]);
    MPI_Isend(large, LARGE, MPI_BYTE, 1, LATE, MPI_COMM_WORLD, &r[2]);
    send_one(&r[3]);
    for (int i = 0; i < 4; i++)
        statuses[i] = poison();
    MPI_Send(NULL, 0, MPI_BYTE, 1, WORD, MPI_COMM_WORLD);
    MPI_Waitall(4, r, statuses);
    CHECK(statuses[0].MPI_SOURCE == 1 && statuses[0].MPI_TAG == WORD,
          "waitall: the receive");
    for (int i = 1; i < 4; i++) {
        expect_empty(&statuses[i], "waitall");
        CHECK(r[i] == MPI_REQUEST_NULL, "waitall: %d", i);
    }
    return 2;
}

/* The first messages may have to wait for a connection. */
static void meet(void)
{
    if (check_rank() < 2)
        MPI_Sendrecv(NULL, 0, MPI_BYTE, 1 - check_rank(), WORD, NULL, 0,
                     MPI_BYTE, 1 - check_rank(), WORD, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
}

static void completions(void)
{
    char *large = check_alloc(LARGE);
    MPI_Request pending;
    int value = 0;
    int sent = 0;

    meet();
    if (check_rank() == 0) {
        MPI_Irecv(NULL, 0, MPI_BYTE, 1, WORD, MPI_COMM_WORLD, &pending);
        sent += complete_single();
        sent += complete_among(pending);
        sent += complete_all(pending, large);
        MPI_Send(&sent, 1, MPI_INT, 1, LATE, MPI_COMM_WORLD);
    } else if (check_rank() == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, WORD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(large, LARGE, MPI_BYTE, 0, LATE, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, 0, WORD, MPI_COMM_WORLD);
        MPI_Recv(&sent, 1, MPI_INT, 0, LATE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < sent; i++) {
            MPI_Recv(&value, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            CHECK(value == 7, "message %d of %d: %d", i, sent, value);
        }
    }
    free(large);
}

/* ---- cancelling ---- */

static bool is_cancelled(const MPI_Status *status)
{
    int flag = -1;

    MPI_Test_cancelled(status, &flag);
    return flag == 1;
}

/* Complete all, with the statuses in place. */
static void complete(MPI_Request *r, MPI_Status *statuses, enum way way)
{
    static const char *const names[] = {"wait",     "waitall", "waitany",
                                        "waitsome", "testall", "testany",
                                        "testsome"};
    MPI_Status *some = check_alloc(MANY * sizeof(*some));
    int *indices = check_alloc(MANY * sizeof(*indices));
    int left = MANY;
    int flag = 0;

    if (way == WAITALL) {
        MPI_Waitall(MANY, r, statuses);
        left = 0;
    }
    while (way == TESTALL && !flag) {
        MPI_Testall(MANY, r, &flag, statuses);
        left = 0;
    }
    while (left > 0) {
        int count = 1;

        if (way == WAIT) {
            indices[0] = MANY - left;
            MPI_Wait(&r[indices[0]], some);
        } else if (way == WAITANY) {
            MPI_Waitany(MANY, r, indices, some);
        } else if (way == TESTANY) {
            MPI_Testany(MANY, r, indices, &count, some);
        } else if (way == WAITSOME) {
            MPI_Waitsome(MANY, r, &count, indices, some);
        } else {
            MPI_Testsome(MANY, r, &count, indices, some);
        }
        CHECK_OR_DIE(count <= left, "%s: %d", names[way], count);
        for (int i = 0; i < count; i++)
            statuses[indices[i]] = some[i];
        left -= count;
    }
    for (int i = 0; i < MANY; i++)
        CHECK(r[i] == MPI_REQUEST_NULL, "%s: request %d", names[way], i);
    free(some);
    free(indices);
}

/* Each third of many is cancelled by a copy of its handle, twice. */
static void cancel_many(const struct pair *pair, enum way way)
{
    MPI_Request *r = check_alloc(MANY * sizeof(*r));
    MPI_Status *statuses = check_alloc(MANY * sizeof(*statuses));
    int *values = check_alloc(MANY * sizeof(*values));
    int flag = 0;
    int got = -1;

    if (check_rank() == 0) {
        for (int i = 0; i < MANY; i++) {
            values[i] = i;
            MPI_Isend(&values[i], 1, MPI_INT, 1, TAG, pair->comm, &r[i]);
        }
        for (int i = 0; i < 2 * MANY; i++) {
            MPI_Request copy = r[i % MANY];

            if (i % MANY % EACH == 0)
                MPI_Cancel(&copy);
        }
        complete(r, statuses, way);
        for (int i = 0; i < MANY; i++)
            CHECK(is_cancelled(&statuses[i]) == (i % EACH == 0),
                  "message %d in way %d: %d", i, (int)way,
                  is_cancelled(&statuses[i]));
        MPI_Send(NULL, 0, MPI_BYTE, 1, WORD, pair->comm);
    } else if (check_rank() == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, WORD, pair->comm, MPI_STATUS_IGNORE);
        for (int i = 0; i < MANY; i++) {
            if (i % EACH == 0)
                continue;
            MPI_Recv(&got, 1, MPI_INT, 0, TAG, pair->comm, MPI_STATUS_IGNORE);
            CHECK(got == i, "message %d in way %d: %d", i, (int)way, got);
        }
        MPI_Iprobe(0, TAG, pair->comm, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "a message that was cancelled, in way %d", (int)way);
        MPI_Send(NULL, 0, MPI_BYTE, 0, WORD, pair->comm);
    }
    if (check_rank() == 0)
        MPI_Recv(NULL, 0, MPI_BYTE, 1, WORD, pair->comm, MPI_STATUS_IGNORE);
    free(r);
    free(statuses);
    free(values);
}

/* It was received; the next one was not. */
static void cancel_late(const struct pair *pair)
{
    MPI_Request r[2];
    MPI_Status status;
    int values[2] = {1, 2};
    int flag = 0;

    if (check_rank() == 0) {
        for (int i = 0; i < 2; i++)
            MPI_Isend(&values[i], 1, MPI_INT, 1, TAG, pair->comm, &r[i]);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, WORD, pair->comm, MPI_STATUS_IGNORE);
        for (int i = 0; i < 2; i++) {
            MPI_Cancel(&r[i]);
            MPI_Wait(&r[i], &status);
            CHECK(is_cancelled(&status) == (i == 1), "message %d", i);
        }
        MPI_Send(NULL, 0, MPI_BYTE, 1, WORD, pair->comm);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, WORD, pair->comm, MPI_STATUS_IGNORE);
    } else if (check_rank() == 1) {
        MPI_Recv(&values[0], 1, MPI_INT, 0, TAG, pair->comm, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, 0, WORD, pair->comm);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, WORD, pair->comm, MPI_STATUS_IGNORE);
        MPI_Iprobe(0, TAG, pair->comm, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "a message that was cancelled");
        MPI_Send(NULL, 0, MPI_BYTE, 0, WORD, pair->comm);
    }
}

/* Nobody waits for it. */
static void cancel_and_free(const struct pair *pair)
{
    MPI_Request request;
    int value = 1;
    int flag = 0;

    if (check_rank() == 0) {
        MPI_Isend(&value, 1, MPI_INT, 1, TAG, pair->comm, &request);
        MPI_Cancel(&request);
        MPI_Request_free(&request);
        MPI_Send(NULL, 0, MPI_BYTE, 1, WORD, pair->comm);
    } else if (check_rank() == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, WORD, pair->comm, MPI_STATUS_IGNORE);
        MPI_Iprobe(0, TAG, pair->comm, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "a message that was cancelled and freed");
    }
}

/* Its communicator is gone by then, and its context is no other one's. */
static void cancel_freed(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    MPI_Comm comm;
    int value = 1;
    int next = 2;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (check_rank() == 0)
        MPI_Isend(&value, 1, MPI_INT, 1, TAG, comm, &request);
    MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (check_rank() == 0) {
        MPI_Send(&next, 1, MPI_INT, 1, TAG, comm);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        CHECK(is_cancelled(&status), "over a communicator that was freed");
    } else if (check_rank() == 1) {
        MPI_Recv(&value, 1, MPI_INT, 0, TAG, comm, MPI_STATUS_IGNORE);
        CHECK(value == next, "a message of a communicator that was freed");
    }
    MPI_Comm_free(&comm);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void *cancel(void *arg)
{
    const struct pair *pair = arg;

    for (int way = 0; way < WAYS; way++)
        cancel_many(pair, (enum way)way);
    cancel_late(pair);
    cancel_and_free(pair);
    return NULL;
}

/* ---- integers ---- */

static void convert(void)
{
    MPI_Request r[2];
    MPI_Status status;
    MPI_Fint number;
    int value = 0;
    int flag = 0;

    if (check_rank() == 0) {
        for (int i = 0; i < MANY; i++) {
            value = i;
            MPI_Isend(&value, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &r[0]);
            number = MPI_Request_c2f(r[0]);
            r[1] = MPI_Request_f2c(number);
            CHECK(r[1] == r[0], "round trip %d", i);
            if (i % EACH == 0)
                MPI_Cancel(&r[1]);
            MPI_Wait(&r[i % 2], &status);
            CHECK(is_cancelled(&status) == (i % EACH == 0), "number %d", i);
        }
        MPI_Send(NULL, 0, MPI_BYTE, 1, WORD, MPI_COMM_WORLD);
    } else if (check_rank() == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, WORD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < MANY; i++) {
            if (i % EACH == 0)
                continue;
            MPI_Recv(&value, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            CHECK(value == i, "message %d: %d", i, value);
        }
        MPI_Iprobe(0, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "a message that was cancelled by its number");
    }
}

int main(int argc, char **argv)
{
    enum { THREADS = 3 };
    struct pair pairs[THREADS];
    const bool has_threads = argc > 1 && strcmp(argv[1], "threads") == 0;

    if (has_threads)
        check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    else
        check_start(&argc, &argv);
    check_need(2);
    completions();
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_dup(MPI_COMM_WORLD, &pairs[t].comm);
    if (has_threads)
        check_run_threads(THREADS, cancel, pairs, sizeof(pairs[0]));
    else
        (void)cancel(&pairs[0]);
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_free(&pairs[t].comm);
    for (int i = 0; i < EACH; i++)
        cancel_freed();
    convert();
    return check_finish();
}
