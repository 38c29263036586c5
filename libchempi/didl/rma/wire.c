/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of one-sided operations, the origin's half: requests to the
 * target's process, which executes them in the order in which they were sent,
 * and its answers.
 *
 *   M1  what is under way at a peer stands in peer->out in the order in which
 *       it was begun, and leaves from the front; an empty list and !is_dirty
 *       mean that all is done, also at the target
 *   M2  a request has at most CHEMPI_RMA_MESSAGE_MAX bytes; larger puts name
 *       it first and send their payload as a message of its own, accumulates
 *       go in pieces, so that they are executed in order
 *   M3  every member has SLOTS receives posted, in the order of the ring
 */
#include "libchempi/didl/rma/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/error/fatal.h"
#include "libchempi/didl/op/op_loops.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/loss.h"

enum { SLOTS = 4 };

struct chempi_rma_slot {
    struct chempi_request req;
    unsigned char *data; /* [CHEMPI_RMA_MESSAGE_MAX] */
};

/* ---- operations ---- */

/* Where at the target: what a head says of it. */
static int aim(struct chempi_rma_op *op, struct chempi_rma_head *head)
{
    head->disp = op->disp;
    head->count = (uint64_t)op->count;
    if (op->type->is_contiguous) {
        head->shift = op->type->true_lb;
        return MPI_SUCCESS;
    }
    head->type = chempi_rma_tell_type(op->peer, op->type);
    return head->type ? MPI_SUCCESS
                      : chempi_error_set(MPI_ERR_NO_MEM,
                                         "no memory to describe the datatype "
                                         "to rank %u",
                                         op->peer->rank);
}

/* The origin's data from its start: flat, or by the iterator. */
static const char *open_origin(const struct chempi_rma_side *side,
                               struct chempi_segment *iter)
{
    if (side->type->is_contiguous)
        return side->buf + side->type->true_lb;
    chempi_segment_init(iter, side->buf, (uint64_t)side->count,
                        side->type->layout);
    return NULL;
}

/* The target waits for what it was told of. */
static void take_back(struct chempi_rma_peer *peer, uint32_t id)
{
    const struct chempi_rma_head head = {.kind = CHEMPI_RMA_DO_DROP, .id = id};

    if (chempi_rma_request(peer, &head, NULL, NULL, 0) != MPI_SUCCESS)
        chempi_fatal_die("out of memory for a put of which rank %u has been "
                         "told; use less memory",
                         peer->rank);
}

static int put_large(struct chempi_rma_op *op, struct chempi_rma_head *head)
{
    struct chempi_rma_item *item = chempi_rma_make_item();
    int rc;

    if (!item)
        return MPI_ERR_NO_MEM;
    head->kind = CHEMPI_RMA_DO_PUT_LARGE;
    head->id = chempi_rma_next_id(op->win);
    rc = chempi_rma_request(op->peer, head, NULL, NULL, 0);
    if (rc == MPI_SUCCESS)
        (void)chempi_rma_push(op->peer); /* so that the target is ready */
    if (rc == MPI_SUCCESS) {
        rc = chempi_rma_send(op->peer, item, op->origin.buf, op->origin.count,
                             op->origin.type, head->id, CHEMPI_RMA_DATA);
        if (rc)
            take_back(op->peer, head->id);
    }
    if (rc) {
        chempi_rma_free_item(item);
        return rc;
    }
    item->user = op->user;
    chempi_rma_add_item(op->peer, &op->peer->out, item);
    return MPI_SUCCESS;
}

int chempi_rma_message_put(struct chempi_rma_op *op)
{
    struct chempi_rma_head head = {.kind = CHEMPI_RMA_DO_PUT, .len = op->len};
    struct chempi_segment iter;
    const char *flat;
    int rc = aim(op, &head);

    if (rc)
        return rc;
    op->peer->is_dirty = true;
    if (!chempi_rma_is_copied(op->peer, op->len))
        return put_large(op, &head);
    flat = open_origin(&op->origin, &iter);
    return chempi_rma_request(op->peer, &head, flat, &iter, op->len);
}

int chempi_rma_message_get(struct chempi_rma_op *op)
{
    struct chempi_rma_head head = {.kind = CHEMPI_RMA_DO_GET, .len = op->len};
    struct chempi_rma_item *item;
    int rc = aim(op, &head);

    if (rc)
        return rc;
    item = chempi_rma_make_item();
    if (!item)
        return MPI_ERR_NO_MEM;
    item->result = op->result;
    item->expected = op->len;
    item->user = op->user;
    rc = chempi_rma_ask(op->peer, &head, NULL, NULL, 0, item);
    return rc ? rc : chempi_rma_push_idle(op->peer, op->len);
}

/* One piece of an accumulate that does not fetch. */
static int fold_piece(struct chempi_rma_op *op,
                      const struct chempi_rma_head *head, const char *data,
                      struct chempi_segment *iter)
{
    if (data && !chempi_rma_is_copied(op->peer, head->len))
        return chempi_rma_request_long(op->peer, head, data, head->len,
                                       op->user);
    return chempi_rma_request(op->peer, head, data, iter, head->len);
}

/* One piece of an accumulate that fetches. */
static int fetch_piece(struct chempi_rma_op *op, struct chempi_rma_head *head,
                       const char *data, struct chempi_segment *iter,
                       uint64_t payload)
{
    struct chempi_rma_item *item = chempi_rma_make_item();

    if (!item)
        return MPI_ERR_NO_MEM;
    item->expected = head->len;
    item->buf_len = head->len;
    item->user = op->user;
    if (op->result.type->is_contiguous) {
        item->into = op->result.buf + op->result.type->true_lb + head->at;
    } else {
        item->buf = chempi_sys->malloc(head->len);
        if (!item->buf) {
            chempi_rma_free_item(item);
            return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a result");
        }
        item->into = item->buf;
        item->is_packed = true;
        item->result = op->result;
        item->at = head->at;
        if (!item->result.type->is_predefined)
            chempi_object_hold(&item->result.type->obj);
    }
    return chempi_rma_ask(op->peer, head, data, iter, payload, item);
}

int chempi_rma_message_fold(struct chempi_rma_op *op)
{
    const uint64_t size = chempi_basic_type_table[op->elem].size;
    const uint64_t most = CHEMPI_RMA_PIECE_MAX / size * size;
    const bool has_in = op->op != CHEMPI_OP_NO_OP;
    struct chempi_rma_head head = {.op = (uint16_t)op->op, .elem = op->elem};
    const char *flat = NULL;
    struct chempi_segment iter;
    int rc = aim(op, &head);

    head.kind = op->is_fetch ? CHEMPI_RMA_DO_FETCH_FOLD : CHEMPI_RMA_DO_FOLD;
    if (has_in)
        flat = open_origin(&op->origin, &iter);
    if (has_in && !flat && op->done)
        chempi_segment_seek(&iter, op->done);
    if (!op->is_fetch)
        op->peer->is_dirty = true;
    while (op->done < op->len && rc == MPI_SUCCESS &&
           op->win->out_bytes <= CHEMPI_RMA_OUT_MAX) {
        const char *data = flat ? flat + op->done : NULL;

        head.at = op->done;
        head.len = op->len - op->done < most ? op->len - op->done : most;
        rc = op->is_fetch
                 ? fetch_piece(op, &head, data, &iter, has_in ? head.len : 0)
                 : fold_piece(op, &head, data, &iter);
        op->done += head.len;
    }
    return rc || !op->is_fetch ? rc : chempi_rma_push_idle(op->peer, op->len);
}

int chempi_rma_message_swap(struct chempi_rma_op *op, const void *compare)
{
    struct chempi_rma_head head = {
        .kind = CHEMPI_RMA_DO_SWAP, .disp = op->disp, .len = op->len};
    unsigned char both[32];
    struct chempi_rma_item *item = chempi_rma_make_item();
    int rc;

    if (!item)
        return MPI_ERR_NO_MEM;
    memcpy(both, compare, op->len);
    memcpy(both + op->len, op->origin.buf, op->len);
    item->expected = op->len;
    item->into = op->result.buf;
    rc = chempi_rma_ask(op->peer, &head, both, NULL, 2 * op->len, item);
    return rc ? rc : chempi_rma_push_idle(op->peer, op->len);
}

int chempi_rma_begin_flush(struct chempi_rma_peer *peer)
{
    int rc = MPI_SUCCESS;

    if (peer->is_dirty)
        rc = chempi_rma_ask_status(peer, CHEMPI_RMA_DO_FLUSH);
    if (rc == MPI_SUCCESS)
        peer->is_dirty = false;
    return rc ? rc : chempi_rma_push(peer);
}

/* ---- completion ---- */

static int error_of(const struct chempi_rma_item *item)
{
    const struct chempi_request *req = item->req;

    if (!item->is_answer)
        return req->error;
    if ((uint64_t)req->bytes == item->expected) {
        if (req->error || !item->verdict.error)
            return req->error;
        return chempi_error_class_of_others(item->verdict.error);
    }
    if (req->error && req->error != MPI_ERR_TYPE &&
        req->error != MPI_ERR_TRUNCATE)
        return req->error;
    /* It was refused at the target (serve.c, refuse_answer()). */
    return req->bytes ? MPI_ERR_TYPE : MPI_ERR_RMA_RANGE;
}

static void finish(struct chempi_rma_peer *peer, struct chempi_rma_item *item)
{
    int error = error_of(item);

    if (error && !peer->error.error) {
        peer->error = item->verdict;
        peer->error.error = error;
    }
    if (item->is_packed && !error) {
        struct chempi_segment iter;

        chempi_segment_init(&iter, item->result.buf,
                            (uint64_t)item->result.count,
                            item->result.type->layout);
        chempi_segment_seek(&iter, item->at);
        (void)chempi_segment_unpack(&iter, item->buf, item->expected);
    }
    peer->win->out_bytes -= chempi_rma_weight(item);
    if (item->is_answer)
        peer->answers--;
    if (item->is_proof)
        peer->batch.asked = CHEMPI_RMA_UNLOCKED;
    if (item->user)
        chempi_request_progress(item->user, error);
    if (item->room)
        chempi_rma_give_back(peer->win, item);
    chempi_rma_free_item(item);
}

static int reap_out(struct chempi_rma_peer *peer)
{
    int events = 0;

    while (!chempi_list_is_empty(&peer->out)) {
        struct chempi_rma_item *item = CHEMPI_CONTAINER_OF(
            chempi_list_first(&peer->out), struct chempi_rma_item, link);

        if (!chempi_request_is_complete(item->req))
            break;
        chempi_list_remove(&item->link);
        finish(peer, item);
        events++;
    }
    return events;
}

/* ---- receiving ---- */

/* It is complete, or was never posted. */
static void fini_slot(struct chempi_rma_slot *slot)
{
    chempi_request_untrack(&slot->req);
    chempi_message_fini(&slot->req);
}

/* On errors it is as if it had not been tried: nobody waits for it. */
static int post_slot(struct chempi_win *win, struct chempi_rma_slot *slot)
{
    int rc;

    if (slot == win->notice)
        chempi_message_init_recv(&slot->req, NULL, 0, chempi_rma_bytes(),
                                 MPI_ANY_SOURCE, CHEMPI_RMA_TOKEN_NONE,
                                 win->comm, CHEMPI_RMA_TOKENS);
    else
        chempi_message_init_recv(&slot->req, slot->data, CHEMPI_RMA_MESSAGE_MAX,
                                 chempi_rma_bytes(), MPI_ANY_SOURCE, 0,
                                 win->comm, CHEMPI_RMA_REQUESTS);
    chempi_request_track(&slot->req, &chempi_lane_main);
    rc = chempi_message_start(&slot->req);
    if (rc)
        fini_slot(slot);
    return rc;
}

static bool is_slot_complete(const struct chempi_rma_slot *slot)
{
    return chempi_request_is_complete(&slot->req);
}

static void withdraw_slot(struct chempi_rma_slot *slot)
{
    if (slot->req.obj.magic && !is_slot_complete(slot))
        slot->req.ops->cancel(&slot->req);
}

static void post_again(struct chempi_win *win, struct chempi_rma_slot *slot)
{
    fini_slot(slot);
    if (post_slot(win, slot))
        chempi_fatal_die("out of memory for one-sided requests");
}

static int poll_slots(struct chempi_win *win)
{
    int events = 0;

    while (win->is_served) {
        struct chempi_rma_slot *slot = &win->slots[win->slot_next];

        if (!is_slot_complete(slot))
            break;
        if (slot->req.error == MPI_SUCCESS)
            chempi_rma_serve(win, (uint32_t)slot->req.source, slot->data,
                             (uint64_t)slot->req.bytes);
        post_again(win, slot);
        win->slot_next = (win->slot_next + 1) % SLOTS;
        events++;
    }
    return events;
}

/* Who has no window; or the loss of a member has ended the receive. */
static CHEMPI_COLD int poll_notice(struct chempi_win *win)
{
    struct chempi_rma_slot *notice = win->notice;
    int events = 0;

    while (is_slot_complete(notice)) {
        const uint32_t rank = notice->req.error == MPI_SUCCESS
                                  ? (uint32_t)notice->req.source
                                  : UINT32_MAX;

        post_again(win, notice);
        if (rank < win->comm->size)
            chempi_loss_note_absent(win->comm, rank);
        events++;
    }
    return events;
}

/* As long as the window is not whole all take part in making it. */
static bool has_notice(const struct chempi_win *win)
{
    return CHEMPI_UNLIKELY(win->notice != NULL) &&
           is_slot_complete(win->notice) && !chempi_list_is_empty(&win->link);
}

static int poll_win(struct chempi_progress_hook *hook)
{
    struct chempi_win *win = CHEMPI_CONTAINER_OF(hook, struct chempi_win, hook);
    int events = poll_slots(win);

    if (has_notice(win))
        events += poll_notice(win);
    if (CHEMPI_UNLIKELY(chempi_conn_missing_count() != win->missing)) {
        chempi_rma_look_for_loss(win);
        events++;
    }
    CHEMPI_LIST_FOR_SAFE (link, &win->active) {
        struct chempi_rma_peer *peer =
            CHEMPI_CONTAINER_OF(link, struct chempi_rma_peer, active);

        events += reap_out(peer);
        events += chempi_rma_reap_in(peer);
        if (chempi_rma_has_batch(peer))
            (void)chempi_rma_push(peer); /* without memory: the next time */
        if (chempi_list_is_empty(&peer->out) &&
            chempi_list_is_empty(&peer->in) && !chempi_rma_has_batch(peer)) {
            chempi_list_remove(&peer->active);
            chempi_rma_rest_batch(peer);
        }
    }
    return events;
}

static bool is_front_complete(struct chempi_list *list)
{
    const struct chempi_rma_item *item;

    if (chempi_list_is_empty(list))
        return false;
    item = CHEMPI_CONTAINER_OF(chempi_list_first(list), struct chempi_rma_item,
                               link);
    return !item->req || chempi_request_is_complete(item->req);
}

/* Not what waits in a batch: this is also asked when the application leaves,
 * and it shall have time to gather more. Who waits has polled before. */
static bool has_work(struct chempi_progress_hook *hook)
{
    struct chempi_win *win = CHEMPI_CONTAINER_OF(hook, struct chempi_win, hook);

    if (win->is_served && is_slot_complete(&win->slots[win->slot_next]))
        return true;
    if (CHEMPI_UNLIKELY(chempi_conn_missing_count() != win->missing) ||
        has_notice(win))
        return true;
    CHEMPI_LIST_FOR (link, &win->active) {
        struct chempi_rma_peer *peer =
            CHEMPI_CONTAINER_OF(link, struct chempi_rma_peer, active);

        if (is_front_complete(&peer->out) || is_front_complete(&peer->in))
            return true;
    }
    return false;
}

/* Pages of the data that no message reaches are never touched. */
static int make_slots(struct chempi_win *win)
{
    void *memory = NULL;

    win->slots = chempi_sys->calloc(SLOTS, sizeof(*win->slots));
    if (!win->slots ||
        chempi_sys->posix_memalign(&memory, 64, SLOTS * CHEMPI_RMA_MESSAGE_MAX))
        return chempi_error_set(MPI_ERR_NO_MEM,
                                "no memory for one-sided requests");
    win->slot_data = memory;
    for (uint32_t i = 0; i < SLOTS; i++)
        win->slots[i].data =
            win->slot_data + (size_t)i * CHEMPI_RMA_MESSAGE_MAX;
    return MPI_SUCCESS;
}

/* Where members can be lost, others can be without a window. */
static int make_notice(struct chempi_win *win)
{
    const size_t words = (win->comm->size + 63) / 64;

    win->comm->absent = chempi_sys->calloc(words, sizeof(*win->comm->absent));
    win->notice = chempi_sys->calloc(1, sizeof(*win->notice));
    return win->comm->absent && win->notice
               ? MPI_SUCCESS
               : chempi_error_set(MPI_ERR_NO_MEM,
                                  "no memory to hear of the members of a "
                                  "window");
}

int chempi_rma_open_wire(struct chempi_win *win)
{
    int rc = MPI_SUCCESS;

    chempi_list_init(&win->active);
    chempi_list_init(&win->gate.waiting);
    chempi_list_init(&win->gate.guests);
    if (win->is_served)
        rc = make_slots(win);
    if (rc == MPI_SUCCESS && chempi_loss_may_be_in(win->comm))
        rc = make_notice(win);
    if (rc)
        return rc;
    chempi_lane_lock(&chempi_lane_main);
    for (uint32_t i = 0; win->slots && i < SLOTS && rc == MPI_SUCCESS; i++)
        rc = post_slot(win, &win->slots[i]);
    if (win->notice && rc == MPI_SUCCESS)
        rc = post_slot(win, win->notice);
    win->hook.poll = poll_win;
    win->hook.is_ready = has_work;
    chempi_progress_add_hook(&win->hook);
    chempi_rma_owe(win);
    chempi_lane_unlock(&chempi_lane_main);
    return rc;
}

static void free_slots(struct chempi_win *win)
{
    free(win->slots);
    free(win->notice);
    free(win->slot_data);
    free(win->scratch);
    chempi_rma_free_spares(win);
    win->slots = NULL;
    win->notice = NULL;
    win->slot_data = NULL;
    win->scratch = NULL;
}

/* A request that is too long to come at once may be on its way into one. */
static bool is_coming(const struct chempi_win *win)
{
    for (uint32_t i = 0; win->slots && i < SLOTS; i++)
        if (win->slots[i].req.obj.magic && !is_slot_complete(&win->slots[i]))
            return true;
    return false;
}

static bool has_come(void *arg)
{
    return !is_coming(arg);
}

void chempi_rma_stop_serving(struct chempi_win *win)
{
    bool must_wait;

    chempi_lane_lock(&chempi_lane_main);
    win->is_served = false;
    for (uint32_t i = 0; win->slots && i < SLOTS; i++)
        withdraw_slot(&win->slots[i]);
    must_wait = is_coming(win);
    chempi_lane_unlock(&chempi_lane_main);
    if (must_wait)
        (void)chempi_progress_wait(has_come, win);
}

void chempi_rma_close_wire(struct chempi_win *win)
{
    if (win->hook.poll) {
        chempi_rma_stop_serving(win);
        chempi_lane_lock(&chempi_lane_main);
        for (uint32_t i = 0; win->slots && i < SLOTS; i++)
            if (win->slots[i].req.obj.magic)
                fini_slot(&win->slots[i]);
        if (win->notice && win->notice->req.obj.magic) {
            withdraw_slot(win->notice); /* what comes is there at once */
            fini_slot(win->notice);
        }
        chempi_progress_remove_hook(&win->hook);
        if (win->is_owing)
            chempi_lane_repay(&chempi_lane_main);
        chempi_lane_unlock(&chempi_lane_main);
    }
    free_slots(win);
}
