/* SPDX-License-Identifier: BSD-3-Clause */
/* Probe and matched probe: what they see, and that a matched message is out
 * of every other receive's reach. */
#include "check.h"

static const int lens[] = {0, 40, 5000, 100000, 1500000};
#define LEN_COUNT ((int)(sizeof(lens) / sizeof(lens[0])))

static void check_status(const MPI_Status *status, int src, int tag, int len)
{
    int count = -1;

    MPI_Get_count(status, MPI_BYTE, &count);
    CHECK(status->MPI_SOURCE == src && status->MPI_TAG == tag && count == len,
          "status: from %d tag %d, %d bytes; expected %d, %d, %d",
          status->MPI_SOURCE, status->MPI_TAG, count, src, tag, len);
}

static void send_series(int tag, int len)
{
    char *data = check_alloc((size_t)len);
    MPI_Request requests[3];

    /* Two of the same tag, then one of another: three ways to take them. */
    check_fill(data, (size_t)len, (uint64_t)len);
    MPI_Isend(data, len, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(data, len / 2, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(data, len, MPI_BYTE, 1, tag + 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    free(data);
}

static void take_plain(int tag, int len, char *data)
{
    MPI_Status status;
    int flag = 0;

    MPI_Probe(0, tag, MPI_COMM_WORLD, &status);
    check_status(&status, 0, tag, len);
    while (!flag)
        MPI_Iprobe(MPI_ANY_SOURCE, tag + 1, MPI_COMM_WORLD, &flag, &status);
    check_status(&status, 0, tag + 1, len);
    MPI_Recv(data, len, MPI_BYTE, 0, tag + 1, MPI_COMM_WORLD, &status);
    CHECK(check_differs(data, (size_t)len, (uint64_t)len) == SIZE_MAX,
          "wrong data after Iprobe");
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    check_status(&status, 0, tag, len);
    MPI_Recv(data, len, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &status);
    MPI_Recv(data, len, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &status);
    check_status(&status, 0, tag, len / 2);
}

static void take_matched(int tag, int len, char *data)
{
    MPI_Message first = MPI_MESSAGE_NULL;
    MPI_Message third = MPI_MESSAGE_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    int flag = 0;

    MPI_Mprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &first, &status);
    check_status(&status, 0, tag, len);
    CHECK(first != MPI_MESSAGE_NULL, "Mprobe gave the null message");
    while (!flag)
        MPI_Improbe(0, tag + 1, MPI_COMM_WORLD, &flag, &third, &status);
    check_status(&status, 0, tag + 1, len);
    /* The first one is taken: a receive must get the second. */
    memset(data, 0, (size_t)len);
    MPI_Recv(data, len, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &status);
    check_status(&status, 0, tag, len / 2);
    MPI_Imrecv(data, len, MPI_BYTE, &third, &request);
    CHECK(third == MPI_MESSAGE_NULL, "Imrecv left the message handle");
    MPI_Wait(&request, &status);
    check_status(&status, 0, tag + 1, len);
    memset(data, 0, (size_t)len);
    MPI_Mrecv(data, len, MPI_BYTE, &first, &status);
    CHECK(first == MPI_MESSAGE_NULL, "Mrecv left the message handle");
    check_status(&status, 0, tag, len);
    CHECK(check_differs(data, (size_t)len, (uint64_t)len) == SIZE_MAX,
          "wrong data after Mrecv");
}

static void nothing_there(void)
{
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    int flag = 1;

    MPI_Iprobe(MPI_ANY_SOURCE, 4000, MPI_COMM_WORLD, &flag, &status);
    CHECK(!flag, "Iprobe sees a message that nobody sent");
    flag = 1;
    MPI_Improbe(MPI_ANY_SOURCE, 4000, MPI_COMM_WORLD, &flag, &message, &status);
    CHECK(!flag, "Improbe sees a message that nobody sent");
}

static void from_nobody(void)
{
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    int flag = 0;

    MPI_Iprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &status);
    CHECK(flag && status.MPI_SOURCE == MPI_PROC_NULL &&
              status.MPI_TAG == MPI_ANY_TAG,
          "Iprobe of MPI_PROC_NULL");
    MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status);
    CHECK(message == MPI_MESSAGE_NO_PROC, "Mprobe of MPI_PROC_NULL");
    MPI_Mrecv(NULL, 0, MPI_BYTE, &message, &status);
    CHECK(message == MPI_MESSAGE_NULL && status.MPI_SOURCE == MPI_PROC_NULL,
          "Mrecv of the message from nobody");
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    nothing_there();
    from_nobody();
    for (int i = 0; i < LEN_COUNT; i++) {
        char *data = check_alloc((size_t)lens[i]);
        if (check_rank() == 0) {
            send_series(10 * i, lens[i]);
            send_series(10 * i + 5, lens[i]);
        } else if (check_rank() == 1) {
            take_plain(10 * i, lens[i], data);
            take_matched(10 * i + 5, lens[i], data);
        }
        free(data);
    }
    return check_finish();
}
