/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files: contiguous and strided independent access, and collective writes and
 * reads of arrays that are decomposed in blocks, against what a program does
 * by hand: pwrite() by every process, and alltoallv plus pwrite().
 *
 *   files FOLDER [BYTES [REPEATS]]
 *
 * BYTES is the size of the whole file. Prints the least time of each pattern
 * in microseconds, without open and close, and the ratio by hand / MPI (above
 * 1: MPI is quicker). Runs with any MPI.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIMS_MAX = 4 };

static int rank;
static int size;
static char path[512];

/* A pattern: an array of elements of `unit` bytes, in blocks. */
struct pattern {
    const char *name;
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

static void make_pattern(struct pattern *p, const char *name, int dims,
                         int unit, long bytes)
{
    int coords[DIMS_MAX];
    int rest = rank;
    long elements = bytes / unit;
    long side = 1;

    memset(p, 0, sizeof(*p));
    p->name = name;
    p->dims = dims;
    p->unit = unit;
    MPI_Dims_create(size, dims, p->procs);
    for (;;) { /* the largest cube that fits */
        long n = 1;

        for (int d = 0; d < dims; d++)
            n *= (side + 1) * p->procs[d];
        if (n > elements)
            break;
        side++;
    }
    p->bytes = unit;
    for (int d = dims - 1; d >= 0; d--) {
        coords[d] = rest % p->procs[d];
        rest /= p->procs[d];
        p->part[d] = side;
        p->full[d] = side * p->procs[d];
        p->start[d] = coords[d] * side;
        p->bytes *= side;
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

static double slowest(double time)
{
    double all;

    MPI_Allreduce(&time, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static void report(const char *name, const char *what, double mpi, double hand)
{
    if (rank != 0)
        return;
    if (hand > 0)
        printf("%-22s %-12s %11.1f us %11.1f us by hand %6.2f\n", name, what,
               mpi * 1e6, hand * 1e6, hand / mpi);
    else
        printf("%-22s %-12s %11.1f us\n", name, what, mpi * 1e6);
    fflush(stdout);
}

static void remove_file(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void bench_array(struct pattern *p, int repeats)
{
    MPI_Datatype type = type_of(p);
    double mpi = 1e9;
    double hand = 1e9;
    double reading = 1e9;

    memset(data, rank + 1, (size_t)p->bytes);
    for (int i = 0; i < repeats; i++) {
        MPI_File file = open_by_mpi();
        double begin;
        double time;
        int fd;

        MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL);
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        MPI_File_write_at_all(file, 0, data, (int)p->bytes, MPI_BYTE,
                              MPI_STATUS_IGNORE);
        time = slowest(MPI_Wtime() - begin);
        mpi = time < mpi ? time : mpi;
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        MPI_File_read_at_all(file, 0, back, (int)p->bytes, MPI_BYTE,
                             MPI_STATUS_IGNORE);
        time = slowest(MPI_Wtime() - begin);
        reading = time < reading ? time : reading;
        if (memcmp(data, back, (size_t)p->bytes) != 0)
            fprintf(stderr, "%s: what was read differs\n", p->name);
        MPI_File_close(&file);
        remove_file();
        fd = open_by_hand(O_RDWR | O_CREAT);
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        write_by_hand(p, fd);
        time = slowest(MPI_Wtime() - begin);
        hand = time < hand ? time : hand;
        close(fd);
        remove_file();
    }
    report(p->name, "write_all", mpi, hand);
    report(p->name, "read_all", reading, 0);
    MPI_Type_free(&type);
}

static void bench_contiguous(long bytes, int repeats)
{
    double mpi = 1e9;
    double hand = 1e9;

    for (int i = 0; i < repeats; i++) {
        MPI_File file = open_by_mpi();
        double begin;
        double time;
        int fd;

        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        MPI_File_write_at(file, rank * bytes, data, (int)bytes, MPI_BYTE,
                          MPI_STATUS_IGNORE);
        time = slowest(MPI_Wtime() - begin);
        mpi = time < mpi ? time : mpi;
        MPI_File_close(&file);
        remove_file();
        fd = open_by_hand(O_RDWR | O_CREAT);
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        if (pwrite(fd, data, (size_t)bytes, rank * bytes) != bytes)
            MPI_Abort(MPI_COMM_WORLD, 1);
        time = slowest(MPI_Wtime() - begin);
        hand = time < hand ? time : hand;
        close(fd);
        remove_file();
    }
    report("contiguous", "write_at", mpi, hand);
}

/* Every size-th block is this process's; without asking the others. */
static void bench_strided(long bytes, int block, int repeats)
{
    char name[32];
    MPI_Datatype unit;
    MPI_Datatype type;
    double writing = 1e9;
    double reading = 1e9;

    snprintf(name, sizeof(name), "blocks of %d", block);
    MPI_Type_contiguous(block, MPI_BYTE, &unit);
    MPI_Type_create_resized(unit, 0, (MPI_Aint)block * size, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < repeats; i++) {
        MPI_File file = open_by_mpi();
        double begin;
        double time;

        MPI_File_set_view(file, (MPI_Offset)rank * block, MPI_BYTE, type,
                          "native", MPI_INFO_NULL);
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        MPI_File_write_at(file, 0, data, (int)(bytes / block * block), MPI_BYTE,
                          MPI_STATUS_IGNORE);
        time = slowest(MPI_Wtime() - begin);
        writing = time < writing ? time : writing;
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        MPI_File_read_at(file, 0, back, (int)(bytes / block * block), MPI_BYTE,
                         MPI_STATUS_IGNORE);
        time = slowest(MPI_Wtime() - begin);
        reading = time < reading ? time : reading;
        MPI_File_close(&file);
        remove_file();
    }
    report(name, "write_at", writing, 0);
    report(name, "read_at", reading, 0);
    MPI_Type_free(&type);
    MPI_Type_free(&unit);
}

int main(int argc, char **argv)
{
    long bytes = argc > 2 ? atol(argv[2]) : 16L << 20;
    int repeats = argc > 3 ? atoi(argv[3]) : 5;
    struct pattern p;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 2) {
        fprintf(stderr, "usage: files FOLDER [BYTES [REPEATS]]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    snprintf(path, sizeof(path), "%s/chempi-bench-%d.tmp", argv[1], size);
    data = get((size_t)(bytes / size + 4096));
    back = get((size_t)(bytes / size + 4096));
    memset(data, 1, (size_t)(bytes / size));
    memset(back, 0, (size_t)(bytes / size));
    remove_file();
    bench_contiguous(bytes / size, repeats);
    bench_strided(bytes / size, 8, repeats);
    bench_strided(bytes / size, 4096, repeats);
    make_pattern(&p, "2-D, elements of 8", 2, 8, bytes);
    bench_array(&p, repeats);
    make_pattern(&p, "3-D, elements of 8", 3, 8, bytes);
    bench_array(&p, repeats);
    make_pattern(&p, "4-D, elements of 8", 4, 8, bytes);
    bench_array(&p, repeats);
    free(data);
    free(back);
    MPI_Finalize();
    return 0;
}
