/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Sendrecv and _replace around rings and towards nobody; messages of no
 * length; MPI_PROC_NULL in every call that takes a rank. */
#include "check.h"

static const int lens[] = {0, 1, 64, 4000, 65536, 200000, 1000000};
#define LEN_COUNT ((int)(sizeof(lens) / sizeof(lens[0])))

static void is_from_nobody(const MPI_Status *status, const char *call)
{
    int count = -1;

    MPI_Get_count(status, MPI_INT, &count);
    CHECK(status->MPI_SOURCE == MPI_PROC_NULL &&
              status->MPI_TAG == MPI_ANY_TAG && count == 0,
          "%s: source %d, tag %d, count %d", call, status->MPI_SOURCE,
          status->MPI_TAG, count);
}

static void ring(int len, int step)
{
    int to = (check_rank() + step) % check_size();
    int from = (check_rank() + check_size() - step) % check_size();
    char *out = check_alloc((size_t)len);
    char *in = check_alloc((size_t)len);
    MPI_Status status;
    int count = -1;

    check_fill(out, (size_t)len, (uint64_t)check_rank() + 1);
    MPI_Sendrecv(out, len, MPI_BYTE, to, step, in, len, MPI_BYTE, from, step,
                 MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(status.MPI_SOURCE == from && count == len, "wrong status");
    CHECK(check_differs(in, (size_t)len, (uint64_t)from + 1) == SIZE_MAX,
          "ring, step %d, %d bytes: wrong data", step, len);
    MPI_Sendrecv_replace(in, len, MPI_BYTE, to, step, MPI_ANY_SOURCE, step,
                         MPI_COMM_WORLD, &status);
    int origin = (from + check_size() - step) % check_size();
    CHECK(status.MPI_SOURCE == from, "replace: from %d", status.MPI_SOURCE);
    CHECK(check_differs(in, (size_t)len, (uint64_t)origin + 1) == SIZE_MAX,
          "replace, step %d, %d bytes: wrong data", step, len);
    free(in);
    free(out);
}

/* A chain that ends in nobody on both sides. */
static void chain(void)
{
    int up = check_rank() + 1 < check_size() ? check_rank() + 1 : MPI_PROC_NULL;
    int down = check_rank() > 0 ? check_rank() - 1 : MPI_PROC_NULL;
    int mine = check_rank();
    int got = -7;
    MPI_Status status;

    MPI_Sendrecv(&mine, 1, MPI_INT, up, 0, &got, 1, MPI_INT, down, 0,
                 MPI_COMM_WORLD, &status);
    CHECK(got == (down == MPI_PROC_NULL ? -7 : down), "chain: got %d", got);
    if (down == MPI_PROC_NULL)
        is_from_nobody(&status, "MPI_Sendrecv");
}

static void nobody(void)
{
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI_Status status;
    int value = 3;

    MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Ssend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Rsend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    is_from_nobody(&status, "MPI_Recv");
    CHECK(value == 3, "a receive from nobody wrote");
    MPI_Probe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    is_from_nobody(&status, "MPI_Probe");
    MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
              &requests[0]);
    MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
              &requests[1]);
    MPI_Recv_init(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                  &requests[2]);
    MPI_Issend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
               &requests[3]);
    MPI_Start(&requests[2]);
    MPI_Waitall(4, requests, statuses);
    is_from_nobody(&statuses[1], "MPI_Irecv");
    is_from_nobody(&statuses[2], "MPI_Recv_init");
    MPI_Request_free(&requests[2]);
}

/* Nothing at all, from and into a null pointer, still keeps its order. */
static void empty(void)
{
    MPI_Status status;
    int count = -1;

    for (int tag = 0; tag < 100; tag++) {
        if (check_rank() == 0)
            MPI_Send(NULL, 0, MPI_DOUBLE, check_size() - 1, tag,
                     MPI_COMM_WORLD);
        if (check_rank() == check_size() - 1) {
            MPI_Recv(NULL, 0, MPI_DOUBLE, 0, MPI_ANY_TAG, MPI_COMM_WORLD,
                     &status);
            MPI_Get_count(&status, MPI_DOUBLE, &count);
            CHECK(status.MPI_TAG == tag && count == 0, "empty message %d", tag);
        }
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    for (int i = 0; i < LEN_COUNT; i++)
        for (int step = 0; step < check_size(); step++)
            ring(lens[i], step);
    chain();
    nobody();
    if (check_size() > 1)
        empty();
    return check_finish();
}
