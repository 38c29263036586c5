/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators whose first collective operation is a non-blocking one: it ends
 * before others have begun the next; those that were started behind it are
 * right, blocking ones and preparations of persistent ones among them, and
 * communicators that are freed meanwhile; and those after it go through the
 * node's memory, without a message, if the communicator has got an area. All
 * that with and without others who make progress meanwhile.
 *
 * usage: first_started [shared|threads|lost]
 */
#include "matched.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

enum {
    MANY = 100,      /* more than a node's memory has cells for */
    MORE = 24,       /* all kinds of data */
    FEW = 7,         /* what is under way when a member dies */
    CROWD = 40,      /* communicators, more than there are areas */
    COUNT = 3000,    /* ints: some go in steps */
    LARGE = 1 << 20, /* bytes */
    THREADS = 3,
    ROUNDS = 40
};

static int rank;
static int size;

static void add_user(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *len; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

struct job {
    int kind;
    int n;
    int *in;
    int *out;
    MPI_Request request;
};

static void start(struct job *j, int kind, MPI_Comm comm, MPI_Op op)
{
    *j = (struct job){.kind = kind % 4, .n = kind % 3 == 2 ? COUNT : kind % 7};
    j->in = check_alloc(sizeof(int) * COUNT);
    j->out = check_alloc(sizeof(int) * COUNT);
    for (int i = 0; i < j->n; i++) {
        j->in[i] = rank + i + kind;
        j->out[i] = rank == 0 && j->kind == 1 ? i + kind : -1;
    }
    switch (j->kind) {
    case 0:
        MPI_Iallreduce(j->in, j->out, j->n, MPI_INT, op, comm, &j->request);
        break;
    case 1:
        MPI_Ibcast(j->out, j->n, MPI_INT, 0, comm, &j->request);
        break;
    case 2:
        MPI_Iscan(j->in, j->out, j->n, MPI_INT, op, comm, &j->request);
        break;
    default:
        MPI_Ibarrier(comm, &j->request);
    }
}

static void end(struct job *j, int kind)
{
    const int members = j->kind == 0 ? size : j->kind == 2 ? rank + 1 : 0;

    CHECK(MPI_Wait(&j->request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "%d", kind);
    for (int i = 0; j->kind < 3 && i < j->n; i++) {
        const int wanted =
            j->kind == 1 ? i + kind
                         : members * (members - 1) / 2 + members * (i + kind);

        CHECK(j->out[i] == wanted, "operation %d, element %d: %d, not %d", kind,
              i, j->out[i], wanted);
    }
    free(j->in);
    free(j->out);
}

static void add(MPI_Comm comm)
{
    int one = 1;
    int sum = 0;

    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == size, "a sum of %d", sum);
}

static void prepare_one(MPI_Comm comm)
{
    MPI_Request request;

    MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

/* Rank `late` goes on when all others have come here. */
static void wait_for_others(int late)
{
    for (int m = 0; rank == late && m < size; m++)
        if (m != late)
            MPI_Recv(NULL, 0, MPI_INT, m, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void tell(int late)
{
    if (late >= 0 && rank != late)
        MPI_Send(NULL, 0, MPI_INT, late, 1, MPI_COMM_WORLD);
}

/* So many at a time, the communicator's first ones, of which rank `late` (-1:
 * nobody) starts none before the others have started all. how: what comes
 * before they have ended. */
static void run_many(MPI_Comm parent, int count, int how, MPI_Op op, int late)
{
    struct job *jobs = check_alloc(sizeof(*jobs) * (size_t)count);
    MPI_Comm comm;

    MPI_Comm_dup(parent, &comm);
    wait_for_others(late);
    for (int i = 0; i < count; i++)
        start(&jobs[i], how + i, comm, op);
    tell(late);
    if (how % 4 == 0)
        add(comm);
    if (how % 4 == 1)
        prepare_one(comm);
    if (how % 4 == 2)
        MPI_Comm_free(&comm);
    for (int i = 0; i < count; i++)
        end(&jobs[i], how + i);
    if (how % 4 != 2) {
        add(comm);
        MPI_Comm_free(&comm);
    }
    free(jobs);
}

/* Its members end it before anybody begins another one. */
static void run_alone(MPI_Comm comm)
{
    struct job job;

    start(&job, 0, comm, MPI_SUM);
    end(&job, 0);
}

/* What brings the area is a barrier by itself, without further messages. */
static void run_barrier(bool is_shared)
{
    const unsigned long long most = rank > 0; /* that names the area */
    unsigned long long before;
    unsigned long long rounds = 0;
    MPI_Request request;
    MPI_Comm comm;

    while (1 << rounds < size)
        rounds++;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    before = matched_count();
    MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(!is_shared || matched_count() - before <= most + rounds,
          "%llu messages", matched_count() - before);
    run_alone(comm);
    MPI_Comm_free(&comm);
}

static void run_more(MPI_Comm comm, bool has_area)
{
    unsigned long long before = matched_count();
    struct job job;

    for (int i = 0; i < MORE; i++) {
        start(&job, i, comm, MPI_SUM);
        end(&job, i);
    }
    add(comm);
    CHECK(!has_area || matched_count() == before, "%llu messages",
          matched_count() - before);
}

/* In an order of each rank's own: nobody waits for the other. */
static void run_both(const MPI_Comm comms[2])
{
    struct job jobs[2];

    for (int i = 0; i < 2; i++)
        start(&jobs[i], 0, comms[(i + rank) % 2], MPI_SUM);
    for (int i = 0; i < 2; i++)
        end(&jobs[i], 0);
}

/* More communicators than there are areas. */
static void crowd(bool is_shared)
{
    MPI_Comm comms[CROWD];

    for (int i = 0; i < CROWD; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    run_both(comms);
    run_more(comms[0], is_shared);
    for (int i = 2; i < CROWD; i++) {
        run_alone(comms[i]);
        run_more(comms[i], is_shared && i < 8);
    }
    for (int i = 1; i < CROWD; i++)
        MPI_Comm_free(&comms[i]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    run_alone(comms[1]);
    run_more(comms[1], is_shared);
    for (int i = 0; i < 2; i++)
        MPI_Comm_free(&comms[i]);
}

/* Between two groups there is no area. */
static void run_between(void)
{
    const int side = rank % 2;
    MPI_Comm half;
    MPI_Comm comm;
    MPI_Request requests[2];
    int sums[2] = {0};
    int one = 1;
    int others;

    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 2, &comm);
    MPI_Comm_remote_size(comm, &others);
    for (int i = 0; i < 2; i++)
        MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, comm, &requests[i]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(comm);
    CHECK(sums[0] == others && sums[1] == others, "sums of %d: %d, %d", others,
          sums[0], sums[1]);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&half);
}

/* ---- the agent: what is owed keeps it alive ---- */

static char *large;
static MPI_Request owed;

static void owe(void)
{
    large = check_alloc(LARGE);
    MPI_Irecv(large, LARGE, MPI_BYTE, (rank + 1) % size, 3, MPI_COMM_WORLD,
              &owed);
}

static void pay(void)
{
    MPI_Send(NULL, 0, MPI_BYTE, (rank + size - 1) % size, 3, MPI_COMM_WORLD);
    MPI_Wait(&owed, MPI_STATUS_IGNORE);
    free(large);
}

/* ---- "threads" ---- */

static void *work(void *arg)
{
    MPI_Comm *parent = arg;

    for (int round = 0; round < ROUNDS; round++)
        run_many(*parent, 1 + round % 12, round, MPI_SUM, -1);
    return NULL;
}

/* Of communicators of their own: each moves on the others' operations. */
static void by_threads(void)
{
    MPI_Comm comms[THREADS];

    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    check_run_threads(THREADS, work, comms, sizeof(comms[0]));
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comms[i]);
}

/* ---- "lost" ---- */

static bool is_lost(int rc)
{
    return check_class(rc) == MPI_ERR_PROC_ABORTED;
}

/* The last member has died, and started nothing. */
static void start_bereft(MPI_Comm comm, int how)
{
    MPI_Request requests[FEW];
    MPI_Request prepared;
    int one = 1;
    int sums[FEW];
    int started = 0;

    for (int i = 0; i < FEW; i++) {
        int rc = MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, comm,
                                &requests[started]);

        CHECK(!rc || is_lost(rc), "started: class %d", check_class(rc));
        started += !rc;
    }
    if (how % 3 == 0)
        CHECK(is_lost(MPI_Barrier(comm)), "a barrier behind them");
    if (how % 3 == 1)
        CHECK(is_lost(MPI_Barrier_init(comm, MPI_INFO_NULL, &prepared)),
              "one that is prepared behind them");
    for (int i = 0; i < started; i++)
        CHECK(is_lost(MPI_Wait(&requests[i], MPI_STATUS_IGNORE)), "number %d",
              i);
}

static MPI_Comm survivors(void)
{
    const int victim = size - 1;
    MPI_Group all;
    MPI_Group rest;
    MPI_Comm comm;

    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_excl(all, 1, &victim, &rest);
    CHECK_OR_DIE(!MPI_Comm_create_group(MPI_COMM_WORLD, rest, 7, &comm),
                 "MPI_Comm_create_group");
    MPI_Group_free(&rest);
    MPI_Group_free(&all);
    return comm;
}

/* Some of the others have begun when it dies, and some begin then. Their areas
 * come back. */
static void lose(void)
{
    MPI_Comm comms[CROWD];
    MPI_Comm comm;

    for (int i = 0; i < CROWD; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        MPI_Comm_set_errhandler(comms[i], MPI_ERRORS_RETURN);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    tell(size - 1); /* all have theirs */
    wait_for_others(size - 1);
    if (rank == size - 1) {
        (void)kill(getpid(), SIGKILL);
        for (;;)
            (void)pause();
    }
    for (int i = 0; i < CROWD; i++)
        start_bereft(comms[(i + rank) % CROWD], (i + rank) % CROWD);
    for (int i = 0; i < CROWD; i++)
        MPI_Comm_free(&comms[i]);
    comm = survivors();
    size--;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    MPI_Barrier(comm); /* all have freed theirs */
    for (int i = 0; i < 2; i++) {
        MPI_Comm_dup(comm, &comms[i]);
        run_alone(comms[i]);
        run_more(comms[i], true);
    }
    if (rank == 0)
        printf("the survivors are well\n");
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    const bool has_threads = strcmp(how, "threads") == 0;
    MPI_Op op;

    check_start_thread(&argc, &argv,
                       has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (has_threads) {
        owe();
        by_threads();
        pay();
        return check_finish();
    }
    matched_start();
    if (strcmp(how, "lost") == 0) {
        lose();
        return check_finish();
    }
    MPI_Op_create(add_user, 1, &op);
    for (int late = 0; late < size; late++)
        for (int i = 0; i < 8; i++)
            run_many(MPI_COMM_WORLD, MANY, i, i < 4 ? op : MPI_SUM, late);
    run_barrier(strcmp(how, "shared") == 0);
    crowd(strcmp(how, "shared") == 0);
    run_between();
    owe();
    for (int i = 0; i < ROUNDS; i++)
        run_many(MPI_COMM_WORLD, 1 + i % 12, i, i % 5 ? MPI_SUM : op, -1);
    pay();
    MPI_Op_free(&op);
    matched_end();
    return check_finish();
}
