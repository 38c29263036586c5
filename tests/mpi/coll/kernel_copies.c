/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchanges of blocks of 2 KiB, and reductions of 64 KiB, among so many ranks
 * that a copy by the kernel for each pair would take longest: all of it goes
 * through shared memory, without any.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"

enum { BLOCK = 2048, VECTOR = 64 << 10, ROUNDS = 4 };

static atomic_int copies;

/* In place of libc's, for the library, too. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *local,
                         unsigned long local_count, const struct iovec *remote,
                         unsigned long remote_count, unsigned long flags)
{
    copies++;
    return syscall(SYS_process_vm_readv, pid, local, local_count, remote,
                   remote_count, flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *local,
                          unsigned long local_count, const struct iovec *remote,
                          unsigned long remote_count, unsigned long flags)
{
    copies++;
    return syscall(SYS_process_vm_writev, pid, local, local_count, remote,
                   remote_count, flags);
}

static uint64_t seed_of(int from, int to, int round)
{
    return check_mix((uint64_t)(from * check_size() + to), (uint64_t)round);
}

static void exchange(int round, bool has_counts)
{
    const int size = check_size();
    unsigned char *out = check_alloc((size_t)size * BLOCK);
    unsigned char *in = check_alloc((size_t)size * BLOCK);
    int *counts = check_alloc((size_t)size * sizeof(int));
    int *places = check_alloc((size_t)size * sizeof(int));

    for (int i = 0; i < size; i++) {
        counts[i] = BLOCK;
        places[i] = i * BLOCK;
        check_fill(out + places[i], BLOCK, seed_of(check_rank(), i, round));
    }
    if (has_counts)
        MPI_Alltoallv(out, counts, places, MPI_BYTE, in, counts, places,
                      MPI_BYTE, MPI_COMM_WORLD);
    else
        MPI_Alltoall(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        CHECK(check_differs(in + places[i], BLOCK,
                            seed_of(i, check_rank(), round)) == SIZE_MAX,
              "the block from rank %d is wrong", i);
    free(out);
    free(in);
    free(counts);
    free(places);
}

static void reduce(int round)
{
    const int count = VECTOR / (int)sizeof(double);
    const int part = count / check_size();
    const int size = check_size();
    double *in = check_alloc(VECTOR);
    double *all = check_alloc(VECTOR);
    double *own = check_alloc((size_t)part * sizeof(double));
    int wrong = 0;

    for (int i = 0; i < count; i++)
        in[i] = check_rank() + i + round;
    MPI_Allreduce(in, all, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(in, own, part, MPI_DOUBLE, MPI_SUM,
                             MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        wrong += all[i] != 0.5 * size * (size - 1) + size * (i + round);
    for (int i = 0; i < part; i++)
        wrong += own[i] != all[check_rank() * part + i];
    CHECK(wrong == 0, "%d numbers are wrong", wrong);
    free(in);
    free(all);
    free(own);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_watch("chempi_coll_reductions_by_boards");
    for (int round = 0; round < ROUNDS; round++) {
        exchange(round, false);
        exchange(round, true);
        reduce(round);
    }
    check_was_used();
    CHECK(copies == 0, "%d copies by the kernel", copies);
    return check_finish();
}
