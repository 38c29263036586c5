/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many non-blocking collectives of a communicator under way at a time, more
 * than a node's memory has cells for them, waited for in different orders,
 * with blocking ones in between; blocks that go through slots, and longer ones,
 * and v-forms some of whose blocks do not fit one. One by one as they end, on
 * communicators that are freed meanwhile, and by threads.
 *
 * usage: many_nonblocking [threads|alone]
 * alone: short ones, and no blocking one before them; --stats tells that no
 *        message was sent
 */
#include "check.h"

enum {
    ROUNDS = 12,
    KINDS = 9,
    PARALLEL = 5 * KINDS, /* operations under way */
    LONG = 6000           /* ints: more than a slot holds */
};

static const int lengths[] = {1, 12, 13, 500, 5000, 20000};
#define LENGTHS ((int)(sizeof(lengths) / sizeof(lengths[0])))

static int rank;
static int size;

/* One operation: n ints of each for each. */
struct job {
    int kind;
    int root;
    int n;
    int *in;
    int *out;
    MPI_Request request;
};

static int value(const struct job *j, int from, int to, int i)
{
    return from * 1000 + to * 100 + j->kind * 10 + j->n + i;
}

static void fill(const struct job *j, int *data, int to)
{
    for (int i = 0; i < j->n; i++)
        data[i] = value(j, rank, to, i);
}

static void start(struct job *j)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request *r = &j->request;
    int n = j->n;

    j->in = check_alloc(sizeof(int) * (size_t)(n * size));
    j->out = check_alloc(sizeof(int) * (size_t)(n * size));
    for (int to = 0; to < size; to++)
        fill(j, j->in + to * n, to);
    switch (j->kind) {
    case 0:
        MPI_Ibarrier(comm, r);
        break;
    case 1:
        memcpy(j->out, j->in, sizeof(int) * (size_t)n);
        MPI_Ibcast(j->out, n, MPI_INT, j->root, comm, r);
        break;
    case 2:
        MPI_Igather(j->in, n, MPI_INT, j->out, n, MPI_INT, j->root, comm, r);
        break;
    case 3:
        MPI_Iscatter(j->in, n, MPI_INT, j->out, n, MPI_INT, j->root, comm, r);
        break;
    case 4:
        MPI_Iallgather(j->in, n, MPI_INT, j->out, n, MPI_INT, comm, r);
        break;
    case 5:
        MPI_Ialltoall(j->in, n, MPI_INT, j->out, n, MPI_INT, comm, r);
        break;
    case 6:
        memcpy(j->out, j->in, sizeof(int) * (size_t)n);
        MPI_Iallreduce(MPI_IN_PLACE, j->out, n, MPI_INT, MPI_SUM, comm, r);
        break;
    case 7:
        MPI_Ireduce(j->in, j->out, n, MPI_INT, MPI_MAX, j->root, comm, r);
        break;
    default:
        MPI_Iscan(j->in, j->out, n, MPI_INT, MPI_SUM, comm, r);
        break;
    }
}

/* What a member has of a reduction of those before it and itself. */
static int sum_of(const struct job *j, int members, int i)
{
    int sum = 0;

    for (int from = 0; from < members; from++)
        sum += value(j, from, 0, i);
    return sum;
}

static int wanted(const struct job *j, int from, int i)
{
    switch (j->kind) {
    case 1:
        return value(j, j->root, 0, i);
    case 2:
    case 4:
        return value(j, from, 0, i);
    case 3:
        return value(j, j->root, rank, i);
    case 5:
        return value(j, from, rank, i);
    case 6:
        return sum_of(j, size, i);
    case 7:
        return value(j, size - 1, 0, i);
    default:
        return sum_of(j, rank + 1, i);
    }
}

static void end(struct job *j)
{
    bool is_rooted = j->kind == 2 || j->kind == 7;
    bool has_all = j->kind == 2 || j->kind == 4 || j->kind == 5;
    int blocks = has_all ? size : 1;

    MPI_Wait(&j->request, MPI_STATUS_IGNORE);
    if (j->kind == 0 || (is_rooted && rank != j->root))
        blocks = 0;
    for (int from = 0; from < blocks; from++)
        for (int i = 0; i < j->n; i++)
            CHECK(j->out[from * j->n + i] == wanted(j, from, i),
                  "kind %d, %d ints: %d from %d at %d", j->kind, j->n,
                  j->out[from * j->n + i], from, i);
    free(j->in);
    free(j->out);
}

/* Blocking ones between starts and ends; each rank waits in its own order. */
static void many(int round)
{
    struct job jobs[PARALLEL];
    int one = 1;
    int sum = 0;

    for (int i = 0; i < PARALLEL; i++) {
        jobs[i] = (struct job){.kind = (i + round) % KINDS,
                               .root = (i + round) % size,
                               .n = lengths[(i / KINDS + round) % LENGTHS]};
        start(&jobs[i]);
    }
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size, "the blocking one: %d", sum);
    for (int i = 0; i < PARALLEL; i++)
        end(&jobs[(rank + round) % 2 ? PARALLEL - 1 - i : i]);
}

static int part(int i)
{
    return i % 3 == 0 ? LONG : i % 3 == 1 ? 7 : 0;
}

/* Gatherv and scatterv with long and short blocks and none. */
static void parts(int root)
{
    int *counts = check_alloc(sizeof(int) * (size_t)size);
    int *at = check_alloc(sizeof(int) * (size_t)size);
    int *own = check_alloc(sizeof(int) * LONG);
    int *back = check_alloc(sizeof(int) * LONG);
    int *all = check_alloc(sizeof(int) * LONG * (size_t)size);
    MPI_Request request;

    for (int i = 0; i < size; i++) {
        counts[i] = part(i);
        at[i] = i * LONG;
    }
    for (int i = 0; i < part(rank); i++)
        own[i] = rank * LONG + i;
    MPI_Igatherv(own, part(rank), MPI_INT, all, counts, at, MPI_INT, root,
                 MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; rank == root && i < size; i++)
        for (int k = 0; k < part(i); k++)
            CHECK(all[at[i] + k] == i * LONG + k, "gatherv: %d of %d", k, i);
    MPI_Iscatterv(all, counts, at, MPI_INT, back, part(rank), MPI_INT, root,
                  MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(memcmp(own, back, sizeof(int) * (size_t)part(rank)) == 0, "scatterv");
    free(counts);
    free(at);
    free(own);
    free(back);
    free(all);
}

/* The root runs ahead by more operations than there are cells. */
static void ahead(void)
{
    MPI_Request requests[PARALLEL];
    int data[PARALLEL];

    for (int i = 0; i < PARALLEL; i++) {
        data[i] = rank == 0 ? i + 1 : 0;
        MPI_Ibcast(&data[i], 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(PARALLEL, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < PARALLEL; i++)
        CHECK(data[i] == i + 1, "broadcast %d: %d", i, data[i]);
}

/* The first ranks run ahead in scans, one at a time, by more than there are
 * cells; then all are in an operation that needs one. */
static void scans_ahead(void)
{
    MPI_Request request;
    int sum = 0;

    for (int i = 0; i < 3 * PARALLEL; i++) {
        int own = rank + i;

        MPI_Iscan(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(sum == (rank + 1) * i + rank * (rank + 1) / 2, "scan %d: %d", i,
              sum);
    }
    MPI_Iallreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum == size * (3 * PARALLEL - 1) + size * (size - 1) / 2,
          "the last sum: %d", sum);
}

/* On a communicator that is freed before they end, and starts with some that
 * it has no shared memory for; whichever ends first is looked at first. */
static void freed(MPI_Comm parent)
{
    MPI_Request requests[PARALLEL];
    int sums[PARALLEL];
    int ones[PARALLEL];
    MPI_Comm comm;

    MPI_Comm_dup(parent, &comm);
    for (int i = 0; i < PARALLEL; i++) {
        if (i == PARALLEL / 3)
            MPI_Barrier(comm);
        ones[i] = i;
        MPI_Iallreduce(&ones[i], &sums[i], 1, MPI_INT, MPI_SUM, comm,
                       &requests[i]);
    }
    MPI_Comm_free(&comm);
    for (int i = 0; i < PARALLEL; i++) {
        int which;

        MPI_Waitany(PARALLEL, requests, &which, MPI_STATUS_IGNORE);
        CHECK(sums[which] == size * which, "sum %d: %d", which, sums[which]);
    }
}

static void *work(void *arg)
{
    MPI_Comm *comm = arg;

    for (int round = 0; round < ROUNDS; round++)
        freed(*comm);
    return NULL;
}

/* Threads with communicators of their own. */
static void by_threads(void)
{
    enum { THREADS = 3 };

    MPI_Comm comms[THREADS];

    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    check_run_threads(THREADS, work, comms, sizeof(comms[0]));
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comms[i]);
}

int main(int argc, char **argv)
{
    bool is_alone = argc > 1 && strcmp(argv[1], "alone") == 0;
    bool has_threads = argc > 1 && !is_alone;

    check_start_thread(&argc, &argv,
                       has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (is_alone) {
        ahead();
        scans_ahead();
        return check_finish();
    }
    for (int round = 0; round < ROUNDS; round++) {
        many(round);
        ahead();
        scans_ahead();
        parts(round % size);
        freed(MPI_COMM_WORLD);
    }
    if (has_threads)
        by_threads();
    return check_finish();
}
