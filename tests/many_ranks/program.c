/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What many ranks on one machine cost: context switches, page faults, mapped
 * and used memory, descriptors; times for people only. Rank 0 prints the sums
 * and maxima over all ranks, a word and a number in a line.
 *
 *   program barrier CALLS | allreduce CALLS | neighbors RANKS ROUNDS BYTES
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { WARM = 4, NEIGHBORS_MAX = 64, BYTES_MAX = 1 << 16 };

static int rank;
static int size;

static double now_s(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *what)
{
    (void)fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- what is counted ---- */

enum count {
    SLEEPS,
    SWITCHES,
    FAULTS,
    CPU_US,
    MAPPED_KIB,
    TABLES_KIB,
    FILES,
    COUNTS
};

static const char *const names[COUNTS] = {
    "sleeps",     "switches",        "faults",     "cpu_us",
    "mapped_kib", "page_tables_kib", "descriptors"};

static long status_kib(const char *key)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long value = -1;

    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, key, strlen(key)) == 0)
            value = strtol(line + strlen(key), NULL, 10);
    if (f)
        (void)fclose(f);
    return value;
}

static long count_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    long n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        (void)closedir(dir);
    return n;
}

static void look(double counts[COUNTS])
{
    struct rusage use;

    (void)getrusage(RUSAGE_SELF, &use);
    counts[SLEEPS] = (double)use.ru_nvcsw;
    counts[SWITCHES] = (double)(use.ru_nvcsw + use.ru_nivcsw);
    counts[FAULTS] = (double)use.ru_minflt;
    counts[CPU_US] = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e6 +
                     (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void look_at_memory(double counts[COUNTS])
{
    counts[MAPPED_KIB] = (double)status_kib("VmSize:");
    counts[TABLES_KIB] = (double)status_kib("VmPTE:");
    counts[FILES] = (double)count_files();
}

static void print(const char *prefix, const double counts[COUNTS], double calls)
{
    double sums[COUNTS];
    double most[COUNTS];

    MPI_Reduce(counts, sums, COUNTS, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(counts, most, COUNTS, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < COUNTS; i++)
        if (i < MAPPED_KIB)
            printf("%s_%s %.3f\n", prefix, names[i], sums[i] / size / calls);
        else
            printf("%s_%s %.0f\n", prefix, names[i], most[i]);
}

/* Of the machine, while all ranks are alive. */
static void print_available(void)
{
    FILE *f = rank == 0 ? fopen("/proc/meminfo", "r") : NULL;
    char line[256];

    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "MemAvailable:", 13) == 0)
            printf("available_kib %ld\n", strtol(line + 13, NULL, 10));
    if (f)
        (void)fclose(f);
}

/* ---- what is done ---- */

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduce(void)
{
    double mine = rank;
    double all = -1;

    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (all != 0.5 * size * (size - 1))
        fail("wrong sum");
}

static int neighbor_count;
static int message_bytes;
static unsigned char *outgoing;
static unsigned char *incoming;

static unsigned char stamp(int from, int to)
{
    return (unsigned char)(from * 31 + to * 7 + 1);
}

static int neighbor(int i)
{
    int far = i / 2 + 1;

    return ((i % 2 ? rank - far : rank + far) % size + size) % size;
}

static void exchange(void)
{
    MPI_Request requests[2 * NEIGHBORS_MAX];
    const size_t len = (size_t)message_bytes;

    for (int i = 0; i < neighbor_count; i++) {
        memset(outgoing + (size_t)i * len, stamp(rank, neighbor(i)), len);
        MPI_Irecv(incoming + (size_t)i * len, message_bytes, MPI_BYTE,
                  neighbor(i), i ^ 1, MPI_COMM_WORLD, &requests[2 * i]);
        MPI_Isend(outgoing + (size_t)i * len, message_bytes, MPI_BYTE,
                  neighbor(i), i, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    MPI_Waitall(2 * neighbor_count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < neighbor_count; i++)
        for (size_t k = 0; k < len; k++)
            if (incoming[(size_t)i * len + k] != stamp(neighbor(i), rank))
                fail("wrong message");
}

static void run(const char *name, void (*call)(void), int warm, int calls)
{
    double before[COUNTS] = {0};
    double after[COUNTS] = {0};
    double start_s = now_s();

    for (int i = 0; i < warm; i++)
        call();
    if (rank == 0)
        printf("%s_first_ms %.3f\n", name, (now_s() - start_s) * 1e3);
    look(before);
    start_s = now_s();
    for (int i = 0; i < calls; i++)
        call();
    if (rank == 0)
        printf("%s_ms %.3f\n", name, (now_s() - start_s) * 1e3 / calls);
    look(after);
    for (int i = 0; i < COUNTS; i++)
        after[i] -= before[i];
    look_at_memory(after);
    print(name, after, calls);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[1] : "";
    double counts[COUNTS] = {0};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(mode, "barrier") == 0) {
        run("barrier", barrier, WARM, atoi(argv[2]));
    } else if (strcmp(mode, "allreduce") == 0) {
        run("allreduce", allreduce, WARM, atoi(argv[2]));
    } else if (strcmp(mode, "neighbors") == 0 && argc == 5) {
        neighbor_count = atoi(argv[2]);
        message_bytes = atoi(argv[4]);
        if (neighbor_count < 2 || neighbor_count > NEIGHBORS_MAX ||
            neighbor_count % 2 || neighbor_count >= size || message_bytes < 1 ||
            message_bytes > BYTES_MAX)
            fail("impossible arguments");
        outgoing = malloc((size_t)neighbor_count * (size_t)message_bytes);
        incoming = malloc((size_t)neighbor_count * (size_t)message_bytes);
        if (!outgoing || !incoming)
            fail("out of memory");
        run("exchange", exchange, 1, atoi(argv[3]));
    } else {
        fail("barrier CALLS | allreduce CALLS | neighbors RANKS ROUNDS BYTES");
    }
    look(counts); /* from the beginning of the process on */
    look_at_memory(counts);
    print("job", counts, 1);
    barrier();
    print_available();
    barrier();
    free(outgoing);
    free(incoming);
    MPI_Finalize();
    if (rank == 0)
        printf("ok\n");
    return 0;
}
