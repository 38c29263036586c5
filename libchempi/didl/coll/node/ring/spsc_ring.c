/* SPDX-License-Identifier: BSD-3-Clause */
/* What takes longer in an SPSC ring: growing, checking; see
 * spsc_ring.h. */
#include "libchempi/didl/coll/node/ring/spsc_ring.h"

#include "common/base/invariant.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/coll/node/shm_slot.h"
#include "libchempi/didl/error/error.h"

/* What has been published must not wait, if is_urgent, for the other one's next
 * call. */
static void rouse(uint32_t local_rank, bool is_urgent)
{
    if (CHEMPI_UNLIKELY(is_urgent))
        chempi_progress_urge_local(local_rank);
    else
        chempi_progress_rouse_local(local_rank);
}

/* ---- beginning ---- */

static int reserve(struct chempi_spsc_ring *ring, uint64_t limit)
{
    return chempi_region_reserve(chempi_ctx.services.region, ring,
                                 sizeof(*ring) + limit, NULL);
}

int chempi_spsc_ring_create(struct chempi_spsc_ring *ring)
{
    int rc = reserve(ring, CHEMPI_SPSC_RING_LEAST);

    if (rc < 0)
        return rc;
    atomic_store_explicit(ring_header(ring, 0), 0, memory_order_relaxed);
    atomic_store_explicit(&ring->tail, 0, memory_order_relaxed);
    return 0;
}

void chempi_spsc_ring_open_writer(struct chempi_spsc_ring_writer *w,
                                  struct chempi_spsc_ring *ring,
                                  uint32_t reader)
{
    *w = (struct chempi_spsc_ring_writer){
        .ring = ring,
        .limit = CHEMPI_SPSC_RING_LEAST,
        .reader = reader,
    };
}

void chempi_spsc_ring_open_reader(struct chempi_spsc_ring_reader *r,
                                  struct chempi_spsc_ring *ring,
                                  uint32_t writer)
{
    *r = (struct chempi_spsc_ring_reader){.ring = ring, .writer = writer};
}

CHEMPI_COLD int chempi_spsc_ring_damaged(void)
{
    return chempi_error_set(MPI_ERR_INTERN,
                            "another rank has damaged the memory that the "
                            "ranks of this node share");
}

void chempi_spsc_ring_copy(void *to, const void *from, uint64_t len)
{
    if (len > 0)
        memcpy(to, from, (size_t)len);
}

/* ---- writing ---- */

/* False: the SPSC ring stays as long as it is. */
static bool grow(struct chempi_spsc_ring_writer *w)
{
    if (w->limit >= CHEMPI_SPSC_RING_RING_BYTES || w->is_grown)
        return false;
    if (reserve(w->ring, 2 * w->limit) < 0)
        w->is_grown = true;
    else
        w->limit *= 2;
    return !w->is_grown;
}

void chempi_spsc_ring_widen(struct chempi_spsc_ring_writer *w)
{
    while (w->limit < CHEMPI_SPSC_RING_WIDE && grow(w))
        ;
}

bool chempi_spsc_ring_is_room(void *arg)
{
    struct chempi_spsc_ring_room *room = arg;
    struct chempi_spsc_ring_writer *w = room->w;

    w->tail = atomic_load_explicit(&w->ring->tail, memory_order_acquire);
    room->is_damaged = w->head - w->tail > CHEMPI_SPSC_RING_RING_BYTES;
    return room->is_damaged ||
           (room->goal - w->tail <= CHEMPI_SPSC_RING_RING_BYTES &&
            w->head - w->tail <= room->most);
}

/* Is there room, no matter how much is unread? */
static bool is_some_room(struct chempi_spsc_ring_room *room)
{
    room->most = CHEMPI_SPSC_RING_RING_BYTES;
    return chempi_spsc_ring_is_room(room);
}

static void wrap(struct chempi_spsc_ring_writer *w)
{
    _Atomic uint64_t *header = ring_header(w->ring, w->head);

    w->head = ring_next_lap(w->head);
    atomic_store_explicit(ring_header(w->ring, w->head), 0,
                          memory_order_relaxed);
    /* Orders as in ring_push(). */
    atomic_store_explicit(header, CHEMPI_SPSC_RING_WRAP, memory_order_release);
}

const char *chempi_spsc_ring_check(const struct chempi_spsc_ring_writer *w)
{
    if (w->head % CHEMPI_SPSC_RING_GRAIN != 0 ||
        w->head - w->tail >= CHEMPI_SPSC_RING_RING_BYTES)
        return "SPSC ring Q2: head is no whole grain, or a lap ahead of tail";
    return ring_place(w->head) + CHEMPI_SPSC_RING_GRAIN <= w->limit &&
                   w->limit <= CHEMPI_SPSC_RING_RING_BYTES
               ? NULL
               : "SPSC ring Q5: a header beyond what is reserved";
}

/* There is room, or there never will be. */
static int take_room(const struct chempi_spsc_ring_room *room)
{
    if (CHEMPI_UNLIKELY(room->is_damaged))
        return chempi_spsc_ring_damaged();
    if (room->is_at_end)
        wrap(room->w);
    CHEMPI_CHECK(chempi_spsc_ring_check(room->w));
    return MPI_SUCCESS;
}

bool chempi_spsc_ring_make_room(struct chempi_spsc_ring_writer *w,
                                uint64_t size,
                                struct chempi_spsc_ring_room *room, int *rc)
{
    do {
        bool is_at_end =
            ring_place(w->head) + size + CHEMPI_SPSC_RING_GRAIN > w->limit;

        *room = (struct chempi_spsc_ring_room){
            .w = w,
            .goal = (is_at_end ? ring_next_lap(w->head) : w->head) + size +
                    CHEMPI_SPSC_RING_GRAIN,
            .is_at_end = is_at_end,
        };
    } while (!is_some_room(room) && grow(w));
    if (is_some_room(room)) {
        *rc = take_room(room);
        return true;
    }
    /* Once it waits, then for as much as makes it worth while. */
    room->most = w->limit / 2;
    rouse(w->reader, w->is_urgent);
    return false;
}

void chempi_spsc_ring_ask_early(const struct chempi_spsc_ring_writer *w,
                                uint64_t len)
{
    const unsigned char *next = ring_data(w->ring, w->head);

    if (chempi_progress_spins() == 0 || !ring_fits(w, ring_size(len)))
        return;
    for (uint64_t at = 0; at < len; at += CHEMPI_CACHE_LINE)
        CHEMPI_PREFETCH_WRITE(next + at);
}

/* ---- reading ---- */

void chempi_spsc_ring_tell(struct chempi_spsc_ring_reader *r)
{
    r->told = r->tail;
    /* Orders the reading before the count; partner: is_room(). */
    atomic_store_explicit(&r->ring->tail, r->tail, memory_order_release);
    rouse(r->writer, r->is_urgent);
}

CHEMPI_COLD void chempi_spsc_ring_spoil(struct chempi_spsc_ring_reader *r)
{
    /* Ahead of any head, which Q2 forbids. */
    r->tail += UINT64_C(1) << 62;
    chempi_spsc_ring_tell(r);
}
