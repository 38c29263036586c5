/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions of long vectors through the nodes of a job need no temporary
 * memory of that length: MPI_Allreduce and MPI_Reduce in place, of LEN bytes,
 * may let the process grow by MAX bytes.
 *
 * usage: pieces LEN MAX
 */
#include <stdlib.h>
#include <sys/resource.h>

#include "check.h"

static long long peak_bytes(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss * 1024LL;
}

static void expect(const int *data, int count, int value, const char *what)
{
    for (int i = 0; i < count; i++)
        CHECK(data[i] == value, "%s: element %d is %d, not %d", what, i,
              data[i], value);
}

static void fill(int *data, int count)
{
    for (int i = 0; i < count; i++)
        data[i] = check_rank() + 1;
}

int main(int argc, char **argv)
{
    long long len = argc > 2 ? atoll(argv[1]) : 0;
    long long most = argc > 2 ? atoll(argv[2]) : 0;
    int count = (int)(len / (long long)sizeof(int));
    long long before;
    long long grown;
    int size;
    int *data;

    check_start(&argc, &argv);
    size = check_size();
    data = check_alloc(sizeof(int) * (size_t)count);
    fill(data, count);
    MPI_Barrier(MPI_COMM_WORLD);
    before = peak_bytes();
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(data, count, size * (size + 1) / 2, "allreduce");
    fill(data, count);
    if (check_rank() == 0)
        MPI_Reduce(MPI_IN_PLACE, data, count, MPI_INT, MPI_SUM, 0,
                   MPI_COMM_WORLD);
    else
        MPI_Reduce(data, NULL, count, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    grown = peak_bytes() - before;
    if (check_rank() == 0)
        expect(data, count, size * (size + 1) / 2, "reduce");
    CHECK(grown <= most, "grew by %lld bytes", grown);
    free(data);
    return check_finish();
}
