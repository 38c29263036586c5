/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Persistent collectives that are started again and again, several at a time,
 * by each rank in an order of its own, and waited for in another one, with
 * blocking and non-blocking operations in between. There are more of them than
 * a node's memory serves, and some are freed and made anew, while others are
 * under way. No other operation of their communicators comes before them.
 *
 * usage: persistent_orders SEED [told]
 * told: few enough of them, on MPI_COMM_WORLD, for no message to be sent
 */
#include "check.h"

enum {
    MANY = 40,
    FEW = 9,
    ROUNDS = 25,
    LEN_MAX = 70000, /* ints */
    RENEWED = 5      /* operations a round */
};

enum kind {
    BCAST,
    ALLGATHER,
    ALLTOALL,
    ALLREDUCE,
    REDUCE,
    REDUCE_SCATTER,
    GATHER,
    SCATTER,
    SCAN,
    BARRIER,
    KINDS
};

static const int lengths[] = {1, 13, 700, 4097, 9000, 20000, LEN_MAX};
#define LENGTHS ((int)(sizeof(lengths) / sizeof(lengths[0])))

/* One operation: n ints of each, or of each for each. */
struct job {
    enum kind kind;
    MPI_Comm comm;
    int root;
    int n;
    int id;
    int round;
    int *in;
    int *out;
    MPI_Request request;
};

static uint64_t common; /* what all ranks do */
static uint64_t own;
static int rank;
static int size;

static int number(uint64_t *state, int below)
{
    return (int)(check_random(state) % (uint64_t)below);
}

static int value(const struct job *j, int from, int to, int i)
{
    return j->id * 7 + j->round * 31 + from * 1000 + to * 100 + i % 997;
}

static bool is_split(const struct job *j)
{
    return j->kind == ALLTOALL || j->kind == SCATTER ||
           j->kind == REDUCE_SCATTER;
}

static void make(struct job *j)
{
    const size_t blocks = sizeof(int) * (size_t)j->n * (size_t)size;
    MPI_Request *r = &j->request;
    const int n = j->n;
    int *in;
    int *out;

    j->in = in = check_alloc(blocks);
    j->out = out = check_alloc(blocks);
    switch (j->kind) {
    case BCAST:
        MPI_Bcast_init(out, n, MPI_INT, j->root, j->comm, MPI_INFO_NULL, r);
        break;
    case ALLGATHER:
        MPI_Allgather_init(in, n, MPI_INT, out, n, MPI_INT, j->comm,
                           MPI_INFO_NULL, r);
        break;
    case ALLTOALL:
        MPI_Alltoall_init(in, n, MPI_INT, out, n, MPI_INT, j->comm,
                          MPI_INFO_NULL, r);
        break;
    case ALLREDUCE:
        MPI_Allreduce_init(in, out, n, MPI_INT, MPI_SUM, j->comm, MPI_INFO_NULL,
                           r);
        break;
    case REDUCE:
        MPI_Reduce_init(in, out, n, MPI_INT, MPI_SUM, j->root, j->comm,
                        MPI_INFO_NULL, r);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_block_init(in, out, n, MPI_INT, MPI_SUM, j->comm,
                                      MPI_INFO_NULL, r);
        break;
    case GATHER:
        MPI_Gather_init(in, n, MPI_INT, out, n, MPI_INT, j->root, j->comm,
                        MPI_INFO_NULL, r);
        break;
    case SCATTER:
        MPI_Scatter_init(in, n, MPI_INT, out, n, MPI_INT, j->root, j->comm,
                         MPI_INFO_NULL, r);
        break;
    case SCAN:
        MPI_Scan_init(in, out, n, MPI_INT, MPI_SUM, j->comm, MPI_INFO_NULL, r);
        break;
    default:
        MPI_Barrier_init(j->comm, MPI_INFO_NULL, r);
        break;
    }
}

static void choose(struct job *j, const MPI_Comm *comms, int id, int longest)
{
    *j = (struct job){.kind = (enum kind)(id % KINDS),
                      .comm = comms[number(&common, 2)],
                      .root = number(&common, size),
                      .n = lengths[number(&common, longest)],
                      .id = id};
    make(j);
}

static void forget(struct job *j)
{
    MPI_Request_free(&j->request);
    free(j->in);
    free(j->out);
}

static void fill(struct job *j, int round)
{
    j->round = round;
    for (int to = 0; to < size; to++)
        for (int i = 0; i < j->n; i++) {
            j->in[to * j->n + i] = value(j, rank, is_split(j) ? to : 0, i);
            j->out[to * j->n + i] = -1;
        }
    for (int i = 0; j->kind == BCAST && rank == j->root && i < j->n; i++)
        j->out[i] = value(j, rank, 0, i);
}

/* What the first `members` come to. */
static int sum_of(const struct job *j, int members, int to, int i)
{
    int sum = 0;

    for (int from = 0; from < members; from++)
        sum += value(j, from, to, i);
    return sum;
}

static int wanted(const struct job *j, int from, int i)
{
    switch (j->kind) {
    case BCAST:
        return value(j, j->root, 0, i);
    case ALLTOALL:
        return value(j, from, rank, i);
    case SCATTER:
        return value(j, j->root, rank, i);
    case ALLREDUCE:
    case REDUCE:
        return sum_of(j, size, 0, i);
    case REDUCE_SCATTER:
        return sum_of(j, size, rank, i);
    case SCAN:
        return sum_of(j, rank + 1, 0, i);
    default:
        return value(j, from, 0, i);
    }
}

static int blocks_out(const struct job *j)
{
    if (j->kind == BARRIER ||
        ((j->kind == REDUCE || j->kind == GATHER) && rank != j->root))
        return 0;
    return j->kind == ALLGATHER || j->kind == ALLTOALL || j->kind == GATHER
               ? size
               : 1;
}

static void look(const struct job *j)
{
    for (int from = 0; from < blocks_out(j); from++)
        for (int i = 0; i < j->n; i++)
            CHECK(j->out[from * j->n + i] == wanted(j, from, i),
                  "operation %d, kind %d, %d ints, round %d: %d instead of %d "
                  "from %d at %d",
                  j->id, (int)j->kind, j->n, j->round, j->out[from * j->n + i],
                  wanted(j, from, i), from, i);
}

static void shuffle(int *order, int count)
{
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        int k = number(&own, i + 1);
        int kept = order[i];

        order[i] = order[k];
        order[k] = kept;
    }
}

/* Those that all ranks do in the same order, as they come to them. */
static void do_others(MPI_Comm comm, int *sums, MPI_Request *request)
{
    static const int one = 1; /* read until the request is complete */

    MPI_Iallreduce(&one, &sums[0], 1, MPI_INT, MPI_SUM, comm, request);
    MPI_Allreduce(&one, &sums[1], 1, MPI_INT, MPI_SUM, comm);
}

static void run_round(struct job *jobs, int count, const MPI_Comm *comms,
                      int round)
{
    MPI_Request other;
    int order[MANY];
    int sums[2];
    int flag;

    shuffle(order, count);
    for (int i = 0; i < count; i++) {
        fill(&jobs[order[i]], round);
        MPI_Start(&jobs[order[i]].request);
        if (i == count / 2)
            do_others(comms[round % 2], sums, &other);
        MPI_Test(&jobs[order[number(&own, i + 1)]].request, &flag,
                 MPI_STATUS_IGNORE);
    }
    shuffle(order, count);
    for (int i = 0; i < count; i++) {
        MPI_Wait(&jobs[order[i]].request, MPI_STATUS_IGNORE);
        look(&jobs[order[i]]);
    }
    MPI_Wait(&other, MPI_STATUS_IGNORE);
    CHECK(sums[0] == size && sums[1] == size, "sums of %d and %d", sums[0],
          sums[1]);
}

/* All but what is renewed are under way meanwhile. */
static void renew(struct job *jobs, int count, const MPI_Comm *comms, int round)
{
    int first = number(&common, count);

    for (int i = 0; i < RENEWED; i++)
        forget(&jobs[(first + i) % count]);
    for (int i = RENEWED; i < count; i++) {
        fill(&jobs[(first + i) % count], round);
        MPI_Start(&jobs[(first + i) % count].request);
    }
    for (int i = 0; i < RENEWED; i++)
        choose(&jobs[(first + i) % count], comms, count + round * RENEWED + i,
               LENGTHS - 1);
    for (int i = RENEWED; i < count; i++) {
        MPI_Wait(&jobs[(first + i) % count].request, MPI_STATUS_IGNORE);
        look(&jobs[(first + i) % count]);
    }
}

int main(int argc, char **argv)
{
    struct job jobs[MANY];
    MPI_Comm comms[2] = {MPI_COMM_WORLD, MPI_COMM_WORLD};
    bool is_told;
    int count;

    check_start(&argc, &argv);
    is_told = argc > 2;
    count = is_told ? FEW : MANY;
    rank = check_rank();
    size = check_size();
    common = (uint64_t)check_arg(argc, argv, 1, 1);
    own = check_mix(common, (uint64_t)rank + 1);
    if (!is_told)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    for (int i = 0; i < count; i++)
        choose(&jobs[i], comms, i, is_told ? 3 : LENGTHS);
    for (int round = 0; round < ROUNDS; round++) {
        run_round(jobs, count, comms, round);
        if (!is_told && round % 4 == 3)
            renew(jobs, count, comms, round);
    }
    for (int i = 0; i < count; i++)
        forget(&jobs[i]);
    if (!is_told)
        MPI_Comm_free(&comms[1]);
    return check_finish();
}
