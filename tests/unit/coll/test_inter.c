/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives on intercommunicators, for pairs of groups of several sizes.
 * Rank r of a group contributes numbers made of (group, r, index). */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/coll/fake_message.h"

enum { COUNT = 30, BLOCKS = COUNT * FAKE_RANKS_MAX };

/* Where the root is: in group A (0) or B (1), as which rank. */
struct place {
    int group;
    int rank;
};

static int group_of(const struct chempi_comm *comm)
{
    return comm->recv_context == 12;
}

static int64_t value(int group, int rank, int64_t i)
{
    return group * 100000 + rank * 1000 + i + 1;
}

static int root_argument(const struct chempi_comm *comm, struct place root)
{
    if (group_of(comm) != root.group)
        return root.rank;
    return comm->rank == root.rank ? MPI_ROOT : MPI_PROC_NULL;
}

struct buffers {
    struct chempi_coll_call c;
    int64_t in[BLOCKS];
    int64_t out[BLOCKS];
    int64_t counts[FAKE_RANKS_MAX];
    int64_t displs[FAKE_RANKS_MAX];
};

static struct buffers *prepare(struct chempi_comm *comm,
                               enum chempi_coll_kind kind, struct place root)
{
    struct buffers *b = calloc(1, sizeof(*b));
    struct chempi_datatype *type = chempi_datatype_lookup(MPI_INT64_T);

    for (int i = 0; i < BLOCKS; i++)
        b->in[i] = value(group_of(comm), comm->rank, i);
    for (int i = 0; i < FAKE_RANKS_MAX; i++) {
        b->counts[i] = COUNT;
        b->displs[i] = i * COUNT;
    }
    b->c = (struct chempi_coll_call){.kind = kind,
                                     .comm = comm,
                                     .root = root_argument(comm, root),
                                     .send.buf = b->in,
                                     .send.count = COUNT,
                                     .send.type = type,
                                     .recv.buf = b->out,
                                     .recv.count = COUNT,
                                     .recv.type = type,
                                     .op = chempi_op_lookup(MPI_SUM),
                                     .send.counts = {b->counts, true},
                                     .recv.counts = {b->counts, true},
                                     .send.displs = {b->displs, true},
                                     .recv.displs = {b->displs, true}};
    return b;
}

static int run(struct buffers *b)
{
    struct chempi_coll_sched s;
    int rc;

    chempi_coll_sched_init(&s, b->c.comm, 1);
    chempi_coll_build(&s, &b->c);
    rc = chempi_coll_run(&s);
    chempi_coll_sched_fini(&s);
    return rc != MPI_SUCCESS;
}

/* out[0..COUNT) should be the sum over the remote group, from index on. */
static int check_sum(const struct buffers *b, int64_t from)
{
    int other = !group_of(b->c.comm);
    int wrong = 0;

    for (int i = 0; i < COUNT; i++) {
        int64_t sum = 0;

        for (int r = 0; r < (int)b->c.comm->remote_size; r++)
            sum += value(other, r, from + i);
        wrong += b->out[i] != sum;
    }
    return wrong;
}

/* Block r should be what remote rank r has from index `from` on. */
static int check_blocks(const struct buffers *b, int64_t from)
{
    int other = !group_of(b->c.comm);
    int wrong = 0;

    for (int r = 0; r < (int)b->c.comm->remote_size; r++)
        for (int i = 0; i < COUNT; i++)
            wrong += b->out[r * COUNT + i] != value(other, r, from + i);
    return wrong;
}

static int test_symmetric(struct chempi_comm *comm, void *arg)
{
    enum chempi_coll_kind kind = *(enum chempi_coll_kind *)arg;
    struct buffers *b = prepare(comm, kind, (struct place){0, 0});
    int64_t mine = comm->rank * COUNT;
    int wrong;

    b->c.root = 0;
    /* Both groups divide the same vector, whatever their sizes. */
    if (kind == CHEMPI_COLL_REDUCE_SCATTER)
        for (int i = 0; i < (int)comm->size; i++)
            b->counts[i] = i == 0 ? COUNT : 0;
    wrong = run(b);
    if (kind == CHEMPI_COLL_ALLREDUCE ||
        (kind == CHEMPI_COLL_REDUCE_SCATTER && comm->rank == 0))
        wrong += check_sum(b, 0);
    if (kind == CHEMPI_COLL_REDUCE_SCATTER_BLOCK)
        wrong += check_sum(b, mine);
    if (kind == CHEMPI_COLL_ALLGATHER || kind == CHEMPI_COLL_ALLGATHERV)
        wrong += check_blocks(b, 0);
    if (kind == CHEMPI_COLL_ALLTOALL || kind == CHEMPI_COLL_ALLTOALLV)
        wrong += check_blocks(b, mine);
    free(b);
    return wrong;
}

struct rooted {
    enum chempi_coll_kind kind;
    struct place root;
};

static int check_rooted(const struct buffers *b, const struct rooted *t)
{
    struct chempi_comm *comm = b->c.comm;
    bool is_root = b->c.root == MPI_ROOT;
    bool is_leaf = b->c.root >= 0;
    int64_t from = t->kind == CHEMPI_COLL_BCAST ? 0 : comm->rank * COUNT;
    int wrong = 0;

    if (is_root && t->kind == CHEMPI_COLL_REDUCE)
        return check_sum(b, 0);
    if (is_root &&
        (t->kind == CHEMPI_COLL_GATHER || t->kind == CHEMPI_COLL_GATHERV))
        return check_blocks(b, 0);
    if (is_leaf &&
        (t->kind == CHEMPI_COLL_BCAST || t->kind == CHEMPI_COLL_SCATTER ||
         t->kind == CHEMPI_COLL_SCATTERV))
        for (int i = 0; i < COUNT; i++)
            wrong += b->out[i] != value(t->root.group, t->root.rank, from + i);
    return wrong;
}

static int test_rooted(struct chempi_comm *comm, void *arg)
{
    const struct rooted *t = arg;
    struct buffers *b = prepare(comm, t->kind, t->root);
    int wrong;

    if (t->kind == CHEMPI_COLL_BCAST && b->c.root == MPI_ROOT)
        b->c.recv.buf = b->in;
    wrong = run(b) + check_rooted(b, t);
    free(b);
    return wrong;
}

static const int sizes[][2] = {{1, 1}, {1, 3}, {4, 2}, {5, 5}, {7, 3}};

TestSuite(inter, .init = fake_init, .timeout = 60);

Test(inter, symmetric_operations_bring_the_other_groups_data)
{
    enum chempi_coll_kind kinds[] = {
        CHEMPI_COLL_BARRIER,       CHEMPI_COLL_ALLREDUCE, CHEMPI_COLL_ALLGATHER,
        CHEMPI_COLL_ALLGATHERV,    CHEMPI_COLL_ALLTOALL,  CHEMPI_COLL_ALLTOALLV,
        CHEMPI_COLL_REDUCE_SCATTER};
    enum chempi_coll_kind block = CHEMPI_COLL_REDUCE_SCATTER_BLOCK;

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
            cr_assert_eq(fake_run_inter(sizes[i][0], sizes[i][1],
                                        test_symmetric, &kinds[k]),
                         0, "kind %d, groups of %d and %d", (int)kinds[k],
                         sizes[i][0], sizes[i][1]);
    cr_assert_eq(fake_run_inter(4, 4, test_symmetric, &block), 0);
    cr_assert_eq(fake_leftovers(), 0);
}

Test(inter, rooted_operations_work_from_either_group)
{
    enum chempi_coll_kind kinds[] = {CHEMPI_COLL_BCAST,   CHEMPI_COLL_REDUCE,
                                     CHEMPI_COLL_GATHER,  CHEMPI_COLL_GATHERV,
                                     CHEMPI_COLL_SCATTER, CHEMPI_COLL_SCATTERV};

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
            for (int group = 0; group < 2; group++) {
                struct rooted t = {kinds[k], {group, sizes[i][group] - 1}};

                cr_assert_eq(
                    fake_run_inter(sizes[i][0], sizes[i][1], test_rooted, &t),
                    0, "kind %d, groups of %d and %d", (int)kinds[k],
                    sizes[i][0], sizes[i][1]);
            }
    cr_assert_eq(fake_leftovers(), 0);
}

/* As many as have more than one window of messages. */
Test(inter, exchanges_of_large_groups_wait_in_no_circle)
{
    enum chempi_coll_kind kind = CHEMPI_COLL_ALLTOALL;

    cr_assert_eq(fake_run_inter(17, 19, test_symmetric, &kind), 0);
    cr_assert_eq(fake_run_inter(19, 17, test_symmetric, &kind), 0);
    cr_assert_eq(fake_leftovers(), 0);
}
