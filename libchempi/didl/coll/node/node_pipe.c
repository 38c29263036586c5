/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broadcasts of more than fits a slot, in the pipe of a node's area (A10). The
 * root puts pieces in and goes on as long as there are free places, also into
 * the next broadcast; so with more ranks than cores each of them does several
 * pieces between two changes of contexts.
 */
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/error.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/node/nt_copy.h"
#include "libchempi/didl/coll/node/shm_slot.h"
#include "libchempi/didl/comm/p2p_request.h"

bool chempi_coll_pipe_is_open(struct chempi_coll_state *st)
{
    if (st->size <= 2 || !chempi_setting(CHEMPI_SET_COLL_NODE_STREAM))
        return false;
    if (CHEMPI_UNLIKELY(!st->is_pipe_reserved))
        st->is_pipe_reserved =
            chempi_region_reserve(chempi_ctx.services.region, st->pieces,
                                  CHEMPI_NODE_PIECES * CHEMPI_NODE_PIECE_BYTES,
                                  NULL) == 0;
    return st->is_pipe_reserved;
}

enum { PIECES_BUSY = 128 }; /* before others' progress is looked after */

/* The next piece's place; *uses: how often it has been used before. */
static struct chempi_node_piece *next_place(struct chempi_coll_state *st,
                                            unsigned char **data,
                                            uint32_t *uses, uint32_t *seq)
{
    size_t i = st->pieces_sent % CHEMPI_NODE_PIECES;

    *uses = (uint32_t)(st->pieces_sent / CHEMPI_NODE_PIECES);
    *seq = (uint32_t)++st->pieces_sent;
    *data = st->pieces + i * CHEMPI_NODE_PIECE_BYTES;
    if (CHEMPI_UNLIKELY(*seq % PIECES_BUSY == 0))
        (void)chempi_progress_poll();
    return &st->pipe[i];
}

static uint64_t piece_len(uint64_t left)
{
    return left < CHEMPI_NODE_PIECE_BYTES ? left : CHEMPI_NODE_PIECE_BYTES;
}

int chempi_coll_pipe_send(struct chempi_coll_state *st,
                          const struct chempi_coll_call *c, uint64_t len)
{
    int rc = MPI_SUCCESS;

    for (uint64_t at = 0; at < len; at += CHEMPI_NODE_PIECE_BYTES) {
        unsigned char *data;
        uint32_t uses;
        uint32_t seq;
        struct chempi_node_piece *place = next_place(st, &data, &uses, &seq);

        rc = cell_first_error(
            rc, chempi_coll_shm_slot_wait(st, &place->reads,
                                          uses * (uint32_t)(st->size - 1)));
        chempi_coll_nt_copy_pack(c->rbuf, c->rcount, c->rtype, at, data,
                                 piece_len(len - at));
        /* Orders the data before its number; partner: recv's wait. */
        atomic_store_explicit(&place->seq, seq, memory_order_release);
        chempi_coll_shm_slot_rouse_others(st);
    }
    return rc;
}

/* The last reader of a piece wakes who may want its place; nobody knows yet
 * who that is. */
static void say_read(struct chempi_coll_state *st,
                     struct chempi_node_piece *place, uint32_t uses)
{
    uint32_t all = (uses + 1) * (uint32_t)(st->size - 1);

    if (atomic_fetch_add_explicit(&place->reads, 1, memory_order_acq_rel) + 1 ==
        all)
        chempi_coll_shm_slot_rouse_others(st);
}

int chempi_coll_pipe_recv(struct chempi_coll_state *st,
                          const struct chempi_coll_call *c, uint64_t len)
{
    uint64_t room = (uint64_t)(c->rcount * c->rtype->size);
    bool is_long = chempi_coll_nt_copy_is_long(len * (uint64_t)st->size);
    int rc = MPI_SUCCESS;

    for (uint64_t at = 0; at < len; at += CHEMPI_NODE_PIECE_BYTES) {
        unsigned char *data;
        uint32_t uses;
        uint32_t seq;
        struct chempi_node_piece *place = next_place(st, &data, &uses, &seq);

        rc = cell_first_error(rc, chempi_coll_shm_slot_wait_member(
                                      st, c->root, &place->seq, seq));
        if (CHEMPI_LIKELY(len <= room))
            chempi_coll_nt_copy_unpack(c->rbuf, c->rcount, c->rtype, at, data,
                                       piece_len(len - at), is_long);
        say_read(st, place, uses);
    }
    if (CHEMPI_UNLIKELY(len > room))
        return chempi_p2p_note_too_much(c->root, len, room);
    return rc;
}
