/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0 sends rank 1 more than any window while rank 1 does not look; rank 2,
 * if there is one, exchanges messages with rank 0 meanwhile, which must not
 * suffer. Rank 1 looks when a file appears. Rank 0 says every now and then that
 * it goes on, as a busy machine takes its time, and at last "pushed". For what
 * bounds the memory of gateways (tests/fault/gateways.py).
 *
 * usage: unread FILE BYTES MESSAGES
 */
#include "check.h"

#define CHATS 100
#define LOOKS 2000
#define LINES 20 /* while it chats, and while it looks */
#define TAG 3

/* Rank 0 has done so many rounds of all. */
static void tell(int round, int all)
{
    if (check_rank() != 0 || round % (all / LINES) != 0)
        return;
    printf("goes on\n");
    fflush(stdout);
}

static void chat(int peer)
{
    for (int i = 0; i < CHATS; i++) {
        int sent = i;
        int got = -1;

        MPI_Sendrecv(&sent, 1, MPI_INT, peer, TAG + 1, &got, 1, MPI_INT, peer,
                     TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(got == i, "%d instead of %d", got, i);
        tell(i, CHATS);
    }
}

static void send_all(size_t len, int count)
{
    MPI_Request *requests = check_alloc((size_t)count * sizeof(*requests));
    char *data = check_alloc(len * (size_t)count);

    for (int i = 0; i < count; i++) {
        check_fill(data + (size_t)i * len, len, (uint64_t)i);
        MPI_Isend(data + (size_t)i * len, (int)len, MPI_BYTE, 1, TAG,
                  MPI_COMM_WORLD, &requests[i]);
    }
    if (check_size() > 2)
        chat(2);
    for (int i = 0; i < LOOKS; i++) {
        int done;

        MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
        tell(i, LOOKS);
    }
    printf("pushed\n");
    fflush(stdout);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    free(requests);
    free(data);
}

int main(int argc, char **argv)
{
    size_t len;
    int count;

    check_start(&argc, &argv);
    check_need(2);
    CHECK_OR_DIE(argc == 4, "usage: unread FILE BYTES MESSAGES");
    len = (size_t)atol(argv[2]);
    count = atoi(argv[3]);
    if (check_rank() == 0)
        send_all(len, count);
    else if (check_rank() == 1)
        check_receive_late(argv[1], len, count, TAG);
    else if (check_rank() == 2)
        chat(0);
    return check_finish();
}
