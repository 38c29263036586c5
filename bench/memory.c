/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proportional set size per rank, MiB, after MPI_Init and a barrier: memory
 * that ranks share is divided among them.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double pss_mib(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    double kib = 0;

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "Pss:", 4) == 0)
            kib = strtod(line + 4, NULL);
    fclose(file);
    return kib / 1024;
}

int main(int argc, char **argv)
{
    struct bench bench;
    double sum = 0;

    bench_start(&bench, &argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    double mine = pss_mib();
    /* Nobody leaves while another one counts. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    bench_point(&bench, "memory", (size_t)bench.size, sum / bench.size, "MiB");
    MPI_Finalize();
    return 0;
}
