/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large transfers advance while their processes call nothing of MPI: ranks
 * that wait outside for what only their library can bring about. Pairs of
 * ranks, one after the other away, then both.
 *
 *   away FOLDER [bytes] [rounds] [communicators]
 *
 * With communicators of their own and MPI_THREAD_MULTIPLE, in turn.
 */
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "check.h"

enum { TAG = 5, COMMS_MAX = 8, TAKEN = 6, WAYS = 8 };

static struct {
    const char *folder;
    size_t len;
    unsigned char *data;
    unsigned char *wanted;
    uint64_t seed;
    int comms;
    MPI_Comm own[COMMS_MAX];
    MPI_Comm comm; /* of this way */
} my;

/* Tell the partner, who calls nothing of MPI, by a file. */
static void name_of(char *name, size_t size, int rank)
{
    (void)snprintf(name, size, "%s/away-%d-%llu", my.folder, rank,
                   (unsigned long long)my.seed);
}

static void tell_outside(void)
{
    char name[512];
    int fd;

    name_of(name, sizeof(name), check_rank());
    fd = open(name, O_CREAT | O_WRONLY, 0600);
    CHECK_OR_DIE(fd >= 0, "cannot create %s", name);
    close(fd);
}

static void await_outside(int partner)
{
    char name[512];

    name_of(name, sizeof(name), partner);
    while (access(name, F_OK) != 0)
        sched_yield();
    unlink(name);
}

/* Looks at a buffer that the library fills meanwhile: that is the test. */
__attribute__((no_sanitize("thread"))) static bool is_there(size_t from,
                                                            size_t to)
{
    volatile const unsigned char *data = my.data;

    for (size_t i = from; i < to; i++)
        if (data[i] != my.wanted[i])
            return false;
    return true;
}

/* A transfer may be cut anyhow. */
static void await_data(void)
{
    enum { PIECE = 4096 };

    check_fill(my.wanted, my.len, my.seed);
    for (size_t i = 0; i < my.len; i += PIECE)
        while (!is_there(i, i + PIECE < my.len ? i + PIECE : my.len))
            sched_yield();
}

/* What is in the buffer before differs from it everywhere. */
static void spoil(void)
{
    check_fill(my.data, my.len, my.seed);
    for (size_t i = 0; i < my.len; i++)
        my.data[i] ^= 0xff;
}

static void send_in_mpi(int partner)
{
    check_fill(my.data, my.len, my.seed);
    MPI_Send(my.data, (int)my.len, MPI_BYTE, partner, TAG, my.comm);
}

static void send_and_go(int partner, bool is_sync)
{
    MPI_Request request;

    check_fill(my.data, my.len, my.seed);
    if (is_sync)
        MPI_Issend(my.data, (int)my.len, MPI_BYTE, partner, TAG, my.comm,
                   &request);
    else
        MPI_Isend(my.data, (int)my.len, MPI_BYTE, partner, TAG, my.comm,
                  &request);
    await_outside(partner);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void receive_in_mpi(int partner)
{
    spoil();
    MPI_Recv(my.data, (int)my.len, MPI_BYTE, partner, TAG, my.comm,
             MPI_STATUS_IGNORE);
    tell_outside();
}

/* Begin before the sender has sent, or after it: then it waits for nothing. */
static void receive_and_go(int partner, bool is_early)
{
    MPI_Request request;

    spoil();
    if (!is_early)
        MPI_Probe(partner, TAG, my.comm, MPI_STATUS_IGNORE);
    MPI_Irecv(my.data, (int)my.len, MPI_BYTE, partner, TAG, my.comm, &request);
    if (is_early)
        MPI_Send(NULL, 0, MPI_BYTE, partner, TAG + 1, my.comm);
    await_data();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Of a message that has been taken from among others. */
static void receive_taken_and_go(int partner)
{
    MPI_Message message;
    MPI_Request request;

    spoil();
    MPI_Mprobe(partner, TAG, my.comm, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(my.data, (int)my.len, MPI_BYTE, &message, &request);
    await_data();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void send_partition_and_go(int partner)
{
    MPI_Request request;

    check_fill(my.data, my.len, my.seed);
    MPI_Psend_init(my.data, 1, (MPI_Count)my.len, MPI_BYTE, partner, TAG,
                   my.comm, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Pready(0, request);
    await_outside(partner);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

/* It may know the sender's partitions by then, or not. */
static void receive_partition_and_go(int partner)
{
    MPI_Request request;

    spoil();
    MPI_Precv_init(my.data, 1, (MPI_Count)my.len, MPI_BYTE, partner, TAG,
                   my.comm, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    await_data();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

static void await_early(int partner)
{
    MPI_Recv(NULL, 0, MPI_BYTE, partner, TAG + 1, my.comm, MPI_STATUS_IGNORE);
}

static void as_sender(int partner, int way)
{
    const bool is_early = way % 2;

    if (way >= TAKEN) {
        if (way == TAKEN)
            send_in_mpi(partner);
        else
            send_partition_and_go(partner);
        return;
    }
    if (is_early && way / 2 != 0)
        await_early(partner);
    if (way / 2 == 1)
        send_in_mpi(partner);
    else
        send_and_go(partner, is_early);
}

static void as_receiver(int partner, int way)
{
    if (way / 2 == 0) {
        receive_in_mpi(partner);
        return;
    }
    if (way >= TAKEN) {
        if (way == TAKEN)
            receive_taken_and_go(partner);
        else
            receive_partition_and_go(partner);
        if (way > TAKEN)
            tell_outside();
        return;
    }
    receive_and_go(partner, way % 2);
    if (way / 2 == 2)
        tell_outside();
}

int main(int argc, char **argv)
{
    const int rounds = argc > 3 ? atoi(argv[3]) : 3;
    int partner;

    my.comms = argc > 4 ? atoi(argv[4]) : 0;
    check_start_thread(&argc, &argv,
                       my.comms > 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    check_need(2);
    CHECK_OR_DIE(my.comms <= COMMS_MAX, "%d communicators", my.comms);
    for (int i = 0; i < my.comms; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &my.own[i]);
    my.comm = MPI_COMM_WORLD;
    CHECK_OR_DIE(argc > 1, "name a folder");
    my.folder = argv[1];
    my.len = argc > 2 ? (size_t)atol(argv[2]) : (size_t)4 << 20;
    my.data = check_alloc(my.len);
    my.wanted = check_alloc(my.len);
    partner = check_rank() ^ 1;
    for (int round = 0; round < rounds && partner < check_size(); round++) {
        for (int way = 0; way < WAYS; way++) {
            my.seed++;
            if (my.comms > 0)
                my.comm = my.own[my.seed % (uint64_t)my.comms];
            if ((check_rank() + round) % 2)
                as_receiver(partner, way);
            else
                as_sender(partner, way);
            CHECK(check_differs(my.data, my.len, my.seed) == SIZE_MAX,
                  "wrong data in way %d", way);
        }
    }
    for (int i = 0; i < my.comms; i++)
        MPI_Comm_free(&my.own[i]);
    free(my.wanted);
    free(my.data);
    return check_finish();
}
