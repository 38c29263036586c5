/* SPDX-License-Identifier: BSD-3-Clause */
/* What is under way with a peer, and the messages that it is made of. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/error/fatal.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/worlds/foreign.h"

struct chempi_datatype *chempi_rma_bytes(void)
{
    return chempi_datatype_lookup(MPI_BYTE);
}

struct chempi_rma_item *chempi_rma_make_item(void)
{
    struct chempi_rma_item *item = chempi_sys->calloc(1, sizeof(*item));

    if (!item)
        (void)chempi_error_set(MPI_ERR_NO_MEM,
                               "no memory for a one-sided operation");
    return item;
}

void chempi_rma_free_item(struct chempi_rma_item *item)
{
    if (item->req)
        chempi_request_drop(item->req);
    if (item->is_packed)
        chempi_datatype_release(item->result.type);
    if (item->root)
        chempi_layout_release(item->root);
    free(item->buf);
    free(item);
}

void chempi_rma_activate(struct chempi_rma_peer *peer)
{
    if (chempi_list_is_empty(&peer->active))
        chempi_list_append(&peer->win->active, &peer->active);
}

/* Own ranks have no more under way than they have memory for
 * (CHEMPI_RMA_OUT_MAX). */
static void count_in(struct chempi_rma_peer *peer)
{
    if (CHEMPI_UNLIKELY(++peer->in_count >
                        chempi_setting(CHEMPI_SET_MEET_HELD)) &&
        chempi_foreign_is(peer->proc))
        chempi_conn_set_lost(&chempi_lane_main, peer->proc,
                             "it has asked for more of a window at a time than "
                             "CHEMPI_MEET_HELD_MAX permits");
    if (CHEMPI_UNLIKELY(peer->in_bytes > CHEMPI_RMA_IN_MAX) &&
        chempi_foreign_is(peer->proc))
        chempi_conn_set_lost(&chempi_lane_main, peer->proc,
                             "it takes no answers of a window, and asks for "
                             "more");
}

void chempi_rma_add_item(struct chempi_rma_peer *peer, struct chempi_list *list,
                         struct chempi_rma_item *item)
{
    chempi_list_append(list, &item->link);
    peer->win->out_bytes += chempi_rma_weight(item);
    chempi_rma_activate(peer);
    if (item->is_answer)
        peer->answers++;
    if (item->user)
        chempi_request_add_pending(item->user, 1);
    if (list == &peer->in)
        count_in(peer);
}

/* What is large goes on while this process is away, as all large messages. */
static int launch(struct chempi_rma_item *item)
{
    struct chempi_request *req = item->req;
    int rc = chempi_message_start(req);

    if (rc) {
        chempi_request_drop(req);
        item->req = NULL;
    } else {
        chempi_request_owe(req, (uint64_t)(req->count * req->type->size));
    }
    chempi_progress_nudge();
    return rc;
}

int chempi_rma_send(struct chempi_rma_peer *peer, struct chempi_rma_item *item,
                    const void *buf, MPI_Count count,
                    struct chempi_datatype *type, uint32_t tag,
                    enum chempi_rma_context context)
{
    item->req = chempi_request_alloc(&chempi_lane_main);
    if (!item->req)
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a request");
    chempi_message_init_send(item->req, buf, count, type, (int)peer->rank,
                             (int)tag, peer->win->comm, context,
                             CHEMPI_SEND_STANDARD);
    item->req->is_urgent = true;
    return launch(item);
}

int chempi_rma_receive(struct chempi_rma_peer *peer,
                       struct chempi_rma_item *item, void *buf, MPI_Count count,
                       struct chempi_datatype *type, uint32_t tag,
                       enum chempi_rma_context context)
{
    item->req = chempi_request_alloc(&chempi_lane_main);
    if (!item->req)
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a request");
    chempi_message_init_recv(item->req, buf, count, type, (int)peer->rank,
                             (int)tag, peer->win->comm, context);
    return launch(item);
}

int chempi_rma_inject(struct chempi_rma_peer *peer, const void *data,
                      uint64_t len, uint32_t tag,
                      enum chempi_rma_context context)
{
    const struct chempi_comm *comm = peer->win->comm;
    struct chempi_envelope env = {
        .len = len,
        .context = comm->send_context + (uint32_t)context,
        .source = comm->rank,
        .tag = (int32_t)tag,
        .kind = CHEMPI_KIND_MESSAGE,
        .flags = CHEMPI_ENVELOPE_URGENT,
    };

    return chempi_engine_inject(chempi_conn_peer(&chempi_lane_main, peer->proc),
                                &env, data, false);
}

void chempi_rma_borrow_type(struct chempi_datatype *type,
                            const struct chempi_layout *layout)
{
    chempi_object_init(&type->obj, CHEMPI_MAGIC_DATATYPE);
    type->is_predefined = true; /* nobody counts its references */
    type->is_committed = true;
    type->size = (MPI_Count)layout->size;
    type->extent = layout->extent;
    type->layout = layout;
    type->elem_kind = CHEMPI_BASIC_TYPE_BYTE; /* nobody compares what it holds,
                                           nor looks for a recipe */
    type->align = 1;
}

/* ---- answers ------------------------------------------------------------- */

CHEMPI_COLD void chempi_rma_no_answer(const struct chempi_rma_peer *peer)
{
    chempi_fatal_die(
        "out of memory for an answer to rank %u of a window, which "
        "would wait for it for ever; use less memory",
        peer->rank);
}

/* 0, or there is no memory. */
static int send_copy(struct chempi_rma_peer *peer, const void *data,
                     uint64_t len, uint32_t tag, enum chempi_rma_context where)
{
    struct chempi_rma_item *item;

    if (chempi_rma_inject(peer, data, len, tag, where) == 0)
        return 0;
    item = chempi_rma_make_item();
    if (item)
        item->buf = chempi_sys->malloc(len + 1);
    if (!item || !item->buf) {
        free(item);
        return -ENOMEM;
    }
    if (len)
        memcpy(item->buf, data, len);
    if (chempi_rma_send(peer, item, item->buf, (MPI_Count)len,
                        chempi_rma_bytes(), tag, where)) {
        chempi_rma_free_item(item); /* it is lost */
        return 0;
    }
    item->copied = len;
    peer->in_bytes += len;
    chempi_rma_add_item(peer, &peer->in, item);
    return 0;
}

void chempi_rma_answer(struct chempi_rma_peer *peer, uint32_t id,
                       const void *data, uint64_t len)
{
    if (send_copy(peer, data, len, id, CHEMPI_RMA_ANSWERS))
        chempi_rma_no_answer(peer);
}

/* By itself: what is in a batch may wait for this process's own grant. */
void chempi_rma_tell_holder(struct chempi_rma_peer *peer, int32_t holder)
{
    const struct chempi_rma_head head = {.kind = CHEMPI_RMA_NOTE_HELD,
                                         .disp = holder};

    (void)send_copy(peer, &head, sizeof(head), 0,
                    CHEMPI_RMA_REQUESTS); /* words only */
}
