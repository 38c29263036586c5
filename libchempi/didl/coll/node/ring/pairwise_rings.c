/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings between the members of a node; see pairwise_rings.h. */
#include "libchempi/didl/coll/node/ring/pairwise_rings.h"

#include "common/base/copy.h"
#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/coll/node/copy/nt_copy.h"
#include "libchempi/didl/coll/node/shm_slot.h"
#include "libchempi/didl/error/error.h"

/* Bytes that are copied in a step. */
#define STEP_BYTES (UINT64_C(1) << 20)

/* One end of a ring. */
struct end {
    struct chempi_ring *ring;
    unsigned char *data;
    uint64_t count; /* head of a writer, tail of a reader */
    uint64_t start; /* the same at the beginning of the operation */
    struct chempi_ring_block block;
    uint64_t at; /* bytes of the block that are done */
};

struct chempi_pairwise_rings {
    uint64_t len;    /* bytes of a ring */
    uint64_t copied; /* bytes, in this step */
    bool is_reserved;
    bool is_refused; /* no memory, or damaged (R6) */
    bool is_damaged;
    bool is_long;
    bool is_later;
    struct end ends[]; /* [size] that write, [size] that read */
};

static struct end *out_end(struct chempi_pairwise_rings *rings, int m)
{
    return &rings->ends[m];
}

static struct end *in_end(const struct chempi_coll_state *st, int m)
{
    return &st->rings->ends[st->size + m];
}

/* ---- beginning ---- */

static unsigned char *memory_of(const struct chempi_coll_state *st, int m)
{
    return st->ring_memory + (size_t)m * CHEMPI_RINGS_STRIDE;
}

static uint64_t ring_len(int size)
{
    uint64_t len = CHEMPI_RINGS_LEN_MAX;

    while (len * (uint64_t)size > CHEMPI_RINGS_BYTES)
        len /= 2;
    return len;
}

static void place_end(const struct chempi_coll_state *st, struct end *end,
                      int writer, int reader)
{
    unsigned char *start = memory_of(st, writer);

    end->ring = (struct chempi_ring *)(void *)start + reader;
    end->data =
        start + CHEMPI_RINGS_CONTROL + (uint64_t)reader * st->rings->len;
}

static CHEMPI_COLD bool make(struct chempi_coll_state *st)
{
    struct chempi_pairwise_rings *rings = chempi_sys->calloc(
        1, sizeof(*rings) + 2 * (size_t)st->size * sizeof(rings->ends[0]));

    if (!rings)
        return false;
    st->rings = rings;
    rings->len = ring_len(st->size);
    for (int m = 0; m < st->size; m++) {
        place_end(st, out_end(rings, m), st->rank, m);
        place_end(st, in_end(st, m), m, st->rank);
    }
    return true;
}

/* This member's own, with zeros in the counts. */
static CHEMPI_COLD bool reserve(struct chempi_coll_state *st)
{
    struct chempi_pairwise_rings *rings = st->rings;

    if (chempi_region_reserve(
            chempi_ctx.services.region, memory_of(st, st->rank),
            CHEMPI_RINGS_CONTROL + (size_t)st->size * rings->len, NULL) < 0) {
        rings->is_refused = true;
        return false;
    }
    for (int m = 0; m < st->size; m++) {
        struct chempi_ring *ring = out_end(rings, m)->ring;

        atomic_store_explicit(&ring->head, 0, memory_order_relaxed);
        atomic_store_explicit(&ring->tail, 0, memory_order_relaxed);
    }
    rings->is_reserved = true;
    return true;
}

/*
 * The first areas of communicators may have rings. Of few members those of
 * persistent operations, too, as many as take no more memory than those first
 * ones of many members.
 */
static bool is_area_for_rings(const struct chempi_coll_state *st)
{
    const uint64_t size = (uint64_t)st->size;
    const uint64_t areas = (uint64_t)CHEMPI_RINGS_AREAS *
                           CHEMPI_RINGS_RANKS_MAX * CHEMPI_RINGS_BYTES /
                           (size * size * ring_len(st->size));
    const int behind = st->area - CHEMPI_NODE_COMM_AREAS;

    return behind < 0 ? st->area < CHEMPI_RINGS_AREAS
                      : CHEMPI_RINGS_AREAS + (uint64_t)behind < areas;
}

bool chempi_coll_pairwise_rings_open(struct chempi_coll_state *st,
                                     bool is_writer)
{
    if (st->size > CHEMPI_RINGS_RANKS_MAX || !is_area_for_rings(st))
        return false;
    if (CHEMPI_UNLIKELY(!st->rings) && !make(st))
        return false;
    if (CHEMPI_UNLIKELY(st->rings->is_refused))
        return false;
    return !is_writer || st->rings->is_reserved || reserve(st);
}

bool chempi_coll_pairwise_rings_are_made(const struct chempi_coll_state *st)
{
    return st->rings && st->rings->is_reserved;
}

/* R3 */
static void begin(struct end *end, const struct chempi_ring_block *block)
{
    end->block = *block;
    end->at = 0;
    end->start = end->count;
}

void chempi_coll_pairwise_rings_send(struct chempi_coll_state *st, int m,
                                     const struct chempi_ring_block *block)
{
    begin(out_end(st->rings, m), block);
}

void chempi_coll_pairwise_rings_recv(struct chempi_coll_state *st, int m,
                                     const struct chempi_ring_block *block)
{
    begin(in_end(st, m), block);
}

uint64_t chempi_coll_pairwise_rings_take_up(int size, uint64_t len)
{
    return len < ring_len(size) ? len : ring_len(size);
}

/* ---- how much an end can do ---- */

/* R5; have: bytes, or room for them. */
static uint64_t worth(const struct chempi_pairwise_rings *rings,
                      const struct end *end, uint64_t have)
{
    uint64_t left = end->block.len - end->at;
    uint64_t least = left < rings->len / 4 ? left : rings->len / 4;

    if (have > left)
        have = left;
    return have >= least ? have : 0;
}

static uint64_t can_write(struct chempi_pairwise_rings *rings,
                          const struct end *end)
{
    uint64_t unread;

    if (end->at == end->block.len)
        return 0;
    /* Orders the reading of what was there before it is overwritten; partner:
     * the store in take(). */
    unread = end->count -
             atomic_load_explicit(&end->ring->tail, memory_order_acquire);
    if (CHEMPI_UNLIKELY(unread > rings->len)) {
        rings->is_damaged = true;
        return 0;
    }
    return worth(rings, end, rings->len - unread);
}

static uint64_t can_read(struct chempi_pairwise_rings *rings,
                         const struct end *end)
{
    uint64_t have;

    if (end->at == end->block.len)
        return 0;
    /* Partner: the store in put(). */
    have = atomic_load_explicit(&end->ring->head, memory_order_acquire) -
           end->count;
    if (CHEMPI_UNLIKELY(have > rings->len || have > end->block.len - end->at)) {
        rings->is_damaged = true;
        return 0;
    }
    return worth(rings, end, have);
}

bool chempi_coll_pairwise_rings_are_due(struct chempi_coll_state *st)
{
    struct chempi_pairwise_rings *rings = st->rings;

    for (int m = 0; m < st->size; m++)
        if (can_read(rings, in_end(st, m)) ||
            can_write(rings, out_end(rings, m)) || rings->is_damaged)
            return true;
    return false;
}

/* ---- copying ---- */

/* R2 */
static uint64_t place_of(const struct chempi_pairwise_rings *rings,
                         const struct end *end)
{
    return (end->count - end->start) % rings->len;
}

/* Up to the end of the ring. */
static uint64_t straight(const struct chempi_pairwise_rings *rings,
                         const struct end *end, uint64_t len)
{
    uint64_t rest = rings->len - place_of(rings, end);

    return len < rest ? len : rest;
}

static void done(struct chempi_pairwise_rings *rings, struct end *end,
                 uint64_t len)
{
    end->count += len;
    end->at += len;
    rings->copied += len;
}

/* Bytes of a block from the ring. */
static void copy_out(const struct chempi_ring_block *b, uint64_t at,
                     const unsigned char *chunk, uint64_t len, bool is_long)
{
    if (is_long && b->type->is_contiguous)
        chempi_copy_groups_past(
            chempi_coll_plus(b->buf, b->type->true_lb + (MPI_Count)at), chunk,
            (size_t)len);
    else
        chempi_coll_nt_copy_unpack(b->buf, b->count, b->type, at, chunk, len,
                                   is_long);
}

static void put(struct chempi_pairwise_rings *rings, struct end *end,
                uint64_t len)
{
    const struct chempi_ring_block *b = &end->block;

    for (uint64_t n; len > 0; len -= n) {
        n = straight(rings, end, len);
        chempi_coll_nt_copy_pack(b->buf, b->count, b->type, end->at,
                                 end->data + place_of(rings, end), n,
                                 b->is_far);
        done(rings, end, n);
    }
    /* Orders the bytes before the count; partner: can_read(). */
    atomic_store_explicit(&end->ring->head, end->count, memory_order_release);
}

static void take(struct chempi_pairwise_rings *rings, struct end *end,
                 uint64_t len)
{
    const struct chempi_ring_block *b = &end->block;

    for (uint64_t n; len > 0; len -= n) {
        n = straight(rings, end, len);
        if (CHEMPI_LIKELY(!b->is_unwanted))
            copy_out(b, end->at, end->data + place_of(rings, end), n,
                     rings->is_long);
        done(rings, end, n);
    }
    /* Orders the reading before the count; partner: can_write(). */
    atomic_store_explicit(&end->ring->tail, end->count, memory_order_release);
}

/* ---- the operation ---- */

static void rouse(const struct chempi_coll_state *st, int m)
{
    if (st->rings->is_later)
        chempi_progress_urge_local(st->local_ranks[m]);
    else
        chempi_progress_rouse_local(st->local_ranks[m]);
}

/* Whatever member m's ends can do; false: nothing. */
static bool serve(struct chempi_coll_state *st, int m)
{
    struct chempi_pairwise_rings *rings = st->rings;
    uint64_t in = can_read(rings, in_end(st, m));
    uint64_t out;

    if (in > 0)
        take(rings, in_end(st, m), in);
    out = can_write(rings, out_end(rings, m));
    if (out > 0)
        put(rings, out_end(rings, m), out);
    if (in == 0 && out == 0)
        return false;
    rouse(st, m);
    return true;
}

static bool is_left(const struct chempi_coll_state *st)
{
    for (int i = 0; i < 2 * st->size; i++)
        if (st->rings->ends[i].at != st->rings->ends[i].block.len)
            return true;
    return false;
}

/* R6: counts that no partner can take for right. */
static CHEMPI_COLD int give_up(struct chempi_coll_state *st)
{
    struct chempi_pairwise_rings *rings = st->rings;
    const uint64_t far = UINT64_C(1) << 62;

    for (int m = 0; m < st->size; m++) {
        if (m == st->rank)
            continue;
        if (rings->is_reserved)
            atomic_store(&out_end(rings, m)->ring->head,
                         out_end(rings, m)->count + far);
        if (in_end(st, m)->block.len > 0)
            atomic_store(&in_end(st, m)->ring->tail,
                         in_end(st, m)->count + far);
        rouse(st, m);
    }
    rings->is_refused = true;
    return chempi_error_set(MPI_ERR_INTERN,
                            "another rank has damaged the memory that the "
                            "ranks of this node share");
}

bool chempi_coll_pairwise_rings_misses(const struct chempi_coll_state *st,
                                       int m)
{
    const struct end *in = in_end(st, m);
    const struct end *out = out_end(st->rings, m);

    return in->at != in->block.len || out->at != out->block.len;
}

void chempi_coll_pairwise_rings_begin(struct chempi_coll_state *st,
                                      bool is_long, bool is_later)
{
    st->rings->is_long = is_long;
    st->rings->is_later = is_later;
}

bool chempi_coll_pairwise_rings_step(struct chempi_coll_state *st,
                                     uint64_t *copied, int *rc)
{
    struct chempi_pairwise_rings *rings = st->rings;
    bool is_served = true;

    rings->copied = 0;
    while (is_served && rings->copied < STEP_BYTES && is_left(st)) {
        is_served = false;
        for (int k = 1; k < st->size; k++)
            is_served |= serve(st, (st->rank + k) % st->size);
        if (CHEMPI_UNLIKELY(rings->is_damaged)) {
            *rc = give_up(st);
            return true;
        }
    }
    *copied += rings->copied;
    return !is_left(st);
}
