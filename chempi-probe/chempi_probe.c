/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chempi-probe: what messages cost between ranks 0 and 1; `mdconfig calibrate`
 * starts it on a pair of nodes whose connection tables leave one protocol of
 * one network only. An MPI program, since the figures are to say what
 * programs will see.
 *
 * usage: chempi-probe MIN MAX SECONDS
 *
 * Writes, for ROUNDS rounds each:
 *
 *     echo BYTES US ...    half the time of a message there and back
 *     rate BYTES US ...    time per message when many follow each other
 *     end
 *
 * Every round goes through all sizes, so that what disturbs the machine for a
 * while disturbs each of them a little and none of them much.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ROUNDS = 9,
    SIZES_MAX = 24,
    LARGEST = 4 << 20, /* bytes: longer messages tell nothing new */
    LARGE = 64 << 10,  /* bytes: up to here there is always time */
    SMALLEST = 8, /* bytes: without any a protocol may have nothing to do */
    SMALLEST_STEP = 64, /* bytes: the size after that */
    TRIES = 5,          /* of one size, to see how long it takes */
    WINDOW = 64,        /* messages that follow each other */
    BATCHES_MIN = 3,
    BATCHES_MAX = 1000,
    COMMAND = 1,
    DATA = 2
};

#define BATCH_S 20e-6   /* short enough to fit between disturbances */
#define RATE_SHARE 0.15 /* of the time */

enum work { ECHO, RATE, END };

struct command { /* what rank 1 is to take part in */
    enum work work;
    int len;
    int repeats;
};

struct size {
    int len;
    double echo_us[ROUNDS];
};

struct probe {
    int rank;
    char *data;
    int size_count;
    struct size sizes[SIZES_MAX];
    double rate_us[ROUNDS];
    double seconds; /* for all of it, about */
};

/* ---- both ranks --------------------------------------------------------- */

static void echo(struct probe *p, int len, int repeats)
{
    const int peer = 1 - p->rank;

    for (int i = 0; i < repeats; i++) {
        if (p->rank == 0)
            MPI_Send(p->data, len, MPI_BYTE, peer, DATA, MPI_COMM_WORLD);
        MPI_Recv(p->data, len, MPI_BYTE, peer, DATA, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (p->rank == 1)
            MPI_Send(p->data, len, MPI_BYTE, peer, DATA, MPI_COMM_WORLD);
    }
}

/* A window of messages; an empty one says that all have come. */
static void stream(struct probe *p, int len)
{
    MPI_Request requests[WINDOW];

    for (int i = 0; i < WINDOW; i++) {
        if (p->rank == 0)
            MPI_Isend(p->data, len, MPI_BYTE, 1, DATA, MPI_COMM_WORLD,
                      &requests[i]);
        else
            MPI_Irecv(p->data, len, MPI_BYTE, 0, DATA, MPI_COMM_WORLD,
                      &requests[i]);
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    if (p->rank == 0)
        MPI_Recv(NULL, 0, MPI_BYTE, 1, COMMAND, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    else
        MPI_Send(NULL, 0, MPI_BYTE, 0, COMMAND, MPI_COMM_WORLD);
}

static void take_part(struct probe *p)
{
    struct command c;

    for (;;) {
        MPI_Recv(&c, sizeof(c), MPI_BYTE, 0, COMMAND, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (c.work == END)
            return;
        for (int i = 0; i < c.repeats && c.work == RATE; i++)
            stream(p, c.len);
        if (c.work == ECHO)
            echo(p, c.len, c.repeats);
    }
}

/* ---- rank 0 ------------------------------------------------------------- */

static void order(enum work work, int len, int repeats)
{
    const struct command c = {.work = work, .len = len, .repeats = repeats};

    MPI_Send(&c, sizeof(c), MPI_BYTE, 1, COMMAND, MPI_COMM_WORLD);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The lowest tenth: whatever else happens on a machine only ever adds. */
static double undisturbed(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), compare);
    return values[count / 10];
}

/* Half of one way there and back, in seconds; the first one of a batch starts
 * when rank 1 is surely there. */
static double one_batch(struct probe *p, int len, int repeats)
{
    double start;

    order(ECHO, len, repeats + 1);
    echo(p, len, 1);
    start = MPI_Wtime();
    echo(p, len, repeats);
    return (MPI_Wtime() - start) / repeats / 2;
}

static double one_stream(struct probe *p, int len)
{
    double start;

    order(RATE, len, 1);
    start = MPI_Wtime();
    stream(p, len);
    return (MPI_Wtime() - start) / WINDOW;
}

/* The least disturbed of what fits into a slice of time. */
static double slice(struct probe *p, enum work work, int len, double seconds)
{
    double values[BATCHES_MAX];
    double end = MPI_Wtime() + seconds;
    double once = work == ECHO ? one_batch(p, len, 1) : one_stream(p, len);
    int repeats = once < BATCH_S ? (int)(BATCH_S / (once + 1e-9)) + 1 : 1;
    int least = once * 4 * BATCHES_MIN < seconds ? BATCHES_MIN : 1;
    int count = 0;

    if (repeats > 1000)
        repeats = 1000;
    while (count < least || (count < BATCHES_MAX && MPI_Wtime() < end))
        values[count++] =
            work == ECHO ? one_batch(p, len, repeats) : one_stream(p, len);
    return undisturbed(values, count) * 1e6;
}

/* Sizes in steps of four; large ones as far as a message of them is no great
 * part of the time that there is. */
static void choose_sizes(struct probe *p, int64_t least, int64_t most)
{
    double limit = p->seconds / ROUNDS / 4;
    int64_t len = least;

    if (most > LARGEST)
        most = LARGEST;
    do {
        double seconds;

        p->sizes[p->size_count++].len = (int)len;
        (void)one_batch(p, (int)len, 1); /* connections, buffers */
        seconds = one_batch(p, (int)len, 1);
        for (int i = 1; i < TRIES && seconds * 4 > limit; i++) {
            double again = one_batch(p, (int)len, 1);

            seconds = again < seconds ? again : seconds;
        }
        if ((seconds * 4 > limit && len >= LARGE) || len >= most)
            return;
        len = len < SMALLEST_STEP ? SMALLEST_STEP : len * 4;
        if (len > most)
            len = most;
    } while (p->size_count < SIZES_MAX);
}

static void print(const char *what, int len, const double *us)
{
    printf("%s %d", what, len);
    for (int i = 0; i < ROUNDS; i++)
        printf(" %.4f", us[i]);
    printf("\n");
}

static void measure(struct probe *p, int64_t least, int64_t most)
{
    double round_s = p->seconds / ROUNDS;
    double slice_s;

    choose_sizes(p, least, most);
    slice_s = round_s * (1 - RATE_SHARE) / p->size_count;
    for (int r = 0; r < ROUNDS; r++) {
        for (int i = 0; i < p->size_count; i++)
            p->sizes[i].echo_us[r] = slice(p, ECHO, p->sizes[i].len, slice_s);
        p->rate_us[r] = slice(p, RATE, (int)least, round_s * RATE_SHARE);
    }
    order(END, 0, 0);
    for (int i = 0; i < p->size_count; i++)
        print("echo", p->sizes[i].len, p->sizes[i].echo_us);
    print("rate", (int)least, p->rate_us);
    printf("end\n");
}

int main(int argc, char **argv)
{
    struct probe probe = {.rank = 0};
    int64_t least = argc > 1 ? atoll(argv[1]) : -1;
    int64_t most = argc > 2 ? atoll(argv[2]) : -1;
    const int64_t smallest = most < SMALLEST ? most : SMALLEST;
    int size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &probe.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    probe.seconds = argc > 3 ? atof(argv[3]) : 0;
    if (argc != 4 || size != 2 || least < 0 || least > LARGEST ||
        most < least || !(probe.seconds > 0)) {
        fprintf(stderr, "chempi-probe: expected MIN MAX SECONDS and two "
                        "processes; mdconfig calibrate starts it\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    probe.data = calloc(1, LARGEST);
    if (!probe.data) {
        fprintf(stderr, "chempi-probe: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (probe.rank == 0)
        measure(&probe, least < smallest ? smallest : least, most);
    else
        take_part(&probe);
    free(probe.data);
    MPI_Finalize();
    return 0;
}
