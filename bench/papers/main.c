/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The programs of the papers on the emulated adapter, without MPI:
 *
 *     papers [-t MS] [-b TRIPS] PERSONALITY EXPERIMENT SIZE...
 *     papers --list
 *
 * PERSONALITY is a file, or "free". For each size a line is printed, such as
 * "point deck-1 62 4.71 us": half the round trip of a protocol, or the time of
 * an operation. It is repeated for about MS milliseconds, and the least is
 * printed: what a personality imposes is a lower bound, and all above it is
 * noise of the machine. (Of protocols that sleep, it is the median.) Up to
 * TRIPS round trips are taken together; few of them suit a busy machine.
 */
#define _GNU_SOURCE /* clock_gettime */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/papers/papers.h"
#include "common/base/clock.h"
#include "common/base/compiler.h"

#define REPEATS_MAX 2000u
#define BATCH_US 300.0
#define BATCH_MAX 20u
#define TIME_MAX_MS 60000
#define SIZES_MAX 1000

struct options {
    double time_ms;     /* for a point */
    unsigned batch_max; /* round trips measured together */
};

static const struct experiment *const *const groups[] = {
    papers_raw, papers_deck, papers_scimpich, papers_mpipro, papers_gasnet};

static const struct experiment *find(const char *name)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(groups); i++)
        for (size_t k = 0; groups[i][k]; k++)
            if (strcmp(groups[i][k]->name, name) == 0)
                return groups[i][k];
    return NULL;
}

static int list(void)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(groups); i++)
        for (size_t k = 0; groups[i][k]; k++)
            (void)printf("%-16s up to %zu bytes\n", groups[i][k]->name,
                         groups[i][k]->len_max);
    return 0;
}

static double since_us(uint64_t start_ns)
{
    return (double)(chempi_clock_ns() - start_ns) / 1e3;
}

/* How many round trips of that time are taken together. A single one may be
 * shorter than it should be, when work of its own fell into its neighbours. */
static unsigned batch_of(double us, unsigned most)
{
    double count = BATCH_US / (us > 1 ? us : 1);

    return count > most ? most : count < 1 ? 1 : (unsigned)count;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* What counts of the means of `repeats` batches. */
static double typical(double *us, unsigned repeats, bool is_median)
{
    qsort(us, repeats, sizeof(*us), by_size);
    return us[is_median ? repeats / 2 : 0];
}

/* `repeats` batches of round trips; half of what counts of their means, us. */
static double ping_pong(struct pair *pair, const struct experiment *e,
                        unsigned char *out, unsigned char *in, size_t len,
                        unsigned repeats, unsigned batch)
{
    static double us[REPEATS_MAX];

    pair_barrier(pair);
    for (unsigned i = 0; i < repeats; i++) {
        uint64_t start_ns = chempi_clock_ns();

        for (unsigned k = 0; k < batch; k++) {
            if (pair->rank == 0)
                e->send(pair, out, len);
            e->recv(pair, in, len);
            if (pair->rank == 1)
                e->send(pair, out, len);
        }
        us[i] = since_us(start_ns) / batch / 2;
    }
    return typical(us, repeats, e->does_sleep);
}

/* The shortest of single operations. */
static double single(struct pair *pair, const struct experiment *e, size_t len,
                     unsigned repeats)
{
    double best = 0;

    pair_barrier(pair);
    for (unsigned i = 0; pair->rank == 0 && i < repeats; i++) {
        uint64_t start_ns;
        double us;

        if (e->ready)
            e->ready(pair, len);
        start_ns = chempi_clock_ns();
        e->act(pair, len);
        us = since_us(start_ns) / (e->acts ? e->acts : 1);
        best = i == 0 || us < best ? us : best;
    }
    pair_barrier(pair);
    return best;
}

/* Send each other something that was not there before, and look at it. */
static void verify(struct pair *pair, const struct experiment *e,
                   unsigned char *out, unsigned char *in, size_t len)
{
    for (unsigned turn = 0; turn < 3; turn++) {
        for (size_t i = 0; i < len; i++)
            out[i] = (unsigned char)(i * 7 + i / 251 + turn * 31 + len);
        memset(in, 0xff, len);
        (void)ping_pong(pair, e, out, in, len, 1, 1);
        if (memcmp(in, out, len) != 0)
            pair_die(pair, "what came was not what had been sent");
    }
}

/* Both processes come to the same numbers: process 0 says them. */
static void agree(struct pair *pair, double us, const struct options *options,
                  unsigned *repeats, unsigned *batch)
{
    double count;

    *batch = batch_of(us, options->batch_max);
    count = options->time_ms * 1e3 / ((us > 0.1 ? us : 0.1) * *batch);
    *repeats = count > REPEATS_MAX ? REPEATS_MAX
               : count < 3         ? 3
                                   : (unsigned)count;
    if (pair->rank == 0) {
        atomic_store(&pair->board->repeats, *repeats);
        atomic_store(&pair->board->batch, *batch);
    }
    pair_barrier(pair);
    *repeats = atomic_load(&pair->board->repeats);
    *batch = atomic_load(&pair->board->batch);
    pair_barrier(pair);
}

static void measure(struct pair *pair, const struct experiment *e,
                    const struct options *options, unsigned char *out,
                    unsigned char *in, size_t len)
{
    unsigned repeats;
    unsigned batch;
    double us;

    if (e->send) {
        verify(pair, e, out, in, len);
        us = ping_pong(pair, e, out, in, len, 3, 1);
        agree(pair, us * 2, options, &repeats, &batch);
        us = ping_pong(pair, e, out, in, len, repeats, batch);
    } else {
        us = single(pair, e, len, 3);
        agree(pair, us * (e->acts ? e->acts : 1), options, &repeats, &batch);
        us = single(pair, e, len, repeats);
    }
    if (pair->rank == 0) {
        (void)printf("point %s %zu %.4g us\n", e->name, len, us);
        (void)fflush(stdout);
    }
}

static int run(const struct experiment *e,
               const struct chempi_personality *personality,
               const struct options *options, const size_t *sizes, int count)
{
    struct pair pair;
    unsigned char *out;
    unsigned char *in;

    pair_open(&pair, personality);
    out = pair_memory(&pair, e->len_max + PAPERS_LINE);
    in = pair_memory(&pair, e->len_max + PAPERS_LINE);
    e->open(&pair);
    for (int i = 0; i < count; i++)
        measure(&pair, e, options, out, e->buffer ? e->buffer(&pair) : in,
                sizes[i]);
    return pair_close(&pair);
}

static int usage(void)
{
    (void)fprintf(stderr, "usage: papers [-t MS] [-b TRIPS] PERSONALITY|free "
                          "EXPERIMENT SIZE...\n       papers --list\n");
    return 2;
}

/* One of argv is not what it should be; 2, the exit status. */
static int refuse(const char *word, const char *expected, size_t most)
{
    (void)fprintf(stderr, "papers: expected %s of at most %zu, not %s\n",
                  expected, most, word);
    return 2;
}

/* A whole number in decimal, at least `least` and at most `most`. */
static bool is_number(const char *word, size_t least, size_t most, size_t *out)
{
    char *end;
    unsigned long long number;

    if (!isdigit((unsigned char)word[0]))
        return false;
    number = strtoull(word, &end, 10);
    if (*end != '\0' || number < least || number > most)
        return false;
    *out = (size_t)number;
    return true;
}

/* Take -t and -b off the front of argv; 0, or the exit status. */
static int take_options(int *argc, char ***argv, struct options *options)
{
    while (*argc > 2 && (*argv)[1][0] == '-') {
        const char *word = (*argv)[2];
        char *end;
        size_t trips;

        if (strcmp((*argv)[1], "-t") == 0) {
            options->time_ms = strtod(word, &end);
            if (*end != '\0' || !(options->time_ms > 0) ||
                options->time_ms > TIME_MAX_MS)
                return refuse(word, "milliseconds", TIME_MAX_MS);
        } else if (strcmp((*argv)[1], "-b") == 0) {
            if (!is_number(word, 1, REPEATS_MAX, &trips))
                return refuse(word, "a number of round trips", REPEATS_MAX);
            options->batch_max = (unsigned)trips;
        } else {
            return usage();
        }
        *argc -= 2;
        *argv += 2;
    }
    return *argc < 4 ? usage() : 0;
}

int main(int argc, char **argv)
{
    static size_t sizes[SIZES_MAX];
    struct options options = {.time_ms = 50, .batch_max = BATCH_MAX};
    struct chempi_personality personality;
    struct chempi_err err = {.text = ""};
    const struct experiment *e;
    bool is_free;
    int rc;

    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    rc = take_options(&argc, &argv, &options);
    if (rc)
        return rc;
    is_free = strcmp(argv[1], "free") == 0;
    e = find(argv[2]);
    if (!e) {
        (void)fprintf(stderr, "papers: no experiment %s; see --list\n",
                      argv[2]);
        return 2;
    }
    if (!is_free && chempi_personality_load(argv[1], &personality, &err) < 0) {
        (void)fprintf(stderr, "papers: %s\n", err.text);
        return 2;
    }
    if (argc - 3 > SIZES_MAX) {
        (void)fprintf(stderr, "papers: more than %d sizes\n", SIZES_MAX);
        return 2;
    }
    for (int i = 3; i < argc; i++)
        if (!is_number(argv[i], 0, e->len_max, &sizes[i - 3]))
            return refuse(argv[i], "a size in bytes", e->len_max);
    return run(e, is_free ? NULL : &personality, &options, sizes, argc - 3);
}
