/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where members share a core, the blocks of gathers and scatters that do not
 * fit a slot are copied between the members' and the root's memory, whatever
 * their length, and whether the call blocks or not: that no message was sent,
 * --stats tells.
 */
#include "check.h"

static const int lens[] = {16385, 20000, 32768, 65536, 65537};
enum { LONGEST = 65537, ROUNDS = 3 };

static unsigned char *mine; /* [LONGEST] */
static unsigned char *all;  /* [size][LONGEST], at the root */
static int *counts;
static int *displs;

static unsigned char *block(int i, int len)
{
    return all + (size_t)i * (size_t)len;
}

static uint64_t seed_of(int rank, int len)
{
    return (uint64_t)len * 1000 + (uint64_t)rank;
}

static void complete(MPI_Request *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* The forms: with the same count for all or one for each, blocking or not. */
static void gather(int form, int len, int root)
{
    MPI_Request request;
    MPI_Comm comm = MPI_COMM_WORLD;

    switch (form) {
    case 0:
        MPI_Gather(mine, len, MPI_BYTE, all, len, MPI_BYTE, root, comm);
        return;
    case 1:
        MPI_Gatherv(mine, len, MPI_BYTE, all, counts, displs, MPI_BYTE, root,
                    comm);
        return;
    case 2:
        MPI_Igather(mine, len, MPI_BYTE, all, len, MPI_BYTE, root, comm,
                    &request);
        break;
    default:
        MPI_Igatherv(mine, len, MPI_BYTE, all, counts, displs, MPI_BYTE, root,
                     comm, &request);
    }
    complete(&request);
}

static void scatter(int form, int len, int root)
{
    MPI_Request request;
    MPI_Comm comm = MPI_COMM_WORLD;

    switch (form) {
    case 0:
        MPI_Scatter(all, len, MPI_BYTE, mine, len, MPI_BYTE, root, comm);
        return;
    case 1:
        MPI_Scatterv(all, counts, displs, MPI_BYTE, mine, len, MPI_BYTE, root,
                     comm);
        return;
    case 2:
        MPI_Iscatter(all, len, MPI_BYTE, mine, len, MPI_BYTE, root, comm,
                     &request);
        break;
    default:
        MPI_Iscatterv(all, counts, displs, MPI_BYTE, mine, len, MPI_BYTE, root,
                      comm, &request);
    }
    complete(&request);
}

static void check_round(int form, int len, int root)
{
    const size_t n = (size_t)len;

    for (int i = 0; i < check_size(); i++) {
        counts[i] = len;
        displs[i] = i * len;
    }
    check_fill(mine, n, seed_of(check_rank(), len));
    memset(all, 0, n * (size_t)check_size());
    gather(form, len, root);
    for (int i = 0; check_rank() == root && i < check_size(); i++)
        CHECK(check_differs(block(i, len), n, seed_of(i, len)) == SIZE_MAX,
              "gather of form %d, %d bytes: block %d", form, len, i);
    memset(mine, 0, n);
    scatter(form, len, root);
    CHECK(check_differs(mine, n, seed_of(check_rank(), len)) == SIZE_MAX,
          "scatter of form %d, %d bytes", form, len);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    mine = check_alloc(LONGEST);
    all = check_alloc((size_t)LONGEST * (size_t)check_size());
    counts = check_alloc(sizeof(int) * (size_t)check_size());
    displs = check_alloc(sizeof(int) * (size_t)check_size());
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
            for (int form = 0; form < 4; form++)
                check_round(form, lens[i], round % check_size());
    free(mine);
    free(all);
    free(counts);
    free(displs);
    return check_finish();
}
