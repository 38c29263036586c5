/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations in which members write for far cores (distance.h): data is right
 * however far each member takes the others for, types have gaps or not, and
 * calls are blocking or not. Where members take cores for far ones they write
 * past their caches, and else they do not; and in each blocking operation,
 * and in non-blocking ones of one after the other, they look how far cores are,
 * at what was written in it. What they learn is unit-coll's: on a busy machine
 * nobody may read a line soon enough.
 *
 * Linked with looks that are counted.
 */
#define _GNU_SOURCE /* sched_setaffinity */
#include <sched.h>

#include "common/base/clock.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/coll/node/cores/distance.h"
#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/locality/affinity.h"
#include "tests/mpi/check.h"
#include "tests/mpi/inside/looks.h"

enum {
    COUNT = 20000, /* ints of a block: pieces and rings are shorter */
    RANKS_MAX = 8,
    FAR_POINTS = 32,
    TRIES = 20, /* operations after which members ask each other */
    TRIES_MOST = 20000
};

static int out[RANKS_MAX * COUNT];
static int apart[2 * RANKS_MAX * COUNT]; /* the same, with gaps */
static int in[2 * RANKS_MAX * COUNT];
static MPI_Datatype gaps; /* an int and as much again */

static struct chempi_yield_policy *policy(void)
{
    return &chempi_comm_lookup(MPI_COMM_WORLD)->coll->yield_policy;
}

static uint64_t past(void)
{
    return chempi_coll_counted(CHEMPI_COLL_WAY_PAST);
}

static int value(int from, int to, int i)
{
    return from * 1003 + to * 107 + i;
}

static void fill(int round)
{
    for (int m = 0; m < check_size(); m++)
        for (int i = 0; i < COUNT; i++) {
            out[m * COUNT + i] = value(check_rank(), m, i + round);
            apart[2 * (m * COUNT + i)] = out[m * COUNT + i];
        }
    for (int i = 0; i < 2 * COUNT * check_size(); i++)
        in[i] = -1;
}

/* ---- operations; each fills in, from the beginning, with block_of() ---- */

typedef void run_fn(bool is_started, int root);

static void end(MPI_Request *request, bool is_started)
{
    if (is_started)
        MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void bcast(bool is_started, int root)
{
    int *buf = check_rank() == root ? out : in;
    MPI_Request request;

    if (is_started)
        MPI_Ibcast(buf, COUNT, MPI_INT, root, MPI_COMM_WORLD, &request);
    else
        MPI_Bcast(buf, COUNT, MPI_INT, root, MPI_COMM_WORLD);
    end(&request, is_started);
}

static void reduce(bool is_started, int root)
{
    MPI_Request request;

    if (is_started)
        MPI_Ireduce(out, in, COUNT, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD,
                    &request);
    else
        MPI_Reduce(out, in, COUNT, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    end(&request, is_started);
}

static void scan(bool is_started, int root)
{
    MPI_Request request;

    (void)root;
    if (is_started)
        MPI_Iscan(out, in, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    else
        MPI_Scan(out, in, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    end(&request, is_started);
}

static void exscan(bool is_started, int root)
{
    MPI_Request request;

    (void)root;
    if (is_started)
        MPI_Iexscan(out, in, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    else
        MPI_Exscan(out, in, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    end(&request, is_started);
}

static void allreduce(bool is_started, int root)
{
    MPI_Request request;

    (void)root;
    if (is_started)
        MPI_Iallreduce(out, in, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                       &request);
    else
        MPI_Allreduce(out, in, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    end(&request, is_started);
}

static void allgather(bool is_started, int root)
{
    MPI_Request request;

    (void)root;
    if (is_started)
        MPI_Iallgather(out, COUNT, MPI_INT, in, COUNT, MPI_INT, MPI_COMM_WORLD,
                       &request);
    else
        MPI_Allgather(out, COUNT, MPI_INT, in, COUNT, MPI_INT, MPI_COMM_WORLD);
    end(&request, is_started);
}

static void exchange(bool is_started, const int *from, MPI_Datatype sent,
                     MPI_Datatype received)
{
    MPI_Request request;

    if (is_started)
        MPI_Ialltoall(from, COUNT, sent, in, COUNT, received, MPI_COMM_WORLD,
                      &request);
    else
        MPI_Alltoall(from, COUNT, sent, in, COUNT, received, MPI_COMM_WORLD);
    end(&request, is_started);
}

static void alltoall(bool is_started, int root)
{
    (void)root;
    exchange(is_started, out, MPI_INT, MPI_INT);
}

/* The blocks have gaps where they are received. */
static void alltoall_gaps(bool is_started, int root)
{
    (void)root;
    exchange(is_started, out, MPI_INT, gaps);
}

/* Or where they are sent. */
static void alltoall_apart(bool is_started, int root)
{
    (void)root;
    exchange(is_started, apart, gaps, MPI_INT);
}

/* ---- what comes of them ---- */

static int sum_up_to(int last, int i)
{
    int sum = 0;

    for (int m = 0; m <= last; m++)
        sum += value(m, 0, i);
    return sum;
}

/* Element i of member m's part of the result, -1: none. */
static int expected(run_fn *run, int root, int m, int i)
{
    const int me = check_rank();
    const bool is_rooted = run == reduce || run == bcast;

    if (run == alltoall || run == alltoall_gaps || run == alltoall_apart)
        return value(m, me, i);
    if (run == allgather)
        return value(m, 0, i);
    if (m > 0 || (is_rooted && (me == root) != (run == reduce)))
        return -1;
    if (run == bcast)
        return value(root, 0, i);
    if (run == scan || run == exscan)
        return me == 0 && run == exscan ? -1
                                        : sum_up_to(me - (run == exscan), i);
    return sum_up_to(check_size() - 1, i);
}

static void check_result(run_fn *run, int root, int round)
{
    const int stride = run == alltoall_gaps ? 2 : 1;

    for (int m = 0; m < check_size(); m++)
        for (int i = 0; i < COUNT; i++) {
            const int right = expected(run, root, m, i + round);
            const int found = in[(m * COUNT + i) * stride];

            CHECK_OR_DIE(found == right, "%d of %d is %d, not %d", i, m, found,
                         right);
            CHECK_OR_DIE(stride == 1 || in[(m * COUNT + i) * stride + 1] == -1,
                         "gap %d of %d is written", i, m);
        }
}

static const struct operation {
    const char *word;
    run_fn *run;
} operations[] = {{"bcast", bcast},
                  {"reduce", reduce},
                  {"scan", scan},
                  {"exscan", exscan},
                  {"allreduce", allreduce},
                  {"allgather", allgather},
                  {"alltoall", alltoall},
                  {"alltoall with gaps", alltoall_gaps},
                  {"alltoall of blocks with gaps", alltoall_apart}};
enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

/* As if each member had an opinion of its own. */
static void run_as(run_fn *run, bool is_far, bool is_started, int root)
{
    _Atomic uint32_t *shared = policy()->distance;
    _Atomic uint32_t own = is_far ? FAR_POINTS : 0;

    policy()->distance = &own;
    run(is_started, root);
    policy()->distance = shared;
}

/* All members, some of them, or none take cores for far ones. */
static void check_data(const struct operation *op)
{
    for (int round = 0; round < 8; round++) {
        const int root = round % check_size();
        const bool is_far =
            round % 4 < 2 || (round % 4 == 2 && check_rank() % 2 == 0);

        fill(round);
        run_as(op->run, is_far, round >= 4, root);
        check_result(op->run, root, round);
    }
}

/* ---- past the caches ---- */

static bool is_said_by_any(bool is_so)
{
    int any = is_so;

    MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return any;
}

/* Who reads is not always on another core. What has gaps is packed through the
 * caches. Where each rank has a core, or all have one, nobody looks for far
 * ones. */
static void check_ways(const struct operation *op, bool is_crowd)
{
    const bool may_go = op->run != alltoall_apart;
    const int most = may_go ? TRIES_MOST / TRIES : 1;
    uint64_t before = past();
    bool has_gone = false;

    for (int i = 0; i < TRIES; i++)
        run_as(op->run, false, i % 2 == 1, 0);
    CHECK(past() == before, "%s past caches, for near cores", op->word);
    for (int k = 0; is_crowd && k < most && !has_gone; k++) {
        for (int i = 0; i < TRIES; i++)
            run_as(op->run, true, i % 2 == 1, 0);
        has_gone = is_said_by_any(past() > before);
    }
    CHECK(!is_crowd || has_gone == may_go, "%s %s caches, for far cores",
          op->word, has_gone ? "past" : "through");
}

/* ---- looks ---- */

/* Does anybody look in this operation? Who came last is not always on another
 * core. */
static bool is_looked_in(run_fn *run, bool is_started)
{
    bool has_looked = false;

    for (int k = 0; k < TRIES_MOST / TRIES && !has_looked; k++) {
        looks.since_ns = chempi_clock_ns();
        MPI_Barrier(MPI_COMM_WORLD);
        looks.count = 0; /* those of the barrier */
        for (int i = 0; i < TRIES; i++)
            run(is_started, 0);
        looks.since_ns = 0;
        has_looked = is_said_by_any(looks.count > 0);
    }
    return has_looked;
}

static void check_looks(const struct operation *op)
{
    CHECK(is_looked_in(op->run, false), "no looks in a %s", op->word);
    CHECK(op->run == allreduce || op->run == allgather ||
              is_looked_in(op->run, true),
          "no looks in a started %s", op->word);
}

/* Neighbours on different cores: left alone, members of a chain come together.
 */
static void spread_out(void)
{
    cpu_set_t may;
    cpu_set_t own;
    int left;

    CHECK_OR_DIE(sched_getaffinity(0, sizeof(may), &may) == 0, "affinity");
    left = check_rank() % CPU_COUNT(&may);
    CPU_ZERO(&own);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &may) && left-- == 0)
            CPU_SET(cpu, &own);
    CHECK_OR_DIE(sched_setaffinity(0, sizeof(own), &own) == 0, "affinity");
}

int main(int argc, char **argv)
{
    bool is_crowd;

    check_start(&argc, &argv);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    MPI_Barrier(MPI_COMM_WORLD);
    is_crowd = !chempi_affinity_is_roomy() && chempi_affinity_cores() > 1;
    for (int k = 0; k < OPERATIONS; k++)
        check_data(&operations[k]);
    spread_out();
    for (int k = 0; k < OPERATIONS; k++)
        check_ways(&operations[k], is_crowd);
    for (int k = 0; is_crowd && k < OPERATIONS; k++)
        check_looks(&operations[k]);
    MPI_Type_free(&gaps);
    return check_finish();
}
