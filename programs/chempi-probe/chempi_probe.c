/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chempi-probe: what messages cost between ranks 0 and 1; `mdconfig calibrate`
 * starts it on a pair of nodes whose connection tables leave one protocol of
 * one network only. An MPI program, since the figures are to say what
 * programs will see.
 *
 * usage: chempi-probe MIN MAX SECONDS
 *
 * Writes, for as many rounds each:
 *
 *     echo BYTES US ...    half the time of a message there and back
 *     rate BYTES US ...    time per message when many follow each other
 *     end
 *
 * Every round goes through all sizes, so that what disturbs the machine for a
 * while disturbs each of them a little and none of them much. The rounds are
 * spread over the time; whether early and late ones agree is for the reader.
 *
 * The kernel says how long a process wanted to run and could not. A time is
 * negative where this was a good part of it in every batch of messages of the
 * round: then it tells of other processes, not of the network.
 */
#define _GNU_SOURCE /* O_CLOEXEC, pread */
#include <fcntl.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    ROUNDS = 16,
    ROUNDS_LEAST = 4, /* however long they take */
    LIMIT_SHARE = 24, /* of the time: the largest message, four times */
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
#define LATE 1.5        /* of the time: no further round is begun */
/* Of a time, what both processes together may have waited to run: waking up
 * takes some of it on an idle machine, too, and one that waits for a processor
 * all the time makes 1. */
#define DELAY_SHARE 0.4

enum work { ECHO, RATE, NOTHING, END };

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
    int delay_fd; /* says how long this process waited to run; -1: nothing */
    int round_count;
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

/* Seconds that this process has ever waited for a processor. */
static double delay_s(const struct probe *p)
{
    char text[128];
    unsigned long long ns;
    ssize_t n =
        p->delay_fd < 0 ? -1 : pread(p->delay_fd, text, sizeof(text) - 1, 0);

    if (n <= 0)
        return 0;
    text[n] = '\0';
    return sscanf(text, "%*u %llu", &ns) == 1 ? (double)ns * 1e-9 : 0;
}

static void take_part(struct probe *p)
{
    struct command c;
    double delay;

    for (;;) {
        MPI_Recv(&c, sizeof(c), MPI_BYTE, 0, COMMAND, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        delay = delay_s(p);
        MPI_Send(&delay, 1, MPI_DOUBLE, 0, COMMAND, MPI_COMM_WORLD);
        if (c.work == END)
            return;
        for (int i = 0; i < c.repeats && c.work == RATE; i++)
            stream(p, c.len);
        if (c.work == ECHO)
            echo(p, c.len, c.repeats);
    }
}

/* ---- rank 0 ------------------------------------------------------------- */

/* Returns the seconds that both processes have ever waited to run. */
static double order(const struct probe *p, enum work work, int len, int repeats)
{
    const struct command c = {.work = work, .len = len, .repeats = repeats};
    double delay;

    MPI_Send(&c, sizeof(c), MPI_BYTE, 1, COMMAND, MPI_COMM_WORLD);
    MPI_Recv(&delay, 1, MPI_DOUBLE, 1, COMMAND, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    return delay + delay_s(p);
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

/* Some messages of one kind. */
struct batch {
    double us;      /* per message */
    double start_s; /* when it was ordered */
    double delay_s; /* that processes had ever waited to run by then */
};

/* Half of one way there and back; the first one of a batch starts when rank 1
 * is surely there. */
static struct batch one_batch(struct probe *p, int len, int repeats)
{
    struct batch b = {.start_s = MPI_Wtime()};
    double start;

    b.delay_s = order(p, ECHO, len, repeats + 1);
    echo(p, len, 1);
    start = MPI_Wtime();
    echo(p, len, repeats);
    b.us = (MPI_Wtime() - start) / repeats / 2 * 1e6;
    return b;
}

static struct batch one_stream(struct probe *p, int len)
{
    struct batch b = {.start_s = MPI_Wtime()};
    double start;

    b.delay_s = order(p, RATE, len, 1);
    start = MPI_Wtime();
    stream(p, len);
    b.us = (MPI_Wtime() - start) / WINDOW * 1e6;
    return b;
}

/* What a slice of time has seen. */
struct sight {
    double us[BATCHES_MAX]; /* undisturbed ones */
    int count;
    int all;
    double least_us; /* of all */
};

/* Were both processes there while it ran? `next` came directly after it. */
static void judge(struct sight *s, const struct batch *b,
                  const struct batch *next)
{
    const double took_s = next->start_s - b->start_s;
    const double delay = next->delay_s - b->delay_s;

    s->least_us = s->all++ ? fmin(s->least_us, b->us) : b->us;
    if (delay > DELAY_SHARE * took_s)
        return;
    if (s->count == BATCHES_MAX) { /* every second one tells the same */
        qsort(s->us, BATCHES_MAX, sizeof(*s->us), compare);
        for (s->count = 0; s->count < BATCHES_MAX / 2; s->count++)
            s->us[s->count] = s->us[2 * s->count];
    }
    s->us[s->count++] = b->us;
}

/* The least disturbed of what fits into a slice of time; negative if nothing
 * was undisturbed. */
static double slice(struct probe *p, enum work work, int len, double seconds)
{
    struct sight s = {.count = 0};
    double end = MPI_Wtime() + seconds;
    struct batch b = work == ECHO ? one_batch(p, len, 1) : one_stream(p, len);
    double once_s = b.us * 1e-6;
    int repeats = once_s < BATCH_S ? (int)(BATCH_S / (once_s + 1e-9)) + 1 : 1;
    int least = once_s * 4 * BATCHES_MIN < seconds ? BATCHES_MIN : 1;

    if (repeats > 1000)
        repeats = 1000;
    if (work == ECHO && repeats > 1) /* the first one was too short */
        b = one_batch(p, len, repeats);
    while (s.all + 1 < least || MPI_Wtime() < end) {
        struct batch next =
            work == ECHO ? one_batch(p, len, repeats) : one_stream(p, len);

        judge(&s, &b, &next);
        b = next;
    }
    judge(&s, &b,
          &(struct batch){.start_s = MPI_Wtime(),
                          .delay_s = order(p, NOTHING, 0, 0)});
    return s.count > 0 ? undisturbed(s.us, s.count) : -s.least_us;
}

/* Sizes in steps of four; large ones as far as a message of them is no great
 * part of the time that there is. */
static void choose_sizes(struct probe *p, int64_t least, int64_t most)
{
    double limit = p->seconds / LIMIT_SHARE;
    int64_t len = least;

    if (most > LARGEST)
        most = LARGEST;
    do {
        double seconds;

        p->sizes[p->size_count++].len = (int)len;
        (void)one_batch(p, (int)len, 1); /* connections, buffers */
        seconds = one_batch(p, (int)len, 1).us * 1e-6;
        for (int i = 1; i < TRIES && seconds * 4 > limit; i++)
            seconds = fmin(seconds, one_batch(p, (int)len, 1).us * 1e-6);
        if ((seconds * 4 > limit && len >= LARGE) || len >= most)
            return;
        len = len < SMALLEST_STEP ? SMALLEST_STEP : len * 4;
        if (len > most)
            len = most;
    } while (p->size_count < SIZES_MAX);
}

static void print(const struct probe *p, const char *what, int len,
                  const double *us)
{
    printf("%s %d", what, len);
    for (int i = 0; i < p->round_count; i++)
        printf(" %.4f", us[i]);
    printf("\n");
}

static void measure(struct probe *p, int64_t least, int64_t most)
{
    double round_s = p->seconds / ROUNDS;
    double end = MPI_Wtime() + LATE * p->seconds;
    double slice_s;

    choose_sizes(p, least, most);
    slice_s = round_s * (1 - RATE_SHARE) / p->size_count;
    while (p->round_count < ROUNDS_LEAST ||
           (p->round_count < ROUNDS && MPI_Wtime() < end)) {
        const int r = p->round_count++;

        for (int i = 0; i < p->size_count; i++)
            p->sizes[i].echo_us[r] = slice(p, ECHO, p->sizes[i].len, slice_s);
        p->rate_us[r] = slice(p, RATE, (int)least, round_s * RATE_SHARE);
    }
    (void)order(p, END, 0, 0);
    for (int i = 0; i < p->size_count; i++)
        print(p, "echo", p->sizes[i].len, p->sizes[i].echo_us);
    print(p, "rate", (int)least, p->rate_us);
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
    probe.delay_fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
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
    if (probe.delay_fd >= 0)
        (void)close(probe.delay_fd); /* only read */
    MPI_Finalize();
    return 0;
}
