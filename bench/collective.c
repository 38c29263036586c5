/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time of one collective, in microseconds, by the size that each rank
 * contributes (bytes; a multiple of 8; to each other rank in an all-to-all
 * exchange). A reduce-scatter gives every rank at least one number.
 *
 * usage: collective NAME|all|iall SIZE ...
 *
 * "all" are the blocking forms, "iall" the non-blocking ones, each started and
 * waited for. The size of a barrier is ignored.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 9
#define CALLS_MAX 65536 /* to learn what one takes */

struct buffers {
    char *out;
    char *in;
    int len;      /* bytes */
    int size;     /* ranks */
    int *counts;  /* [size] of len bytes each */
    int *displs;  /* [size] in bytes, one block after the other */
    int *doubles; /* [size] parts of a reduce-scatter, elements */
    MPI_Datatype *types;
};

static void barrier(const struct buffers *b)
{
    (void)b;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(const struct buffers *b)
{
    MPI_Bcast(b->out, b->len, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void reduce(const struct buffers *b)
{
    MPI_Reduce(b->out, b->in, b->len / 8, MPI_DOUBLE, MPI_SUM, 0,
               MPI_COMM_WORLD);
}

static void allreduce(const struct buffers *b)
{
    MPI_Allreduce(b->out, b->in, b->len / 8, MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);
}

static void gather(const struct buffers *b)
{
    MPI_Gather(b->out, b->len, MPI_BYTE, b->in, b->len, MPI_BYTE, 0,
               MPI_COMM_WORLD);
}

static void gatherv(const struct buffers *b)
{
    MPI_Gatherv(b->out, b->len, MPI_BYTE, b->in, b->counts, b->displs, MPI_BYTE,
                0, MPI_COMM_WORLD);
}

static void scatter(const struct buffers *b)
{
    MPI_Scatter(b->in, b->len, MPI_BYTE, b->out, b->len, MPI_BYTE, 0,
                MPI_COMM_WORLD);
}

static void scatterv(const struct buffers *b)
{
    MPI_Scatterv(b->in, b->counts, b->displs, MPI_BYTE, b->out, b->len,
                 MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void allgather(const struct buffers *b)
{
    MPI_Allgather(b->out, b->len, MPI_BYTE, b->in, b->len, MPI_BYTE,
                  MPI_COMM_WORLD);
}

static void allgatherv(const struct buffers *b)
{
    MPI_Allgatherv(b->out, b->len, MPI_BYTE, b->in, b->counts, b->displs,
                   MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall(const struct buffers *b)
{
    MPI_Alltoall(b->out, b->len, MPI_BYTE, b->in, b->len, MPI_BYTE,
                 MPI_COMM_WORLD);
}

static void alltoallv(const struct buffers *b)
{
    MPI_Alltoallv(b->out, b->counts, b->displs, MPI_BYTE, b->in, b->counts,
                  b->displs, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoallw(const struct buffers *b)
{
    MPI_Alltoallw(b->out, b->counts, b->displs, b->types, b->in, b->counts,
                  b->displs, b->types, MPI_COMM_WORLD);
}

static void reduce_scatter(const struct buffers *b)
{
    MPI_Reduce_scatter(b->out, b->in, b->doubles, MPI_DOUBLE, MPI_SUM,
                       MPI_COMM_WORLD);
}

static void reduce_scatter_block(const struct buffers *b)
{
    MPI_Reduce_scatter_block(b->out, b->in, b->doubles[0], MPI_DOUBLE, MPI_SUM,
                             MPI_COMM_WORLD);
}

static void scan(const struct buffers *b)
{
    MPI_Scan(b->out, b->in, b->len / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void exscan(const struct buffers *b)
{
    MPI_Exscan(b->out, b->in, b->len / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* The non-blocking forms: started and waited for. */

static void ibarrier(const struct buffers *b)
{
    MPI_Request request;

    (void)b;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void ibcast(const struct buffers *b)
{
    MPI_Request request;

    MPI_Ibcast(b->out, b->len, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void ireduce(const struct buffers *b)
{
    MPI_Request request;

    MPI_Ireduce(b->out, b->in, b->len / 8, MPI_DOUBLE, MPI_SUM, 0,
                MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void iallreduce(const struct buffers *b)
{
    MPI_Request request;

    MPI_Iallreduce(b->out, b->in, b->len / 8, MPI_DOUBLE, MPI_SUM,
                   MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void igather(const struct buffers *b)
{
    MPI_Request request;

    MPI_Igather(b->out, b->len, MPI_BYTE, b->in, b->len, MPI_BYTE, 0,
                MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void igatherv(const struct buffers *b)
{
    MPI_Request request;

    MPI_Igatherv(b->out, b->len, MPI_BYTE, b->in, b->counts, b->displs,
                 MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void iscatter(const struct buffers *b)
{
    MPI_Request request;

    MPI_Iscatter(b->in, b->len, MPI_BYTE, b->out, b->len, MPI_BYTE, 0,
                 MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void iscatterv(const struct buffers *b)
{
    MPI_Request request;

    MPI_Iscatterv(b->in, b->counts, b->displs, MPI_BYTE, b->out, b->len,
                  MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void iallgather(const struct buffers *b)
{
    MPI_Request request;

    MPI_Iallgather(b->out, b->len, MPI_BYTE, b->in, b->len, MPI_BYTE,
                   MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void iallgatherv(const struct buffers *b)
{
    MPI_Request request;

    MPI_Iallgatherv(b->out, b->len, MPI_BYTE, b->in, b->counts, b->displs,
                    MPI_BYTE, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void ialltoall(const struct buffers *b)
{
    MPI_Request request;

    MPI_Ialltoall(b->out, b->len, MPI_BYTE, b->in, b->len, MPI_BYTE,
                  MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void ialltoallv(const struct buffers *b)
{
    MPI_Request request;

    MPI_Ialltoallv(b->out, b->counts, b->displs, MPI_BYTE, b->in, b->counts,
                   b->displs, MPI_BYTE, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void ialltoallw(const struct buffers *b)
{
    MPI_Request request;

    MPI_Ialltoallw(b->out, b->counts, b->displs, b->types, b->in, b->counts,
                   b->displs, b->types, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void ireduce_scatter(const struct buffers *b)
{
    MPI_Request request;

    MPI_Ireduce_scatter(b->out, b->in, b->doubles, MPI_DOUBLE, MPI_SUM,
                        MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void ireduce_scatter_block(const struct buffers *b)
{
    MPI_Request request;

    MPI_Ireduce_scatter_block(b->out, b->in, b->doubles[0], MPI_DOUBLE, MPI_SUM,
                              MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void iscan(const struct buffers *b)
{
    MPI_Request request;

    MPI_Iscan(b->out, b->in, b->len / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
              &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void iexscan(const struct buffers *b)
{
    MPI_Request request;

    MPI_Iexscan(b->out, b->in, b->len / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static const struct {
    const char *name;
    void (*run)(const struct buffers *b);
} table[] = {
    {"barrier", barrier},
    {"bcast", bcast},
    {"reduce", reduce},
    {"allreduce", allreduce},
    {"gather", gather},
    {"gatherv", gatherv},
    {"scatter", scatter},
    {"scatterv", scatterv},
    {"allgather", allgather},
    {"allgatherv", allgatherv},
    {"alltoall", alltoall},
    {"alltoallv", alltoallv},
    {"alltoallw", alltoallw},
    {"reduce_scatter", reduce_scatter},
    {"reduce_scatter_block", reduce_scatter_block},
    {"scan", scan},
    {"exscan", exscan},
    {"ibarrier", ibarrier},
    {"ibcast", ibcast},
    {"ireduce", ireduce},
    {"iallreduce", iallreduce},
    {"igather", igather},
    {"igatherv", igatherv},
    {"iscatter", iscatter},
    {"iscatterv", iscatterv},
    {"iallgather", iallgather},
    {"iallgatherv", iallgatherv},
    {"ialltoall", ialltoall},
    {"ialltoallv", ialltoallv},
    {"ialltoallw", ialltoallw},
    {"ireduce_scatter", ireduce_scatter},
    {"ireduce_scatter_block", ireduce_scatter_block},
    {"iscan", iscan},
    {"iexscan", iexscan},
};

#define TABLE_LEN (sizeof(table) / sizeof(table[0]))

/* Is this row of the table meant? */
static int is_chosen(size_t which, const char *word)
{
    int is_blocking = which < TABLE_LEN / 2;

    if (strcmp(word, "all") == 0)
        return is_blocking;
    if (strcmp(word, "iall") == 0)
        return !is_blocking;
    return strcmp(word, table[which].name) == 0;
}

static double run_many(void (*run)(const struct buffers *b),
                       const struct buffers *buffers, int repeats)
{
    double start = MPI_Wtime();

    for (int i = 0; i < repeats; i++)
        run(buffers);
    return MPI_Wtime() - start;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/*
 * Seconds per call, at rank 0. The ranks start a batch together, and it lasts
 * until the slowest has finished; the median batch is taken, since what else
 * the machine does hits one or another.
 */
static double time_of(void (*run)(const struct buffers *b),
                      const struct buffers *buffers, int repeats)
{
    double mine[BATCHES] = {0};
    double longest[BATCHES] = {0};
    int batch = repeats / BATCHES > 0 ? repeats / BATCHES : 1;
    int count = repeats < BATCHES ? repeats : BATCHES;

    for (int i = 0; i < count; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        mine[i] = run_many(run, buffers, batch) / batch;
    }
    MPI_Reduce(mine, longest, count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    qsort(longest, (size_t)count, sizeof(longest[0]), compare);
    return longest[count / 2];
}

static void set_len(struct buffers *b, size_t len)
{
    b->len = (int)len;
    for (int i = 0; i < b->size; i++) {
        b->counts[i] = (int)len;
        b->displs[i] = i * (int)len;
        b->doubles[i] = (int)len / 8 / b->size;
        if (b->doubles[i] == 0)
            b->doubles[i] = 1;
    }
}

/*
 * Roughly, once warm. The first calls take many times what later ones take:
 * pages are made, and ranks that share a core find their rhythm. So as many
 * calls are made as fill a tenth of a point's time.
 */
static double seconds_of_one(const struct bench *bench,
                             void (*run)(const struct buffers *b),
                             const struct buffers *buffers)
{
    double seconds = 0;
    int is_enough = 0;
    int calls = 1;

    while (!is_enough) {
        calls *= 2;
        MPI_Barrier(MPI_COMM_WORLD);
        seconds = run_many(run, buffers, calls);
        is_enough = seconds > bench->point_s / 10 || calls >= CALLS_MAX;
        MPI_Bcast(&is_enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return seconds / calls;
}

static void measure(const struct bench *bench, size_t which,
                    struct buffers *buffers, size_t len)
{
    set_len(buffers, len);
    double once = seconds_of_one(bench, table[which].run, buffers);
    int repeats = bench_repeats(bench, once, 3);
    double time_s = time_of(table[which].run, buffers, repeats);
    bench_point(bench, table[which].name, len, time_s * 1e6, "us");
}

/* Room for the largest of the sizes, used by all points. Zeros: what a sum
 * makes of them stays harmless, denormal numbers would not be. */
static struct buffers make_buffers(const struct bench *bench, int count,
                                   char **sizes)
{
    size_t ranks = (size_t)bench->size;
    size_t most = 8;

    for (int i = 0; i < count; i++)
        most = bench_size(sizes[i]) > most ? bench_size(sizes[i]) : most;
    struct buffers b = {
        .out = bench_alloc(most * ranks),
        .in = bench_alloc(most * ranks),
        .size = bench->size,
        .counts = (int *)(void *)bench_alloc(ranks * sizeof(int)),
        .displs = (int *)(void *)bench_alloc(ranks * sizeof(int)),
        .doubles = (int *)(void *)bench_alloc(ranks * sizeof(int)),
        .types =
            (MPI_Datatype *)(void *)bench_alloc(ranks * sizeof(MPI_Datatype)),
    };
    memset(b.out, 0, most * ranks);
    memset(b.in, 0, most * ranks);
    for (int i = 0; i < b.size; i++)
        b.types[i] = MPI_BYTE;
    return b;
}

static void free_buffers(struct buffers *b)
{
    free(b->out);
    free(b->in);
    free(b->counts);
    free(b->displs);
    free(b->doubles);
    free(b->types);
}

int main(int argc, char **argv)
{
    struct bench bench;

    bench_start(&bench, &argc, &argv);
    struct buffers buffers = make_buffers(&bench, argc - 2, argv + 2);
    for (size_t which = 0; argc > 1 && which < TABLE_LEN; which++) {
        if (!is_chosen(which, argv[1]))
            continue;
        for (int i = 2; i < argc; i++) {
            measure(&bench, which, &buffers, bench_size(argv[i]));
            if (which % (TABLE_LEN / 2) == 0)
                break; /* a barrier has no size */
        }
    }
    free_buffers(&buffers);
    MPI_Finalize();
    return 0;
}
