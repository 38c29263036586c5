/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SPSC rings between the members of a node, both ends in one process: pieces of
 * all lengths, the end of the ring, too little memory, and memory that somebody
 * has damaged. Memory that was not reserved cannot be touched here.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <criterion/criterion.h>
#include <errno.h>
#include <mpi.h>
#include <sys/mman.h>

#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/coll/node/shm_slot.h"
#include "libchempi/didl/error/error.h"

struct chempi_ctx chempi_ctx;

static struct {
    struct chempi_spsc_ring *ring;
    struct chempi_spsc_ring_writer w;
    struct chempi_spsc_ring_reader r;
    uint64_t most; /* bytes that may be reserved */
    uint32_t written;
    uint32_t read; /* pieces */
    int waits;
} t;

/* ---- what the SPSC ring calls ---- */

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
    if (len > t.most)
        return -ENOSPC;
    cr_assert_eq(mprotect(ptr, len, PROT_READ | PROT_WRITE), 0);
    return 0;
}

static uint32_t length_of(uint32_t piece)
{
    static const uint32_t lens[] = {8,   8,  0,    1,    16,   4080, 8,
                                    300, 17, 4079, 1000, 2048, 9,    8};

    return piece % 29 == 28 ? CHEMPI_SPSC_RING_PIECE
                            : lens[piece % CHEMPI_ARRAY_LEN(lens)];
}

static void read_piece(void)
{
    struct chempi_spsc_ring_piece piece = {0};
    uint32_t number = t.read++;

    cr_assert(ring_has_more(&t.r));
    cr_assert_eq(ring_piece(&t.r, &piece), 0);
    cr_assert_eq(piece.mark, number);
    cr_assert_eq(piece.is_last, number % 3 == 0);
    cr_assert_eq((uintptr_t)piece.data % CHEMPI_SPSC_RING_GRAIN, 0);
    for (uint32_t i = 0; i < piece.len; i++)
        cr_assert_eq(piece.data[i], (unsigned char)(number + i));
    ring_drop(&t.r, piece.len);
}

/* The other side does what there is to do. */
static int find_room(uint32_t len, unsigned char **data)
{
    struct chempi_spsc_ring_room room;
    int rc = 0;

    while (!ring_room(&t.w, len, &room, data, &rc)) {
        t.waits++;
        while (!chempi_spsc_ring_is_room(&room)) {
            cr_assert(t.read < t.written, "a wait that nobody ends");
            read_piece();
        }
    }
    return rc;
}

/* ---- the rig ---- */

static void open_ring(uint64_t most)
{
    static struct chempi_wake wakes[1];
    static const int fds[1] = {-1};

    chempi_ctx.services.wakes = wakes;
    chempi_ctx.services.wake_fds = fds;
    t.ring = mmap(NULL, CHEMPI_SPSC_RING_STRIDE, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(t.ring != MAP_FAILED);
    t.most = most;
    cr_assert_eq(chempi_spsc_ring_create(t.ring), 0);
    chempi_spsc_ring_open_writer(&t.w, t.ring, 0);
    chempi_spsc_ring_open_reader(&t.r, t.ring, 0);
}

static void write_piece(uint32_t len)
{
    uint32_t number = t.written;
    unsigned char *data;

    cr_assert_eq(find_room(len, &data), 0);
    for (uint32_t i = 0; i < len; i++)
        data[i] = (unsigned char)(number + i);
    ring_push(&t.w, len, number % 3 == 0, number);
    t.written++;
}

static uint32_t next_length(void)
{
    uint32_t len = length_of(t.written);

    return len < ring_most(&t.w) ? len : (uint32_t)ring_most(&t.w);
}

/* ---- the tests ---- */

Test(ring, carries_pieces_of_all_lengths_in_order)
{
    open_ring(UINT64_MAX);
    while (t.written < 20000) {
        write_piece(next_length());
        if (t.written % 5 < 2)
            read_piece();
    }
    while (t.read < t.written)
        read_piece();
    cr_assert_not(ring_has_more(&t.r));
    cr_assert_eq(t.w.limit, CHEMPI_SPSC_RING_RING_BYTES);
    cr_assert(t.waits > 0);
}

Test(ring, stays_short_without_memory)
{
    open_ring(sizeof(*t.ring) + CHEMPI_SPSC_RING_LEAST);
    chempi_spsc_ring_widen(&t.w);
    while (t.written < 20000)
        write_piece(next_length());
    while (t.read < t.written)
        read_piece();
    cr_assert_eq(t.w.limit, CHEMPI_SPSC_RING_LEAST);
    cr_assert(t.waits > 0);
}

Test(ring, goes_back_to_its_start_rather_than_grow)
{
    open_ring(UINT64_MAX);
    for (int i = 0; i < 20000; i++) {
        write_piece(next_length());
        read_piece();
    }
    cr_assert_eq(t.w.limit, CHEMPI_SPSC_RING_LEAST);
}

/* Q6, from every place and for pieces of any length. */
Test(ring, has_room_when_all_has_been_read)
{
    open_ring(sizeof(*t.ring) + CHEMPI_SPSC_RING_LEAST);
    chempi_spsc_ring_widen(&t.w);
    for (uint32_t i = 0; i < 60000; i++) {
        write_piece(i * 7919u % ((uint32_t)ring_most(&t.w) + 1));
        read_piece();
    }
    cr_assert_eq(t.waits, 0);
}

Test(ring, that_was_used_before_is_empty_when_made_again)
{
    open_ring(UINT64_MAX);
    write_piece(8);
    cr_assert_eq(chempi_spsc_ring_create(t.ring), 0);
    chempi_spsc_ring_open_writer(&t.w, t.ring, 0);
    chempi_spsc_ring_open_reader(&t.r, t.ring, 0);
    cr_assert_not(ring_has_more(&t.r));
}

Test(ring, is_not_made_without_memory)
{
    t.ring = mmap(NULL, CHEMPI_SPSC_RING_STRIDE, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_eq(chempi_spsc_ring_create(t.ring), -ENOSPC);
}

/* ---- damage ---- */

static int read_header(uint64_t header)
{
    struct chempi_spsc_ring_piece piece = {0};

    atomic_store(ring_header(t.ring, t.r.tail), header);
    cr_assert(ring_has_more(&t.r));
    return ring_piece(&t.r, &piece);
}

Test(ring, believes_no_header)
{
    open_ring(UINT64_MAX);
    cr_assert_eq(read_header(1), MPI_ERR_INTERN);
    cr_assert_eq(read_header(CHEMPI_SPSC_RING_LAST | 8), MPI_ERR_INTERN);
    cr_assert_eq(
        read_header(CHEMPI_SPSC_RING_FULL | (CHEMPI_SPSC_RING_PIECE + 1)),
        MPI_ERR_INTERN);
    cr_assert_eq(read_header(CHEMPI_SPSC_RING_WRAP),
                 MPI_ERR_INTERN); /* a circle */
    cr_assert_eq(read_header(CHEMPI_SPSC_RING_FULL | 8), 0);
}

Test(ring, believes_no_piece_beyond_its_end)
{
    open_ring(UINT64_MAX);
    while (t.w.limit < CHEMPI_SPSC_RING_RING_BYTES)
        write_piece(1000); /* nobody reads: more is reserved */
    t.r.tail = CHEMPI_SPSC_RING_RING_BYTES - 1024;
    cr_assert_eq(read_header(CHEMPI_SPSC_RING_FULL | 1000), 0);
    cr_assert_eq(read_header(CHEMPI_SPSC_RING_FULL | 1010), MPI_ERR_INTERN);
}

Test(ring, believes_no_tail_before_its_head)
{
    unsigned char *data;
    int rc = 0;

    open_ring(UINT64_MAX);
    write_piece(8);
    atomic_store(&t.ring->tail, UINT64_C(1) << 40);
    while (!rc && t.written < 1000) {
        rc = find_room(1000, &data);
        if (!rc)
            write_piece(1000);
    }
    cr_assert_eq(rc, MPI_ERR_INTERN);
}

/* Q7: whoever waits for room learns that nobody reads any more. */
Test(ring, that_was_given_up_has_no_room)
{
    unsigned char *data;
    int rc = 0;

    open_ring(sizeof(*t.ring) + CHEMPI_SPSC_RING_LEAST);
    write_piece(8);
    read_piece();
    chempi_spsc_ring_spoil(&t.r);
    for (int i = 0; i < CHEMPI_SPSC_RING_LEAST && !rc; i++) {
        rc = find_room(8, &data);
        if (!rc)
            ring_push(&t.w, 8, true, 0);
    }
    cr_assert_eq(rc, MPI_ERR_INTERN);
}
