/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that runs out of memory while messages come that it receives later:
 * they wait where they are until there is memory, and all arrive, in order.
 * Each rank, refused each of its pieces, once and for a while.
 */
#include "tests/mpi/check.h"
#include "tests/mpi/inside/starve.h"

enum { PIECES = 6, LONG = 50, TAGS = 3 };

static const int lens[] = {0, 8, 100, 3000, 8000, 40000, 60000};
enum { LENS = sizeof(lens) / sizeof(lens[0]), LEN_MAX = 60000 };

static char out[LENS][TAGS][LEN_MAX];
static char in[LEN_MAX];

static char byte_of(int from, int i, int k)
{
    return (char)(from * 31 + i * TAGS + k + 1);
}

/* An empty one comes last, under a tag of its own. */
static void send_to(int who, int round)
{
    MPI_Request sends[LENS * TAGS + 1];
    int n = 0;

    for (int i = 0; i < LENS; i++)
        for (int k = 0; k < TAGS; k++)
            MPI_Isend(out[i][k], lens[i], MPI_CHAR, who, round * TAGS + k + 1,
                      MPI_COMM_WORLD, &sends[n++]);
    MPI_Isend(NULL, 0, MPI_CHAR, who, 0, MPI_COMM_WORLD, &sends[n++]);
    MPI_Waitall(n, sends, MPI_STATUSES_IGNORE);
}

/* All of a later tag before those of an earlier one. */
static void receive_from(int from, int round)
{
    MPI_Status status;
    int len;
    int last;

    for (int k = TAGS - 1; k >= 0; k--)
        for (int i = 0; i < LENS; i++) {
            memset(in, 0, LEN_MAX);
            MPI_Recv(in, LEN_MAX, MPI_CHAR, from, round * TAGS + k + 1,
                     MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_CHAR, &len);
            CHECK(len == lens[i], "%d of %d bytes", len, lens[i]);
            last = len > 0 ? len - 1 : 0;
            CHECK(len == 0 ||
                      (in[0] == byte_of(from, i, k) && in[last] == in[0]),
                  "message %d of %d: %d, %d", i, k, in[0], in[last]);
        }
}

/* Without memory while all come; how much was refused. */
static int receive(int piece, int count, int round)
{
    const int size = check_size();
    MPI_Request *last = malloc((size_t)size * sizeof(MPI_Request));

    CHECK_OR_DIE(last, "no memory");
    for (int from = 0; from < size; from++) {
        last[from] = MPI_REQUEST_NULL;
        if (from != check_rank())
            MPI_Irecv(NULL, 0, MPI_CHAR, from, 0, MPI_COMM_WORLD, &last[from]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    (void)starve_refused();
    starve_some(piece, count);
    MPI_Waitall(size, last, MPI_STATUSES_IGNORE);
    starve_end();
    for (int from = 0; from < size; from++)
        if (from != check_rank())
            receive_from(from, round);
    free(last);
    return starve_refused();
}

/* Each with each: to connect without memory is an error. */
static void connect_all(void)
{
    for (int peer = 0; peer < check_size(); peer++)
        MPI_Sendrecv(NULL, 0, MPI_CHAR, peer, 0, NULL, 0, MPI_CHAR, peer, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int refused = 0;
    int round = 0;

    starve_start((struct starve_sizes){1, 0});
    check_start(&argc, &argv);
    check_need(2);
    connect_all();
    for (int i = 0; i < LENS; i++)
        for (int k = 0; k < TAGS; k++)
            memset(out[i][k], byte_of(check_rank(), i, k), LEN_MAX);
    for (int who = 0; who < check_size(); who++)
        for (int piece = 0; piece < PIECES; piece++)
            for (int count = 1; count <= LONG; count += LONG - 1, round++) {
                if (check_rank() == who) {
                    refused += receive(piece, count, round);
                    continue;
                }
                MPI_Barrier(MPI_COMM_WORLD);
                send_to(who, round);
            }
    CHECK(refused > 0, "there was always memory");
    return check_finish();
}
