/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that runs out of memory while long messages are announced, to it and
 * by it: they wait until there is memory, and all arrive, or are known to be
 * dropped. Each rank, refused each of its pieces, once and for a while.
 */
#include "tests/mpi/check.h"
#include "tests/mpi/inside/starve.h"

enum { LEN = 600000, MESSAGES = 6, PIECES = 10, LONG = 50, DROPPED = 3 };

static char out[MESSAGES][LEN];
static char in[LEN];

static char byte_of(int rank, int i)
{
    return (char)(rank * MESSAGES + i);
}

/* Of which nothing is wanted. */
static void drop(int from, int tag)
{
    const int code = MPI_Recv(NULL, 0, MPI_CHAR, from, tag, MPI_COMM_WORLD,
                              MPI_STATUS_IGNORE);

    CHECK(check_class(code) == MPI_ERR_TRUNCATE, "class %d", code);
}

/* From one to the next, all announced before any is received. */
static void pass_on(void)
{
    const int size = check_size();
    const int to = (check_rank() + 1) % size;
    const int from = (check_rank() + size - 1) % size;
    MPI_Request sends[MESSAGES];

    for (int i = 0; i < MESSAGES; i++)
        MPI_Isend(out[i], LEN, MPI_CHAR, to, i, MPI_COMM_WORLD, &sends[i]);
    drop(from, DROPPED);
    for (int i = MESSAGES - 1; i >= 0; i--) {
        if (i == DROPPED)
            continue;
        memset(in, -1, LEN);
        MPI_Recv(in, LEN, MPI_CHAR, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(in[0] == byte_of(from, i) && in[LEN - 1] == in[0],
              "message %d: %d, %d", i, in[0], in[LEN - 1]);
    }
    MPI_Waitall(MESSAGES, sends, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    int refused = 0;

    starve_start((struct starve_sizes){1, 0});
    check_start(&argc, &argv);
    check_need(2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < MESSAGES; i++)
        memset(out[i], byte_of(check_rank(), i), LEN);
    MPI_Barrier(MPI_COMM_WORLD); /* all are connected */
    pass_on();
    for (int who = 0; who < check_size(); who++)
        for (int piece = 0; piece < PIECES; piece++)
            for (int count = 1; count <= LONG; count += LONG - 1) {
                (void)starve_refused();
                if (check_rank() == who)
                    starve_some(piece, count);
                pass_on();
                starve_end();
                refused += starve_refused();
                MPI_Barrier(MPI_COMM_WORLD);
            }
    CHECK(refused > 0, "there was always memory");
    return check_finish();
}
