/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SPSC rings in a node's shared memory: what one member of a communicator tells
 * the next. The writer runs ahead of the reader as far as there is room, so
 * that with more ranks than cores one change of contexts serves many
 * operations, and one call into the kernel wakes for all of them. Nothing here
 * waits.
 *
 *   -   one process writes pieces, one reads them and writes tail; each by one
 *       thread at a time, since operations of a communicator are
 *   Q2  head, which the writer alone knows, and tail count bytes, ever, in
 *       whole GRAINs; a count modulo RING_BYTES is its place;
 *       tail <= head < tail + RING_BYTES
 *   -   a piece lies in one stretch: a header of 8 bytes that ends on a GRAIN,
 *       then the data. A header that says WRAP stands for the rest of the
 *       ring: the next piece is at the start
 *   -   the header at head is 0 before the one ahead of it is stored; a
 *       header is stored last, with release, and says that its piece is there
 *   Q5  the writer touches the first `limit` bytes only, which it has
 *       reserved. It goes back to the start as soon as the reader has left
 *       it, has more reserved rather than wait, and waits when there is none
 *   Q6  a piece takes at most a quarter of limit, and the reader keeps the
 *       room of less than LATE bytes to itself, no more than a quarter of the
 *       least limit; thus a writer never waits when all has been read
 *   -   headers and tail are data of another process: each is read once
 *       and then checked, and no place beyond RING_BYTES follows from any
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_RING_SPSC_RING_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_RING_SPSC_RING_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/compiler.h"

enum {
    CHEMPI_SPSC_RING_RING_BYTES = 256 << 10, /* a power of two */
    CHEMPI_SPSC_RING_LEAST = 16 << 10,       /* limit at the beginning */
    CHEMPI_SPSC_RING_WIDE = 64 << 10, /* limit for pieces of full length */
    CHEMPI_SPSC_RING_PIECE = 8 << 10, /* most data of a piece, bytes */
    CHEMPI_SPSC_RING_LATE = 4 << 10,  /* Q6 */
    CHEMPI_SPSC_RING_GRAIN = 16,
    CHEMPI_SPSC_RING_HEADER = 8
};
static_assert(CHEMPI_SPSC_RING_LATE <= CHEMPI_SPSC_RING_LEAST / 4, "Q6");

/* In shared memory, at the start of a page; zeros when new. */
struct chempi_spsc_ring {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint64_t tail;
    /* When the writer came to the last operation of long data (distance.h). */
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint64_t came_ns;
    _Alignas(CHEMPI_CACHE_LINE) unsigned char ring[];
};

/* From one SPSC ring to the next, whole pages. */
#define CHEMPI_SPSC_RING_STRIDE ((size_t)CHEMPI_SPSC_RING_RING_BYTES + 4096)

/* A header: bytes of data in the low half, with flags; in the high half a mark
 * that is the same in all pieces of an operation. */
#define CHEMPI_SPSC_RING_LEN UINT64_C(0xffff)
#define CHEMPI_SPSC_RING_FULL                                                  \
    (UINT64_C(1) << 16)                           /* a piece, if of no bytes   \
                                                   */
#define CHEMPI_SPSC_RING_LAST (UINT64_C(1) << 17) /* of the operation */
#define CHEMPI_SPSC_RING_WRAP (UINT64_C(1) << 18)

struct chempi_spsc_ring_writer {
    struct chempi_spsc_ring *ring;
    uint64_t head;
    uint64_t tail; /* as last seen */
    uint64_t limit;
    uint32_t reader; /* local rank */
    bool is_grown;   /* limit stays as it is */
    bool is_urgent;  /* the reader may compute meanwhile (node_later.h) */
};

struct chempi_spsc_ring_reader {
    struct chempi_spsc_ring *ring;
    uint64_t tail;
    uint64_t told;   /* what the writer knows of it */
    uint64_t header; /* at tail, once it is there */
    uint32_t writer;
    bool is_urgent;                     /* as the writer's .. */
    const struct chempi_coll_state *st; /* .. and this */
};

/* What a writer lacks. */
struct chempi_spsc_ring_room {
    struct chempi_spsc_ring_writer *w;
    uint64_t goal; /* to this count the piece may go at most .. */
    uint64_t most; /* .. and so much be unread */
    bool is_at_end;
    bool is_damaged;
};

struct chempi_spsc_ring_piece {
    const unsigned char *data; /* CHEMPI_SPSC_RING_GRAIN aligned */
    uint32_t len;
    uint32_t mark;
    bool is_last;
};

/* The writer's part of making an SPSC ring: its first pages, and zeros there. 0
 * or -errno when out of shared memory. */
int chempi_spsc_ring_create(struct chempi_spsc_ring *ring);

void chempi_spsc_ring_open_writer(struct chempi_spsc_ring_writer *w,
                                  struct chempi_spsc_ring *ring,
                                  uint32_t reader);
void chempi_spsc_ring_open_reader(struct chempi_spsc_ring_reader *r,
                                  struct chempi_spsc_ring *ring,
                                  uint32_t writer);

/* ---- places ---- */

/* What a piece of so much data takes of the ring. */
static inline uint64_t ring_size(uint64_t len)
{
    return (CHEMPI_SPSC_RING_HEADER + len + CHEMPI_SPSC_RING_GRAIN - 1) &
           ~(uint64_t)(CHEMPI_SPSC_RING_GRAIN - 1);
}

static inline uint64_t ring_place(uint64_t count)
{
    return count % CHEMPI_SPSC_RING_RING_BYTES;
}

/* The count at which the ring starts again after `count`. */
static inline uint64_t ring_next_lap(uint64_t count)
{
    return count - ring_place(count) + CHEMPI_SPSC_RING_RING_BYTES;
}

static inline unsigned char *ring_data(struct chempi_spsc_ring *ring,
                                       uint64_t count)
{
    return ring->ring + ring_place(count) + CHEMPI_SPSC_RING_GRAIN;
}

static inline _Atomic uint64_t *ring_header(struct chempi_spsc_ring *ring,
                                            uint64_t count)
{
    return (void *)(ring_data(ring, count) - CHEMPI_SPSC_RING_HEADER);
}

/* memcpy(), by the C library: a compiler that can tell how long a piece is at
 * most writes code that is slow for the short ones. */
void chempi_spsc_ring_copy(void *to, const void *from, uint64_t len);

/* ---- writing ---- */

/* Most data of a piece just now, at least LEAST / 4 - GRAIN bytes. */
static inline uint64_t ring_most(const struct chempi_spsc_ring_writer *w)
{
    uint64_t most = w->limit / 4 - CHEMPI_SPSC_RING_GRAIN;

    return most < CHEMPI_SPSC_RING_PIECE ? most : CHEMPI_SPSC_RING_PIECE;
}

/* Does a piece of this size fit behind the last, and a header after it? */
static inline bool ring_fits(const struct chempi_spsc_ring_writer *w,
                             uint64_t size)
{
    return ring_place(w->head) + size + CHEMPI_SPSC_RING_GRAIN <= w->limit &&
           w->head + size + CHEMPI_SPSC_RING_GRAIN - w->tail <=
               CHEMPI_SPSC_RING_RING_BYTES;
}

/* Long data is about to come: have more reserved if need be. */
void chempi_spsc_ring_widen(struct chempi_spsc_ring_writer *w);

/* Make room for a piece of this size some other way: as ring_room(). */
bool chempi_spsc_ring_make_room(struct chempi_spsc_ring_writer *w,
                                uint64_t size,
                                struct chempi_spsc_ring_room *room, int *rc);

/* Is there room (struct chempi_spsc_ring_room)? */
bool chempi_spsc_ring_is_room(void *room);

/* NULL, or which of Q2 and Q5 does not hold of an undamaged ring that has room
 * (invariant.h). */
const char *chempi_spsc_ring_check(const struct chempi_spsc_ring_writer *w);

/* Where the next piece's data goes, len <= ring_most(). False: wait until
 * is_room(), and ask again. Else *rc is 0 or an error class. */
static inline bool ring_room(struct chempi_spsc_ring_writer *w, uint64_t len,
                             struct chempi_spsc_ring_room *room,
                             unsigned char **data, int *rc)
{
    if (CHEMPI_UNLIKELY(!ring_fits(w, ring_size(len))) &&
        !chempi_spsc_ring_make_room(w, ring_size(len), room, rc))
        return false;
    *data = ring_data(w->ring, w->head);
    return true;
}

/* The data is there: let the reader have it. Whoever does this looks after it
 * whether the reader sleeps. */
static inline void ring_push(struct chempi_spsc_ring_writer *w, uint64_t len,
                             bool is_last, uint32_t mark)
{
    _Atomic uint64_t *header = ring_header(w->ring, w->head);

    w->head += ring_size(len);
    atomic_store_explicit(ring_header(w->ring, w->head), 0,
                          memory_order_relaxed);
    /* Orders the data, and that there is no more, before the header; partner:
     * ring_has_more(). */
    atomic_store_explicit(header,
                          (uint64_t)mark << 32 | CHEMPI_SPSC_RING_FULL |
                              (is_last ? CHEMPI_SPSC_RING_LAST : 0) | len,
                          memory_order_release);
}

/* Ask for the memory of the next piece, most likely of the same length, while
 * there is something else to do: the reader's core has it. */
void chempi_spsc_ring_ask_early(const struct chempi_spsc_ring_writer *w,
                                uint64_t len);

/* ---- reading ---- */

static inline bool ring_has_more(struct chempi_spsc_ring_reader *r)
{
    r->header = atomic_load_explicit(ring_header(r->ring, r->tail),
                                     memory_order_acquire);
    if (CHEMPI_UNLIKELY(r->header & CHEMPI_SPSC_RING_WRAP)) {
        r->tail = ring_next_lap(r->tail);
        r->header = atomic_load_explicit(ring_header(r->ring, r->tail),
                                         memory_order_acquire);
    }
    return r->header != 0;
}

int chempi_spsc_ring_damaged(void);

/* The piece that ring_has_more() has found. 0 or an error class: what is there
 * makes no sense. */
static inline int ring_piece(const struct chempi_spsc_ring_reader *r,
                             struct chempi_spsc_ring_piece *piece)
{
    const uint64_t len = r->header & CHEMPI_SPSC_RING_LEN;

    if (CHEMPI_UNLIKELY(!(r->header & CHEMPI_SPSC_RING_FULL) ||
                        len > CHEMPI_SPSC_RING_PIECE ||
                        ring_place(r->tail) + ring_size(len) >
                            CHEMPI_SPSC_RING_RING_BYTES -
                                CHEMPI_SPSC_RING_GRAIN))
        return chempi_spsc_ring_damaged();
    piece->data = ring_data(r->ring, r->tail);
    piece->len = (uint32_t)len;
    piece->mark = (uint32_t)(r->header >> 32);
    piece->is_last = r->header & CHEMPI_SPSC_RING_LAST;
    return 0;
}

void chempi_spsc_ring_tell(struct chempi_spsc_ring_reader *r);

/* The reader gives up: whoever waits for room, or will, finds the SPSC ring
 * damaged. */
void chempi_spsc_ring_spoil(struct chempi_spsc_ring_reader *r);

/* Done with the piece that was looked at. */
static inline void ring_drop(struct chempi_spsc_ring_reader *r, uint32_t len)
{
    r->tail += ring_size(len);
    if (r->tail - r->told >= CHEMPI_SPSC_RING_LATE)
        chempi_spsc_ring_tell(r);
}

#endif
