/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers whose pages change between transfers while their addresses stay:
 * freed, unmapped, mapped over, moved, emptied, shared with a child. What
 * arrives must be what the program sees at those addresses. Run with devices
 * that keep registrations, this is the test of their cache.
 */
#define _GNU_SOURCE /* mremap */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define LEN (96 * PAGE) /* zero-copy */
#define ROUNDS 40

static int rank;
static unsigned failures;

static void check(int is_true, const char *what, int round)
{
    if (is_true)
        return;
    (void)fprintf(stderr, "rank %d, round %d: %s\n", rank, round, what);
    failures++;
}

static unsigned char *map(void *where, size_t len)
{
    unsigned char *at =
        mmap(where, len, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0), -1, 0);

    if (at == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return at;
}

static unsigned char value(size_t i, int round, int from)
{
    return (unsigned char)(i * 7 + (i >> 11) + (size_t)round * 13 +
                           (size_t)from * 101);
}

static void fill(unsigned char *at, size_t len, int round)
{
    for (size_t i = 0; i < len; i++)
        at[i] = value(i, round, rank);
}

static int is_filled(const unsigned char *at, size_t len, int round, int from)
{
    for (size_t i = 0; i < len; i++) {
        if (at[i] != value(i, round, from))
            return 0;
    }
    return 1;
}

static int is_zero(const unsigned char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (at[i])
            return 0;
    }
    return 1;
}

/* A child touches, unmaps and ends; the parent writes meanwhile. */
static void fork_child(unsigned char *at)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        memset(at, 0xee, LEN);
        (void)munmap(at, LEN / 2);
        _exit(0);
    }
    at[0] ^= 1;
    at[LEN - 1] ^= 1;
    if (pid > 0)
        (void)waitpid(pid, &status, 0);
    check(pid > 0 && status == 0, "the child", 0);
}

/* Change what is behind the addresses; afterwards they can be written. */
static void change(unsigned char *at, int how, int round)
{
    unsigned char *away;

    switch (how) {
    case 0:
        (void)map(at, LEN);
        check(is_zero(at, LEN), "mapped over, but not zero", round);
        break;
    case 1:
        check(munmap(at, LEN) == 0, "munmap", round);
        (void)map(at, LEN);
        break;
    case 2: /* away, and others come; refused where a part is locked */
        away = map(NULL, LEN);
        check(mremap(at, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, away) ==
                      away ||
                  errno == EFAULT,
              "mremap", round);
        (void)map(at, LEN);
        check(is_zero(at, LEN), "moved away, but not zero", round);
        check(munmap(away, LEN) == 0, "munmap of what was moved", round);
        break;
    case 3: /* locked memory refuses that, which programs must bear */
        if (madvise(at, LEN, MADV_DONTNEED) == 0)
            check(is_zero(at, LEN), "emptied, but not zero", round);
        break;
    case 4:
        fork_child(at);
        break;
    case 5: /* a part in the middle */
        (void)map(at + 10 * PAGE, 7 * PAGE);
        break;
    case 6: /* read-only for a while */
        check(mprotect(at, LEN, PROT_READ) == 0, "mprotect", round);
        check(mprotect(at, LEN, PROT_READ | PROT_WRITE) == 0, "mprotect",
              round);
        break;
    default:
        break;
    }
}

static void exchange(unsigned char *out, unsigned char *in, int round)
{
    fill(out, LEN, round);
    MPI_Sendrecv(out, (int)LEN, MPI_BYTE, !rank, round, in, (int)LEN, MPI_BYTE,
                 !rank, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(is_filled(in, LEN, round, !rank), "wrong data", round);
}

static void with_mmap(void)
{
    unsigned char *out = map(NULL, LEN);
    unsigned char *in = map(NULL, LEN);

    for (int round = 0; round < ROUNDS; round++) {
        exchange(out, in, round);
        change(out, round % 8, round);
        change(in, (round + rank * 3) % 8, round);
    }
    (void)munmap(out, LEN);
    (void)munmap(in, LEN);
}

static void with_malloc(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        size_t more = (size_t)(round % 5) * 3 * PAGE;
        unsigned char *out = malloc(LEN + more);
        unsigned char *in = malloc(LEN + 2 * more + 1);

        if (!out || !in)
            MPI_Abort(MPI_COMM_WORLD, 1);
        exchange(out + more, in + more + 1, round);
        out = realloc(out, 3 * LEN);
        if (!out)
            MPI_Abort(MPI_COMM_WORLD, 1);
        exchange(out + LEN, in, round);
        free(out);
        free(in);
    }
}

/* The buffers of persistent requests, mapped over between starts. */
static void with_persistent(void)
{
    unsigned char *out = map(NULL, LEN);
    unsigned char *in = map(NULL, LEN);
    MPI_Request both[2];

    MPI_Send_init(out, (int)LEN, MPI_BYTE, !rank, 5, MPI_COMM_WORLD, &both[0]);
    MPI_Recv_init(in, (int)LEN, MPI_BYTE, !rank, 5, MPI_COMM_WORLD, &both[1]);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 3 == 2) {
            (void)map(out, LEN);
            (void)map(in, LEN);
        }
        fill(out, LEN, round);
        MPI_Startall(2, both);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        check(is_filled(in, LEN, round, !rank), "wrong data (persistent)",
              round);
    }
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
    (void)munmap(out, LEN);
    (void)munmap(in, LEN);
}

/* A buffer of which a part goes while the rest is in a transfer. */
static void with_neighbours(void)
{
    unsigned char *at = map(NULL, 2 * LEN);
    unsigned char *whole = map(NULL, 2 * LEN);
    MPI_Request both[2];

    for (int round = 0; round < ROUNDS; round++) {
        unsigned char *in = map(NULL, LEN);

        /* All of it once, so that one registration covers it. */
        MPI_Irecv(at, (int)(2 * LEN), MPI_BYTE, !rank, 1, MPI_COMM_WORLD,
                  &both[0]);
        MPI_Isend(whole, (int)(2 * LEN), MPI_BYTE, !rank, 1, MPI_COMM_WORLD,
                  &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        fill(at, 2 * LEN, round);
        MPI_Irecv(in, (int)LEN, MPI_BYTE, !rank, 2, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(at, (int)LEN, MPI_BYTE, !rank, 2, MPI_COMM_WORLD, &both[1]);
        (void)map(at + LEN, LEN);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        check(is_filled(in, LEN, round, !rank), "wrong data (part)", round);
        (void)munmap(in, LEN);
    }
    (void)munmap(at, 2 * LEN);
    (void)munmap(whole, 2 * LEN);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    with_mmap();
    with_malloc();
    with_persistent();
    with_neighbours();
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_UNSIGNED, MPI_SUM,
                  MPI_COMM_WORLD);
    if (rank == 0 && failures == 0)
        printf("ok\n");
    MPI_Finalize();
    return failures != 0;
}
