/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message longer than its receive: error class MPI_ERR_TRUNCATE at the
 * receiver, no byte written past the buffer, no harm to the sender or to
 * what follows, whatever protocol carried it, matched early or late.
 */
#include "check.h"

#define TAG 8
#define GO 9

static const int lens[] = {2, 60, 3000, 40000, 200000, 3000000};
#define LEN_COUNT ((int)(sizeof(lens) / sizeof(lens[0])))
#define GUARD 64

static void send_long(int len)
{
    char *data = check_alloc((size_t)len);

    check_fill(data, (size_t)len, (uint64_t)len);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int error = MPI_Send(data, len, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    CHECK(error == MPI_SUCCESS || check_class(error) == MPI_ERR_TRUNCATE,
          "sender of %d bytes got class %d", len, check_class(error));
    MPI_Send(&len, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
    free(data);
}

static void check_short(char *data, int room, int len, int error)
{
    int next = 0;

    CHECK(check_class(error) == MPI_ERR_TRUNCATE,
          "%d bytes into %d: error class %d", len, room, check_class(error));
    for (int i = 0; i < GUARD; i++)
        CHECK(data[room + i] == 0x55, "%d bytes into %d: wrote at %d", len,
              room, room + i);
    MPI_Recv(&next, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(next == len, "the message after a truncated one is wrong");
}

static void receive_short(int len, int room, bool posted)
{
    char *data = check_alloc((size_t)room + GUARD);
    MPI_Request request;
    MPI_Status status = {.MPI_ERROR = -1};
    int error;

    memset(data, 0x55, (size_t)room + GUARD);
    if (posted) {
        MPI_Irecv(data, room, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD);
        error = MPI_Wait(&request, &status);
    } else {
        MPI_Send(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD);
        MPI_Probe(0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        error = MPI_Recv(data, room, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &status);
    }
    check_short(data, room, len, error);
    free(data);
}

/* MPI_Waitall with one bad of three says MPI_ERR_IN_STATUS and which. */
static void one_of_three(void)
{
    int values[3] = {1, 2, 3};

    if (check_rank() == 0) {
        for (int i = 0; i < 3; i++)
            MPI_Send(values, i == 1 ? 3 : 1, MPI_INT, 1, i, MPI_COMM_WORLD);
    } else if (check_rank() == 1) {
        MPI_Request requests[3];
        MPI_Status statuses[3];
        for (int i = 0; i < 3; i++)
            MPI_Irecv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD,
                      &requests[i]);
        int error = MPI_Waitall(3, requests, statuses);
        CHECK(check_class(error) == MPI_ERR_IN_STATUS, "waitall gave class %d",
              check_class(error));
        /* The others are complete or (MPI_ERR_PENDING) still to be waited
         * for. */
        for (int i = 0; i < 3; i++) {
            int class = check_class(statuses[i].MPI_ERROR);
            CHECK(i == 1 ? class == MPI_ERR_TRUNCATE
                         : class == MPI_SUCCESS || class == MPI_ERR_PENDING,
                  "status %d has class %d", i, class);
        }
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        CHECK(values[0] == 1 && values[2] == 1, "the good ones got %d and %d",
              values[0], values[2]);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < LEN_COUNT; i++) {
        int rooms[] = {0, lens[i] / 2, lens[i] - 1};
        for (int k = 0; k < 6; k++) {
            if (check_rank() == 0)
                send_long(lens[i]);
            else if (check_rank() == 1)
                receive_short(lens[i], rooms[k / 2], k % 2 == 0);
        }
    }
    one_of_three();
    return check_finish();
}
