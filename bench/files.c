/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files: contiguous and strided independent access, collective writes and
 * reads of arrays that are decomposed in blocks, and what a program does by
 * hand instead: pwrite() by every process, and alltoallv plus pwrite().
 *
 *   files MODE FOLDER BYTES...
 *
 * BYTES is the size of the whole file. Modes and their points, microseconds
 * without open and close where nothing else is said:
 *
 *   contiguous   write, read; pwrite: by hand
 *   strided      write-8, read-8, write-4k, read-4k: blocks of so many bytes,
 *                each process for itself
 *   2d 3d 4d     write-2d, read-2d; with few processes the parts are slabs
 *                that lie one behind the other
 *   2d-last 3d-last 4d-last
 *                the same with most processes along the last dimension, in
 *                whose direction elements lie side by side
 *   thin         a 3-D array whose last dimension has an element for each
 *                process: blocks of 8 bytes
 *   hand         hand-2d and so on: what write-2d does, by hand
 *   overlap      iwrite: MPI_File_iwrite_at_all of a 3-D array; beside: the
 *                time beyond the computing that is done meanwhile, which takes
 *                as long as iwrite
 *   close        sync, close: what they take behind a write
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

enum { DIMS_MAX = 4, REPEATS_MAX = 200 };

static struct bench bench;
static int rank;
static int size;
static char path[512];

/* A pattern: an array of elements of `unit` bytes, in blocks. */
struct pattern {
    int dims;
    int unit; /* bytes */
    long full[DIMS_MAX];
    int procs[DIMS_MAX];
    long part[DIMS_MAX];
    long start[DIMS_MAX];
    long bytes; /* of this process */
};

static char *data;
static char *back;

static void *get(size_t len)
{
    void *p = malloc(len ? len : 1);

    if (!p)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return p;
}

static int open_by_hand(int flags)
{
    int fd = open(path, flags, 0666);

    if (fd < 0) {
        perror(path);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return fd;
}

static MPI_File open_by_mpi(void)
{
    MPI_File file;

    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE,
                      MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return file;
}

/* ---- patterns ---- */

/* How many processes along each dimension; which of them are many? */
static void make_grid(int *procs, int dims, const char *how)
{
    int first[DIMS_MAX] = {0};

    if (strcmp(how, "thin") == 0) {
        for (int d = 0; d < dims; d++)
            procs[d] = d == dims - 1 ? size : 1;
        return;
    }
    MPI_Dims_create(size, dims, first);
    for (int d = 0; d < dims; d++)
        procs[d] = first[strcmp(how, "last") == 0 ? dims - 1 - d : d];
}

static void make_pattern(struct pattern *p, int dims, const char *how,
                         long bytes)
{
    const int unit = 8;
    bool is_thin = strcmp(how, "thin") == 0;
    int coords[DIMS_MAX];
    int rest = rank;
    long elements = bytes / unit;
    long side = 1;

    memset(p, 0, sizeof(*p));
    p->dims = dims;
    p->unit = unit;
    make_grid(p->procs, dims, how);
    for (;;) { /* the largest cube that fits */
        long n = 1;

        for (int d = 0; d < dims; d++)
            n *= (is_thin && d == dims - 1 ? 1 : side + 1) * p->procs[d];
        if (n > elements)
            break;
        side++;
    }
    p->bytes = unit;
    for (int d = dims - 1; d >= 0; d--) {
        coords[d] = rest % p->procs[d];
        rest /= p->procs[d];
        p->part[d] = is_thin && d == dims - 1 ? 1 : side;
        p->full[d] = p->part[d] * p->procs[d];
        p->start[d] = coords[d] * p->part[d];
        p->bytes *= p->part[d];
    }
}

static MPI_Datatype type_of(const struct pattern *p)
{
    int full[DIMS_MAX];
    int part[DIMS_MAX];
    int start[DIMS_MAX];
    MPI_Datatype unit;
    MPI_Datatype type;

    for (int d = 0; d < p->dims; d++) {
        full[d] = (int)p->full[d];
        part[d] = (int)p->part[d];
        start[d] = (int)p->start[d];
    }
    MPI_Type_contiguous(p->unit, MPI_BYTE, &unit);
    MPI_Type_create_subarray(p->dims, full, part, start, MPI_ORDER_C, unit,
                             &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&unit);
    return type;
}

/* ---- by hand: rows to their places ---- */

/* Calls fn for each row of a process's part: where in the file, where in its
 * memory, how long. */
typedef void row_fn(void *arg, long offset, long at, long len);

static void for_rows(const struct pattern *p, const long *start, row_fn *fn,
                     void *arg)
{
    long index[DIMS_MAX] = {0};
    long len = p->part[p->dims - 1] * p->unit;
    long rows = p->bytes / len;

    for (long row = 0; row < rows; row++) {
        long offset = 0;

        for (int d = 0; d < p->dims; d++)
            offset = offset * p->full[d] + start[d] +
                     (d < p->dims - 1 ? index[d] : 0);
        fn(arg, offset * p->unit, row * len, len);
        for (int d = p->dims - 2; d >= 0 && ++index[d] == p->part[d]; d--)
            index[d] = 0;
    }
}

struct hand {
    long domain; /* bytes of file for each process */
    int *counts;
    int *places;
    int *used;
    char *packed;
    const char *data;
    char *window;
    char *out;
    long base;
};

/* A row may reach over several domains. */
static void split(struct hand *h, long offset, long at, long len,
                  void (*each)(struct hand *h, int to, long offset, long at,
                               long len))
{
    while (len > 0) {
        int to = (int)(offset / h->domain);
        long end = (to + 1L) * h->domain;
        long n = offset + len < end ? len : end - offset;

        each(h, to, offset, at, n);
        offset += n;
        at += n;
        len -= n;
    }
}

static void count_piece(struct hand *h, int to, long offset, long at, long len)
{
    (void)offset;
    (void)at;
    h->counts[to] += (int)len;
}

static void count_row(void *arg, long offset, long at, long len)
{
    split(arg, offset, at, len, count_piece);
}

static void pack_piece(struct hand *h, int to, long offset, long at, long len)
{
    (void)offset;
    memcpy(h->packed + h->places[to] + h->used[to], h->data + at, (size_t)len);
    h->used[to] += (int)len;
}

static void pack_row(void *arg, long offset, long at, long len)
{
    split(arg, offset, at, len, pack_piece);
}

static void take_piece(struct hand *h, int to, long offset, long at, long len)
{
    (void)at;
    if (to != rank)
        return;
    memcpy(h->window + (offset - h->base), h->packed + h->used[0], (size_t)len);
    h->used[0] += (int)len;
}

static void take_row(void *arg, long offset, long at, long len)
{
    split(arg, offset, at, len, take_piece);
}

static void start_of(const struct pattern *p, int r, long *start)
{
    for (int d = p->dims - 1; d >= 0; d--) {
        start[d] = r % p->procs[d] * p->part[d];
        r /= p->procs[d];
    }
}

/* Exchange so that each process has one piece of the file, then pwrite. */
static void write_by_hand(const struct pattern *p, int fd)
{
    long total = p->bytes * size;
    struct hand h = {.domain = (total + size - 1) / size, .data = data};
    int *ints = get(6 * (size_t)size * sizeof(int));
    int *recv_counts = ints;
    int *recv_places = ints + size;
    long start[DIMS_MAX];
    long window = 0;
    char *received;

    h.counts = ints + 2 * size;
    h.places = ints + 3 * size;
    h.used = ints + 4 * size;
    memset(h.counts, 0, 3 * (size_t)size * sizeof(int));
    h.packed = get((size_t)p->bytes);
    for_rows(p, p->start, count_row, &h);
    for (int r = 1; r < size; r++)
        h.places[r] = h.places[r - 1] + h.counts[r - 1];
    for_rows(p, p->start, pack_row, &h);
    MPI_Alltoall(h.counts, 1, MPI_INT, recv_counts, 1, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++) {
        recv_places[r] = (int)window;
        window += recv_counts[r];
    }
    received = get((size_t)window);
    MPI_Alltoallv(h.packed, h.counts, h.places, MPI_BYTE, received, recv_counts,
                  recv_places, MPI_BYTE, MPI_COMM_WORLD);
    free(h.packed);
    h.base = rank * h.domain;
    h.window = get((size_t)h.domain);
    for (int r = 0; r < size; r++) {
        h.packed = received + recv_places[r];
        h.used[0] = 0;
        start_of(p, r, start);
        for_rows(p, start, take_row, &h);
    }
    for (long done = 0; done < window;) {
        ssize_t n =
            pwrite(fd, h.window + done, (size_t)(window - done), h.base + done);

        if (n <= 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
        done += n;
    }
    free(received);
    free(h.window);
    free(ints);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- timing ---- */

/* Of the slowest rank; a barrier is before each. */
static double since(double begin)
{
    double time = MPI_Wtime() - begin;
    double all;

    MPI_Allreduce(&time, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static double now(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime();
}

struct series {
    double values[REPEATS_MAX];
    int count;
};

static void add(struct series *s, double value)
{
    s->values[s->count++] = value;
}

static void tell(struct series *s, const char *what, const char *of, long bytes)
{
    char name[64];

    snprintf(name, sizeof(name), "%s%s", what, of);
    bench_point(&bench, name, (size_t)bytes,
                bench_median(s->values, s->count) * 1e6, "us");
}

static int repeats_for(double once)
{
    int repeats = bench_repeats(&bench, once, 3);

    return repeats < REPEATS_MAX ? repeats : REPEATS_MAX;
}

static void remove_file(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void compare(const char *what, long bytes)
{
    if (memcmp(data, back, (size_t)bytes) == 0)
        return;
    fprintf(stderr, "%s: what was read differs\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- modes ---- */

/* One write and one read through a view, all together or each for itself. */
static void write_and_read(MPI_Datatype type, MPI_Offset disp, long bytes,
                           int is_collective, double *writing, double *reading)
{
    MPI_File file = open_by_mpi();
    int count = (int)bytes;
    double begin;

    MPI_File_set_view(file, disp, MPI_BYTE, type, "native", MPI_INFO_NULL);
    begin = now();
    if (is_collective)
        MPI_File_write_at_all(file, 0, data, count, MPI_BYTE,
                              MPI_STATUS_IGNORE);
    else
        MPI_File_write_at(file, 0, data, count, MPI_BYTE, MPI_STATUS_IGNORE);
    *writing = since(begin);
    begin = now();
    if (is_collective)
        MPI_File_read_at_all(file, 0, back, count, MPI_BYTE, MPI_STATUS_IGNORE);
    else
        MPI_File_read_at(file, 0, back, count, MPI_BYTE, MPI_STATUS_IGNORE);
    *reading = since(begin);
    compare("a view", bytes);
    MPI_File_close(&file);
    remove_file();
}

static void bench_view(MPI_Datatype type, MPI_Offset disp, long bytes,
                       int is_collective, const char *of, long total)
{
    struct series writing = {.count = 0};
    struct series reading = {.count = 0};
    double w;
    double r;
    int repeats;

    write_and_read(type, disp, bytes, is_collective, &w, &r);
    repeats = repeats_for(w + r);
    for (int i = 0; i < repeats; i++) {
        write_and_read(type, disp, bytes, is_collective, &w, &r);
        add(&writing, w);
        add(&reading, r);
    }
    tell(&writing, "write", of, total);
    tell(&reading, "read", of, total);
}

static double once_by_hand(const struct pattern *p)
{
    int fd = open_by_hand(O_RDWR | O_CREAT);
    double begin = now();
    double time;

    write_by_hand(p, fd);
    time = since(begin);
    close(fd);
    remove_file();
    return time;
}

/* The arrays, by what the modes and points are called. */
static const struct array {
    const char *name;
    int dims;
    const char *how;
} arrays[] = {{"2d", 2, "first"},     {"3d", 3, "first"},
              {"4d", 4, "first"},     {"2d-last", 2, "last"},
              {"3d-last", 3, "last"}, {"4d-last", 4, "last"},
              {"thin", 3, "thin"}};

enum { ARRAYS = sizeof(arrays) / sizeof(arrays[0]) };

static void bench_array(const struct array *a, long total)
{
    struct pattern p;
    MPI_Datatype type;
    char of[32];

    snprintf(of, sizeof(of), "-%s", a->name);
    make_pattern(&p, a->dims, a->how, total);
    type = type_of(&p);
    bench_view(type, 0, p.bytes, 1, of, total);
    MPI_Type_free(&type);
}

static void bench_by_hand(const struct array *a, long total)
{
    struct series hand = {.count = 0};
    struct pattern p;
    char of[32];
    int repeats;

    snprintf(of, sizeof(of), "-%s", a->name);
    make_pattern(&p, a->dims, a->how, total);
    repeats = repeats_for(once_by_hand(&p));
    for (int i = 0; i < repeats; i++)
        add(&hand, once_by_hand(&p));
    tell(&hand, "hand", of, total);
}

static double once_pwrite(long bytes)
{
    int fd = open_by_hand(O_RDWR | O_CREAT);
    double begin = now();
    double time;

    if (pwrite(fd, data, (size_t)bytes, rank * bytes) != bytes)
        MPI_Abort(MPI_COMM_WORLD, 1);
    time = since(begin);
    close(fd);
    remove_file();
    return time;
}

static void bench_contiguous(long total)
{
    struct series hand = {.count = 0};
    long bytes = total / size;
    int repeats;

    bench_view(MPI_BYTE, rank * bytes, bytes, 0, "", total);
    repeats = repeats_for(once_pwrite(bytes));
    for (int i = 0; i < repeats; i++)
        add(&hand, once_pwrite(bytes));
    tell(&hand, "pwrite", "", total);
}

/* Every size-th block is this process's. */
static void bench_strided(int block, const char *of, long total)
{
    MPI_Datatype unit;
    MPI_Datatype type;

    MPI_Type_contiguous(block, MPI_BYTE, &unit);
    MPI_Type_create_resized(unit, 0, (MPI_Aint)block * size, &type);
    MPI_Type_commit(&type);
    bench_view(type, (MPI_Offset)rank * block, total / size / block * block, 0,
               of, total);
    MPI_Type_free(&unit);
    MPI_Type_free(&type);
}

static volatile double sink;

static double compute(double time)
{
    double begin = MPI_Wtime();
    double x = 1.0;

    while (MPI_Wtime() - begin < time)
        for (int i = 0; i < 1000; i++)
            x = x * 1.0000001 + 1e-9;
    sink = x;
    return MPI_Wtime() - begin;
}

/* Computing for so long between the start and the wait. */
static double once_beside(MPI_File file, long bytes, double computing)
{
    MPI_Request request;
    double begin = now();

    MPI_File_iwrite_at_all(file, 0, data, (int)bytes, MPI_BYTE, &request);
    if (computing > 0)
        compute(computing);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return since(begin);
}

static void bench_overlap(long total)
{
    struct series alone = {.count = 0};
    struct series both = {.count = 0};
    struct pattern p;
    MPI_Datatype type;
    MPI_File file = open_by_mpi();
    double pure;
    int repeats;

    make_pattern(&p, 3, "first", total);
    type = type_of(&p);
    MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL);
    pure = once_beside(file, p.bytes, 0);
    repeats = repeats_for(once_beside(file, p.bytes, 0));
    for (int i = 0; i < repeats; i++)
        add(&alone, once_beside(file, p.bytes, 0));
    pure = bench_median(alone.values, alone.count);
    MPI_Bcast(&pure, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < repeats; i++)
        add(&both, once_beside(file, p.bytes, pure));
    tell(&alone, "iwrite", "", total);
    for (int i = 0; i < both.count; i++)
        both.values[i] = both.values[i] > pure ? both.values[i] - pure : 0;
    tell(&both, "beside", "", total);
    MPI_File_close(&file);
    remove_file();
    MPI_Type_free(&type);
}

static void bench_close(long total)
{
    struct series sync = {.count = 0};
    struct series closing = {.count = 0};
    long bytes = total / size;

    for (int i = 0; i < 3; i++) {
        MPI_File file = open_by_mpi();
        double begin;

        MPI_File_write_at(file, rank * bytes, data, (int)bytes, MPI_BYTE,
                          MPI_STATUS_IGNORE);
        begin = now();
        MPI_File_sync(file);
        add(&sync, since(begin));
        MPI_File_write_at(file, rank * bytes, data, (int)bytes, MPI_BYTE,
                          MPI_STATUS_IGNORE);
        begin = now();
        MPI_File_close(&file);
        add(&closing, since(begin));
        remove_file();
    }
    tell(&sync, "sync", "", total);
    tell(&closing, "close", "", total);
}

static int run(const char *mode, long total)
{
    if (strcmp(mode, "contiguous") == 0) {
        bench_contiguous(total);
    } else if (strcmp(mode, "strided") == 0) {
        bench_strided(8, "-8", total);
        bench_strided(4096, "-4k", total);
    } else if (strcmp(mode, "hand") == 0) {
        for (int i = 0; i < ARRAYS; i++)
            bench_by_hand(&arrays[i], total);
    } else if (strcmp(mode, "overlap") == 0) {
        bench_overlap(total);
    } else if (strcmp(mode, "close") == 0) {
        bench_close(total);
    } else {
        for (int i = 0; i < ARRAYS; i++) {
            if (strcmp(mode, arrays[i].name) != 0)
                continue;
            bench_array(&arrays[i], total);
            return 1;
        }
        return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    bench_start(&bench, &argc, &argv);
    rank = bench.rank;
    size = bench.size;
    if (argc < 4) {
        fprintf(stderr, "usage: files MODE FOLDER BYTES...\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    snprintf(path, sizeof(path), "%s/chempi-bench-%ld.tmp", argv[2],
             (long)getppid());
    MPI_Bcast(path, sizeof(path), MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 3; i < argc; i++) {
        long total = (long)bench_size(argv[i]);

        size_t len = (size_t)(total / size) + 4096;

        data = bench_map(len);
        back = bench_map(len);
        memset(data, rank + 1, (size_t)(total / size));
        remove_file();
        if (!run(argv[1], total)) {
            fprintf(stderr, "files: no mode %s\n", argv[1]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        bench_unmap(data, len);
        bench_unmap(back, len);
    }
    MPI_Finalize();
    return 0;
}
