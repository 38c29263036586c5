/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of a job's ranks once all have met: what each has for itself, and its
 * share of what the ranks of its node have together, as the kernel tells.
 * Rank 0 prints the means, in KiB; also of the first rank of each node, which
 * speaks for the others, and of these.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OWN, SHARED, KINDS };

/* Code is not counted: it is the same for all jobs of a machine. */
static const char *const keys[KINDS] = {"Pss_Anon:", "Pss_Shmem:"};

/* What is added up over all ranks. */
enum { SUM_OWN, SUM_SHARED, SUM_FIRST, FIRSTS, SUMS };

static int is_first_of_node(void)
{
    MPI_Comm node;
    int rank;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                        &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_free(&node);
    return rank == 0;
}

static void look(double kib[KINDS])
{
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    char line[256];

    while (f && fgets(line, sizeof(line), f))
        for (int i = 0; i < KINDS; i++)
            if (strncmp(line, keys[i], strlen(keys[i])) == 0)
                kib[i] = strtod(line + strlen(keys[i]), NULL);
    if (f)
        (void)fclose(f);
}

int main(int argc, char **argv)
{
    double kib[KINDS] = {0};
    double parts[SUMS] = {0};
    double sums[SUMS] = {0};
    double all;
    int size;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD);
    all = rank;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    look(kib);
    parts[SUM_OWN] = kib[OWN];
    parts[SUM_SHARED] = kib[SHARED];
    if (is_first_of_node()) {
        parts[SUM_FIRST] = kib[OWN];
        parts[FIRSTS] = 1;
    }
    MPI_Reduce(parts, sums, SUMS, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && sums[SUM_OWN] > 0 && size > sums[FIRSTS])
        printf("own %.3f shared %.3f first %.3f others %.3f\n",
               sums[SUM_OWN] / size, sums[SUM_SHARED] / size,
               sums[SUM_FIRST] / sums[FIRSTS],
               (sums[SUM_OWN] - sums[SUM_FIRST]) / (size - sums[FIRSTS]));
    MPI_Finalize();
    return 0;
}
