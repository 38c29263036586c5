/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a rank to itself: all sizes, posted early and late, order,
 * synchronous mode; and requests given up while they are pending. */
#include "check.h"

static const int lens[] = {0, 1, 60, 5000, 100000, 4000000};
#define LEN_COUNT ((int)(sizeof(lens) / sizeof(lens[0])))

static void to_myself(int len, bool receive_first, bool synchronous)
{
    char *out = check_alloc((size_t)len);
    char *in = check_alloc((size_t)len);
    MPI_Request send;
    MPI_Request receive;
    MPI_Status status;
    int count = -1;
    int me = check_rank();

    check_fill(out, (size_t)len, (uint64_t)len);
    if (receive_first)
        MPI_Irecv(in, len, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD,
                  &receive);
    if (synchronous)
        MPI_Issend(out, len, MPI_BYTE, me, 1, MPI_COMM_WORLD, &send);
    else
        MPI_Isend(out, len, MPI_BYTE, me, 1, MPI_COMM_WORLD, &send);
    if (!receive_first && synchronous) {
        int flag = 1;
        MPI_Test(&send, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "synchronous send to myself completed unmatched");
    }
    if (!receive_first)
        MPI_Irecv(in, len, MPI_BYTE, me, MPI_ANY_TAG, MPI_COMM_WORLD, &receive);
    MPI_Wait(&receive, &status);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == len && status.MPI_SOURCE == me && status.MPI_TAG == 1,
          "%d bytes to myself: wrong status", len);
    CHECK(check_differs(in, (size_t)len, (uint64_t)len) == SIZE_MAX,
          "%d bytes to myself: wrong data", len);
    free(in);
    free(out);
}

static void in_order(void)
{
    MPI_Request requests[100];
    int values[100];

    for (int i = 0; i < 100; i++) {
        values[i] = i;
        MPI_Isend(&values[i], 1, MPI_INT, 0, i % 3, MPI_COMM_SELF,
                  &requests[i]);
    }
    for (int i = 0; i < 100; i++) {
        int got = -1;
        MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF,
                 MPI_STATUS_IGNORE);
        CHECK(got == i, "message %d to myself came as number %d", got, i);
    }
    MPI_Waitall(100, requests, MPI_STATUSES_IGNORE);
}

/* Requests freed while pending: the communication still happens. Nothing says
 * when it is over, not even the data: an adapter whose link breaks writes all
 * of it again. So the buffers stay until MPI_Finalize has returned. */
static char *given[2 * LEN_COUNT];

static void given_up(int which)
{
    int len = lens[which];
    char *data = given[which] = check_alloc((size_t)len);
    MPI_Request request;
    int up = (check_rank() + 1) % check_size();
    int down = (check_rank() + check_size() - 1) % check_size();

    MPI_Irecv(data, len, MPI_BYTE, down, 5, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL, "freed request is not null");
    char *out = given[LEN_COUNT + which] = check_alloc((size_t)len);
    check_fill(out, (size_t)len, 9);
    MPI_Isend(out, len, MPI_BYTE, up, 5, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    /* Not overtaking: once this synchronous one is matched from the same
     * source, the one before it is matched; its data is waited for. */
    MPI_Sendrecv(NULL, 0, MPI_BYTE, up, 6, NULL, 0, MPI_BYTE, down, 6,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    /* An empty message has nothing to wait for. */
    while (len > 0 && check_differs(data, (size_t)len, 9) != SIZE_MAX) {
        int flag = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, 4000, MPI_COMM_WORLD, &flag,
                   MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    for (int i = 0; i < LEN_COUNT; i++) {
        to_myself(lens[i], true, false);
        to_myself(lens[i], false, false);
        to_myself(lens[i], true, true);
        to_myself(lens[i], false, true);
        given_up(i);
    }
    in_order();

    int status = check_finish();
    for (int i = 0; i < 2 * LEN_COUNT; i++)
        free(given[i]);
    return status;
}
