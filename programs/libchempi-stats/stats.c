/* SPDX-License-Identifier: BSD-3-Clause */
/* Counting, and the end: gathering at rank 0. See stats.h. */
#define _GNU_SOURCE /* strcasecmp, open_memstream */
#include "programs/libchempi-stats/sites.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/clock.h"

struct bin {
    _Atomic uint64_t calls;
    _Atomic uint64_t bytes;
    _Atomic uint64_t time_ns;
};

static struct {
    struct bin bins[STATS_COUNT][STATS_BINS];
    _Atomic uint64_t start_ns; /* of the first call; 0: none yet */
    _Atomic bool is_off;       /* MPI_Pcontrol(0) */
    _Atomic bool is_done;      /* printed */
} stats;

/* ---- counting ---- */

void stats_begin(struct stats_call *call, enum stats_id id, const void *from)
{
    uint64_t none = 0;

    call->id = id;
    call->from = from;
    call->bytes = STATS_NO_SIZE;
    call->since_ns = chempi_clock_ns();
    if (CHEMPI_UNLIKELY(
            atomic_load_explicit(&stats.start_ns, memory_order_relaxed) == 0))
        (void)atomic_compare_exchange_strong(&stats.start_ns, &none,
                                             call->since_ns);
}

static uint32_t bin_of(int64_t bytes)
{
    uint32_t bin = 1;

    if (bytes < 0)
        return 0;
    while (bytes > 0) {
        bytes >>= 1;
        bin++;
    }
    return bin;
}

int64_t stats_bin_from(uint32_t bin)
{
    if (bin < 2)
        return (int64_t)bin - 1;
    return INT64_C(1) << (bin - 2);
}

static void add(_Atomic uint64_t *to, uint64_t n)
{
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

void stats_end(struct stats_call *call)
{
    call->time_ns = chempi_clock_ns() - call->since_ns;
}

void stats_count(const struct stats_call *call)
{
    struct bin *bin = &stats.bins[call->id][bin_of(call->bytes)];

    if (atomic_load_explicit(&stats.is_off, memory_order_relaxed))
        return;
    add(&bin->calls, 1);
    add(&bin->bytes, call->bytes > 0 ? (uint64_t)call->bytes : 0);
    add(&bin->time_ns, call->time_ns);
    if (stats_sites_are_wanted())
        stats_sites_count(call);
}

/* ---- sizes ---- */

int64_t stats_bytes(MPI_Count count, MPI_Datatype type)
{
    MPI_Count size = 0;

    if (count == 0)
        return 0; /* the type of nothing may be anything */
    if (type == MPI_DATATYPE_NULL ||
        PMPI_Type_size_c(type, &size) != MPI_SUCCESS || size < 0 || count < 0)
        return STATS_NO_SIZE;
    return count * size;
}

static MPI_Count count_at(const void *counts, bool is_wide, int i)
{
    return is_wide ? ((const MPI_Count *)counts)[i] : ((const int *)counts)[i];
}

/* The processes that counts has entries for. */
static int partners(MPI_Comm comm)
{
    int is_inter = 0;
    int n = 0;

    if (PMPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS)
        return 0;
    if (is_inter)
        (void)PMPI_Comm_remote_size(comm, &n); /* it is one */
    else
        (void)PMPI_Comm_size(comm, &n);
    return n;
}

static int64_t mean(const void *counts, bool is_wide, int n, MPI_Datatype type)
{
    MPI_Count sum = 0;
    int64_t bytes;

    for (int i = 0; i < n; i++)
        sum += count_at(counts, is_wide, i);
    bytes = n > 0 ? stats_bytes(sum, type) : STATS_NO_SIZE;
    return bytes < 0 ? STATS_NO_SIZE : bytes / n;
}

int64_t stats_mean(const void *counts, bool is_wide, MPI_Datatype type,
                   MPI_Comm comm)
{
    return mean(counts, is_wide, counts ? partners(comm) : 0, type);
}

int64_t stats_mean_own(const void *counts, bool is_wide, MPI_Datatype type,
                       MPI_Comm comm)
{
    int n = 0;

    if (counts)
        (void)PMPI_Comm_size(comm, &n);
    return mean(counts, is_wide, n, type);
}

int64_t stats_mean_w(const void *counts, bool is_wide,
                     const MPI_Datatype types[], MPI_Comm comm)
{
    int n = counts && types ? partners(comm) : 0;
    int64_t sum = 0;

    for (int i = 0; i < n; i++) {
        int64_t bytes = stats_bytes(count_at(counts, is_wide, i), types[i]);

        sum += bytes > 0 ? bytes : 0; /* types of nothing may be null */
    }
    return n ? sum / n : STATS_NO_SIZE;
}

int64_t stats_received(const MPI_Status *status)
{
    MPI_Count count = 0;

    if (PMPI_Get_count_c(status, MPI_BYTE, &count) != MPI_SUCCESS ||
        count == MPI_UNDEFINED)
        return STATS_NO_SIZE;
    return count;
}

/* ---- the end ---- */

static struct stats_lines take_lines(void)
{
    struct stats_lines lines = {0};
    size_t room = 0;

    for (uint32_t id = 0; id < STATS_COUNT; id++)
        for (uint32_t b = 0; b < STATS_BINS; b++)
            room += stats.bins[id][b].calls > 0;
    lines.list = calloc(room ? room : 1, sizeof(*lines.list));
    lines.run_ns = stats.start_ns ? chempi_clock_ns() - stats.start_ns : 0;
    for (uint32_t id = 0; id < STATS_COUNT && lines.list; id++)
        for (uint32_t b = 0; b < STATS_BINS && lines.count < room; b++) {
            const struct bin *bin = &stats.bins[id][b];

            if (bin->calls > 0)
                lines.list[lines.count++] = (struct stats_line){
                    .id = id,
                    .bin = b,
                    .calls = bin->calls,
                    .bytes = bin->bytes,
                    .time_ns = bin->time_ns,
                };
        }
    return lines;
}

/* The process that a table is for, or STATS_ALL. Its number if it is one of
 * several, so that each has a file of its own; never the file that a path
 * which is too long begins with. */
static FILE *open_file(int process)
{
    const char *path = getenv("CHEMPI_PROFILE_FILE");
    char own[PATH_MAX];
    FILE *file = NULL;
    int len;

    if (!path || !*path)
        return stderr;
    len = process == STATS_ALL
              ? snprintf(own, sizeof(own), "%s", path)
              : snprintf(own, sizeof(own), "%s.%d", path, process);
    if (len >= 0 && (size_t)len < sizeof(own))
        file = fopen(own, "w");
    else
        errno = ENAMETOOLONG;
    if (!file)
        perror(path);
    return file ? file : stderr;
}

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_RANKS, FORMATS };

/* As CHEMPI_PROFILE wants it; what it cannot mean is told, as text. */
static enum format find_format(void)
{
    static const char *const names[FORMATS] = {
        [FORMAT_TEXT] = "text",
        [FORMAT_JSON] = "json",
        [FORMAT_RANKS] = "ranks",
    };
    const char *name = getenv("CHEMPI_PROFILE");

    if (!name || !*name)
        return FORMAT_TEXT;
    for (int i = 0; i < FORMATS; i++)
        if (strcasecmp(name, names[i]) == 0)
            return (enum format)i;
    (void)fprintf(stderr,
                  "libchempi-stats: CHEMPI_PROFILE is '%s'; it must be text, "
                  "json or ranks, and is taken for text\n",
                  name);
    return FORMAT_TEXT;
}

static void print_to(FILE *to, enum format format,
                     const struct stats_lines all[], int ranks, int process,
                     const struct stats_sites *sites)
{
    if (format == FORMAT_JSON)
        stats_print_json(to, all, ranks, process, sites);
    else
        stats_print_text(to, all, ranks, process, format == FORMAT_RANKS,
                         sites);
}

/* In one piece, so that no line of another rank stands inside; without memory
 * as it comes. */
static void print_whole(FILE *file, enum format format,
                        const struct stats_lines all[], int ranks, int process,
                        const struct stats_sites *sites)
{
    char *text = NULL;
    size_t len = 0;
    FILE *memory = open_memstream(&text, &len);
    bool is_whole = false;

    if (memory) {
        print_to(memory, format, all, ranks, process, sites);
        is_whole = !ferror(memory);
        is_whole = fclose(memory) == 0 && is_whole;
    }
    if (is_whole)
        (void)fwrite(text, 1, len, file); /* as where nobody reads it */
    else
        print_to(file, format, all, ranks, process, sites);
    free(text);
}

/* sites: NULL if nobody wants them. */
static void print(const struct stats_lines all[], int ranks, int process,
                  struct stats_sites *sites)
{
    const enum format format = find_format();
    FILE *file = open_file(process);

    if (sites)
        stats_sites_join(sites, (uint32_t)ranks);
    print_whole(file, format, all, ranks, process, sites);
    if (file != stderr && fclose(file) != 0)
        perror("CHEMPI_PROFILE_FILE");
}

/* Everybody's bytes at rank 0, in one piece of memory; lens has their numbers
 * there. By collective operations, which meet no message that the program has
 * left. */
static int gather(const void *own, size_t len, int rank, int ranks, void **all,
                  unsigned long long *lens)
{
    const unsigned long long own_len = len;
    MPI_Count *counts = calloc((size_t)ranks, sizeof(*counts));
    MPI_Aint *places = calloc((size_t)ranks, sizeof(*places));
    MPI_Count sum = 0;
    int rc;

    if (!counts || !places)
        PMPI_Abort(MPI_COMM_WORLD, 1); /* the others wait */
    *all = NULL;
    rc = PMPI_Gather(&own_len, 1, MPI_UNSIGNED_LONG_LONG, lens, 1,
                     MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
    for (int r = 0; r < ranks && !rc && rank == 0; r++) {
        counts[r] = (MPI_Count)lens[r];
        places[r] = sum;
        sum += counts[r];
    }
    if (!rc && rank == 0) {
        *all = malloc((size_t)sum + 1);
        if (!*all)
            PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (!rc)
        rc = PMPI_Gatherv_c(own, (MPI_Count)len, MPI_BYTE, *all, counts, places,
                            MPI_BYTE, 0, MPI_COMM_WORLD);
    free(counts);
    free(places);
    return rc;
}

/* The lines of all processes at rank 0, in memory that all[0] begins. */
static int gather_lines(const struct stats_lines *own, int rank, int ranks,
                        unsigned long long *lens, struct stats_lines *all)
{
    unsigned long long run_ns = own->run_ns;
    struct stats_line *lines;
    void *bytes = NULL;
    int rc = gather(own->list, own->count * sizeof(*own->list), rank, ranks,
                    &bytes, lens);

    lines = bytes;
    for (int r = 0; r < ranks && lines; r++) {
        all[r].list = lines;
        all[r].count = lens[r] / sizeof(*lines);
        lines += all[r].count;
    }
    if (!rc)
        rc = PMPI_Gather(&run_ns, 1, MPI_UNSIGNED_LONG_LONG, lens, 1,
                         MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
    for (int r = 0; r < ranks && !rc && rank == 0; r++)
        all[r].run_ns = lens[r];
    return rc;
}

static int gather_sites(int rank, int ranks, unsigned long long *lens,
                        struct stats_sites *all)
{
    struct stats_sites own = stats_sites_take();
    void *bytes = NULL;
    int rc = gather(own.list, own.count * sizeof(*own.list), rank, ranks,
                    &bytes, lens);

    all->list = bytes;
    for (int r = 0; r < ranks && bytes; r++)
        all->count += lens[r] / sizeof(*own.list);
    free(own.list);
    return rc;
}

/* Do all ranks want places? */
static bool are_sites_wanted(void)
{
    int own = stats_sites_are_wanted();
    int all = 0;

    return PMPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD) ==
               MPI_SUCCESS &&
           all;
}

static void report_world(void)
{
    struct stats_lines own = take_lines();
    struct stats_sites sites = {0};
    const bool has_sites = are_sites_wanted();
    unsigned long long *lens;
    struct stats_lines *all;
    int rank = 0;
    int ranks = 1;
    int rc;

    (void)PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    all = calloc((size_t)ranks, sizeof(*all));
    lens = calloc((size_t)ranks, sizeof(*lens));
    if (!all || !lens || !own.list)
        PMPI_Abort(MPI_COMM_WORLD, 1); /* the others wait */
    rc = gather_lines(&own, rank, ranks, lens, all);
    if (!rc && has_sites)
        rc = gather_sites(rank, ranks, lens, &sites);
    if (rc == MPI_SUCCESS && rank == 0)
        print(all, ranks, STATS_ALL, has_sites ? &sites : NULL);
    free(sites.list);
    free(all[0].list);
    free(all);
    free(lens);
    free(own.list);
}

CHEMPI_EXPORT int MPI_Finalize(void)
{
    if (!atomic_exchange(&stats.is_done, true))
        report_world();
    return PMPI_Finalize();
}

/* This process's number if it is one of several. */
static int own_number(void)
{
    const char *size = getenv("CHEMPI_SIZE");
    const char *rank = getenv("CHEMPI_RANK");

    return size && rank && atoi(size) > 1 ? atoi(rank) : STATS_ALL;
}

/* What this process has counted, without asking others. */
static void report_alone(void)
{
    struct stats_sites sites = {0};
    struct stats_lines own;

    if (stats.start_ns == 0 || atomic_exchange(&stats.is_done, true))
        return;
    own = take_lines();
    if (stats_sites_are_wanted())
        sites = stats_sites_take();
    if (own.list)
        print(&own, 1, own_number(), sites.list ? &sites : NULL);
    free(sites.list);
    free(own.list);
}

/* A program that has used sessions only, or has not come to its end. */
CHEMPI_AT_UNLOAD static void at_exit(void)
{
    report_alone();
}

/* Nothing runs at the process's end then. */
CHEMPI_EXPORT int MPI_Abort(MPI_Comm comm, int errorcode)
{
    report_alone();
    return PMPI_Abort(comm, errorcode);
}

/* 0: count no more; 1: count; 2: forget what was counted. */
CHEMPI_EXPORT int MPI_Pcontrol(const int level, ...)
{
    stats.is_off = level == 0;
    if (level < 2)
        return MPI_SUCCESS;
    for (uint32_t id = 0; id < STATS_COUNT; id++)
        for (uint32_t b = 0; b < STATS_BINS; b++) {
            stats.bins[id][b].calls = 0;
            stats.bins[id][b].bytes = 0;
            stats.bins[id][b].time_ns = 0;
        }
    stats_sites_forget();
    stats.start_ns = chempi_clock_ns();
    return MPI_SUCCESS;
}
