/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings between the members of a node, each of them a thread: blocks of all
 * lengths, blocks that nobody wants, too little memory, and counts that
 * somebody has damaged. Memory that was not reserved cannot be touched here.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <criterion/criterion.h>
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/coll/node/ring/pairwise_rings.h"
#include "libchempi/didl/coll/node/shm_slot.h"
#include "libchempi/didl/error/error.h"

enum { MEMBERS = 4, ROUNDS = 7, MOST = 400000 };

struct chempi_ctx chempi_ctx;

static struct {
    unsigned char *memory;
    bool is_refused; /* there is no memory any more */
    int rounds;
    bool is_dropping; /* member 0 forgets what comes */
    pthread_barrier_t all;
    struct chempi_datatype *bytes;
} t;

struct member {
    struct chempi_coll_state *st;
    pthread_t thread;
    int rc;
    int wrong; /* bytes */
};

/* ---- what rings call ---- */

int chempi_error_set(int errclass, const char *fmt, ...)
{
    (void)fmt;
    return errclass;
}

int chempi_region_reserve(struct chempi_region *region, void *ptr, size_t len,
                          struct chempi_err *err)
{
    (void)region;
    (void)err;
    if (t.is_refused)
        return -ENOSPC;
    cr_assert_eq(mprotect(ptr, len, PROT_READ | PROT_WRITE), 0);
    return 0;
}

/* ---- the rig ---- */

static void begin(struct member *members)
{
    static struct chempi_wake wakes[MEMBERS];
    static const int fds[MEMBERS] = {-1, -1, -1, -1};
    static uint32_t locals[MEMBERS] = {0, 1, 2, 3};

    t.rounds = ROUNDS;
    chempi_ctx.services.wakes = wakes;
    chempi_ctx.services.wake_fds = fds;
    t.bytes = calloc(1, sizeof(*t.bytes));
    t.bytes->size = 1;
    t.bytes->extent = 1;
    t.bytes->is_contiguous = true;
    t.memory = mmap(NULL, MEMBERS * CHEMPI_RINGS_STRIDE, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(t.memory != MAP_FAILED);
    cr_assert_eq(pthread_barrier_init(&t.all, NULL, MEMBERS), 0);
    for (int m = 0; m < MEMBERS; m++) {
        members[m].st = calloc(1, sizeof(*members[m].st));
        members[m].st->size = MEMBERS;
        members[m].st->rank = m;
        members[m].st->local_ranks = locals;
        members[m].st->ring_memory = t.memory;
    }
}

static uint64_t length_of(int from, int to, int round)
{
    static const uint64_t lens[] = {0, 1, 63, 4096, 70001, MOST, 262144};

    return lens[(from * 3 + to + round) % 7];
}

static unsigned char byte_of(int from, int to, uint64_t i)
{
    return (unsigned char)(i * 31 + i / 255 + (uint64_t)(from * 16 + to));
}

static void set_blocks(struct member *me, int round, unsigned char *out,
                       unsigned char *in)
{
    bool is_dropping = t.is_dropping && me->st->rank == 0;

    for (int m = 0; m < MEMBERS; m++) {
        struct chempi_ring_block to = {.buf = out + (size_t)m * MOST,
                                       .type = t.bytes};
        struct chempi_ring_block from = {.buf = in + (size_t)m * MOST,
                                         .type = t.bytes};

        if (m == me->st->rank)
            continue;
        to.len = length_of(me->st->rank, m, round);
        to.count = (MPI_Count)to.len;
        from.len = length_of(m, me->st->rank, round);
        from.count = (MPI_Count)from.len;
        from.is_unwanted = is_dropping;
        to.is_far = (me->st->rank + m + round) % 3 == 0;
        for (uint64_t i = 0; i < to.len; i++)
            out[(size_t)m * MOST + i] = byte_of(me->st->rank, m, i);
        chempi_coll_pairwise_rings_send(me->st, m, &to);
        chempi_coll_pairwise_rings_recv(me->st, m, &from);
    }
}

static int wrong_bytes(const struct member *me, int round,
                       const unsigned char *in)
{
    int wrong = 0;

    for (int m = 0; m < MEMBERS; m++) {
        uint64_t len = length_of(m, me->st->rank, round);

        for (uint64_t i = 0; m != me->st->rank && i < len; i++)
            wrong += in[(size_t)m * MOST + i] != byte_of(m, me->st->rank, i);
    }
    return wrong;
}

static int exchange(struct chempi_coll_state *st, bool is_long)
{
    uint64_t copied = 0;
    int rc = MPI_SUCCESS;

    chempi_coll_pairwise_rings_begin(st, is_long, false);
    while (!chempi_coll_pairwise_rings_step(st, &copied, &rc))
        while (!chempi_coll_pairwise_rings_are_due(st))
            (void)sched_yield();
    return rc;
}

static void *run_member(void *arg)
{
    struct member *me = arg;
    unsigned char *out = malloc((size_t)MEMBERS * MOST);
    unsigned char *in = calloc(MEMBERS, MOST);

    for (int round = 0; !me->rc && round < t.rounds; round++) {
        set_blocks(me, round, out, in);
        pthread_barrier_wait(&t.all); /* R3 */
        me->rc = exchange(me->st, round % 2 == 1);
        if (!(t.is_dropping && me->st->rank == 0))
            me->wrong += wrong_bytes(me, round, in);
    }
    free(out);
    free(in);
    return NULL;
}

static void run_all(struct member *members)
{
    for (int m = 0; m < MEMBERS; m++)
        cr_assert(chempi_coll_pairwise_rings_open(members[m].st, true));
    for (int m = 0; m < MEMBERS; m++)
        cr_assert_eq(
            pthread_create(&members[m].thread, NULL, run_member, &members[m]),
            0);
    for (int m = 0; m < MEMBERS; m++)
        pthread_join(members[m].thread, NULL);
}

static void end(struct member *members)
{
    for (int m = 0; m < MEMBERS; m++) {
        free(members[m].st->rings);
        free(members[m].st);
    }
    free(t.bytes);
    munmap(t.memory, MEMBERS * CHEMPI_RINGS_STRIDE);
}

/* ---- the tests ---- */

static void expect_all_right(bool is_dropping)
{
    static struct member members[MEMBERS];

    begin(members);
    t.is_dropping = is_dropping;
    run_all(members);
    for (int m = 0; m < MEMBERS; m++) {
        cr_assert_eq(members[m].rc, 0);
        cr_assert_eq(members[m].wrong, 0);
    }
    end(members);
}

Test(rings, carry_blocks_of_all_lengths)
{
    expect_all_right(false);
}

Test(rings, go_on_when_somebody_forgets_what_comes)
{
    expect_all_right(true);
}

Test(rings, are_refused_without_memory_to_those_who_write)
{
    static struct member members[MEMBERS];

    begin(members);
    t.is_refused = true;
    cr_assert(chempi_coll_pairwise_rings_open(members[0].st, false));
    cr_assert_not(chempi_coll_pairwise_rings_open(members[0].st, true));
    t.is_refused = false;
    cr_assert_not(chempi_coll_pairwise_rings_open(members[0].st, true));
    end(members);
}

/* Who finds the tail ahead of the head tells the one that waits for its bytes,
 * and nobody waits for ever. */
Test(rings, are_given_up_when_a_count_is_damaged)
{
    static struct member members[MEMBERS];
    struct chempi_ring *ring;

    begin(members);
    t.rounds = 1;
    cr_assert(length_of(1, 2, 0) > CHEMPI_RINGS_LEN_MAX);
    for (int m = 0; m < MEMBERS; m++)
        cr_assert(chempi_coll_pairwise_rings_open(members[m].st, true));
    ring = (struct chempi_ring *)(void *)(t.memory + CHEMPI_RINGS_STRIDE) + 2;
    atomic_store(&ring->tail, UINT64_C(1) << 40);
    run_all(members);
    for (int m = 1; m <= 2; m++) {
        cr_assert_eq(members[m].rc, MPI_ERR_INTERN);
        cr_assert_not(chempi_coll_pairwise_rings_open(members[m].st, true));
    }
    end(members);
}

/* ---- of the cells that rings belong to ---- */

Test(first_error, the_loss_of_a_member_says_more_than_what_came_before)
{
    cr_assert_eq(cell_first_error(MPI_SUCCESS, MPI_SUCCESS), MPI_SUCCESS);
    cr_assert_eq(cell_first_error(MPI_ERR_COUNT, MPI_SUCCESS), MPI_ERR_COUNT);
    cr_assert_eq(cell_first_error(MPI_ERR_COUNT, MPI_ERR_NO_MEM),
                 MPI_ERR_COUNT);
    cr_assert_eq(cell_first_error(MPI_SUCCESS, MPI_ERR_NO_MEM), MPI_ERR_NO_MEM);
    cr_assert_eq(cell_first_error(MPI_ERR_COUNT, MPI_ERR_PROC_ABORTED),
                 MPI_ERR_PROC_ABORTED);
    cr_assert_eq(cell_first_error(MPI_ERR_PROC_ABORTED, MPI_ERR_COUNT),
                 MPI_ERR_PROC_ABORTED);
}
