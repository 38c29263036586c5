/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions around a ring; see reduce_ring.h. */
#include "libchempi/didl/coll/node/ring/reduce_ring.h"

#include "libchempi/didl/coll/coll.h"

/* Bytes of a part, on average: of shorter ones the way from member to member
 * takes longer than all else. */
enum { PART_LEAST = 8 << 10 };

/* Elements before a part; part `size`: all. */
static MPI_Count count_before(const struct chempi_reduce_ring *g, int part)
{
    MPI_Count count = 0;

    if (g->c->kind == CHEMPI_COLL_ALLREDUCE)
        return chempi_coll_cut(g->count, g->cell->st->size, part);
    for (int i = 0; i < part; i++)
        count += chempi_coll_part_count(g->c, i);
    return count;
}

static MPI_Count part_count(const struct chempi_reduce_ring *g, int part)
{
    if (g->c->kind == CHEMPI_COLL_ALLREDUCE)
        return count_before(g, part + 1) - count_before(g, part);
    return chempi_coll_part_count(g->c, part);
}

static uint64_t bytes(const struct chempi_reduce_ring *g, MPI_Count count)
{
    return (uint64_t)(count * g->c->recv.type->extent);
}

/* G3 */
static void plan_rounds(struct chempi_reduce_ring *g)
{
    const struct chempi_coll_state *st = g->cell->st;
    const MPI_Count room =
        (MPI_Count)st->stream_chunk / g->c->recv.type->extent;
    MPI_Count longest = 0;

    for (int i = 0; i < st->size; i++) {
        const MPI_Count count = part_count(g, i);

        longest = count > longest ? count : longest;
    }
    g->rounds = (int)((longest + room - 1) / room);
    g->most = (longest + g->rounds - 1) / g->rounds;
}

/* What a step is about; G2. */
static int part_in_step(const struct chempi_reduce_ring *g)
{
    const struct chempi_coll_state *st = g->cell->st;
    const int part = st->rank - 1 - g->step;

    return part < 0 ? part + st->size : part;
}

struct chempi_reduce_ring_slice
chempi_reduce_ring_slice(const struct chempi_reduce_ring *g, int part)
{
    const struct chempi_coll_state *st = g->cell->st;
    const MPI_Count before = g->round * g->most;
    MPI_Count left = part_count(g, part) - before;

    if (left < 0)
        left = 0;
    return (struct chempi_reduce_ring_slice){
        .first = count_before(g, part) + before,
        .count = left < g->most ? left : g->most,
        .data = chempi_coll_stream_of(st, (part + 1) % st->size), /* G1 */
    };
}

/* This member has done its step; who has a slice waits for that. */
static void say(struct chempi_reduce_ring *g)
{
    const struct chempi_coll_state *st = g->cell->st;
    const uint32_t before = (uint32_t)g->round * (uint32_t)st->size;

    g->step++;
    /* Orders the slice before; partner: chempi_reduce_ring_is_due(). */
    atomic_store_explicit(&cell_mine(g->cell)->place.steps,
                          before + (uint32_t)g->step, memory_order_release);
    /* Before the first meeting nobody waits for the first one. */
    if (g->step < st->size && (g->round > 0 || g->step > 1))
        cell_rouse(g->cell, (st->rank + 1) % st->size);
}

uint64_t chempi_reduce_ring_step(struct chempi_reduce_ring *g)
{
    const struct chempi_reduce_ring_slice slice =
        chempi_reduce_ring_slice(g, part_in_step(g));
    const unsigned char *in = g->in + bytes(g, slice.first);

    if (slice.count > 0 && g->step == 0)
        memcpy(slice.data, in, bytes(g, slice.count));
    else if (slice.count > 0)
        chempi_op_apply(g->c->op, in, slice.data, slice.count, g->c->recv.type);
    say(g);
    return bytes(g, slice.count);
}

bool chempi_reduce_ring_is_due(const struct chempi_reduce_ring *g)
{
    const struct chempi_coll_state *st = g->cell->st;
    const uint32_t needed =
        (uint32_t)g->round * (uint32_t)st->size + (uint32_t)g->step;
    const int before = chempi_reduce_ring_member_before(g);
    const _Atomic uint32_t *done = &cell_line(g->cell, before)->place.steps;

    return (int32_t)(atomic_load_explicit(done, memory_order_acquire) -
                     needed) >= 0;
}

bool chempi_reduce_ring_is_for(const struct chempi_coll_state *st,
                               const struct chempi_coll_call *c, uint64_t len)
{
    return c->op->is_commutative && len / (uint64_t)st->size >= PART_LEAST &&
           (uint64_t)c->recv.type->extent <= st->stream_chunk;
}

bool chempi_reduce_ring_begin(struct chempi_reduce_ring *g,
                              const struct cell *cell,
                              const struct chempi_coll_call *c, const void *in)
{
    struct chempi_coll_state *st = cell->st;

    *g = (struct chempi_reduce_ring){
        .cell = cell,
        .c = c,
        .in = in,
        .count = chempi_coll_node_whole_count(c, st->size),
    };
    if (!chempi_reduce_ring_is_for(st, c, bytes(g, g->count)) ||
        !chempi_coll_stream_is_there(st, st->stream_chunk))
        return false;
    plan_rounds(g);
    cell_mine(cell)->place.rounds = (uint32_t)g->rounds;
    (void)chempi_reduce_ring_step(g);
    return true;
}

int chempi_reduce_ring_find_odd(const struct chempi_reduce_ring *g)
{
    const uint32_t rounds = cell_mine(g->cell)->place.rounds;

    for (int i = 0; i < g->cell->st->size; i++)
        if (cell_line(g->cell, i)->place.rounds != rounds)
            return i;
    return -1;
}

bool chempi_reduce_ring_next_round(struct chempi_reduce_ring *g)
{
    g->cell->st->streamed++;
    g->round++;
    g->step = 0;
    if (g->round == g->rounds)
        return false;
    (void)chempi_reduce_ring_step(g);
    return true;
}
