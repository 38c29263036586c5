/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The heat equation u' = laplace(u) on the unit square, zero at its edges,
 * with explicit steps of finite differences. Every process owns a block and
 * exchanges its edges ("halo") with up to four neighbours in each step, while
 * it computes the inside.
 *
 *     heat [--cells N] [--steps N]
 *
 * It starts from a sum of two eigenfunctions of the difference operator. Each
 * shrinks by a factor per step that can be written down, so the exact result
 * is known; it is compared with that and with one process's own. Exit code 0:
 * they agree; 1: they do not; 2: bad arguments. --damage loses one edge in one
 * step, to see that this is noticed.
 */
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"

#define PI 3.14159265358979323846
#define RATIO 0.2       /* time step / cell width^2; stable below 0.25 */
#define REPORT_EVERY 20 /* steps between two reductions */
#define SERIAL_LIMIT 1e-13
#define EXACT_LIMIT 1e-10

enum tag { TAG_HALO = 1, TAG_BLOCK };
enum side { WEST, EAST, SOUTH, NORTH, SIDES };

struct settings {
    long cells; /* per side, edges of the square not counted */
    long steps;
    bool damage;
};

/* A block with one more cell on every side; row by row. */
struct block {
    int x0, y0; /* first own cell in the whole */
    int nx, ny; /* own cells */
    double *now;
    double *next;
};

struct grid {
    int px, py; /* processes */
    int rank, size;
    int neighbour[SIDES]; /* or MPI_PROC_NULL */
    double *out[SIDES];   /* edges as they travel */
    double *in[SIDES];
    MPI_Request requests[2 * SIDES];
};

static void *allocate(size_t count, size_t size)
{
    void *p = calloc(count, size);

    if (!p) {
        (void)fprintf(stderr, "heat: out of memory\n");
        (void)MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return p;
}

/* ---- one block ---- */

static size_t at(const struct block *b, int x, int y)
{
    return (size_t)y * ((size_t)b->nx + 2) + (size_t)x;
}

/* The start: sin(pi x) sin(pi y) + sin(3 pi x) sin(2 pi y) / 2, each part
 * times its factor. Cell numbers count from 1 in the whole square. */
static double exact(long cells, int x, int y, double first, double second)
{
    const double h = 1.0 / ((double)cells + 1.0);
    const double u = PI * h * (double)x;
    const double v = PI * h * (double)y;

    return first * sin(u) * sin(v) + second * 0.5 * sin(3 * u) * sin(2 * v);
}

/* What a step leaves of the eigenfunction with k and l half waves. */
static double factor(long cells, int k, int l)
{
    const double h = 1.0 / ((double)cells + 1.0);
    const double a = sin(PI * h * (double)k / 2);
    const double b = sin(PI * h * (double)l / 2);

    return 1.0 - 4.0 * RATIO * (a * a + b * b);
}

static struct block make_block(long cells, int col, int cols, int row, int rows)
{
    struct block b = {.x0 = (int)(cells * col / cols),
                      .y0 = (int)(cells * row / rows)};
    size_t count;

    b.nx = (int)(cells * (col + 1) / cols) - b.x0;
    b.ny = (int)(cells * (row + 1) / rows) - b.y0;
    count = ((size_t)b.nx + 2) * ((size_t)b.ny + 2);
    b.now = allocate(count, sizeof(double));
    b.next = allocate(count, sizeof(double));
    for (int y = 1; y <= b.ny; y++)
        for (int x = 1; x <= b.nx; x++)
            b.now[at(&b, x, y)] = exact(cells, b.x0 + x, b.y0 + y, 1.0, 1.0);
    return b;
}

static void drop_block(struct block *b)
{
    free(b->now);
    free(b->next);
}

/* One step for the cells from (x0, y0) to (x1, y1), both included; returns
 * the largest change. */
static double step(struct block *b, int x0, int x1, int y0, int y1)
{
    const size_t row = (size_t)b->nx + 2;
    double change = 0.0;

    for (int y = y0; y <= y1; y++) {
        for (int x = x0; x <= x1; x++) {
            const double *u = b->now + at(b, x, y);
            const double d =
                RATIO * (u[-1] + u[1] + *(u - row) + u[row] - 4.0 * *u);

            b->next[at(b, x, y)] = *u + d;
            change = fabs(d) > change ? fabs(d) : change;
        }
    }
    return change;
}

static void swap(struct block *b)
{
    double *old = b->now;

    b->now = b->next;
    b->next = old;
}

/* ---- the exchange ---- */

static int edge_len(const struct block *b, int side)
{
    return side == WEST || side == EAST ? b->ny : b->nx;
}

/* Copy the own cells at an edge out, or the halo beyond it in. */
static void copy_edge(struct block *b, int side, double *edge, bool is_out)
{
    const int len = edge_len(b, side);
    const int depth = is_out ? 1 : 0;
    const int x = side == WEST ? depth : b->nx + 1 - depth;
    const int y = side == SOUTH ? depth : b->ny + 1 - depth;

    for (int i = 1; i <= len; i++) {
        double *cell =
            b->now + (side == WEST || side == EAST ? at(b, x, i) : at(b, i, y));

        if (is_out)
            edge[i - 1] = *cell;
        else
            *cell = edge[i - 1];
    }
}

static void start_exchange(struct grid *g, struct block *b)
{
    /* A message's tag says on which side of the receiver it belongs. */
    static const int opposite[SIDES] = {EAST, WEST, NORTH, SOUTH};
    MPI_Request *r = g->requests;

    for (int side = 0; side < SIDES; side++)
        MPI_Irecv(g->in[side], edge_len(b, side), MPI_DOUBLE,
                  g->neighbour[side], TAG_HALO + 10 * side, MPI_COMM_WORLD,
                  r++);
    for (int side = 0; side < SIDES; side++) {
        copy_edge(b, side, g->out[side], true);
        MPI_Isend(g->out[side], edge_len(b, side), MPI_DOUBLE,
                  g->neighbour[side], TAG_HALO + 10 * opposite[side],
                  MPI_COMM_WORLD, r++);
    }
}

static void finish_exchange(struct grid *g, struct block *b, bool is_damaged)
{
    bool is_lost = is_damaged;

    MPI_Waitall(2 * SIDES, g->requests, MPI_STATUSES_IGNORE);
    for (int side = 0; side < SIDES; side++) {
        if (g->neighbour[side] == MPI_PROC_NULL)
            continue;
        if (!is_lost)
            copy_edge(b, side, g->in[side], false);
        is_lost = false;
    }
}

/* Compute the inside while edges travel, then the rim. */
static double step_with_exchange(struct grid *g, struct block *b,
                                 bool is_damaged)
{
    double change;

    start_exchange(g, b);
    change = step(b, 2, b->nx - 1, 2, b->ny - 1);
    finish_exchange(g, b, is_damaged);
    change = fmax(change, step(b, 1, b->nx, 1, 1));
    change = fmax(change, step(b, 1, b->nx, b->ny, b->ny));
    change = fmax(change, step(b, 1, 1, 2, b->ny - 1));
    change = fmax(change, step(b, b->nx, b->nx, 2, b->ny - 1));
    swap(b);
    return change;
}

/* The grid of processes: as square as the number allows. */
static struct grid make_grid(int rank, int size)
{
    struct grid g = {.rank = rank, .size = size, .px = 1};
    int col, row;

    for (int d = 1; d * d <= size; d++) {
        if (size % d == 0)
            g.py = d;
    }
    g.px = size / g.py;
    col = rank % g.px;
    row = rank / g.px;
    g.neighbour[WEST] = col > 0 ? rank - 1 : MPI_PROC_NULL;
    g.neighbour[EAST] = col < g.px - 1 ? rank + 1 : MPI_PROC_NULL;
    g.neighbour[SOUTH] = row > 0 ? rank - g.px : MPI_PROC_NULL;
    g.neighbour[NORTH] = row < g.py - 1 ? rank + g.px : MPI_PROC_NULL;
    return g;
}

static double run_steps(struct grid *g, struct block *b,
                        const struct settings *set)
{
    double residual = 0.0;

    for (int side = 0; side < SIDES; side++) {
        g->out[side] = allocate((size_t)edge_len(b, side), sizeof(double));
        g->in[side] = allocate((size_t)edge_len(b, side), sizeof(double));
    }
    for (long n = 1; n <= set->steps; n++) {
        const bool is_damaged = set->damage && g->rank == 0 && n == 1;
        double change = step_with_exchange(g, b, is_damaged);

        if (n % REPORT_EVERY == 0 || n == set->steps)
            MPI_Allreduce(&change, &residual, 1, MPI_DOUBLE, MPI_MAX,
                          MPI_COMM_WORLD);
    }
    for (int side = 0; side < SIDES; side++) {
        free(g->out[side]);
        free(g->in[side]);
    }
    return residual;
}

/* ---- the check ---- */

/* The largest difference to an array of all cells, for one block of them. */
static double compare(const double *whole, long cells, const struct block *b,
                      const double *own)
{
    double worst = 0.0;

    for (int y = 0; y < b->ny; y++) {
        const double *row = whole + (size_t)(b->y0 + y) * (size_t)cells + b->x0;

        for (int x = 0; x < b->nx; x++) {
            const double d =
                fabs(row[x] - own[(size_t)y * (size_t)b->nx + (size_t)x]);

            /* Not a number must not pass. */
            worst = d >= worst || isnan(d) ? d : worst;
            if (isnan(d))
                return d;
        }
    }
    return worst;
}

static double *own_cells(const struct block *b)
{
    double *cells = allocate((size_t)b->nx * (size_t)b->ny, sizeof(double));

    for (int y = 0; y < b->ny; y++)
        memcpy(cells + (size_t)y * (size_t)b->nx, b->now + at(b, 1, y + 1),
               (size_t)b->nx * sizeof(double));
    return cells;
}

/* The whole square by one process: its cells, the largest change in the last
 * step, and how far from exact it ends. */
static double *compute_alone(const struct settings *set, double *change,
                             double *error)
{
    struct block b = make_block(set->cells, 0, 1, 0, 1);
    const double f = pow(factor(set->cells, 1, 1), (double)set->steps);
    const double s = pow(factor(set->cells, 3, 2), (double)set->steps);
    double *cells;
    double worst = 0.0;

    for (long n = 0; n < set->steps; n++) {
        *change = step(&b, 1, b.nx, 1, b.ny);
        swap(&b);
    }
    for (int y = 1; y <= b.ny; y++)
        for (int x = 1; x <= b.nx; x++)
            worst = fmax(worst, fabs(b.now[at(&b, x, y)] -
                                     exact(set->cells, x, y, f, s)));
    cells = own_cells(&b);
    drop_block(&b);
    *error = worst;
    return cells;
}

/* Rank 0 fetches all blocks, one large message each. */
static double compare_all(const struct grid *g, const struct settings *set,
                          const struct block *mine, const double *whole)
{
    double *cells = own_cells(mine);
    double worst = compare(whole, set->cells, mine, cells);

    free(cells);
    for (int rank = 1; rank < g->size && !isnan(worst); rank++) {
        struct block b =
            make_block(set->cells, rank % g->px, g->px, rank / g->px, g->py);
        double d;

        cells = allocate((size_t)b.nx * (size_t)b.ny, sizeof(double));
        MPI_Recv(cells, b.nx * b.ny, MPI_DOUBLE, rank, TAG_BLOCK,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        d = compare(whole, set->cells, &b, cells);
        worst = d > worst || isnan(d) ? d : worst;
        free(cells);
        drop_block(&b);
    }
    return worst;
}

static bool report(const struct grid *g, const struct settings *set,
                   const struct block *mine, double seconds, double residual)
{
    double start = MPI_Wtime();
    double error;
    double change = 0.0;
    double *whole = compute_alone(set, &change, &error);
    double alone_s = MPI_Wtime() - start;
    double worst = compare_all(g, set, mine, whole);
    bool is_good = worst <= SERIAL_LIMIT && error <= EXACT_LIMIT &&
                   fabs(residual - change) <= SERIAL_LIMIT;

    printf("heat equation, %ld x %ld cells, %ld steps, %d x %d blocks\n",
           set->cells, set->cells, set->steps, g->px, g->py);
    printf("  %d process%s: %.2f s; one process alone: %.2f s\n", g->size,
           g->size == 1 ? "" : "es", seconds, alone_s);
    printf("  largest change in the last step: %.3g (alone: %.3g)\n", residual,
           change);
    printf("  largest difference to one process alone: %.2g (allowed %.0e)\n",
           worst, SERIAL_LIMIT);
    printf("  largest difference to the exact result: %.2g (allowed %.0e)\n",
           error, EXACT_LIMIT);
    printf("%s\n", is_good ? "ok" : "FAILED");
    free(whole);
    return is_good;
}

static int run(const struct settings *set, int rank, int size)
{
    struct grid g = make_grid(rank, size);
    struct block b =
        make_block(set->cells, rank % g.px, g.px, rank / g.px, g.py);
    bool is_good = true;
    double start, residual, seconds;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    residual = run_steps(&g, &b, set);
    seconds = MPI_Wtime() - start;
    if (rank == 0) {
        is_good = report(&g, set, &b, seconds, residual);
    } else {
        double *cells = own_cells(&b);

        MPI_Send(cells, b.nx * b.ny, MPI_DOUBLE, 0, TAG_BLOCK, MPI_COMM_WORLD);
        free(cells);
    }
    drop_block(&b);
    return is_good ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct settings set = {.cells = 512, .steps = 400};
    const struct app_option options[] = {
        {.name = "--cells", .number = &set.cells, .min = 2, .max = 20000},
        {.name = "--steps", .number = &set.steps, .min = 1, .max = 10000000},
        {.name = "--damage", .flag = &set.damage},
        {.name = NULL},
    };
    int rank, size;
    int rc = 2;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (app_parse(argc, argv, options, rank == 0)) {
        /* The longer side of the grid of processes is at most their number. */
        if (set.cells >= 2L * size)
            rc = run(&set, rank, size);
        else if (rank == 0)
            (void)fprintf(stderr,
                          "heat: %d processes need --cells %d or more\n", size,
                          2 * size);
    }
    MPI_Finalize();
    return rc;
}
