/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cancel: a posted receive that nothing matches must be cancelled; one that
 * is complete must not; a send is either cancelled (and then never seen) or
 * delivered, never both and never neither.
 *
 * usage: cancel [0: receives only]
 */
#include "check.h"

#define TAG 3
#define WORD 4

static const int lens[] = {0, 30, 3000, 60000, 500000};
#define LEN_COUNT ((int)(sizeof(lens) / sizeof(lens[0])))

static int cancel_and_wait(MPI_Request *request)
{
    MPI_Status status;
    int cancelled = -1;

    MPI_Cancel(request);
    MPI_Wait(request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(*request == MPI_REQUEST_NULL, "request lives on after cancel");
    return cancelled;
}

static void cancel_receives(void)
{
    int sources[] = {0, MPI_ANY_SOURCE, 0, MPI_ANY_SOURCE};
    int tags[] = {TAG, TAG, MPI_ANY_TAG, MPI_ANY_TAG};
    char data[100];

    for (int i = 0; i < 4; i++) {
        MPI_Request request;
        MPI_Irecv(data, (int)sizeof(data), MPI_BYTE, sources[i], tags[i],
                  MPI_COMM_SELF, &request);
        CHECK(cancel_and_wait(&request) == 1,
              "unmatched receive %d was not cancelled", i);
    }
}

/* What was sent to oneself is cancelled at the first look. */
static void cancel_sends_to_self(void)
{
    char data[100] = "";

    for (int i = 0; i < 3; i++) {
        MPI_Request request;
        MPI_Status status;
        int is_complete = 0;
        int is_cancelled = 0;

        if (i == 0)
            MPI_Isend(data, (int)sizeof(data), MPI_BYTE, 0, TAG, MPI_COMM_SELF,
                      &request);
        else if (i == 1)
            MPI_Issend(data, (int)sizeof(data), MPI_BYTE, 0, TAG, MPI_COMM_SELF,
                       &request);
        else
            MPI_Isend(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_SELF, &request);
        MPI_Cancel(&request);
        MPI_Request_get_status(request, &is_complete, &status);
        CHECK(is_complete, "send %d to oneself is not complete", i);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &is_cancelled);
        CHECK(is_cancelled, "send %d to oneself was not cancelled", i);
    }
}

/* Cancel the middle one of three; the message goes to the other two. */
static void cancel_between(void)
{
    MPI_Request requests[3];
    int values[3] = {0, 0, 0};

    if (check_rank() == 1) {
        for (int i = 0; i < 3; i++)
            MPI_Irecv(&values[i], 1, MPI_INT, 0, TAG, MPI_COMM_WORLD,
                      &requests[i]);
        CHECK(cancel_and_wait(&requests[1]) == 1, "middle not cancelled");
        MPI_Send(NULL, 0, MPI_BYTE, 0, WORD, MPI_COMM_WORLD);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        CHECK(values[0] == 10 && values[1] == 0 && values[2] == 20,
              "messages went to %d %d %d", values[0], values[1], values[2]);
    } else if (check_rank() == 0) {
        values[0] = 10;
        values[1] = 20;
        MPI_Recv(NULL, 0, MPI_BYTE, 1, WORD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&values[0], 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        MPI_Send(&values[1], 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
    }
}

static void cancel_complete(void)
{
    MPI_Request request;
    MPI_Status status;
    int value = 0;
    int flag = 0;

    if (check_rank() == 0) {
        value = 5;
        MPI_Send(&value, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
    } else if (check_rank() == 1) {
        MPI_Irecv(&value, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request);
        while (!flag)
            MPI_Request_get_status(request, &flag, &status);
        CHECK(cancel_and_wait(&request) == 0 && value == 5,
              "a complete receive was cancelled");
    }
}

static void cancel_send(int len, bool synchronous)
{
    char *data = check_alloc((size_t)len);

    if (check_rank() == 0) {
        MPI_Request request;
        if (synchronous)
            MPI_Issend(data, len, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
        else
            MPI_Isend(data, len, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
        int cancelled = cancel_and_wait(&request);
        MPI_Send(&cancelled, 1, MPI_INT, 1, WORD, MPI_COMM_WORLD);
    } else if (check_rank() == 1) {
        int cancelled = 0;
        int flag = 0;
        MPI_Recv(&cancelled, 1, MPI_INT, 0, WORD, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (!cancelled)
            MPI_Recv(data, len, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Iprobe(0, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "a cancelled send of %d bytes was delivered", len);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* the next message may not be probed here */
    free(data);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    cancel_receives();
    cancel_sends_to_self();
    cancel_between();
    cancel_complete();
    /* A synchronous send completes only when cancelled or received, so it is
     * cancelled for certain here: nobody receives it before the word. */
    for (int i = 0; i < LEN_COUNT && check_arg(argc, argv, 1, 1); i++) {
        cancel_send(lens[i], true);
        cancel_send(lens[i], false);
    }
    return check_finish();
}
