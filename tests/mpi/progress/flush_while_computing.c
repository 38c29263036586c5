/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flush of an attached buffer that is over while its process calls nothing of
 * MPI: the library finds that by itself, and goes on. Rank 0 is away with a
 * buffered message that rank 1 then receives, and with a large receive, for
 * which its library is at work; what rank 1 sends for that comes after the
 * answer to the buffered message.
 *
 *   flush_while_computing FOLDER [threads|free]
 *
 * With MPI_THREAD_MULTIPLE; or rank 0 frees the flush's request before.
 */
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "check.h"

enum { LEN = 1 << 20, ROUNDS = 20, BUFFERED = 1, LARGE = 2 };

static char name[512];

/* By a file, as rank 0 calls nothing of MPI. */
static void tell_outside(void)
{
    const int fd = open(name, O_CREAT | O_WRONLY, 0600);

    CHECK_OR_DIE(fd >= 0, "cannot create %s", name);
    close(fd);
}

static void await_outside(void)
{
    while (access(name, F_OK) != 0)
        sched_yield();
    unlink(name);
}

/* Looks at a buffer that the library fills meanwhile: that is the test. */
__attribute__((no_sanitize("thread"))) static bool is_there(const char *data,
                                                            const char *wanted)
{
    volatile const char *at = data;

    for (size_t i = 0; i < LEN; i++)
        if (at[i] != wanted[i])
            return false;
    return true;
}

static void go_away(char *in, char *out, bool frees, uint64_t seed)
{
    MPI_Request requests[2];

    check_fill(out, LEN, seed);
    for (size_t i = 0; i < LEN; i++)
        in[i] = (char)~out[i];
    MPI_Irecv(in, LEN, MPI_BYTE, 1, LARGE, MPI_COMM_WORLD, &requests[0]);
    CHECK(MPI_Bsend(out, LEN, MPI_BYTE, 1, BUFFERED, MPI_COMM_WORLD) ==
              MPI_SUCCESS,
          "the buffer is not empty again");
    CHECK(MPI_Buffer_iflush(&requests[1]) == MPI_SUCCESS, "flush");
    if (frees)
        MPI_Request_free(&requests[1]);
    tell_outside();
    while (!is_there(in, out))
        sched_yield();
    CHECK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS,
          "wait for the flush");
}

static void answer(char *in, uint64_t seed)
{
    await_outside();
    MPI_Recv(in, LEN, MPI_BYTE, 0, BUFFERED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(check_differs(in, LEN, seed) == SIZE_MAX, "the buffered message");
    MPI_Send(in, LEN, MPI_BYTE, 0, LARGE, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "";
    char *memory = check_alloc(LEN + MPI_BSEND_OVERHEAD);
    char *out = check_alloc(LEN);
    char *in = check_alloc(LEN);
    int size;

    check_start_thread(&argc, &argv,
                       strcmp(how, "threads") == 0 ? MPI_THREAD_MULTIPLE
                                                   : MPI_THREAD_SINGLE);
    check_need(2);
    CHECK_OR_DIE(argc > 1, "name a folder");
    (void)snprintf(name, sizeof(name), "%s/flush_while_computing%s", argv[1],
                   how);
    MPI_Buffer_attach(memory, LEN + MPI_BSEND_OVERHEAD);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (check_rank() == 0)
            go_away(in, out, strcmp(how, "free") == 0, round);
        else if (check_rank() == 1)
            answer(in, round);
    }
    MPI_Buffer_detach(&memory, &size);
    free(memory);
    free(out);
    free(in);
    return check_finish();
}
