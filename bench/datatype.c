/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Derived datatypes of about SIZE packed bytes, in four shapes:
 *
 *   column   one column of doubles out of a matrix with 64 columns
 *   face     a face of a cube of doubles, as a subarray: short rows, far apart
 *   mixed    an array of structs: double, int, 3 chars, with gaps between
 *   random   blocks of 1 to 8 doubles at random, ascending places
 *
 * For each: half the round trip with the type on both sides, and MPI_Pack and
 * MPI_Unpack of one rank, in microseconds: the median over BLOCKS parts of a
 * point's time, each the mean of its repeats. What came over is compared once.
 *
 * usage: datatype SIZE ...
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG 1
#define FIRST 3
#define COLUMNS 64
#define BLOCK_MAX 8
#define BLOCKS 9

struct record {
    double energy;
    int cell;
    char kind[3];
    double unused;
};

struct shape {
    const char *name;
    MPI_Datatype type;
    int count;
    size_t span; /* bytes of memory that count elements lie in */
    int packed;  /* bytes */
};

static void make_column(struct shape *shape, int len)
{
    int rows = len / (int)sizeof(double);

    MPI_Type_vector(rows, 1, COLUMNS, MPI_DOUBLE, &shape->type);
    shape->count = 1;
    shape->span = (size_t)rows * COLUMNS * sizeof(double);
}

/* The face x = 0..3 of a cube with edges of n: n * n rows of 4. */
static void make_face(struct shape *shape, int len)
{
    int n = 1;
    while ((n + 1) * (n + 1) * 4 * (int)sizeof(double) <= len)
        n++;
    const int sizes[3] = {n, n, 64};
    const int subsizes[3] = {n, n, 4};
    const int starts[3] = {0, 0, 8};

    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C,
                             MPI_DOUBLE, &shape->type);
    shape->count = 1;
    shape->span = (size_t)n * (size_t)n * 64 * sizeof(double);
}

static void make_mixed(struct shape *shape, int len)
{
    const int lens[3] = {1, 1, 3};
    const MPI_Aint places[3] = {(MPI_Aint)offsetof(struct record, energy),
                                (MPI_Aint)offsetof(struct record, cell),
                                (MPI_Aint)offsetof(struct record, kind)};
    const MPI_Datatype types[3] = {MPI_DOUBLE, MPI_INT, MPI_CHAR};
    MPI_Datatype tight;

    MPI_Type_create_struct(3, lens, places, types, &tight);
    MPI_Type_create_resized(tight, 0, (MPI_Aint)sizeof(struct record),
                            &shape->type);
    MPI_Type_free(&tight);
    shape->count = len / 15;
    shape->span = (size_t)shape->count * sizeof(struct record);
}

static void make_random(struct shape *shape, int len)
{
    int room = len / (int)sizeof(double);
    int *lens = malloc((size_t)room * sizeof(*lens));
    int *places = malloc((size_t)room * sizeof(*places));
    unsigned state = 12345;
    int blocks = 0;
    int at = 0;

    if (!lens || !places)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (int left = room; left > 0; blocks++) {
        state = state * 1103515245u + 12345u;
        int n = 1 + (int)(state >> 16) % BLOCK_MAX;
        lens[blocks] = n < left ? n : left;
        places[blocks] = at;
        left -= lens[blocks];
        at += lens[blocks] + 1 + (int)(state >> 24) % (2 * BLOCK_MAX);
    }
    MPI_Type_indexed(blocks, lens, places, MPI_DOUBLE, &shape->type);
    shape->count = 1;
    shape->span = (size_t)at * sizeof(double);
    free(lens);
    free(places);
}

static double round_trips(const struct bench *bench, const struct shape *shape,
                          char *buf, char *packed, int repeats)
{
    (void)packed;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < repeats; i++) {
        if (bench->rank == 0)
            MPI_Send(buf, shape->count, shape->type, 1, TAG, MPI_COMM_WORLD);
        if (bench->rank < 2)
            MPI_Recv(buf, shape->count, shape->type, !bench->rank, TAG,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (bench->rank == 1)
            MPI_Send(buf, shape->count, shape->type, 0, TAG, MPI_COMM_WORLD);
    }
    return MPI_Wtime() - start;
}

static double packs(const struct bench *bench, const struct shape *shape,
                    char *buf, char *packed, int repeats)
{
    double start = MPI_Wtime();

    for (int i = 0; bench->rank == 0 && i < repeats; i++) {
        int position = 0;
        MPI_Pack(buf, shape->count, shape->type, packed, shape->packed,
                 &position, MPI_COMM_WORLD);
    }
    return MPI_Wtime() - start;
}

static double unpacks(const struct bench *bench, const struct shape *shape,
                      char *buf, char *packed, int repeats)
{
    double start = MPI_Wtime();

    for (int i = 0; bench->rank == 0 && i < repeats; i++) {
        int position = 0;
        MPI_Unpack(packed, shape->packed, &position, buf, shape->count,
                   shape->type, MPI_COMM_WORLD);
    }
    return MPI_Wtime() - start;
}

/* Only what the type covers may have come from rank 0. */
static void check(const struct bench *bench, const struct shape *shape,
                  char *buf, char *packed)
{
    int position = 0;

    memset(buf, bench->rank == 0 ? 0x5a : 0, shape->span);
    round_trips(bench, shape, buf, packed, 1);
    MPI_Pack(buf, shape->count, shape->type, packed, shape->packed, &position,
             MPI_COMM_WORLD);
    for (int i = 0; bench->rank < 2 && i < position; i++)
        if (packed[i] != 0x5a) {
            fprintf(stderr, "datatype %s: byte %d is wrong\n", shape->name, i);
            MPI_Abort(MPI_COMM_WORLD, 4);
        }
}

typedef double work_fn(const struct bench *bench, const struct shape *shape,
                       char *buf, char *packed, int repeats);

/* Seconds that one repeat typically takes: whatever else the machine does for
 * a moment spoils a block, not the median. */
static double typical(const struct bench *bench, const struct shape *shape,
                      work_fn *work, char *buf, char *packed)
{
    double once = work(bench, shape, buf, packed, FIRST) / FIRST;
    int repeats = bench_repeats(bench, once, FIRST);
    int blocks = repeats < BLOCKS ? repeats : BLOCKS;
    double seconds[BLOCKS];

    repeats /= blocks;
    for (int i = 0; i < blocks; i++)
        seconds[i] = work(bench, shape, buf, packed, repeats) / repeats;
    MPI_Barrier(MPI_COMM_WORLD);
    return bench_median(seconds, blocks);
}

static void point(const struct bench *bench, const struct shape *shape,
                  const char *what, size_t len, double seconds)
{
    char name[64];

    snprintf(name, sizeof(name), "%s-%s", shape->name, what);
    bench_point(bench, name, len, seconds * 1e6, "us");
}

static void measure(const struct bench *bench, struct shape *shape, size_t len)
{
    MPI_Type_commit(&shape->type);
    MPI_Pack_size(shape->count, shape->type, MPI_COMM_WORLD, &shape->packed);
    char *buf = bench_map(shape->span);
    char *packed = bench_map((size_t)shape->packed);

    check(bench, shape, buf, packed);
    point(bench, shape, "sendrecv", len,
          typical(bench, shape, round_trips, buf, packed) / 2);
    point(bench, shape, "pack", len, typical(bench, shape, packs, buf, packed));
    point(bench, shape, "unpack", len,
          typical(bench, shape, unpacks, buf, packed));
    MPI_Type_free(&shape->type);
    bench_unmap(packed, (size_t)shape->packed);
    bench_unmap(buf, shape->span);
}

int main(int argc, char **argv)
{
    struct bench bench;

    bench_start(&bench, &argc, &argv);
    if (bench.size < 2) {
        fprintf(stderr, "datatype: at least 2 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 1; i < argc; i++) {
        size_t len = bench_size(argv[i]);
        struct shape column = {.name = "column"};
        struct shape face = {.name = "face"};
        struct shape mixed = {.name = "mixed"};
        struct shape random = {.name = "random"};

        make_column(&column, (int)len);
        measure(&bench, &column, len);
        make_face(&face, (int)len);
        measure(&bench, &face, len);
        make_mixed(&mixed, (int)len);
        measure(&bench, &mixed, len);
        make_random(&random, (int)len);
        measure(&bench, &random, len);
    }
    MPI_Finalize();
    return 0;
}
