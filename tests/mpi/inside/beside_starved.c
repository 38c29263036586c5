/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank has no memory for what one rank sends: it waits, and what another one
 * sends is received meanwhile. Then there is memory, and all has come in order.
 */
#include <stdint.h>

#include "libchempi/didl/transport/match.h"
#include "tests/mpi/check.h"
#include "tests/mpi/inside/starve.h"

enum { MESSAGES = 40, LEN_MAX = 600000, GO = MESSAGES, TAGS = 3 };

static const int lens[] = {8, 3000, 60, 40000, LEN_MAX};
enum { LENS = sizeof(lens) / sizeof(lens[0]) };

static char out[LEN_MAX];
static char in[MESSAGES][LEN_MAX];

/* Only the second one's are long, since a message that waits for a receive is
 * kept whole. */
static int len_of(int from, int i)
{
    return lens[i % (from == 1 ? 3 : LENS)];
}

static void send_all(void)
{
    const int me = check_rank();

    MPI_Recv(NULL, 0, MPI_CHAR, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < MESSAGES; i++) {
        memset(out, i + 1, LEN_MAX);
        MPI_Send(out, len_of(me, i), MPI_CHAR, 0, i % TAGS, MPI_COMM_WORLD);
    }
}

static void post(int from, MPI_Request requests[MESSAGES])
{
    for (int i = 0; i < MESSAGES; i++)
        MPI_Irecv(in[i], LEN_MAX, MPI_CHAR, from, i % TAGS, MPI_COMM_WORLD,
                  &requests[i]);
}

static void take_all(int from, MPI_Request requests[MESSAGES])
{
    MPI_Status statuses[MESSAGES];
    int are_there = false;
    int len;

    while (!are_there) {
        starve_be_patient();
        MPI_Testall(MESSAGES, requests, &are_there, statuses);
    }
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Get_count(&statuses[i], MPI_CHAR, &len);
        CHECK(len == len_of(from, i) && in[i][0] == i + 1 &&
                  in[i][len - 1] == i + 1,
              "message %d from %d: %d bytes, %d", i, from, len, in[i][0]);
    }
}

int main(int argc, char **argv)
{
    MPI_Request requests[MESSAGES];
    int is_there;

    starve_start((struct starve_sizes){SIZE_MAX, sizeof(struct chempi_held)});
    check_start(&argc, &argv);
    check_need(3);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 1 || check_rank() == 2)
        send_all();
    if (check_rank() != 0)
        return check_finish();
    post(2, requests);
    starve_all(0);
    MPI_Send(NULL, 0, MPI_CHAR, 1, GO, MPI_COMM_WORLD);
    while (!starve_refused())
        MPI_Test(&requests[0], &is_there, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_CHAR, 2, GO, MPI_COMM_WORLD);
    take_all(2, requests);
    CHECK(starve_refused() > 0, "the others' were taken");
    starve_end();
    post(1, requests);
    take_all(1, requests);
    return check_finish();
}
