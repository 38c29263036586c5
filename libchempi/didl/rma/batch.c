/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests on their way to a target: they are gathered and leave together, as
 * one message, when somebody waits for them, when the message is full, or with
 * the next progress.
 *
 *   B1  requests reach the target in the order in which they were appended:
 *       sealed batches first, then the one that is being filled; only long
 *       accumulates overtake others where accumulates have no order
 *   B2  the lock of MPI_Win_lock is asked for by the first request of a batch,
 *       and what follows in that message is executed after the grant; nothing
 *       more is sent before an answer has told that it was granted, so that a
 *       target keeps one message per origin at most
 *   B3  a peer that has a batch is on win->active; when it leaves that, it
 *       keeps no buffer of a whole message
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/loss.h"
#include "libchempi/services/layout/layout.h"

enum { FIRST_ROOM = 1024 /* bytes */ };

/* ---- memory ---- */

/* A buffer of a whole message; kept ones have their pages already. */
static unsigned char *take_buffer(struct chempi_win *win)
{
    if (win->spare_count > 0)
        return win->spares[--win->spare_count];
    return chempi_sys->malloc(CHEMPI_RMA_MESSAGE_MAX);
}

static void give_buffer(struct chempi_win *win, unsigned char *data,
                        uint32_t room)
{
    if (room == CHEMPI_RMA_MESSAGE_MAX && win->spare_count < CHEMPI_RMA_SPARES)
        win->spares[win->spare_count++] = data;
    else
        free(data);
}

void chempi_rma_give_back(struct chempi_win *win, struct chempi_rma_item *item)
{
    give_buffer(win, item->buf, item->room);
    item->buf = NULL;
}

void chempi_rma_free_spares(struct chempi_win *win)
{
    while (win->spare_count > 0)
        free(win->spares[--win->spare_count]);
}

bool chempi_rma_has_batch(const struct chempi_rma_peer *peer)
{
    return peer->batch.len > 0 || !chempi_list_is_empty(&peer->batch.sealed);
}

void chempi_rma_free_batch(struct chempi_rma_peer *peer)
{
    free(peer->batch.data);
    peer->batch.data = NULL;
    peer->batch.len = 0;
    peer->batch.room = 0;
}

void chempi_rma_rest_batch(struct chempi_rma_peer *peer)
{
    struct chempi_rma_batch *b = &peer->batch;

    if (b->room != CHEMPI_RMA_MESSAGE_MAX)
        return;
    give_buffer(peer->win, b->data, b->room);
    b->data = NULL;
    b->room = 0;
}

void chempi_rma_drop_batch(struct chempi_rma_peer *peer)
{
    struct chempi_rma_batch *b = &peer->batch;

    while (!chempi_list_is_empty(&b->sealed)) {
        struct chempi_rma_item *item = CHEMPI_CONTAINER_OF(
            chempi_list_first(&b->sealed), struct chempi_rma_item, link);

        chempi_list_remove(&item->link);
        peer->win->out_bytes -= chempi_rma_weight(item);
        chempi_rma_free_item(item);
    }
    chempi_rma_free_batch(peer);
    b->lazy = CHEMPI_RMA_UNLOCKED;
    b->lock = CHEMPI_RMA_UNLOCKED;
    b->asked = CHEMPI_RMA_UNLOCKED;
    b->proof = NULL;
}

uint32_t chempi_rma_next_id(struct chempi_win *win)
{
    win->next_id = win->next_id < INT32_MAX ? win->next_id + 1 : 1;
    return win->next_id;
}

/* Take back a receive that no answer will come for. */
static void unreceive(struct chempi_rma_item *item)
{
    item->req->ops->cancel(item->req);
    chempi_rma_free_item(item);
}

/* Expect the answer `id`. */
static int receive_answer(struct chempi_rma_peer *peer,
                          struct chempi_rma_item *item, uint32_t id)
{
    item->is_answer = true;
    if (item->into)
        return chempi_rma_receive(peer, item, item->into,
                                  (MPI_Count)item->expected, chempi_rma_bytes(),
                                  id, CHEMPI_RMA_ANSWERS);
    return chempi_rma_receive(peer, item, item->result.buf, item->result.count,
                              item->result.type, id, CHEMPI_RMA_ANSWERS);
}

static struct chempi_rma_item *make_status(void)
{
    struct chempi_rma_item *item = chempi_rma_make_item();

    if (item) {
        item->into = &item->verdict;
        item->expected = sizeof(item->verdict);
    }
    return item;
}

/* ---- sending ---- */

/* B2: the lock in the batch is answered by what else is, or by itself. */
static int prove_lock(struct chempi_rma_peer *peer)
{
    struct chempi_rma_batch *b = &peer->batch;
    struct chempi_rma_head lock;
    int rc;

    if (!b->proof) {
        struct chempi_rma_item *item = make_status();

        if (!item)
            return MPI_ERR_NO_MEM;
        memcpy(&lock, b->data, sizeof(lock));
        lock.id = chempi_rma_next_id(peer->win);
        rc = receive_answer(peer, item, lock.id);
        if (rc) {
            chempi_rma_free_item(item);
            return rc;
        }
        memcpy(b->data, &lock, sizeof(lock));
        chempi_rma_add_item(peer, &peer->out, item);
        b->proof = item;
    }
    b->proof->is_proof = true;
    return MPI_SUCCESS;
}

/* One that is short and must wait keeps no more than it needs. */
static void shrink(struct chempi_rma_batch *b)
{
    unsigned char *data = NULL;

    if (b->len <= b->room / 2)
        data = chempi_sys->realloc(b->data, b->len);
    if (!data)
        return;
    b->data = data;
    b->room = b->len;
}

/* The batch becomes an item, which waits for its turn. */
static int seal(struct chempi_rma_peer *peer)
{
    struct chempi_rma_batch *b = &peer->batch;
    struct chempi_rma_item *item;
    int rc = b->lock ? prove_lock(peer) : MPI_SUCCESS;

    if (rc || b->len == 0)
        return rc;
    item = chempi_rma_make_item();
    if (!item)
        return MPI_ERR_NO_MEM;
    shrink(b);
    item->buf = b->data;
    item->room = b->room;
    item->buf_len = b->len;
    item->asks = b->lock;
    peer->win->out_bytes += chempi_rma_weight(item);
    chempi_list_append(&b->sealed, &item->link);
    b->data = NULL;
    b->len = 0;
    b->room = 0;
    b->lock = CHEMPI_RMA_UNLOCKED;
    b->proof = NULL;
    return MPI_SUCCESS;
}

static int send_sealed(struct chempi_rma_peer *peer)
{
    struct chempi_rma_batch *b = &peer->batch;

    while (!chempi_list_is_empty(&b->sealed) && !b->asked) {
        struct chempi_rma_item *item = CHEMPI_CONTAINER_OF(
            chempi_list_first(&b->sealed), struct chempi_rma_item, link);
        int rc =
            chempi_rma_send(peer, item, item->buf, (MPI_Count)item->buf_len,
                            chempi_rma_bytes(), 0, CHEMPI_RMA_REQUESTS);

        if (rc)
            return rc;
        b->asked = item->asks;
        chempi_list_remove(&item->link);
        peer->win->out_bytes -= chempi_rma_weight(item); /* and once more: */
        chempi_rma_add_item(peer, &peer->out, item);
    }
    return MPI_SUCCESS;
}

int chempi_rma_push(struct chempi_rma_peer *peer)
{
    struct chempi_rma_batch *b = &peer->batch;
    int rc;

    if (CHEMPI_UNLIKELY(chempi_rma_lost(peer->win)) &&
        chempi_loss_is_away(peer->win->comm, peer->rank)) {
        chempi_rma_drop_batch(peer);
        return MPI_SUCCESS; /* each wait and synchronization says so */
    }
    rc = send_sealed(peer);
    if (rc || b->len == 0 || b->asked)
        return rc;
    if (b->lock)
        rc = prove_lock(peer);
    if (rc)
        return rc;
    if (chempi_rma_inject(peer, b->data, b->len, 0, CHEMPI_RMA_REQUESTS) == 0) {
        b->asked = b->lock;
        b->len = 0;
        b->lock = CHEMPI_RMA_UNLOCKED;
        b->proof = NULL;
        return MPI_SUCCESS;
    }
    rc = seal(peer);
    return rc ? rc : send_sealed(peer);
}

int chempi_rma_push_idle(struct chempi_rma_peer *peer, uint64_t len)
{
    if (len <= CHEMPI_RMA_GATHER_MAX &&
        (peer->answers > 1 || peer->batch.lock || peer->batch.asked))
        return MPI_SUCCESS;
    return chempi_rma_push(peer);
}

/* ---- appending ---- */

static uint32_t space_of(uint64_t len)
{
    return (uint32_t)((sizeof(struct chempi_rma_head) + len + 7) / 8 * 8);
}

bool chempi_rma_find_space(struct chempi_rma_peer *peer, uint64_t len)
{
    struct chempi_rma_batch *b = &peer->batch;
    const uint32_t end = b->len + space_of(len);

    if (!b->data && peer->win->spare_count > 0) {
        b->data = take_buffer(peer->win);
        b->room = CHEMPI_RMA_MESSAGE_MAX;
    }
    return !b->lazy && end <= b->room && end <= CHEMPI_RMA_MESSAGE_MAX;
}

/* From a few requests to a whole message in one step: who needs more than the
 * first room is likely to fill it. A spare buffer costs nothing. */
static int grow(struct chempi_rma_peer *peer, uint32_t need)
{
    struct chempi_rma_batch *b = &peer->batch;
    const bool is_first =
        b->len + need <= FIRST_ROOM && peer->win->spare_count == 0;
    unsigned char *data =
        is_first ? chempi_sys->malloc(FIRST_ROOM) : take_buffer(peer->win);

    if (!data)
        return chempi_error_set(MPI_ERR_NO_MEM,
                                "no memory for a one-sided operation");
    if (b->len)
        memcpy(data, b->data, b->len);
    free(b->data);
    b->data = data;
    b->room = is_first ? FIRST_ROOM : CHEMPI_RMA_MESSAGE_MAX;
    return MPI_SUCCESS;
}

static int make_room(struct chempi_rma_peer *peer, uint32_t need)
{
    struct chempi_rma_batch *b = &peer->batch;
    int rc = MPI_SUCCESS;

    if (b->len + need > CHEMPI_RMA_MESSAGE_MAX)
        rc = chempi_rma_push(peer);
    if (rc == MPI_SUCCESS && b->len + need > CHEMPI_RMA_MESSAGE_MAX)
        rc = seal(peer);
    if (rc == MPI_SUCCESS && b->len + need > b->room)
        rc = grow(peer, need);
    return rc;
}

static int append(struct chempi_rma_peer *peer,
                  const struct chempi_rma_head *head, const void *data,
                  struct chempi_segment *iter, uint64_t len)
{
    const uint32_t need = space_of(len);
    struct chempi_rma_head *to;
    unsigned char *payload;
    int rc = make_room(peer, need);

    if (rc)
        return rc;
    to = (struct chempi_rma_head *)(void *)(peer->batch.data + peer->batch.len);
    payload = (unsigned char *)(to + 1);
    *to = *head;
    to->payload = (uint32_t)len;
    if (len % 8)
        memset(payload + (need - sizeof(*head)) - 8, 0, 8); /* the gap */
    if (data && len)
        memcpy(payload, data, len);
    else if (iter && len)
        (void)chempi_segment_pack(iter, payload, len);
    peer->batch.len += need;
    chempi_rma_activate(peer);
    return MPI_SUCCESS;
}

/* B2: the lock stands at the beginning of a message. */
static int append_lock(struct chempi_rma_peer *peer)
{
    struct chempi_rma_batch *b = &peer->batch;
    const struct chempi_rma_head head = {.kind = CHEMPI_RMA_DO_LOCK,
                                         .op = b->lazy};
    int rc = chempi_rma_push(peer);

    if (rc == MPI_SUCCESS)
        rc = seal(peer);
    if (rc == MPI_SUCCESS)
        rc = append(peer, &head, NULL, NULL, 0);
    if (rc)
        return rc;
    b->lock = b->lazy;
    b->lazy = CHEMPI_RMA_UNLOCKED;
    return MPI_SUCCESS;
}

int chempi_rma_request(struct chempi_rma_peer *peer,
                       const struct chempi_rma_head *head, const void *data,
                       struct chempi_segment *iter, uint64_t len)
{
    int rc =
        CHEMPI_UNLIKELY(peer->batch.lazy) ? append_lock(peer) : MPI_SUCCESS;

    return rc ? rc : append(peer, head, data, iter, len);
}

/* A datatype of the two parts of a message, for one message. */
struct gathered {
    struct chempi_datatype type;
    struct chempi_layout layout;
    struct chempi_rma_head head;
};

static struct gathered *gather(struct chempi_rma_item *item,
                               const struct chempi_rma_head *head,
                               const void *data, uint64_t len)
{
    struct gathered *g = chempi_sys->calloc(1, sizeof(*g));
    const uint64_t lens[] = {sizeof(*head), len};
    int64_t offsets[] = {0, 0};

    if (!g)
        return NULL;
    item->buf = g;
    g->head = *head;
    g->head.payload = (uint32_t)len;
    offsets[1] = (int64_t)((uintptr_t)data - (uintptr_t)&g->head);
    item->root = chempi_layout_blocks(2, offsets, lens);
    if (!item->root)
        return NULL;
    g->layout = (struct chempi_layout){.size = sizeof(*head) + len,
                                       .extent = (int64_t)(sizeof(*head) + len),
                                       .root = item->root};
    chempi_rma_borrow_type(&g->type, &g->layout);
    return g;
}

/* Without order among accumulates what is gathered need not be cut short. Not
 * before a lock, nor before the description of the layout. */
static bool may_overtake(const struct chempi_rma_peer *peer,
                         const struct chempi_rma_head *head)
{
    const struct chempi_rma_batch *b = &peer->batch;

    return peer->win->is_unordered && !head->type && !b->lock && !b->asked &&
           chempi_list_is_empty(&b->sealed);
}

int chempi_rma_request_long(struct chempi_rma_peer *peer,
                            const struct chempi_rma_head *head,
                            const void *data, uint64_t len,
                            struct chempi_request *user)
{
    const struct chempi_rma_batch *b = &peer->batch;
    struct chempi_rma_item *item;
    struct gathered *g;
    int rc;

    if (b->lazy || len % 8)
        return chempi_rma_request(peer, head, data, NULL, len);
    if (!may_overtake(peer, head)) {
        rc = chempi_rma_push(peer); /* B1 */
        if (rc || chempi_rma_has_batch(peer) || b->asked)
            return rc ? rc : chempi_rma_request(peer, head, data, NULL, len);
    }
    item = chempi_rma_make_item();
    if (!item)
        return MPI_ERR_NO_MEM;
    g = gather(item, head, data, len);
    rc = g ? chempi_rma_send(peer, item, &g->head, 1, &g->type, 0,
                             CHEMPI_RMA_REQUESTS)
           : chempi_error_set(MPI_ERR_NO_MEM,
                              "no memory for a one-sided operation");
    if (rc) {
        chempi_rma_free_item(item);
        return rc;
    }
    item->buf_len = len;
    item->user = user;
    chempi_rma_add_item(peer, &peer->out, item);
    return MPI_SUCCESS;
}

int chempi_rma_ask(struct chempi_rma_peer *peer, struct chempi_rma_head *head,
                   const void *data, struct chempi_segment *iter, uint64_t len,
                   struct chempi_rma_item *item)
{
    int rc;

    head->id = chempi_rma_next_id(peer->win);
    if (item->into != &item->verdict)
        item->verdict = (struct chempi_rma_verdict){
            .is_placed = 1, .disp = head->disp, .len = head->len};
    rc = receive_answer(peer, item, head->id);
    if (rc) {
        chempi_rma_free_item(item);
        return rc;
    }
    rc = chempi_rma_request(peer, head, data, iter, len);
    if (rc) {
        unreceive(item);
        return rc;
    }
    chempi_rma_add_item(peer, &peer->out, item);
    peer->batch.proof = item;
    return MPI_SUCCESS;
}

int chempi_rma_ask_status(struct chempi_rma_peer *peer,
                          enum chempi_rma_kind kind)
{
    struct chempi_rma_head head = {.kind = (uint8_t)kind};
    struct chempi_rma_item *item = make_status();

    return item ? chempi_rma_ask(peer, &head, NULL, NULL, 0, item)
                : MPI_ERR_NO_MEM;
}

int chempi_rma_ask_lock(struct chempi_rma_peer *peer, enum chempi_rma_lock kind)
{
    int rc;

    peer->held_by = -1;
    peer->batch.lazy = (uint8_t)kind;
    rc = append_lock(peer);
    return rc ? rc : chempi_rma_push(peer);
}
