/* SPDX-License-Identifier: BSD-3-Clause */
/* The wait and test families: null and inactive requests, empty lists, what
 * comes back when, and that everything comes back once. */
#include "check.h"

#define COUNT 40

static void empty_lists(void)
{
    MPI_Request none[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[2];
    int indices[2];
    int index = 5;
    int count = 5;
    int flag = 0;

    MPI_Waitany(2, none, &index, statuses);
    CHECK(index == MPI_UNDEFINED, "waitany of null requests: %d", index);
    CHECK(statuses[0].MPI_SOURCE == MPI_ANY_SOURCE, "status is not empty");
    MPI_Testany(2, none, &index, &flag, statuses);
    CHECK(flag && index == MPI_UNDEFINED, "testany of null requests");
    MPI_Waitsome(2, none, &count, indices, statuses);
    CHECK(count == MPI_UNDEFINED, "waitsome of null requests: %d", count);
    MPI_Testsome(2, none, &count, indices, statuses);
    CHECK(count == MPI_UNDEFINED, "testsome of null requests: %d", count);
    flag = 0;
    MPI_Testall(2, none, &flag, statuses);
    CHECK(flag && statuses[1].MPI_TAG == MPI_ANY_TAG, "testall of nulls");
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    MPI_Waitany(0, NULL, &index, MPI_STATUS_IGNORE);
    CHECK(index == MPI_UNDEFINED, "waitany of nothing: %d", index);
    flag = 0;
    MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE);
    CHECK(flag, "testall of nothing");
    MPI_Wait(&none[0], &statuses[0]);
    MPI_Test(&none[0], &flag, &statuses[0]);
    CHECK(flag, "test of the null request");
    flag = 0;
    MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &statuses[0]);
    CHECK(flag, "status of the null request");
}

static void nothing_ready(void)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int indices[2];
    int values[2];
    int index = 0;
    int count = 5;
    int flag = 1;

    for (int i = 0; i < 2; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]);
    MPI_Testany(2, requests, &index, &flag, statuses);
    CHECK(!flag, "testany sees a completion too early");
    MPI_Testsome(2, requests, &count, indices, statuses);
    CHECK(count == 0, "testsome sees %d completions too early", count);
    flag = 1;
    MPI_Testall(2, requests, &flag, statuses);
    CHECK(!flag, "testall sees a completion too early");
    flag = 1;
    MPI_Request_get_status(requests[0], &flag, statuses);
    CHECK(!flag, "a status too early");
    int one = 1;
    MPI_Send(&one, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
    MPI_Waitany(2, requests, &index, statuses);
    CHECK(index == 1 && values[1] == 1 && requests[1] == MPI_REQUEST_NULL,
          "waitany took %d", index);
    MPI_Testall(2, requests, &flag, statuses);
    CHECK(!flag, "testall with one of two");
    MPI_Send(&one, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
    while (!flag)
        MPI_Testall(2, requests, &flag, statuses);
    CHECK(requests[0] == MPI_REQUEST_NULL, "testall left a request");
}

/* Take what completed through the call number `way`; count of places. */
static int take(int way, MPI_Request *requests, int *indices,
                MPI_Status *statuses)
{
    int count = 0;
    int flag = 0;

    switch (way) {
    case 0:
        MPI_Waitany(COUNT, requests, &indices[0], &statuses[0]);
        return indices[0] == MPI_UNDEFINED ? MPI_UNDEFINED : 1;
    case 1:
        MPI_Testany(COUNT, requests, &indices[0], &flag, &statuses[0]);
        if (flag && indices[0] == MPI_UNDEFINED)
            return MPI_UNDEFINED;
        return flag ? 1 : 0;
    case 2:
        MPI_Waitsome(COUNT, requests, &count, indices, statuses);
        return count;
    default:
        MPI_Testsome(COUNT, requests, &count, indices, statuses);
        return count;
    }
}

static void receive_all(int way)
{
    MPI_Request requests[COUNT];
    MPI_Status statuses[COUNT];
    int indices[COUNT];
    int values[COUNT];
    int seen[COUNT] = {0};
    int count;

    for (int i = 0; i < COUNT; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, MPI_ANY_SOURCE, i, MPI_COMM_WORLD,
                  &requests[i]);
    MPI_Send(NULL, 0, MPI_BYTE, 1, 1000, MPI_COMM_WORLD);
    while ((count = take(way, requests, indices, statuses)) != MPI_UNDEFINED) {
        for (int k = 0; k < count; k++) {
            int i = indices[k];
            CHECK_OR_DIE(i >= 0 && i < COUNT, "index %d", i);
            seen[i]++;
            CHECK(statuses[k].MPI_TAG == i && values[i] == i * 3 &&
                      requests[i] == MPI_REQUEST_NULL,
                  "way %d, place %d: tag %d, value %d", way, i,
                  statuses[k].MPI_TAG, values[i]);
        }
    }
    for (int i = 0; i < COUNT; i++)
        CHECK(seen[i] == 1, "way %d: place %d came back %d times", way, i,
              seen[i]);
}

static void send_all(void)
{
    MPI_Recv(NULL, 0, MPI_BYTE, 0, 1000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int k = 0; k < COUNT; k++) {
        int i = k * 7 % COUNT; /* 7 and COUNT have no common factor */
        int value = i * 3;
        MPI_Send(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    empty_lists();
    nothing_ready();
    for (int way = 0; way < 4; way++) {
        if (check_rank() == 0)
            receive_all(way);
        else if (check_rank() == 1)
            send_all();
    }
    return check_finish();
}
