/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistent requests: all modes, restarted many times; inactive requests. */
#include "check.h"

#define ROUNDS 50

static const int lens[] = {0, 16, 3000, 70000, 400000};
#define LEN_COUNT ((int)(sizeof(lens) / sizeof(lens[0])))
enum { KINDS = 4 };

static void inactive_is_empty(MPI_Request *request)
{
    MPI_Status status;
    int flag = 0;
    int count = -1;

    MPI_Wait(request, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(*request != MPI_REQUEST_NULL, "wait freed an inactive request");
    CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG,
          "status of an inactive request is not empty: %d %d",
          status.MPI_SOURCE, status.MPI_TAG);
    CHECK(count == 0, "count of an empty status is %d", count);
    MPI_Test(request, &flag, &status);
    CHECK(flag && *request != MPI_REQUEST_NULL, "test of an inactive request");
}

static void init_send(int kind, void *data, int len, MPI_Request *request)
{
    if (kind == 0)
        MPI_Send_init(data, len, MPI_BYTE, 1, kind, MPI_COMM_WORLD, request);
    else if (kind == 1)
        MPI_Ssend_init(data, len, MPI_BYTE, 1, kind, MPI_COMM_WORLD, request);
    else if (kind == 2)
        MPI_Bsend_init(data, len, MPI_BYTE, 1, kind, MPI_COMM_WORLD, request);
    else
        MPI_Rsend_init(data, len, MPI_BYTE, 1, kind, MPI_COMM_WORLD, request);
}

static void sender(int len, void **data, MPI_Request *requests)
{
    int attach = 2 * (len + MPI_BSEND_OVERHEAD);
    void *space = check_alloc((size_t)attach);

    MPI_Buffer_attach(space, attach);
    for (int k = 0; k < KINDS; k++)
        init_send(k, data[k], len, &requests[k]);
    inactive_is_empty(&requests[0]);
    for (int i = 0; i < ROUNDS; i++) {
        /* The receiver has posted (ready mode). */
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int k = 0; k < KINDS; k++)
            check_fill(data[k], (size_t)len, (uint64_t)(i * KINDS + k));
        if (i % 2 == 0)
            MPI_Startall(KINDS, requests);
        else
            for (int k = 0; k < KINDS; k++)
                MPI_Start(&requests[k]);
        MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE);
    }
    for (int k = 0; k < KINDS; k++)
        MPI_Request_free(&requests[k]);
    MPI_Buffer_detach(&space, &attach);
    free(space);
}

static void receiver(int len, void **data, MPI_Request *requests)
{
    MPI_Status statuses[KINDS];

    for (int k = 0; k < KINDS; k++)
        MPI_Recv_init(data[k], len, MPI_BYTE, k == 1 ? MPI_ANY_SOURCE : 0, k,
                      MPI_COMM_WORLD, &requests[k]);
    inactive_is_empty(&requests[1]);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Startall(KINDS, requests);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 99, MPI_COMM_WORLD);
        MPI_Waitall(KINDS, requests, statuses);
        for (int k = 0; k < KINDS; k++) {
            int count = -1;
            MPI_Get_count(&statuses[k], MPI_BYTE, &count);
            CHECK(count == len && statuses[k].MPI_SOURCE == 0 &&
                      statuses[k].MPI_TAG == k,
                  "round %d, kind %d: wrong status", i, k);
            CHECK(check_differs(data[k], (size_t)len,
                                (uint64_t)(i * KINDS + k)) == SIZE_MAX,
                  "round %d, kind %d, %d bytes: wrong data", i, k, len);
        }
    }
    for (int k = 0; k < KINDS; k++) {
        CHECK(requests[k] != MPI_REQUEST_NULL, "persistent request vanished");
        MPI_Request_free(&requests[k]);
        CHECK(requests[k] == MPI_REQUEST_NULL, "freed request is not null");
    }
}

int main(int argc, char **argv)
{
    MPI_Request requests[KINDS];
    void *data[KINDS];

    check_start(&argc, &argv);
    check_need(2);
    for (int i = 0; i < LEN_COUNT; i++) {
        for (int k = 0; k < KINDS; k++)
            data[k] = check_alloc((size_t)lens[i]);
        if (check_rank() == 0)
            sender(lens[i], data, requests);
        else if (check_rank() == 1)
            receiver(lens[i], data, requests);
        for (int k = 0; k < KINDS; k++)
            free(data[k]);
    }
    return check_finish();
}
