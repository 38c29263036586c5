/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who waits for a lock, by the rules of struct chempi_rma_line:
 *
 *   -   in shared memory, while a guest waits, a writer who comes waits, too,
 *       though nobody is inside and nobody in the line
 *   -   at a gate, when readers leave, nobody looks at the claims behind the
 *       first one but at guests: they may be in memory that cannot be read
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <sys/mman.h>

#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/rma/internal.h"
#include "tests/mpi/check.h"

enum { PAGE = 4096 };

/* ---- in shared memory ---- */

static struct chempi_rma_line *line_of_first(MPI_Win win)
{
    const struct chempi_win *w = chempi_win_lookup(win);

    CHECK_OR_DIE(w && w->has_shared_locks, "locks in shared memory");
    return &w->lines[0];
}

/* Rank 0 plays a guest that waits, and then goes. */
static void keep_out(MPI_Win win)
{
    struct chempi_rma_line *line = line_of_first(win);

    atomic_store(&line->guests, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    while (!atomic_load(&line->next) && !atomic_load(&line->inside))
        continue;
    CHECK(!atomic_load(&line->inside), "a writer has entered past a guest");
    atomic_store(&line->guests, 0);
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win); /* as a guest, who calls the */
    MPI_Win_unlock(0, win);                   /* writer when it leaves */
    MPI_Win_unlock(1, win);
}

static void guests_come_first(void)
{
    MPI_Win win;
    int *part;

    MPI_Win_allocate(sizeof(*part), sizeof(*part), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &part, &win);
    if (check_rank() == 0) {
        keep_out(win);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);
}

/* ---- at a gate ---- */

static struct chempi_win gated;

static void ask(struct chempi_rma_claim *claim, uint16_t kind)
{
    *claim =
        (struct chempi_rma_claim){.held_by = -1, .is_own = true, .kind = kind};
    chempi_rma_gate_ask(&gated, claim);
}

static void only_the_first_and_guests_are_looked_at(void)
{
    struct chempi_rma_claim holder, readers[2], writer, guest, last;
    struct chempi_rma_claim *others = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK_OR_DIE(others != MAP_FAILED, "mmap");
    gated.comm = chempi_comm_lookup(MPI_COMM_WORLD);
    chempi_list_init(&gated.gate.waiting);
    chempi_list_init(&gated.gate.guests);
    ask(&holder, CHEMPI_RMA_EXCLUSIVE);
    ask(&readers[0], CHEMPI_RMA_SHARED);
    ask(&readers[1], CHEMPI_RMA_SHARED);
    ask(&writer, CHEMPI_RMA_EXCLUSIVE);
    ask(&others[0], CHEMPI_RMA_SHARED);
    ask(&others[1], CHEMPI_RMA_EXCLUSIVE);
    ask(&last, CHEMPI_RMA_SHARED);
    ask(&guest, CHEMPI_RMA_OVERTAKING);
    CHECK(holder.is_granted && !guest.is_granted, "one alone");
    CHECK_OR_DIE(!mprotect(others, PAGE, PROT_NONE), "mprotect");
    chempi_rma_gate_leave(&gated, true);
    CHECK(readers[0].is_granted && readers[1].is_granted && guest.is_granted,
          "readers, and who overtakes");
    chempi_rma_gate_leave(&gated, false);
    chempi_rma_gate_leave(&gated, false);
    CHECK(!writer.is_granted, "one reader is left");
    CHECK_OR_DIE(!mprotect(others, PAGE, PROT_READ | PROT_WRITE), "mprotect");
    chempi_rma_gate_leave(&gated, false);
    CHECK(writer.is_granted && !others[0].is_granted, "the writer alone");
    chempi_rma_gate_leave(&gated, true);
    CHECK(others[0].is_granted && !others[1].is_granted, "a reader");
    chempi_rma_gate_leave(&gated, false);
    CHECK(others[1].is_granted && !last.is_granted, "another writer");
    chempi_rma_gate_leave(&gated, true);
    CHECK(last.is_granted, "the last one");
    (void)munmap(others, PAGE);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    guests_come_first();
    only_the_first_and_guests_are_looked_at();
    return check_finish();
}
