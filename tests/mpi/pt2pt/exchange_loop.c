/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rounds in which every rank sends every other one messages of changing
 * sizes, whose every byte is known, until a file appears. What must go on while
 * something else happens to the job (tests/fault/gateways.py).
 *
 * usage: relay FILE [most rounds]
 */
#include <unistd.h>

#include "check.h"

#define TELL_EVERY 20
#define SIZES 5

static const size_t sizes[SIZES] = {0, 17, 5000, 70000, 400000};

static uint64_t seed_of(int src, int dst, long round)
{
    return check_mix(check_mix((uint64_t)round, (uint64_t)src), (uint64_t)dst);
}

static size_t size_of(int src, int dst, long round)
{
    return sizes[(size_t)(src + 2 * dst + round) % SIZES];
}

static void exchange(long round, char *out, char *in, MPI_Request *requests)
{
    const int size = check_size();
    const int self = check_rank();
    const size_t room = sizes[SIZES - 1];
    int count = 0;

    for (int r = 0; r < size; r++)
        MPI_Irecv(in + (size_t)r * room, (int)room, MPI_BYTE, r, (int)round,
                  MPI_COMM_WORLD, &requests[count++]);
    for (int r = 0; r < size; r++) {
        size_t len = size_of(self, r, round);

        check_fill(out + (size_t)r * room, len, seed_of(self, r, round));
        MPI_Isend(out + (size_t)r * room, (int)len, MPI_BYTE, r, (int)round,
                  MPI_COMM_WORLD, &requests[count++]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int r = 0; r < size; r++)
        CHECK(check_differs(in + (size_t)r * room, size_of(r, self, round),
                            seed_of(r, self, round)) == SIZE_MAX,
              "round %ld, from %d: not what was sent", round, r);
}

int main(int argc, char **argv)
{
    const size_t room = sizes[SIZES - 1];
    const long most = argc > 2 ? atol(argv[2]) : 1000000;
    MPI_Request *requests;
    char *out;
    char *in;
    int is_over = 0;

    check_start(&argc, &argv);
    out = check_alloc(room * (size_t)check_size());
    in = check_alloc(room * (size_t)check_size());
    requests = check_alloc(2 * sizeof(*requests) * (size_t)check_size());
    for (long round = 0; !is_over && round < most; round++) {
        exchange(round, out, in, requests);
        if (check_rank() == 0 && round % TELL_EVERY == 0) {
            printf("round %ld\n", round);
            fflush(stdout);
        }
        if (argc > 1)
            is_over = access(argv[1], F_OK) == 0;
        MPI_Allreduce(MPI_IN_PLACE, &is_over, 1, MPI_INT, MPI_LOR,
                      MPI_COMM_WORLD);
    }
    free(out);
    free(in);
    free(requests);
    return check_finish();
}
