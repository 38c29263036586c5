/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers of processes that count in another space (a PID namespace of their
 * own) name other processes here: memory of such a member is reached by
 * messages.
 */
#include "libchempi/didl/rma/internal.h"
#include "tests/mpi/check.h"

static void put(bool is_apart)
{
    const int to = 1 - check_rank();
    const int mine = 10 + check_rank();
    int memory = 0;
    struct chempi_win *w;
    MPI_Win win;

    MPI_Win_create(&memory, sizeof(memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                   &win);
    w = chempi_win_lookup(win);
    CHECK_OR_DIE(w && w->local_count == 2, "two on a node");
    if (is_apart)
        w->cards[to].space ^= 1;
    MPI_Win_fence(0, win);
    MPI_Put(&mine, 1, MPI_INT, to, 0, 1, MPI_INT, win);
    CHECK(!is_apart ||
              chempi_rma_peer(w, (uint32_t)to)->reach == CHEMPI_RMA_MESSAGE,
          "reach %d", chempi_rma_peer(w, (uint32_t)to)->reach);
    MPI_Win_fence(0, win);
    CHECK(memory == 10 + to, "%d", memory);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    put(false);
    put(true);
    return check_finish();
}
