/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Mandelbrot farm of F. A. D. de Oliveira's DECK/SCI thesis (2001, section
 * 7.5.1): a picture of 600 x 600 points over the square from -2-2i to 2+2i,
 * divided into 400 regions that a master hands out on demand, at most 17500
 * iterations a point.
 *
 *     mandelbrot [--points N] [--regions K*K] [--iterations N] [--png FILE]
 *
 * A worker sends what it has computed, which also asks for more; the master
 * answers with the number of a region, or with NO_REGION. In the end the
 * master computes the whole picture alone and compares. Exit code 0: equal;
 * 1: not; 2: bad arguments. --damage spoils a point of the farm's picture, to
 * see that this is noticed.
 */
#include <inttypes.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "png.h"

#define NO_REGION (-1)
#define HEAD 1 /* numbers before the points of a result: the region */

enum tag { TAG_RESULT = 1, TAG_REGION };

struct settings {
    long points; /* per side */
    long regions;
    long iterations;
    const char *png;
    bool damage;
    int side; /* regions per side */
};

struct area {
    int x0, x1, y0, y1; /* points, the ends not included */
};

/* What the master keeps. */
struct farm {
    const struct settings *set;
    int workers;
    int32_t *picture;
    int *done_by; /* regions by rank */
    double seconds;
};

static void *allocate(size_t count, size_t size)
{
    void *p = calloc(count, size);

    if (!p) {
        (void)fprintf(stderr, "mandelbrot: out of memory\n");
        (void)MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return p;
}

/* ---- the mathematics ---- */

/* Iterations until the orbit of point (x, y) leaves the circle of radius 2. */
static int32_t iterate(const struct settings *set, int x, int y)
{
    const double scale = 4.0 / (double)set->points;
    const double cr = -2.0 + ((double)x + 0.5) * scale;
    const double ci = -2.0 + ((double)y + 0.5) * scale;
    double zr = 0.0;
    double zi = 0.0;
    int32_t n = 0;

    while (n < set->iterations && zr * zr + zi * zi <= 4.0) {
        const double next = zr * zr - zi * zi + cr;

        zi = 2.0 * zr * zi + ci;
        zr = next;
        n++;
    }
    return n;
}

static struct area region_area(const struct settings *set, int region)
{
    const long n = set->points;
    const long k = set->side;
    const long col = region % k;
    const long row = region / k;

    return (struct area){.x0 = (int)(col * n / k),
                         .x1 = (int)((col + 1) * n / k),
                         .y0 = (int)(row * n / k),
                         .y1 = (int)((row + 1) * n / k)};
}

static int area_points(struct area a)
{
    return (a.x1 - a.x0) * (a.y1 - a.y0);
}

/* The most numbers that a result can have. */
static int result_max(const struct settings *set)
{
    const int edge = (int)(set->points / set->side) + 1;

    return HEAD + edge * edge;
}

static uint64_t checksum(const int32_t *picture, size_t count)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a, by numbers */

    for (size_t i = 0; i < count; i++)
        hash = (hash ^ (uint32_t)picture[i]) * 0x100000001b3u;
    return hash;
}

/* ---- the farm ---- */

static void work(const struct settings *set)
{
    int32_t *result = allocate((size_t)result_max(set), sizeof(*result));
    int count = HEAD;

    result[0] = NO_REGION;
    for (;;) {
        struct area a;
        int region;

        MPI_Send(result, count, MPI_INT32_T, 0, TAG_RESULT, MPI_COMM_WORLD);
        MPI_Recv(&region, 1, MPI_INT, 0, TAG_REGION, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (region == NO_REGION)
            break;
        a = region_area(set, region);
        count = HEAD;
        result[0] = region;
        for (int y = a.y0; y < a.y1; y++)
            for (int x = a.x0; x < a.x1; x++)
                result[count++] = iterate(set, x, y);
    }
    free(result);
}

/* Put a worker's result into the picture; false if it cannot be one. */
static bool store(struct farm *farm, const int32_t *result, int count, int rank)
{
    const int32_t region = result[0];
    struct area a;

    if (region == NO_REGION)
        return count == HEAD;
    if (region < 0 || region >= farm->set->regions)
        return false;
    a = region_area(farm->set, region);
    if (count != HEAD + area_points(a))
        return false;
    for (int y = a.y0; y < a.y1; y++) {
        const size_t width = (size_t)(a.x1 - a.x0);

        memcpy(farm->picture + (size_t)y * (size_t)farm->set->points + a.x0,
               result + HEAD + (size_t)(y - a.y0) * width,
               width * sizeof(*result));
    }
    farm->done_by[rank]++;
    return true;
}

static void hand_out(struct farm *farm)
{
    const int max = result_max(farm->set);
    int32_t *result = allocate((size_t)max, sizeof(*result));
    int busy = farm->workers;
    int next = 0;

    while (busy) {
        MPI_Status status;
        int count;
        int region = next < farm->set->regions ? next++ : NO_REGION;

        MPI_Recv(result, max, MPI_INT32_T, MPI_ANY_SOURCE, TAG_RESULT,
                 MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT32_T, &count);
        MPI_Send(&region, 1, MPI_INT, status.MPI_SOURCE, TAG_REGION,
                 MPI_COMM_WORLD);
        if (!store(farm, result, count, status.MPI_SOURCE)) {
            (void)fprintf(stderr, "mandelbrot: odd result of rank %d\n",
                          status.MPI_SOURCE);
            (void)MPI_Abort(MPI_COMM_WORLD, 1);
        }
        if (region == NO_REGION)
            busy--;
    }
    free(result);
}

/* ---- what the master tells ---- */

static void print_by_node(const struct farm *farm, char (*names)[64], int size)
{
    int column = printf("  regions by node:");

    for (int i = 0; i < size; i++) {
        int done = farm->done_by[i];
        bool is_seen = false;

        for (int j = 0; j < i; j++)
            is_seen |= strcmp(names[j], names[i]) == 0;
        for (int j = i + 1; j < size && !is_seen; j++)
            done += strcmp(names[j], names[i]) == 0 ? farm->done_by[j] : 0;
        if (is_seen)
            continue;
        if (column > 66)
            column = printf("\n                  ") - 1;
        column += printf(" %s %d", names[i], done);
    }
    printf("\n");
}

static int write_png(const struct settings *set, const int32_t *picture)
{
    const size_t count = (size_t)set->points * (size_t)set->points;
    uint8_t *points = allocate(count, 1);
    struct png_palette palette = {0};
    int rc;

    /* 0 is the set itself, black; the others run from blue through white and
     * orange, round and round. */
    for (int i = 1; i < 256; i++) {
        const int t = i % 64 < 32 ? i % 64 : 63 - i % 64;

        palette.rgb[i][0] = (uint8_t)(t < 16 ? 4 + t * 14 : 255);
        palette.rgb[i][1] =
            (uint8_t)(t < 16 ? 20 + t * 14 : 255 - (t - 16) * 7);
        palette.rgb[i][2] =
            (uint8_t)(t < 16 ? 96 + t * 10 : 255 - (t - 16) * 16);
    }
    for (size_t i = 0; i < count; i++)
        points[i] = (uint8_t)(picture[i] >= set->iterations
                                  ? 0
                                  : 1 + (picture[i] * 3) % 255);
    rc = png_write(set->png, (uint32_t)set->points, (uint32_t)set->points,
                   points, &palette);
    free(points);
    if (rc)
        (void)fprintf(stderr, "mandelbrot: cannot write %s: %s\n", set->png,
                      strerror(rc));
    else
        printf("  picture: %s\n", set->png);
    return rc;
}

/* Compute the picture again, alone and in another order. */
static bool verify(const struct farm *farm)
{
    const int n = (int)farm->set->points;
    const size_t count = (size_t)n * (size_t)n;
    int32_t *alone = allocate(count, sizeof(*alone));
    double start = MPI_Wtime();
    double seconds;
    bool is_equal;

    for (int y = n - 1; y >= 0; y--)
        for (int x = 0; x < n; x++)
            alone[(size_t)y * (size_t)n + (size_t)x] = iterate(farm->set, x, y);
    seconds = MPI_Wtime() - start;
    printf("  one process alone: %.2f s; the farm was %.2f times as fast\n",
           seconds, farm->seconds > 0 ? seconds / farm->seconds : 0.0);
    is_equal = memcmp(alone, farm->picture, count * sizeof(*alone)) == 0;
    printf("  checksums: farm %016" PRIx64 ", alone %016" PRIx64 ": %s\n",
           checksum(farm->picture, count), checksum(alone, count),
           is_equal ? "equal" : "DIFFERENT");
    free(alone);
    return is_equal;
}

static int master(const struct settings *set, int size, char (*names)[64])
{
    const size_t count = (size_t)set->points * (size_t)set->points;
    struct farm farm = {.set = set, .workers = size - 1};
    double start = MPI_Wtime();
    bool is_good;

    farm.picture = allocate(count, sizeof(*farm.picture));
    farm.done_by = allocate((size_t)size, sizeof(*farm.done_by));
    hand_out(&farm);
    farm.seconds = MPI_Wtime() - start;
    printf("Mandelbrot set, %ld x %ld points in %ld regions, at most %ld "
           "iterations\n",
           set->points, set->points, set->regions, set->iterations);
    printf("  a master and %d workers: %.2f s\n", farm.workers, farm.seconds);
    print_by_node(&farm, names, size);
    if (set->damage)
        farm.picture[count / 2] ^= 1;
    is_good = verify(&farm);
    if (is_good && set->png)
        is_good = write_png(set, farm.picture) == 0;
    printf("%s\n", is_good ? "ok" : "FAILED");
    free(farm.done_by);
    free(farm.picture);
    return is_good ? 0 : 1;
}

/* Regions form a square of squares. */
static bool set_side(struct settings *set)
{
    int k = 1;

    while ((long)k * k < set->regions)
        k++;
    set->side = k;
    return (long)k * k == set->regions && k <= set->points;
}

static int run(const struct settings *set, int rank, int size)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    char mine[64] = "";
    char(*names)[64] = rank == 0 ? allocate((size_t)size, 64) : NULL;
    int len;
    int rc = 0;

    MPI_Get_processor_name(name, &len);
    (void)snprintf(mine, sizeof(mine), "%s", name);
    MPI_Gather(mine, 64, MPI_CHAR, names, 64, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0)
        rc = master(set, size, names);
    else
        work(set);
    free(names);
    return rc;
}

int main(int argc, char **argv)
{
    struct settings set = {.points = 600, .regions = 400, .iterations = 17500};
    const struct app_option options[] = {
        {.name = "--points", .number = &set.points, .min = 1, .max = 20000},
        {.name = "--regions", .number = &set.regions, .min = 1, .max = 1000000},
        {.name = "--iterations",
         .number = &set.iterations,
         .min = 1,
         .max = 100000000},
        {.name = "--png", .text = &set.png},
        {.name = "--damage", .flag = &set.damage},
        {.name = NULL},
    };
    const char *why = NULL;
    int rank, size;
    int rc = 2;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (app_parse(argc, argv, options, rank == 0)) {
        if (!set_side(&set))
            why = "--regions must be a square number, at most points^2";
        else if (size < 2)
            why = "a farm needs a master and a worker; start it with "
                  "mpiexec -n 2 or more";
        else
            rc = run(&set, rank, size);
    }
    if (why && rank == 0)
        (void)fprintf(stderr, "mandelbrot: %s\n", why);
    MPI_Finalize();
    return rc;
}
