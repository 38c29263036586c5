/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partitioned communication: partitions of different counts on both sides,
 * data with gaps, order of matching, partitions that arrive before others are
 * ready, several threads that mark partitions, and what must fail.
 */
#include <pthread.h>

#include "check.h"

enum { ROUNDS = 3, THREADS = 4 };

static int other(void)
{
    return check_rank() ^ 1;
}

/* ---- counts on both sides ---- */

struct shape {
    int sends;
    int recvs;
    int total; /* ints */
};

static void fill(int *data, int total, int round)
{
    check_fill(data, sizeof(int) * (size_t)total, (uint64_t)round);
}

static void send_round(MPI_Request *request, const struct shape *s, int round)
{
    int step = 7; /* prime to all counts here: an order of its own */

    CHECK(MPI_Start(request) == MPI_SUCCESS, "start");
    if (round == 0) {
        MPI_Pready_range(0, s->sends - 1, *request);
    } else if (round == 1) {
        for (int i = 0; i < s->sends; i++)
            MPI_Pready(s->sends - 1 - i, *request);
    } else {
        int *list = check_alloc(sizeof(int) * (size_t)s->sends);

        for (int i = 0; i < s->sends; i++)
            list[i] = (int)((long)i * step % s->sends);
        MPI_Pready_list(s->sends, list, *request);
        free(list);
    }
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void recv_round(MPI_Request *request, const struct shape *s, int round)
{
    MPI_Status status;
    int count;

    MPI_Start(request);
    for (int p = 0; round == 2 && p < s->recvs; p++) {
        int flag = 0;

        while (!flag)
            MPI_Parrived(*request, p, &flag);
    }
    MPI_Wait(request, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(status.MPI_SOURCE == other() && status.MPI_TAG == 5 &&
              count == s->total,
          "%d to %d partitions: status says %d, %d, %d ints", s->sends,
          s->recvs, status.MPI_SOURCE, status.MPI_TAG, count);
}

static void check_shape(const struct shape *s)
{
    int *data = check_alloc(sizeof(int) * (size_t)s->total);
    MPI_Request request;

    if (check_rank() == 0)
        MPI_Psend_init(data, s->sends, s->total / s->sends, MPI_INT, 1, 5,
                       MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    else
        MPI_Precv_init_c(data, s->recvs, s->total / s->recvs, MPI_INT, 0, 5,
                         MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < ROUNDS; round++) {
        if (check_rank() == 0) {
            fill(data, s->total, round);
            send_round(&request, s, round);
            continue;
        }
        recv_round(&request, s, round);
        CHECK(check_differs(data, sizeof(int) * (size_t)s->total,
                            (uint64_t)round) == SIZE_MAX,
              "%d to %d partitions of %d ints, round %d", s->sends, s->recvs,
              s->total, round);
    }
    MPI_Request_free(&request);
    free(data);
}

static void shapes(void)
{
    static const struct shape all[] = {
        {1, 1, 1},           {1, 8, 64},
        {8, 1, 64},          {6, 4, 24},
        {5, 5, 0},           {3, 8, 0},
        {16, 12, 960},       {64, 1, 64 * 40000},
        {1, 64, 64 * 40000}, {12, 30, 60 * 20000},
        {1000, 10, 5000}};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        check_shape(&all[i]);
}

/* ---- data with gaps, cut in the middle of an element ---- */

enum { PAIRS = 6 * 1000 };

static void gaps(int blocks)
{
    /* An element of the receiver has two ints; partitions of the sender have
     * an odd number of them. */
    int total = 2 * PAIRS;
    int *data = check_alloc(sizeof(int) * 4 * PAIRS);
    MPI_Datatype two;
    MPI_Datatype pair;
    MPI_Request request;

    MPI_Type_vector(2, 1, 2, MPI_INT, &two);
    MPI_Type_create_resized(two, 0, 4 * sizeof(int), &pair);
    MPI_Type_free(&two);
    MPI_Type_commit(&pair);
    if (check_rank() == 0) {
        for (int i = 0; i < total; i++)
            data[i] = i + 1;
        MPI_Psend_init(data, blocks, total / blocks, MPI_INT, 1, 0,
                       MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        for (int i = blocks - 1; i >= 0; i--)
            MPI_Pready(i, request);
    } else {
        MPI_Precv_init(data, 3, PAIRS / 3, pair, 0, 0, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
        MPI_Start(&request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; check_rank() == 1 && i < 4 * PAIRS; i++)
        if (data[i] != (i % 2 ? 0 : i / 2 + 1)) {
            CHECK(false, "gaps, %d blocks: int %d is %d", blocks, i, data[i]);
            break;
        }
    MPI_Request_free(&request);
    MPI_Type_free(&pair);
    free(data);
}

/* ---- matching ---- */

/* Three operations with one tag, started in another order; ordinary messages
 * with the same tag and a receive of any tag do not meet them. */
static void order(void)
{
    MPI_Request requests[3];
    MPI_Request any;
    int data[3] = {0, 0, 0};
    int plain = 0;

    for (int i = 0; i < 3; i++)
        if (check_rank() == 0)
            MPI_Psend_init(&data[i], 1, 1, MPI_INT, 1, 9, MPI_COMM_WORLD,
                           MPI_INFO_NULL, &requests[i]);
        else
            MPI_Precv_init(&data[i], 1, 1, MPI_INT, 0, 9, MPI_COMM_WORLD,
                           MPI_INFO_NULL, &requests[i]);
    if (check_rank() == 1)
        MPI_Irecv(&plain, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
                  MPI_COMM_WORLD, &any);
    for (int round = 0; round < 2; round++) {
        for (int i = 2; i >= 0; i--) {
            data[i] = check_rank() == 0 ? 100 * round + i : -1;
            MPI_Start(&requests[i]);
            if (check_rank() == 0)
                MPI_Pready(0, requests[i]);
        }
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 3; i++)
            CHECK(data[i] == 100 * round + i, "order: operation %d got %d", i,
                  data[i]);
    }
    if (check_rank() == 0) {
        plain = 77;
        MPI_Send(&plain, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
    } else {
        MPI_Wait(&any, MPI_STATUS_IGNORE);
        CHECK(plain == 77, "a plain message brought %d", plain);
    }
    for (int i = 0; i < 3; i++)
        MPI_Request_free(&requests[i]);
}

/* A pair that is never started does not take part in what follows. */
static void never_started(void)
{
    MPI_Request request;
    int data = check_rank() == 0 ? 4 : 0;

    for (int turn = 0; turn < 2; turn++) {
        if (check_rank() == 0)
            MPI_Psend_init(&data, 1, 1, MPI_INT, 1, 3, MPI_COMM_WORLD,
                           MPI_INFO_NULL, &request);
        else
            MPI_Precv_init(&data, 1, 1, MPI_INT, 0, 3, MPI_COMM_WORLD,
                           MPI_INFO_NULL, &request);
        if (turn == 1) {
            MPI_Start(&request);
            if (check_rank() == 0)
                MPI_Pready(0, request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK(data == 4, "after one never started: %d", data);
        }
        MPI_Request_free(&request);
    }
}

/* The sender marks a partition only after the receiver has seen the one
 * before: it hangs unless partitions travel by themselves. */
static void early(int count)
{
    enum { PARTS = 5 };
    int *data = check_alloc(sizeof(int) * (size_t)count * PARTS);
    MPI_Request request;
    int token = 0;
    int flag;

    if (check_rank() == 0)
        MPI_Psend_init(data, PARTS, count, MPI_INT, 1, 0, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
    else
        MPI_Precv_init(data, PARTS, count, MPI_INT, 0, 0, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
    MPI_Start(&request);
    for (int p = PARTS - 1; p >= 0; p--) {
        if (check_rank() == 0) {
            for (int i = 0; i < count; i++)
                data[p * count + i] = p;
            MPI_Pready(p, request);
            MPI_Recv(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            continue;
        }
        if (p > 0) {
            MPI_Parrived(request, 0, &flag);
            CHECK(!flag, "partition 0 arrived before it was ready");
        }
        do
            MPI_Parrived(request, p, &flag);
        while (!flag);
        CHECK(data[p * count] == p && data[p * count + count - 1] == p,
              "partition %d of %d ints is wrong", p, count);
        MPI_Send(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (check_rank() == 1) {
        MPI_Parrived(request, 0, &flag);
        CHECK(flag, "inactive, but not arrived");
    }
    MPI_Request_free(&request);
    free(data);
}

/* ---- threads ---- */

struct job {
    MPI_Request request;
    int first;
    int count;
};

static void *mark(void *arg)
{
    const struct job *job = arg;

    for (int i = 0; i < job->count; i++)
        CHECK(MPI_Pready(job->first + i, job->request) == MPI_SUCCESS,
              "ready %d", job->first + i);
    return NULL;
}

static void *await(void *arg)
{
    const struct job *job = arg;

    for (int i = 0; i < job->count; i++) {
        int flag = 0;

        while (!flag)
            MPI_Parrived(job->request, job->first + i, &flag);
    }
    return NULL;
}

static void threads(int each)
{
    int total = THREADS * each;
    int *data = check_alloc(sizeof(int) * 100 * (size_t)total);
    MPI_Request request;

    if (check_rank() == 0)
        MPI_Psend_init(data, total, 100, MPI_INT, 1, 2, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
    else
        MPI_Precv_init(data, total, 100, MPI_INT, 0, 2, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t ids[THREADS];
        struct job jobs[THREADS];

        if (check_rank() == 0)
            fill(data, 100 * total, round);
        MPI_Start(&request);
        for (int t = 0; t < THREADS; t++) {
            jobs[t] = (struct job){request, t * each, each};
            pthread_create(&ids[t], NULL, check_rank() == 0 ? mark : await,
                           &jobs[t]);
        }
        for (int t = 0; t < THREADS; t++)
            pthread_join(ids[t], NULL);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(check_differs(data, sizeof(int) * 100 * (size_t)total,
                            (uint64_t)round) == SIZE_MAX,
              "threads, round %d", round);
    }
    MPI_Request_free(&request);
    free(data);
}

/* ---- MPI_PROC_NULL, itself, errors ---- */

static void nobody(void)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int data = 1;
    int flag = 0;

    MPI_Psend_init(&data, 3, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(&data, 2, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &requests[1]);
    MPI_Startall(2, requests);
    MPI_Pready_range(0, 2, requests[0]);
    MPI_Parrived(requests[1], 1, &flag);
    CHECK(flag, "nothing has not arrived");
    MPI_Waitall(2, requests, statuses);
    CHECK(statuses[1].MPI_SOURCE == MPI_PROC_NULL && data == 1,
          "a receive from nobody");
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void itself(void)
{
    MPI_Request requests[2];
    int out[6] = {1, 2, 3, 4, 5, 6};
    int in[6] = {0};

    MPI_Precv_init(in, 2, 3, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL,
                   &requests[1]);
    MPI_Psend_init(out, 3, 2, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL,
                   &requests[0]);
    MPI_Startall(2, requests);
    MPI_Pready_range(0, 2, requests[0]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(memcmp(in, out, sizeof(in)) == 0, "to itself");
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void errors(void)
{
    MPI_Request send;
    MPI_Request recv;
    int out[2] = {1, 2};
    int in[2];
    int flag;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(check_class(MPI_Psend_init(out, -1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD,
                                     MPI_INFO_NULL, &send)) == MPI_ERR_ARG,
          "a negative number of partitions");
    CHECK(check_class(MPI_Precv_init(in, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0,
                                     MPI_COMM_WORLD, MPI_INFO_NULL, &recv)) ==
              MPI_ERR_RANK,
          "any source");
    CHECK(check_class(MPI_Precv_init(in, 1, 1, MPI_INT, other(), MPI_ANY_TAG,
                                     MPI_COMM_WORLD, MPI_INFO_NULL, &recv)) ==
              MPI_ERR_TAG,
          "any tag");
    MPI_Psend_init(out, 2, 1, MPI_INT, other(), 0, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &send);
    MPI_Precv_init(in, 1, 2, MPI_INT, other(), 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &recv);
    CHECK(check_class(MPI_Pready(0, send)) == MPI_ERR_REQUEST, "not started");
    MPI_Start(&send);
    MPI_Start(&recv);
    CHECK(check_class(MPI_Pready(2, send)) == MPI_ERR_ARG, "no such partition");
    CHECK(check_class(MPI_Pready(0, recv)) == MPI_ERR_REQUEST, "of a receive");
    CHECK(MPI_Pready(0, send) == MPI_SUCCESS, "the first");
    CHECK(check_class(MPI_Pready(0, send)) == MPI_ERR_ARG, "twice");
    CHECK(check_class(MPI_Pready_range(1, 0, send)) == MPI_ERR_ARG, "empty");
    CHECK(check_class(MPI_Parrived(send, 0, &flag)) == MPI_ERR_REQUEST,
          "arrived at a sender");
    CHECK(check_class(MPI_Parrived(recv, 1, &flag)) == MPI_ERR_ARG,
          "no such partition of the receive");
    CHECK(MPI_Pready(1, send) == MPI_SUCCESS, "the second");
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&recv, MPI_STATUS_IGNORE);
    MPI_Request_free(&send);
    MPI_Request_free(&recv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* The sender has more than the receiver has room for. */
static void too_long(void)
{
    MPI_Request request;
    int data[4] = {1, 2, 3, 4};

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (check_rank() == 0) {
        MPI_Psend_init(data, 4, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
        MPI_Start(&request);
        MPI_Pready_range(0, 3, request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        data[3] = -1;
        MPI_Precv_init(data, 1, 3, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
        MPI_Start(&request);
        CHECK(check_class(MPI_Wait(&request, MPI_STATUS_IGNORE)) ==
                  MPI_ERR_TRUNCATE,
              "too long, but no error");
        CHECK(data[3] == -1, "written beyond the buffer");
    }
    MPI_Request_free(&request);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    check_need(2);
    shapes();
    gaps(6);
    gaps(4000);
    gaps(32);
    order();
    never_started();
    early(1);
    early(100000);
    threads(50);
    nobody();
    itself();
    errors();
    too_long();
    return check_finish();
}
