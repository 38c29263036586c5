/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broadcasts of more than fits a slot, in the pipe of a node's area (A10). The
 * root puts pieces in and goes on as long as there are free places, also into
 * the next broadcast; so with more ranks than cores each of them does several
 * pieces between two changes of contexts.
 */
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/node/copy/nt_copy.h"
#include "libchempi/didl/coll/node/later/node_task.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/error/error.h"

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

static struct chempi_node_piping *of_task(struct chempi_node_task *t)
{
    return CHEMPI_CONTAINER_OF(t, struct chempi_node_piping, task);
}

/* All members have numbers for as many pieces, whatever happens to them. */
static void begin(struct chempi_node_piping *p)
{
    struct chempi_coll_state *st = p->task.cell.st;

    p->number = st->pieces_sent;
    st->pieces_sent +=
        (p->len + CHEMPI_NODE_PIECE_BYTES - 1) / CHEMPI_NODE_PIECE_BYTES;
}

static struct chempi_node_piece *place_of(const struct chempi_node_piping *p)
{
    return &p->task.cell.st->pipe[p->number % CHEMPI_NODE_PIECES];
}

static unsigned char *data_of(const struct chempi_node_piping *p)
{
    return p->task.cell.st->pieces +
           p->number % CHEMPI_NODE_PIECES * CHEMPI_NODE_PIECE_BYTES;
}

/* How often all others have read what was at its place before. */
static uint32_t reads_before(const struct chempi_node_piping *p)
{
    uint32_t uses = (uint32_t)(p->number / CHEMPI_NODE_PIECES);

    return uses * (uint32_t)(p->task.cell.st->size - 1);
}

static uint64_t piece_len(const struct chempi_node_piping *p)
{
    uint64_t left = p->len - p->at;

    return left < CHEMPI_NODE_PIECE_BYTES ? left : CHEMPI_NODE_PIECE_BYTES;
}

/* The piece is done. */
static void next_piece(struct chempi_node_piping *p)
{
    const struct chempi_coll_state *st = p->task.cell.st;

    p->task.copied += piece_len(p);
    p->at += CHEMPI_NODE_PIECE_BYTES;
    p->number++;
    if (st->later_cells > 0)
        atomic_store_explicit(&st->later.ended[st->rank].pieces,
                              (uint32_t)p->number, memory_order_relaxed);
}

/* Has the member not read the piece whose place the next one gets? */
static bool misses(const void *arg, int member)
{
    const struct chempi_node_piping *p = arg; /* its task is first */
    const struct chempi_coll_state *st = p->task.cell.st;
    const uint32_t needed = (uint32_t)p->number - CHEMPI_NODE_PIECES + 1;

    return st->later_cells > 0 &&
           (int32_t)(atomic_load_explicit(&st->later.ended[member].pieces,
                                          memory_order_relaxed) -
                     needed) < 0;
}

static void send_pieces(struct chempi_node_task *t)
{
    struct chempi_node_piping *p = of_task(t);
    const struct chempi_coll_call *c = t->c;

    t->misses = misses;
    for (int i = 0; p->at < p->len; i++) {
        struct chempi_node_piece *place = place_of(p);

        task_await(t, TASK_AWAITS_SOME, &place->reads, reads_before(p),
                   send_pieces);
        if (i == CHEMPI_NODE_PIECES || !chempi_coll_node_task_is_due(t))
            return;
        chempi_coll_nt_copy_pack(c->recv.buf, c->recv.count, c->recv.type,
                                 p->at, data_of(p), piece_len(p), p->is_far);
        /* Orders the data before its number; partner: receivers' wait. */
        atomic_store_explicit(&place->seq, (uint32_t)p->number + 1,
                              memory_order_release);
        chempi_coll_shm_slot_rouse_all(&t->cell);
        next_piece(p);
    }
    task_end(t);
}

void chempi_coll_pipe_send(struct chempi_node_task *t)
{
    struct chempi_node_piping *p = of_task(t);

    task_spread(t, p->len);
    p->is_far = chempi_coll_shm_slot_goes_past(t->cell.st, -1);
    begin(p);
    send_pieces(t);
}

/* The last reader of a piece wakes who may want its place; nobody knows yet
 * who that is, nor whether a non-blocking broadcast wants it. */
static void say_read(const struct chempi_node_piping *p)
{
    const struct cell *cell = &p->task.cell;
    uint32_t all = reads_before(p) + (uint32_t)(cell->st->size - 1);

    if (atomic_fetch_add_explicit(&place_of(p)->reads, 1,
                                  memory_order_acq_rel) +
            1 ==
        all)
        chempi_coll_shm_slot_urge_all(cell->st);
}

static void end_recv(struct chempi_node_task *t, uint64_t len, uint64_t room)
{
    if (CHEMPI_UNLIKELY(len > room))
        task_note(t, chempi_message_note_too_much(t->c->root, len, room));
    else if (CHEMPI_UNLIKELY(len < room))
        task_note(t, chempi_coll_shm_slot_mismatch(&t->cell, t->cell.st->size));
    task_end(t);
}

static void recv_pieces(struct chempi_node_task *t)
{
    struct chempi_node_piping *p = of_task(t);
    const struct chempi_coll_call *c = t->c;
    uint64_t room = (uint64_t)(c->recv.count * c->recv.type->size);

    for (int i = 0; p->at < p->len; i++) {
        task_await(t, c->root, &place_of(p)->seq, (uint32_t)p->number + 1,
                   recv_pieces);
        if (i == CHEMPI_NODE_PIECES || !chempi_coll_node_task_is_due(t))
            return;
        if (CHEMPI_LIKELY(p->len <= room))
            chempi_coll_nt_copy_unpack(c->recv.buf, c->recv.count, c->recv.type,
                                       p->at, data_of(p), piece_len(p),
                                       p->is_long);
        say_read(p);
        next_piece(p);
    }
    if (CHEMPI_UNLIKELY(p->astray.comm))
        task_end(t); /* it has its error */
    else
        end_recv(t, p->len, room);
}

void chempi_coll_pipe_recv(struct chempi_node_task *t)
{
    struct chempi_node_piping *p = of_task(t);

    chempi_coll_shm_slot_look_far(&t->cell, t->c->root);
    p->is_long =
        chempi_coll_nt_copy_is_long(p->len * (uint64_t)t->cell.st->size);
    task_spread(t, p->len);
    begin(p);
    recv_pieces(t);
}
