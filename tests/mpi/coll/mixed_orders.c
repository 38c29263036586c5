/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking and non-blocking collectives on several communicators, several of
 * the latter under way at a time, of lengths that take all ways through a
 * node's memory. All ranks start the same ones in the same order, which a seed
 * tells; each computes in between, tests and waits for those under way as it
 * likes, by numbers of its own.
 *
 * usage: mixed_orders [SEED [OPERATIONS [threads]]]
 * threads: two threads at a time do so, with communicators of their own.
 */
#include "check.h"

#include <pthread.h>

enum {
    COMMS = 3,
    PENDING = 6,  /* operations under way at most */
    WORK = 20000, /* counted steps of computing, at most */
    KEPT = 4,     /* of them on a communicator that is freed */
    GAP = -5,     /* what lies in gaps */
};

enum kind {
    BCAST,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLREDUCE,
    REDUCE,
    REDUCE_SCATTER,
    GATHER,
    SCAN,
    BARRIER,
    KINDS
};

static const int lengths[] = {1,    13,    700,   4097,  6000,
                              9000, 16384, 20000, 40001, 70000};
#define LENGTHS ((int)(sizeof(lengths) / sizeof(lengths[0])))

/* One thread's part. */
struct walk {
    uint64_t common; /* what all ranks do */
    uint64_t own;
    MPI_Comm comms[COMMS];
    MPI_Datatype gaps; /* an int and a hole */
    int operations;
};

/* One operation: n ints of each, or of each for each. */
struct job {
    enum kind kind;
    MPI_Comm comm;
    int rank;
    int size;
    int root;
    int n;
    int id;
    int stride; /* ints from one to the next, in results */
    bool is_in_place;
    MPI_Datatype type; /* of results */
    int *in;
    int *out;
    int *counts;
    int *displs;
    MPI_Request request;
};

static int number(uint64_t *state, int below)
{
    return (int)(check_random(state) % (uint64_t)below);
}

static int value(const struct job *j, int from, int to, int i)
{
    return j->id * 7 + from * 1000 + to * 100 + i % 9973;
}

static bool is_reduction(enum kind kind)
{
    return kind == ALLREDUCE || kind == REDUCE || kind == REDUCE_SCATTER ||
           kind == SCAN;
}

static int blocks_in(const struct job *j)
{
    return j->kind == ALLTOALL || j->kind == REDUCE_SCATTER ? j->size : 1;
}

/* Blocks of the result at this rank. */
static int blocks_out(const struct job *j)
{
    switch (j->kind) {
    case ALLGATHER:
    case ALLGATHERV:
    case ALLTOALL:
        return j->size;
    case GATHER:
        return j->rank == j->root ? j->size : 0;
    case REDUCE:
        return j->rank == j->root;
    case BARRIER:
        return 0;
    default:
        return 1;
    }
}

/* In an allgatherv blocks are of different lengths, some of them none. */
static int length_of(const struct job *j, int from)
{
    if (j->kind != ALLGATHERV)
        return j->n;
    return from % 3 == 2 ? 0 : j->n / (from % 3 + 1);
}

static int wanted(const struct job *j, int from, int i)
{
    int members = j->kind == SCAN ? j->rank + 1 : j->size;
    int sum = 0;

    if (j->kind == BCAST)
        return value(j, j->root, 0, i);
    if (j->kind == ALLTOALL)
        return value(j, from, j->rank, i);
    if (!is_reduction(j->kind))
        return value(j, from, 0, i);
    for (int m = 0; m < members; m++)
        sum += value(j, m, j->kind == REDUCE_SCATTER ? j->rank : 0, i);
    return sum;
}

static void prepare(struct job *j)
{
    int in = blocks_in(j) * j->n;
    int out = (j->kind == REDUCE_SCATTER ? j->size : 1) * j->n * j->size;

    j->in = check_alloc(sizeof(int) * (size_t)in);
    j->out = check_alloc(sizeof(int) * (size_t)(out * j->stride));
    j->counts = check_alloc(sizeof(int) * (size_t)j->size);
    j->displs = check_alloc(sizeof(int) * (size_t)j->size);
    for (int to = 0; to < blocks_in(j); to++)
        for (int i = 0; i < j->n; i++)
            j->in[to * j->n + i] = value(j, j->rank, to, i);
    for (int i = 0; i < out * j->stride; i++)
        j->out[i] = GAP;
    for (int i = 0; i < j->size; i++) {
        j->counts[i] = length_of(j, i);
        j->displs[i] = i * j->n;
    }
    if (j->kind == BCAST && j->rank == j->root)
        for (int i = 0; i < j->n; i++)
            j->out[i * j->stride] = j->in[i];
    if (j->is_in_place && is_reduction(j->kind))
        memcpy(j->out, j->in, sizeof(int) * (size_t)in);
    if (j->is_in_place && (j->kind == ALLGATHER || j->kind == ALLGATHERV))
        for (int i = 0; i < length_of(j, j->rank); i++)
            j->out[(j->rank * j->n + i) * j->stride] = j->in[i];
}

/* Start it, or do it, or prepare and start it. */
#define FORM(Name, name, ...)                                                  \
    do {                                                                       \
        if (form == 0)                                                         \
            MPI_##Name(__VA_ARGS__);                                           \
        else if (form == 1)                                                    \
            MPI_I##name(__VA_ARGS__, &j->request);                             \
        else                                                                   \
            MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &j->request);        \
    } while (0)

static void start(struct job *j, int form)
{
    const void *in = j->is_in_place ? MPI_IN_PLACE : j->in;
    const int count = length_of(j, j->rank);

    switch (j->kind) {
    case BCAST:
        FORM(Bcast, bcast, j->out, j->n, j->type, j->root, j->comm);
        break;
    case ALLGATHER:
        FORM(Allgather, allgather, in, j->n, MPI_INT, j->out, j->n, j->type,
             j->comm);
        break;
    case ALLGATHERV:
        FORM(Allgatherv, allgatherv, in, count, MPI_INT, j->out, j->counts,
             j->displs, j->type, j->comm);
        break;
    case ALLTOALL:
        FORM(Alltoall, alltoall, j->in, j->n, MPI_INT, j->out, j->n, j->type,
             j->comm);
        break;
    case ALLREDUCE:
        FORM(Allreduce, allreduce, in, j->out, j->n, MPI_INT, MPI_SUM, j->comm);
        break;
    case REDUCE:
        FORM(Reduce, reduce, j->rank == j->root ? in : j->in, j->out, j->n,
             MPI_INT, MPI_SUM, j->root, j->comm);
        break;
    case REDUCE_SCATTER:
        FORM(Reduce_scatter_block, reduce_scatter_block, in, j->out, j->n,
             MPI_INT, MPI_SUM, j->comm);
        break;
    case GATHER:
        FORM(Gather, gather, j->in, j->n, MPI_INT, j->out, j->n, j->type,
             j->root, j->comm);
        break;
    case SCAN:
        FORM(Scan, scan, in, j->out, j->n, MPI_INT, MPI_SUM, j->comm);
        break;
    default:
        FORM(Barrier, barrier, j->comm);
        break;
    }
    if (form == 2)
        MPI_Start(&j->request);
}

/* The operation is over. */
static void look(struct job *j)
{
    for (int from = 0; from < blocks_out(j); from++)
        for (int i = 0; i < length_of(j, from); i++) {
            int at = (from * j->n + i) * j->stride;

            CHECK(j->out[at] == wanted(j, from, i),
                  "operation %d, kind %d, %d ints: %d instead of %d from %d "
                  "at %d",
                  j->id, (int)j->kind, j->n, j->out[at], wanted(j, from, i),
                  from, i);
            CHECK(j->stride == 1 || j->out[at + 1] == GAP,
                  "operation %d wrote into a gap", j->id);
        }
    if (j->request != MPI_REQUEST_NULL)
        MPI_Request_free(&j->request); /* a persistent one */
    free(j->in);
    free(j->out);
    free(j->counts);
    free(j->displs);
    j->in = NULL;
}

static void compute(struct walk *w)
{
    volatile unsigned x = 0;
    int steps = number(&w->own, WORK);

    for (int i = 0; i < steps && steps % 3 == 0; i++)
        x += (unsigned)i;
}

/* What this rank does with those under way; has_to: one must end. */
static void attend(struct walk *w, struct job *jobs, bool has_to)
{
    struct job *j = &jobs[number(&w->own, PENDING)];
    int is_over = 1;

    compute(w);
    while (has_to && !j->in)
        j = &jobs[number(&w->own, PENDING)];
    if (!j->in)
        return;
    switch (number(&w->own, 3)) {
    case 0:
        MPI_Wait(&j->request, MPI_STATUS_IGNORE);
        break;
    case 1:
        MPI_Test(&j->request, &is_over, MPI_STATUS_IGNORE);
        while (has_to && !is_over)
            MPI_Test(&j->request, &is_over, MPI_STATUS_IGNORE);
        break;
    default:
        is_over = has_to;
        if (has_to)
            MPI_Wait(&j->request, MPI_STATUS_IGNORE);
        break;
    }
    if (is_over)
        look(j);
}

static struct job *free_place(struct job *jobs)
{
    for (int i = 0; i < PENDING; i++)
        if (!jobs[i].in)
            return &jobs[i];
    return NULL;
}

static void choose(struct walk *w, struct job *j, MPI_Comm comm, int id)
{
    *j = (struct job){.kind = (enum kind)number(&w->common, KINDS),
                      .comm = comm,
                      .id = id,
                      .n = lengths[number(&w->common, LENGTHS)],
                      .stride = 1,
                      .type = MPI_INT,
                      .request = MPI_REQUEST_NULL};
    MPI_Comm_rank(comm, &j->rank);
    MPI_Comm_size(comm, &j->size);
    j->root = number(&w->common, j->size);
    j->is_in_place = number(&w->common, 3) == 0;
    if (number(&w->own, 4) == 0 && !is_reduction(j->kind)) {
        j->type = w->gaps;
        j->stride = 2;
    }
    prepare(j);
}

/* Those under way go on after their communicator has been freed. */
static void leave(struct walk *w, int id)
{
    struct job jobs[KEPT];
    MPI_Comm comm;

    MPI_Comm_dup(w->comms[id % COMMS], &comm);
    MPI_Barrier(comm);
    for (int i = 0; i < KEPT; i++) {
        choose(w, &jobs[i], comm, id + i);
        start(&jobs[i], 1);
    }
    MPI_Comm_free(&comm);
    for (int i = 0; i < KEPT; i++) {
        MPI_Wait(&jobs[i].request, MPI_STATUS_IGNORE);
        look(&jobs[i]);
    }
}

static void *run(void *arg)
{
    struct walk *w = arg;
    struct job jobs[PENDING] = {0};

    MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &w->gaps);
    MPI_Type_commit(&w->gaps);
    for (int id = 0; id < w->operations; id++) {
        MPI_Comm comm = w->comms[number(&w->common, COMMS)];
        int form = number(&w->common, 8);
        struct job *j;

        while (!free_place(jobs))
            attend(w, jobs, true);
        j = free_place(jobs);
        choose(w, j, comm, id);
        form = form < 2 ? 0 : form < 7 ? 1 : 2;
        start(j, form);
        if (form == 0)
            look(j);
        attend(w, jobs, false);
        if (id % 40 == 39)
            leave(w, id);
    }
    for (int i = 0; i < PENDING; i++)
        if (jobs[i].in) {
            MPI_Wait(&jobs[i].request, MPI_STATUS_IGNORE);
            look(&jobs[i]);
        }
    MPI_Type_free(&w->gaps);
    return NULL;
}

/* The world, the same ranks the other way round, and again; for each thread. */
static void make_comms(struct walk *w)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &w->comms[0]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank(), &w->comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, (check_rank() + 1) % check_size(),
                   &w->comms[2]);
    for (int i = 0; i < COMMS; i++)
        MPI_Barrier(w->comms[i]);
}

int main(int argc, char **argv)
{
    enum { THREADS = 2 };
    const int threads = argc > 3 ? THREADS : 1;
    struct walk walks[THREADS] = {0};
    pthread_t ids[THREADS];

    check_start_thread(&argc, &argv,
                       argc > 3 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    for (int i = 0; i < threads; i++) {
        walks[i].common = (uint64_t)(check_arg(argc, argv, 1, 1) + i);
        walks[i].own = check_mix(walks[i].common, (uint64_t)check_rank() + 1);
        walks[i].operations = (int)check_arg(argc, argv, 2, 200);
        make_comms(&walks[i]);
    }
    for (int i = 1; i < threads; i++)
        CHECK_OR_DIE(pthread_create(&ids[i], NULL, run, &walks[i]) == 0,
                     "no thread");
    run(&walks[0]);
    for (int i = 1; i < threads; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < threads; i++)
        for (int k = 0; k < COMMS; k++)
            MPI_Comm_free(&walks[i].comms[k]);
    return check_finish();
}
