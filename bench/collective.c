/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time of one collective, in microseconds, by the size that each rank
 * contributes (bytes; a multiple of 8; to each other rank in an all-to-all
 * exchange). A reduce-scatter gives every rank at least one number.
 *
 * usage: collective NAME|iNAME|own-NAME|overlap-NAME SIZE ...
 *        collective all|iall|own|overlap SIZE ...
 *
 * "all" are the blocking forms, "iall" the non-blocking ones, each started and
 * waited for. "own" is what these and the persistent forms take by what the
 * blocking one takes, of runs that follow one another. "overlap" is how much
 * longer a computation takes between start and wait than alone: in us for one
 * of a length that has nothing to do with the MPI, and in per cent, as the OSU
 * programs have it, the part that is hidden of what start and wait take alone,
 * by a computation that is as long as they. The size of a barrier is ignored.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCHES 9
#define OWN_BATCHES 21
#define IN_TURN_MAX 5 /* forms that take turns */
/* How long is computed beside an operation: as long as the bytes of all ranks
 * would take at this speed, and a little more. */
#define COMPUTE_BYTES_PER_S 5e9
#define COMPUTE_LEAST_S 20e-6
/* The part of a computation that cannot be told from nothing. */
#define COMPUTE_NOISE 0.01
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

#if MPI_VERSION >= 4
#define PREPARE(call, ...) call(__VA_ARGS__)
#else
#define PREPARE(call, ...) MPI_Abort(MPI_COMM_WORLD, 1)
#endif

/* The forms of an operation; b has its buffers. */
#define FORMS(name, blocking, starting, preparing, ...)                        \
    static void name(const struct buffers *b)                                  \
    {                                                                          \
        (void)b;                                                               \
        blocking(__VA_ARGS__);                                                 \
    }                                                                          \
    static void name##_start(const struct buffers *b, MPI_Request *request)    \
    {                                                                          \
        (void)b;                                                               \
        starting(__VA_ARGS__, request);                                        \
    }                                                                          \
    static void name##_prepare(const struct buffers *b, MPI_Request *request)  \
    {                                                                          \
        (void)b;                                                               \
        (void)request;                                                         \
        PREPARE(preparing, __VA_ARGS__, MPI_INFO_NULL, request);               \
    }

FORMS(barrier, MPI_Barrier, MPI_Ibarrier, MPI_Barrier_init, MPI_COMM_WORLD)

FORMS(bcast, MPI_Bcast, MPI_Ibcast, MPI_Bcast_init, b->out, b->len, MPI_BYTE, 0,
      MPI_COMM_WORLD)

FORMS(reduce, MPI_Reduce, MPI_Ireduce, MPI_Reduce_init, b->out, b->in,
      b->len / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD)

FORMS(allreduce, MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init, b->out,
      b->in, b->len / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)

FORMS(gather, MPI_Gather, MPI_Igather, MPI_Gather_init, b->out, b->len,
      MPI_BYTE, b->in, b->len, MPI_BYTE, 0, MPI_COMM_WORLD)

FORMS(gatherv, MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init, b->out, b->len,
      MPI_BYTE, b->in, b->counts, b->displs, MPI_BYTE, 0, MPI_COMM_WORLD)

FORMS(scatter, MPI_Scatter, MPI_Iscatter, MPI_Scatter_init, b->in, b->len,
      MPI_BYTE, b->out, b->len, MPI_BYTE, 0, MPI_COMM_WORLD)

FORMS(scatterv, MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init, b->in,
      b->counts, b->displs, MPI_BYTE, b->out, b->len, MPI_BYTE, 0,
      MPI_COMM_WORLD)

FORMS(allgather, MPI_Allgather, MPI_Iallgather, MPI_Allgather_init, b->out,
      b->len, MPI_BYTE, b->in, b->len, MPI_BYTE, MPI_COMM_WORLD)

FORMS(allgatherv, MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init, b->out,
      b->len, MPI_BYTE, b->in, b->counts, b->displs, MPI_BYTE, MPI_COMM_WORLD)

FORMS(alltoall, MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init, b->out, b->len,
      MPI_BYTE, b->in, b->len, MPI_BYTE, MPI_COMM_WORLD)

FORMS(alltoallv, MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init, b->out,
      b->counts, b->displs, MPI_BYTE, b->in, b->counts, b->displs, MPI_BYTE,
      MPI_COMM_WORLD)

FORMS(alltoallw, MPI_Alltoallw, MPI_Ialltoallw, MPI_Alltoallw_init, b->out,
      b->counts, b->displs, b->types, b->in, b->counts, b->displs, b->types,
      MPI_COMM_WORLD)

FORMS(reduce_scatter, MPI_Reduce_scatter, MPI_Ireduce_scatter,
      MPI_Reduce_scatter_init, b->out, b->in, b->doubles, MPI_DOUBLE, MPI_SUM,
      MPI_COMM_WORLD)

FORMS(reduce_scatter_block, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block,
      MPI_Reduce_scatter_block_init, b->out, b->in, b->doubles[0], MPI_DOUBLE,
      MPI_SUM, MPI_COMM_WORLD)

FORMS(scan, MPI_Scan, MPI_Iscan, MPI_Scan_init, b->out, b->in, b->len / 8,
      MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)

FORMS(exscan, MPI_Exscan, MPI_Iexscan, MPI_Exscan_init, b->out, b->in,
      b->len / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)

#define ROW(name)                                                              \
    {                                                                          \
        .word = #name, .run = name, .start = name##_start,                     \
        .prepare = name##_prepare                                              \
    }

/* The forms of each operation. */
static const struct operation {
    const char *word;
    void (*run)(const struct buffers *b);
    void (*start)(const struct buffers *b, MPI_Request *request);
    void (*prepare)(const struct buffers *b, MPI_Request *request);
} table[] = {
    ROW(barrier),    ROW(bcast),          ROW(reduce),
    ROW(allreduce),  ROW(gather),         ROW(gatherv),
    ROW(scatter),    ROW(scatterv),       ROW(allgather),
    ROW(allgatherv), ROW(alltoall),       ROW(alltoallv),
    ROW(alltoallw),  ROW(reduce_scatter), ROW(reduce_scatter_block),
    ROW(scan),       ROW(exscan),
};

#define TABLE_LEN (sizeof(table) / sizeof(table[0]))

enum kind { BLOCKING, STARTED, PERSISTENT, KINDS, COMPUTING, OVERLAPPING };

/* An operation in one of its forms, or what is computed beside it. */
struct form {
    const struct operation *op;
    const struct buffers *buffers;
    enum kind kind;
    MPI_Request request; /* of the persistent form */
    long work;           /* steps of a computation */
};

static void compute(long steps)
{
    static volatile double sink;
    double x = 1;

    for (long i = 0; i < steps; i++)
        x = x * 1.0000001 + 1e-9;
    sink = x;
}

static void run_one(struct form *f)
{
    MPI_Request request;

    switch (f->kind) {
    case STARTED:
        f->op->start(f->buffers, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case PERSISTENT:
        MPI_Start(&f->request);
        MPI_Wait(&f->request, MPI_STATUS_IGNORE);
        break;
    case COMPUTING:
        compute(f->work);
        break;
    case OVERLAPPING:
        f->op->start(f->buffers, &request);
        compute(f->work);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    default:
        f->op->run(f->buffers);
    }
}

static double run_many(struct form *f, int repeats)
{
    double start = MPI_Wtime();

    for (int i = 0; i < repeats; i++)
        run_one(f);
    return MPI_Wtime() - start;
}

static double now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/*
 * When a batch has begun and ended, by the clock of the host: from when the
 * first rank began it until the last had finished. Ranks that share a core may
 * do a whole batch each before the next one begins, so that what the longest
 * takes of them says little.
 */
static double run_batch(struct form *f, int calls, double *end)
{
    double begin;

    MPI_Barrier(MPI_COMM_WORLD);
    begin = now_s();
    (void)run_many(f, calls);
    *end = now_s();
    return begin;
}

/* At rank 0 the seconds per call of each batch. */
static void join_ranks(const double *begun, const double *ended, int batches,
                       int calls, double *took)
{
    double first[IN_TURN_MAX * OWN_BATCHES];
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Reduce(begun, first, batches, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(ended, took, batches, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < batches; i++)
        took[i] = (took[i] - first[i]) / calls;
}

/* The median batch, since what else the machine does hits one or another. */
static double time_of(struct form *f, int repeats)
{
    double begun[BATCHES];
    double ended[BATCHES];
    double took[BATCHES] = {0};
    int batch = repeats / BATCHES > 0 ? repeats / BATCHES : 1;
    int count = repeats < BATCHES ? repeats : BATCHES;

    for (int i = 0; i < count; i++)
        begun[i] = run_batch(f, batch, &ended[i]);
    join_ranks(begun, ended, count, batch, took);
    return bench_median(took, count);
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
static double seconds_of_one(const struct bench *bench, struct form *f)
{
    double seconds = 0;
    int is_enough = 0;
    int calls = 1;

    while (!is_enough) {
        calls *= 2;
        MPI_Barrier(MPI_COMM_WORLD);
        seconds = run_many(f, calls);
        is_enough = seconds > bench->point_s / 10 || calls >= CALLS_MAX;
        MPI_Bcast(&is_enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return seconds / calls;
}

static void point(const struct bench *bench, const struct form *f, double value,
                  const char *unit)
{
    static const char *const words[KINDS][2] = {[STARTED] = {"i", ""},
                                                [BLOCKING] = {"", ""},
                                                [PERSISTENT] = {"", "_init"}};
    char name[64];

    (void)snprintf(name, sizeof(name), "%s%s%s", words[f->kind][0], f->op->word,
                   words[f->kind][1]);
    bench_point(bench, name, (size_t)f->buffers->len, value, unit);
}

static void measure(const struct bench *bench, const struct operation *op,
                    const struct buffers *buffers, enum kind kind)
{
    struct form f = {.op = op, .buffers = buffers, .kind = kind};
    double once = seconds_of_one(bench, &f);
    int repeats = bench_repeats(bench, once, 3);

    point(bench, &f, time_of(&f, repeats) * 1e6, "us");
}

/* Forms in turn, so that those which are compared have run side by side, and
 * each of them is the first as often as the others; at rank 0, as join_ranks().
 */
static void time_in_turn(const struct bench *bench, struct form *f, int kinds,
                         double once, double took[][OWN_BATCHES])
{
    static double begun[IN_TURN_MAX][OWN_BATCHES];
    static double ended[IN_TURN_MAX][OWN_BATCHES];
    int batch = bench_repeats(bench, once * OWN_BATCHES, 1);

    for (int i = 0; i < OWN_BATCHES * kinds; i++) {
        int k = (i + i / kinds) % kinds;

        begun[k][i / kinds] = run_batch(&f[k], batch, &ended[k][i / kinds]);
    }
    join_ranks(begun[0], ended[0], kinds * OWN_BATCHES, batch, took[0]);
}

/* The median of the ratios. */
static void measure_own(const struct bench *bench, const struct operation *op,
                        const struct buffers *buffers)
{
    static double took[KINDS][OWN_BATCHES];
    const int kinds = MPI_VERSION >= 4 ? KINDS : PERSISTENT;
    struct form f[KINDS];
    double once = 0;

    for (int k = 0; k < kinds; k++) {
        f[k] =
            (struct form){.op = op, .buffers = buffers, .kind = (enum kind)k};
        if (k == PERSISTENT)
            op->prepare(buffers, &f[k].request);
        once = seconds_of_one(bench, &f[k]);
    }
    time_in_turn(bench, f, kinds, once, took);
    for (int k = STARTED; k < kinds; k++) {
        for (int i = 0; i < OWN_BATCHES; i++)
            took[k][i] /= took[BLOCKING][i];
        point(bench, &f[k], bench_median(took[k], OWN_BATCHES), "ratio");
    }
    if (kinds > PERSISTENT)
        MPI_Request_free(&f[PERSISTENT].request);
}

/* Of the processor, so that it does not matter who else has it. */
static double step_s(void)
{
    const long steps = 1000000;
    struct timespec from;
    struct timespec to;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    compute(steps);
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    return ((double)(to.tv_sec - from.tv_sec) +
            (double)(to.tv_nsec - from.tv_nsec) * 1e-9) /
           (double)steps;
}

/* The same on all ranks: as many steps as take so long. */
static long steps_of(double seconds)
{
    long steps = (long)(seconds / step_s());

    MPI_Bcast(&steps, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return steps;
}

/* The median of what a computation takes longer with an operation beside it
 * than alone; took has what is lost of it. */
static double beyond(const double both[], const double computed[],
                     double took[OWN_BATCHES])
{
    for (int i = 0; i < OWN_BATCHES; i++)
        took[i] = both[i] - computed[i];
    return bench_median(took, OWN_BATCHES);
}

static void measure_overlap(const struct bench *bench,
                            const struct operation *op,
                            const struct buffers *buffers)
{
    enum { ALONE, SHORT, SHORT_BOTH, SAME, SAME_BOTH, IN_TURN };
    static double took[IN_TURN_MAX][OWN_BATCHES];
    double lost[OWN_BATCHES];
    double same_s = COMPUTE_LEAST_S +
                    (double)buffers->len * buffers->size / COMPUTE_BYTES_PER_S;
    struct form f[IN_TURN] = {
        [ALONE] = {.op = op, .buffers = buffers, .kind = STARTED}};
    double once = seconds_of_one(bench, &f[ALONE]);
    const long steps[] = {steps_of(once), steps_of(same_s)};

    for (int k = SHORT; k < IN_TURN; k++) {
        f[k] = f[ALONE];
        f[k].kind = k == SHORT || k == SAME ? COMPUTING : OVERLAPPING;
        f[k].work = steps[k >= SAME];
    }
    time_in_turn(bench, f, IN_TURN, once + same_s, took);
    double left = beyond(took[SHORT_BOTH], took[SHORT], lost) /
                  bench_median(took[ALONE], OWN_BATCHES);
    double more = beyond(took[SAME_BOTH], took[SAME], lost);
    double least = COMPUTE_NOISE * bench_median(took[SAME], OWN_BATCHES);

    point(bench, &f[ALONE], (more > least ? more : least) * 1e6, "us");
    left = left < 0 ? 0 : left > 1 ? 1 : left;
    point(bench, &f[ALONE], 100 * (1 - left), "%");
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

/* What is to be done with an operation; does word mean it? */
static int is_chosen(const struct operation *op, const char *word,
                     enum kind *kind)
{
    *kind = BLOCKING;
    if (strcmp(word, "all") == 0 || strcmp(word, op->word) == 0)
        return 1;
    *kind = STARTED;
    if (strcmp(word, "iall") == 0 ||
        (word[0] == 'i' && strcmp(word + 1, op->word) == 0))
        return 1;
    *kind = OVERLAPPING;
    if (strcmp(word, "overlap") == 0 ||
        (strncmp(word, "overlap-", 8) == 0 && strcmp(word + 8, op->word) == 0))
        return 1;
    *kind = KINDS;
    return strcmp(word, "own") == 0 ||
           (strncmp(word, "own-", 4) == 0 && strcmp(word + 4, op->word) == 0);
}

int main(int argc, char **argv)
{
    struct bench bench;
    enum kind kind;

    bench_start(&bench, &argc, &argv);
    struct buffers buffers = make_buffers(&bench, argc - 2, argv + 2);
    for (size_t which = 0; argc > 1 && which < TABLE_LEN; which++) {
        if (!is_chosen(&table[which], argv[1], &kind))
            continue;
        for (int i = 2; i < argc; i++) {
            set_len(&buffers, bench_size(argv[i]));
            if (kind == KINDS)
                measure_own(&bench, &table[which], &buffers);
            else if (kind == OVERLAPPING)
                measure_overlap(&bench, &table[which], &buffers);
            else
                measure(&bench, &table[which], &buffers, kind);
            if (which == 0)
                break; /* a barrier has no size */
        }
    }
    free_buffers(&buffers);
    MPI_Finalize();
    return 0;
}
