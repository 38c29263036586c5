/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of one-sided operations, the target's half: what others ask for is
 * executed by whoever makes progress here, in the order in which each of them
 * has sent it.
 *
 *   S1  nothing that a request says is trusted: its range is looked up in the
 *       window or among what is attached; what is refused changes nothing and
 *       its origin learns the class with the answer or at the next flush
 *   S2  peer->in has what is under way for that origin, in order; a flush
 *       stands there as a marker until all before it is done
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/sys.h"
#include "libchempi/didl/base/crash/crash.h"
#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/error/fatal.h"
#include "libchempi/didl/op/op_loops.h"
#include "libchempi/didl/rma/count.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/request.h"
#include "libchempi/services/layout/layout.h"

/* ---- answers ---- */

static void answer_status(struct chempi_rma_peer *peer, uint32_t id)
{
    const struct chempi_rma_verdict verdict = peer->in_error;

    peer->in_error = (struct chempi_rma_verdict){0};
    chempi_rma_take_turns(peer->win);
    chempi_rma_answer(peer, id, &verdict, sizeof(verdict));
}

/* ---- where ---- */

/* Only accumulates come in pieces. */
static bool has_pieces(const struct chempi_rma_head *head)
{
    return head->kind == CHEMPI_RMA_DO_FOLD ||
           head->kind == CHEMPI_RMA_DO_FETCH_FOLD;
}

/* Is this part of what the layout describes, all of it if not in pieces? */
static bool is_part(const struct chempi_rma_head *head,
                    const struct chempi_rma_type *type)
{
    uint64_t whole;

    if (CHEMPI_MUL_OVERFLOWS(head->count, type->layout.size, &whole) ||
        whole > INT64_MAX || head->at > whole || head->len > whole - head->at)
        return false;
    return has_pieces(head) || head->len == whole;
}

/* Bytes that the request touches, relative to its displacement. */
static bool find_span(const struct chempi_rma_head *head,
                      const struct chempi_rma_type *type, int64_t *low,
                      int64_t *high)
{
    int64_t last;

    if (!type) {
        return !CHEMPI_ADD_OVERFLOWS(head->shift, head->at, low) &&
               !CHEMPI_ADD_OVERFLOWS(*low, head->len, high);
    }
    if (head->count == 0 || head->count > INT64_MAX ||
        CHEMPI_MUL_OVERFLOWS((int64_t)head->count - 1, type->layout.extent,
                             &last))
        return false;
    *low = type->low;
    *high = type->high;
    return last < 0 ? !CHEMPI_ADD_OVERFLOWS(*low, last, low)
                    : !CHEMPI_ADD_OVERFLOWS(*high, last, high);
}

/* S1. The place of a request, or an error class. */
static int find_place(struct chempi_win *win, struct chempi_rma_peer *peer,
                      const struct chempi_rma_head *head,
                      struct chempi_rma_place *place,
                      const struct chempi_rma_type **type)
{
    int64_t low = 0;
    int64_t high = 0;
    int64_t disp;

    *type = NULL;
    if (head->type) {
        *type = chempi_rma_find_type(peer, head->type);
        if (!*type || !(*type)->layout.root)
            return MPI_ERR_TYPE;
        if (!is_part(head, *type))
            return MPI_ERR_TYPE;
    }
    if ((head->at && !has_pieces(head)) || head->at + head->len < head->len ||
        !find_span(head, *type, &low, &high) ||
        CHEMPI_MUL_OVERFLOWS(head->disp, win->unit, &disp) ||
        CHEMPI_ADD_OVERFLOWS(low, disp, &low) ||
        CHEMPI_ADD_OVERFLOWS(high, disp, &high))
        return MPI_ERR_RMA_RANGE;
    if (win->flavor == MPI_WIN_FLAVOR_DYNAMIC
            ? !chempi_rma_is_attached(win, low, high)
            : low < 0 || high > win->size)
        return MPI_ERR_RMA_RANGE;
    place->base = (char *)((win->flavor == MPI_WIN_FLAVOR_DYNAMIC
                                ? 0
                                : (uintptr_t)win->base) +
                           (uintptr_t)disp);
    place->end = win->flavor == MPI_WIN_FLAVOR_DYNAMIC
                     ? (uintptr_t)high
                     : (uintptr_t)win->base + (uintptr_t)win->size;
    place->count = head->count;
    place->layout = *type ? &(*type)->layout : NULL;
    if (!*type)
        place->base += head->shift;
    place->guard = chempi_rma_guard(win, win->me_local);
    return MPI_SUCCESS;
}

/* head: the request, or NULL where it is not known any more. */
static void refuse(struct chempi_rma_peer *peer, int error,
                   const struct chempi_rma_head *head)
{
    if (peer->in_error.error)
        return;
    peer->in_error.error = error;
    if (!head)
        return;
    peer->in_error.is_placed = 1;
    peer->in_error.disp = head->disp;
    peer->in_error.len = head->len;
}

/* The same where the answer would have data: an empty one says that it is out
 * of range, and a byte of zero that the datatype is not known. What has one
 * byte only is called out of range. */
static void refuse_answer(struct chempi_rma_peer *peer, int error,
                          const struct chempi_rma_head *head)
{
    chempi_rma_answer(peer, head->id, "",
                      error == MPI_ERR_TYPE && head->len > 1 ? 1 : 0);
}

/* ---- put and get ---- */

static void serve_put(struct chempi_rma_peer *peer,
                      const struct chempi_rma_head *head, const void *data,
                      uint64_t len)
{
    const struct chempi_rma_type *type;
    struct chempi_rma_place place;
    struct chempi_segment iter;
    int rc = find_place(peer->win, peer, head, &place, &type);

    if (rc || len != head->len) {
        refuse(peer, rc ? rc : MPI_ERR_OTHER, head);
    } else if (place.layout) {
        chempi_segment_init(&iter, place.base, place.count, place.layout);
        (void)chempi_segment_unpack(&iter, data, len);
    } else {
        memcpy(place.base, data, len);
    }
}

/* A datatype of the layout that a peer has told, for one message. */
struct foreign {
    struct chempi_datatype type;
    struct chempi_layout layout;
};

static struct chempi_datatype *borrow_type(struct chempi_rma_item *item,
                                           const struct chempi_rma_type *type)
{
    struct foreign *f = chempi_sys->calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    item->buf = f;
    item->root = chempi_layout_hold(type->layout.root);
    f->layout = type->layout;
    chempi_rma_borrow_type(&f->type, &f->layout);
    return &f->type;
}

static void serve_large(struct chempi_rma_peer *peer,
                        const struct chempi_rma_head *head)
{
    struct chempi_rma_item *item = chempi_rma_make_item();
    struct chempi_datatype *bytes = chempi_rma_bytes();
    const struct chempi_rma_type *type;
    struct chempi_rma_place place;
    int rc = find_place(peer->win, peer, head, &place, &type);
    struct chempi_datatype *borrowed = NULL;

    if (item && rc == MPI_SUCCESS && type) {
        borrowed = borrow_type(item, type);
        rc = borrowed ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    if (rc)
        refuse(peer, rc, head);
    if (!item) {
        chempi_rma_no_answer(peer);
        return;
    }
    item->is_data = true;
    item->id = head->id;
    if (rc) /* the payload comes nevertheless; what has no room is dropped */
        rc = chempi_rma_receive(peer, item, NULL, 0, bytes, head->id,
                                CHEMPI_RMA_DATA);
    else if (borrowed)
        rc = chempi_rma_receive(peer, item, place.base, (MPI_Count)place.count,
                                borrowed, head->id, CHEMPI_RMA_DATA);
    else
        rc = chempi_rma_receive(peer, item, place.base, (MPI_Count)head->len,
                                bytes, head->id, CHEMPI_RMA_DATA);
    if (rc) {
        refuse(peer, rc, head);
        chempi_rma_free_item(item);
    } else {
        chempi_rma_add_item(peer, &peer->in, item);
    }
}

/* The payload of a large put will not come. */
static void serve_drop(struct chempi_rma_peer *peer,
                       const struct chempi_rma_head *head)
{
    CHEMPI_LIST_FOR (link, &peer->in) {
        struct chempi_rma_item *item =
            CHEMPI_CONTAINER_OF(link, struct chempi_rma_item, link);

        if (!item->is_data || item->id != head->id)
            continue;
        item->req->ops->cancel(item->req);
        return;
    }
}

static void serve_get(struct chempi_rma_peer *peer,
                      const struct chempi_rma_head *head)
{
    const struct chempi_rma_type *type;
    struct chempi_rma_place place;
    struct chempi_datatype *borrowed = NULL;
    struct chempi_rma_item *item;
    int rc = find_place(peer->win, peer, head, &place, &type);

    if (rc) {
        refuse_answer(peer, rc, head);
        return;
    }
    if (!type && chempi_rma_inject(peer, place.base, head->len, head->id,
                                   CHEMPI_RMA_ANSWERS) == 0)
        return;
    item = chempi_rma_make_item();
    if (item && type)
        borrowed = borrow_type(item, type);
    if (!item || (type && !borrowed)) {
        chempi_rma_no_answer(peer);
        return;
    }
    rc =
        borrowed
            ? chempi_rma_send(peer, item, place.base, (MPI_Count)place.count,
                              borrowed, head->id, CHEMPI_RMA_ANSWERS)
            : chempi_rma_send(peer, item, place.base, (MPI_Count)head->len,
                              chempi_rma_bytes(), head->id, CHEMPI_RMA_ANSWERS);
    if (rc)
        chempi_rma_free_item(item);
    else
        chempi_rma_add_item(peer, &peer->in, item);
}

/* ---- arithmetic ---- */

static bool is_fold(const struct chempi_rma_head *head, uint64_t len)
{
    const struct chempi_basic_type_info *info;

    if (head->elem >= CHEMPI_BASIC_TYPE_COUNT || head->op >= CHEMPI_OP_COUNT ||
        head->len > CHEMPI_RMA_PIECE_MAX)
        return false;
    info = &chempi_basic_type_table[head->elem];
    if (!info->size || head->len % info->size || head->at % info->size)
        return false;
    if (head->op == CHEMPI_OP_NO_OP)
        return len == 0;
    return len == head->len && (head->op == CHEMPI_OP_REPLACE ||
                                chempi_op_loops[head->op][head->elem]);
}

/* Stacks of threads may be small. */
static unsigned char *scratch_of(struct chempi_win *win)
{
    if (!win->scratch)
        win->scratch = chempi_sys->malloc(CHEMPI_RMA_PIECE_MAX);
    return win->scratch;
}

static void serve_fold(struct chempi_rma_peer *peer,
                       const struct chempi_rma_head *head, const void *data,
                       uint64_t len)
{
    const bool is_fetch = head->kind == CHEMPI_RMA_DO_FETCH_FOLD;
    const struct chempi_rma_type *type;
    struct chempi_rma_place place;
    unsigned char few[64];
    unsigned char *out = few;
    int rc = find_place(peer->win, peer, head, &place, &type);

    if (rc == MPI_SUCCESS && !is_fold(head, len))
        rc = MPI_ERR_OTHER;
    if (rc == MPI_SUCCESS && is_fetch && head->len > sizeof(few)) {
        out = scratch_of(peer->win);
        rc = out ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    if (rc == MPI_SUCCESS)
        chempi_rma_fold(&place, head->op, (uint8_t)head->elem, head->at,
                        head->len, len ? data : NULL, is_fetch ? out : NULL);
    else if (!is_fetch)
        refuse(peer, rc, head);
    if (is_fetch && rc)
        refuse_answer(peer, rc, head);
    else if (is_fetch)
        chempi_rma_answer(peer, head->id, out, head->len);
}

static void serve_swap(struct chempi_rma_peer *peer,
                       const struct chempi_rma_head *head,
                       const unsigned char *data, uint64_t len)
{
    const struct chempi_rma_type *type;
    struct chempi_rma_place place;
    unsigned char out[16];
    int rc = find_place(peer->win, peer, head, &place, &type);

    if (rc || type || head->len > sizeof(out) || len != 2 * head->len) {
        chempi_rma_answer(peer, head->id, NULL, 0);
        return;
    }
    chempi_rma_swap(&place.guard, place.base, head->len, data, data + head->len,
                    out);
    chempi_rma_answer(peer, head->id, out, head->len);
}

/* ---- flush and locks ---- */

static void release(struct chempi_rma_peer *peer)
{
    if (peer->granted)
        chempi_rma_gate_leave(peer->win, peer->granted == CHEMPI_RMA_EXCLUSIVE);
    peer->granted = CHEMPI_RMA_UNLOCKED;
}

static void serve_flush(struct chempi_rma_peer *peer,
                        const struct chempi_rma_head *head)
{
    const bool is_release = head->kind == CHEMPI_RMA_DO_UNLOCK;
    struct chempi_rma_item *item;

    if (chempi_list_is_empty(&peer->in)) {
        if (is_release)
            release(peer);
        answer_status(peer, head->id);
        return;
    }
    item = chempi_rma_make_item();
    if (!item) {
        chempi_rma_no_answer(peer);
        return;
    }
    item->is_marker = true;
    item->is_release = is_release;
    item->id = head->id;
    chempi_rma_add_item(peer, &peer->in, item);
}

static void serve_rest(struct chempi_rma_peer *peer, const unsigned char *data,
                       uint64_t len);

static void serve_lock(struct chempi_rma_peer *peer,
                       const struct chempi_rma_head *head)
{
    struct chempi_rma_claim *claim = chempi_sys->calloc(1, sizeof(*claim));

    if (!claim) {
        chempi_rma_no_answer(peer);
        return;
    }
    claim->peer = peer;
    claim->id = head->id;
    claim->held_by = -1;
    claim->kind = head->op;
    claim->serve_rest = serve_rest;
    peer->claim = claim;
    chempi_rma_gate_ask(peer->win, claim); /* granted: peer->claim is NULL */
}

/* Keep requests until the lock before them is granted. An origin sends no
 * more than one message with it (B2). */
static void keep(struct chempi_rma_peer *peer, const unsigned char *data,
                 uint64_t len)
{
    struct chempi_rma_claim *claim = peer->claim;
    unsigned char *rest;

    if (len == 0)
        return;
    if (len > CHEMPI_RMA_MESSAGE_MAX - claim->rest_len) {
        chempi_log(CHEMPI_LOG_WARNING, "rma",
                   "ignored %llu bytes of one-sided requests from rank %u, "
                   "which waits for a lock",
                   (unsigned long long)len, peer->rank);
        return;
    }
    rest = chempi_sys->realloc(claim->rest, claim->rest_len + len);
    if (!rest) {
        chempi_rma_no_answer(peer);
        return;
    }
    memcpy(rest + claim->rest_len, data, len);
    claim->rest = rest;
    claim->rest_len += len;
}

int chempi_rma_reap_in(struct chempi_rma_peer *peer)
{
    int events = 0;

    while (!chempi_list_is_empty(&peer->in)) {
        struct chempi_rma_item *item = CHEMPI_CONTAINER_OF(
            chempi_list_first(&peer->in), struct chempi_rma_item, link);

        if (item->req && !chempi_request_is_complete(item->req))
            break;
        chempi_list_remove(&item->link);
        peer->in_count--;
        peer->in_bytes -= item->copied;
        peer->known_bytes -= item->described;
        if (item->req && item->req->error &&
            item->req->error != MPI_ERR_TRUNCATE)
            refuse(peer, item->req->error, NULL);
        if (item->is_release)
            release(peer);
        if (item->is_marker)
            answer_status(peer, item->id);
        chempi_rma_free_item(item);
        events++;
    }
    return events;
}

/* ---- all of them ---- */

/* The request that this thread serves. */
static _Thread_local struct {
    const struct chempi_rma_peer *peer;
    const struct chempi_rma_head *head;
} now;

/* Memory that a window has may be gone: who asked for what. */
static void put_duty(char *buf, size_t len)
{
    (void)snprintf(buf, len,
                   "it served an operation of rank %u on %s: %llu bytes at "
                   "displacement %lld; is the window's memory still there?",
                   now.peer->rank, chempi_rma_name(now.peer->win),
                   (unsigned long long)now.head->len,
                   (long long)now.head->disp);
}

static void hear_holder(struct chempi_rma_peer *peer,
                        const struct chempi_rma_head *head)
{
    if ((!peer->wanted && !peer->batch.asked) || head->disp < 0 ||
        head->disp >= peer->win->comm->size)
        return;
    peer->held_by = (int32_t)head->disp;
    chempi_rma_count(peer->win, CHEMPI_RMA_COUNT_LOCK_WAITS, 1);
}

static void serve_one(struct chempi_rma_peer *peer,
                      const struct chempi_rma_head *head, const void *payload)
{
    const uint64_t len = head->payload;

    chempi_rma_count(peer->win, CHEMPI_RMA_COUNT_SERVED, 1);
    switch (head->kind) {
    case CHEMPI_RMA_DO_PUT:
        serve_put(peer, head, payload, len);
        break;
    case CHEMPI_RMA_DO_PUT_LARGE:
        serve_large(peer, head);
        break;
    case CHEMPI_RMA_DO_GET:
        serve_get(peer, head);
        break;
    case CHEMPI_RMA_DO_FOLD:
    case CHEMPI_RMA_DO_FETCH_FOLD:
        serve_fold(peer, head, payload, len);
        break;
    case CHEMPI_RMA_DO_SWAP:
        serve_swap(peer, head, payload, len);
        break;
    case CHEMPI_RMA_DO_FLUSH:
    case CHEMPI_RMA_DO_UNLOCK:
        serve_flush(peer, head);
        break;
    case CHEMPI_RMA_DO_LOCK:
        serve_lock(peer, head);
        break;
    case CHEMPI_RMA_DO_TYPE:
        if (chempi_rma_hear_type(peer, head->type, head->total, head->at,
                                 head->shift, payload, len))
            refuse(peer, MPI_ERR_TYPE, NULL);
        break;
    case CHEMPI_RMA_DO_FORGET:
        chempi_rma_forget_type(peer, head->type);
        break;
    case CHEMPI_RMA_DO_DROP:
        serve_drop(peer, head);
        break;
    case CHEMPI_RMA_NOTE_HELD:
        hear_holder(peer, head);
        break;
    default:
        chempi_log(CHEMPI_LOG_WARNING, "rma",
                   "ignored a one-sided request of kind %u from rank %u",
                   head->kind, peer->rank);
        break;
    }
}

/* The next request in len bytes, and how many it has with its payload; 0: it
 * is not whole. */
static uint64_t read_head(const unsigned char *data, uint64_t len,
                          struct chempi_rma_head *head)
{
    uint64_t space;

    if (len < sizeof(*head))
        return 0;
    memcpy(head, data, sizeof(*head));
    space = (sizeof(*head) + (uint64_t)head->payload + 7) / 8 * 8;
    return space <= len ? space : 0;
}

static void serve_rest(struct chempi_rma_peer *peer, const unsigned char *data,
                       uint64_t len)
{
    while (len > 0) {
        struct chempi_rma_head head;
        const uint64_t space = read_head(data, len, &head);

        if (!space) {
            chempi_log(CHEMPI_LOG_WARNING, "rma",
                       "ignored a one-sided request of %llu bytes from rank "
                       "%u, which is not whole",
                       (unsigned long long)len, peer->rank);
            return;
        }
        if (peer->claim && head.kind != CHEMPI_RMA_NOTE_HELD) {
            keep(peer, data, len);
            return;
        }
        now.peer = peer;
        now.head = &head;
        chempi_crash_duty = put_duty;
        serve_one(peer, &head, data + sizeof(head));
        chempi_crash_duty = NULL;
        data += space;
        len -= space;
    }
}

void chempi_rma_serve(struct chempi_win *win, uint32_t source, const void *data,
                      uint64_t len)
{
    struct chempi_rma_peer *peer;

    if (source >= win->comm->size) {
        chempi_log(CHEMPI_LOG_WARNING, "rma",
                   "ignored a one-sided request of %llu bytes from rank %u",
                   (unsigned long long)len, source);
        return;
    }
    peer = chempi_rma_peer(win, source);
    if (!peer) {
        chempi_fatal_die("out of memory for the requests of rank %u of a "
                         "window",
                         source);
        return;
    }
    chempi_rma_take_turns(win);
    serve_rest(peer, data, len);
}
