/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchanges of blocks between two groups that differ in size, and have more
 * members than there are messages of a process under way at a time.
 * Arguments: members of the first group, bytes of a block.
 */
#include "check.h"

struct groups {
    MPI_Comm inter;
    int side;
    int rank;
    int remote; /* members of the other group */
    int len;    /* bytes of a block */
    unsigned char *out;
    unsigned char *in;
};

static uint64_t seed_of(int side, int from, int to)
{
    return check_mix((uint64_t)side, check_mix((uint64_t)from, (uint64_t)to));
}

static struct groups meet(int first, int len)
{
    const int side = check_rank() >= first;
    struct groups g = {.side = side, .len = len};
    MPI_Comm local;

    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, side ? 0 : first, 0,
                         &g.inter);
    MPI_Comm_free(&local);
    MPI_Comm_rank(g.inter, &g.rank);
    MPI_Comm_remote_size(g.inter, &g.remote);
    g.out = check_alloc((size_t)g.remote * (size_t)len);
    g.in = check_alloc((size_t)g.remote * (size_t)len);
    for (int i = 0; i < g.remote; i++)
        check_fill(g.out + (size_t)i * (size_t)len, (size_t)len,
                   seed_of(side, g.rank, i));
    return g;
}

static void check_blocks(struct groups *g, const char *call)
{
    const size_t len = (size_t)g->len;

    for (int i = 0; i < g->remote; i++)
        CHECK(check_differs(g->in + (size_t)i * len, len,
                            seed_of(!g->side, i, g->rank)) == SIZE_MAX,
              "%s: the block from rank %d is wrong", call, i);
    memset(g->in, 0, (size_t)g->remote * len);
}

static void exchange(struct groups *g)
{
    int *counts = check_alloc((size_t)g->remote * sizeof(int));
    int *places = check_alloc((size_t)g->remote * sizeof(int));
    MPI_Request request;

    for (int i = 0; i < g->remote; i++) {
        counts[i] = g->len;
        places[i] = i * g->len;
    }
    MPI_Alltoall(g->out, g->len, MPI_BYTE, g->in, g->len, MPI_BYTE, g->inter);
    check_blocks(g, "MPI_Alltoall");
    MPI_Ialltoallv(g->out, counts, places, MPI_BYTE, g->in, counts, places,
                   MPI_BYTE, g->inter, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_blocks(g, "MPI_Ialltoallv");
    free(counts);
    free(places);
}

int main(int argc, char **argv)
{
    struct groups g;
    int first;

    check_start(&argc, &argv);
    first = (int)check_arg(argc, argv, 1, 1);
    check_need(first + 1);
    g = meet(first, (int)check_arg(argc, argv, 2, 4));
    exchange(&g);
    MPI_Comm_free(&g.inter);
    free(g.out);
    free(g.in);
    return check_finish();
}
