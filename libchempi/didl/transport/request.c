/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of requests; see request.h. */
#include "libchempi/didl/transport/request.h"

#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/base/status.h"
#include "libchempi/didl/transport/lane.h"

static void (*notify)(void); /* chempi_request_on_complete() */

void chempi_request_init(struct chempi_request *req, struct chempi_lane *lane,
                         enum chempi_request_kind kind,
                         const struct chempi_request_ops *ops,
                         struct chempi_comm *comm, struct chempi_datatype *type)
{
    chempi_object_init(&req->obj, CHEMPI_MAGIC_REQUEST);
    req->ops = ops;
    req->lane = lane;
    chempi_request_set_pending(req, 1);
    req->kind = (uint8_t)kind;
    req->mode = CHEMPI_SEND_STANDARD;
    req->is_persistent = false;
    req->is_active = true;
    req->is_freed = false;
    req->hold = CHEMPI_REQUEST_HOLDS;
    req->is_cancelled = false;
    req->is_cancelling = false;
    req->is_queued = false;
    req->is_owed = false;
    req->is_urgent = false;
    req->is_posted = false;
    req->sent_bits = 0;
    req->site = 0;
    req->error = MPI_SUCCESS;
    req->source = MPI_ANY_SOURCE;
    req->tag = MPI_ANY_TAG;
    req->bytes = 0;
    req->comm = comm;
    req->type = type;
    req->packed = NULL;
    req->parent = NULL;
    if (comm)
        chempi_object_hold(&comm->obj);
    if (type)
        chempi_datatype_hold(type);
}

/* ---- members of tables ---- */

int chempi_request_start_nothing(struct chempi_request *req)
{
    (void)req;
    return MPI_SUCCESS;
}

void chempi_request_cancel_nothing(struct chempi_request *req)
{
    (void)req;
}

int chempi_request_finish_empty(struct chempi_request *req, MPI_Status *status)
{
    chempi_status_set_empty(status);
    return req->error;
}

static void keep(struct chempi_request *req)
{
    (void)req;
}

static const struct chempi_request_ops over_ops = {
    .call = "a non-blocking operation",
    .start = chempi_request_start_nothing,
    .cancel = chempi_request_cancel_nothing,
    .finish = chempi_request_finish_empty,
    .destroy = keep,
};

#define OVER                                                                   \
    {                                                                          \
        .obj = {.magic = CHEMPI_MAGIC_REQUEST, .refs = 1}, .ops = &over_ops,   \
        .lane = &chempi_lane_main, .kind = CHEMPI_REQUEST_COLL,                \
        .is_active = true,                                                     \
    }

/* What is in no lane yet may be any. */
struct chempi_request chempi_request_over[] = {OVER, OVER, OVER, OVER,
                                               OVER, OVER, OVER, OVER};
static_assert(CHEMPI_ARRAY_LEN(chempi_request_over) == CHEMPI_LANES_MAX,
              "one for each lane");

/* ---- the list of all ---- */

void chempi_request_track(struct chempi_request *req, struct chempi_lane *lane)
{
    req->lane = lane;
    chempi_list_append(&lane->requests.all, &req->all_link);
}

static struct chempi_request *of_link(const struct chempi_lane *lane,
                                      struct chempi_list *link)
{
    return link == &lane->requests.all
               ? NULL
               : CHEMPI_CONTAINER_OF(link, struct chempi_request, all_link);
}

void chempi_request_untrack(struct chempi_request *req)
{
    CHEMPI_LIST_FOR (link, &req->lane->requests.lulls) {
        struct chempi_request_lull *lull =
            CHEMPI_CONTAINER_OF(link, struct chempi_request_lull, link);

        if (lull->blocker == req)
            lull->blocker = of_link(req->lane, req->all_link.next);
    }
    chempi_list_remove(&req->all_link);
}

/* ---- is nothing under way on a communicator? ---- */

void chempi_request_lull_open(struct chempi_request_lull *lull,
                              struct chempi_comm *comm)
{
    lull->comm = comm;
    lull->blocker = NULL;
    chempi_lane_lock(&chempi_lane_main);
    chempi_list_append(&chempi_lane_main.requests.lulls, &lull->link);
    chempi_lane_unlock(&chempi_lane_main);
}

void chempi_request_lull_close(struct chempi_request_lull *lull)
{
    chempi_lane_lock(&chempi_lane_main);
    chempi_list_remove(&lull->link);
    chempi_lane_unlock(&chempi_lane_main);
}

static bool is_holding(const struct chempi_request *req,
                       const struct chempi_comm *comm)
{
    return req->obj.magic == CHEMPI_MAGIC_REQUEST && req->comm == comm;
}

static bool is_under_way(const struct chempi_request *req)
{
    return req->is_active && !chempi_request_is_complete(req);
}

/* Those of another lane, all of them; true: none is under way, and *refs are
 * less. Holder of it. */
static bool look_in(struct chempi_lane *lane, const struct chempi_comm *comm,
                    int32_t *refs)
{
    bool is_quiet = true;

    CHEMPI_LIST_FOR (link, &lane->requests.all) {
        const struct chempi_request *req = of_link(lane, link);

        if (!is_holding(req, comm))
            continue;
        is_quiet &= !is_under_way(req);
        --*refs;
    }
    return is_quiet;
}

/* Holder of the first lane and of the communicator's. Round the list once, from
 * the last blocker on; those before it were not under way. */
static bool is_lull(struct chempi_request_lull *lull)
{
    struct chempi_lane *lane = &chempi_lane_main;
    int32_t refs =
        atomic_load_explicit(&lull->comm->obj.refs, memory_order_acquire) +
        (int32_t)lull->comm->requests - (lull->comm->requests > 0);
    struct chempi_list *start =
        lull->blocker ? &lull->blocker->all_link : &lane->requests.all;
    struct chempi_list *link = start;

    if (refs == 1)
        return true;
    do {
        struct chempi_request *req = of_link(lane, link);

        link = link->next;
        if (!req || !is_holding(req, lull->comm))
            continue;
        if (is_under_way(req)) {
            lull->blocker = req;
            return false;
        }
        refs--;
    } while (link != start);
    if (lull->comm->lane != lane &&
        !look_in(lull->comm->lane, lull->comm, &refs))
        return false;
    return refs == 1;
}

bool chempi_request_lull_is_there(struct chempi_request_lull *lull)
{
    struct chempi_lane *lane = lull->comm->lane;
    const bool is_other = lane->number > 0 && lane->is_locking;
    bool is;

    if (is_other)
        chempi_lane_lock(lane); /* its requests leave the communicator there */
    is = is_lull(lull);
    if (is_other)
        chempi_lane_drop(lane);
    return is;
}

bool chempi_request_is_any_filling(const struct chempi_lane *lane)
{
    CHEMPI_LIST_FOR (link, &lane->requests.all) {
        const struct chempi_request *req = of_link(lane, link);

        if (req->obj.magic == CHEMPI_MAGIC_REQUEST &&
            chempi_request_is_filling(req))
            return true;
    }
    return false;
}

/* ---- the pool ---- */

static CHEMPI_NOINLINE struct chempi_request *grow(struct chempi_lane *lane)
{
    struct chempi_request *req = chempi_sys->malloc(sizeof(*req));

    if (!req)
        return NULL;
    req->obj.magic = 0;
    chempi_request_track(req, lane);
    return req;
}

static void shrink(struct chempi_request *req)
{
    chempi_request_untrack(req);
    free(req);
}

struct chempi_request *chempi_request_alloc(struct chempi_lane *lane)
{
    struct chempi_request *req = lane->requests.free;

    if (CHEMPI_LIKELY(req != NULL)) {
        lane->requests.free = (struct chempi_request *)(void *)req->u.tx.ep;
        lane->requests.free_count--;
        return req;
    }
    return grow(lane);
}

void chempi_request_recycle(struct chempi_request *req)
{
    struct chempi_lane *lane = req->lane;

    req->obj.magic = 0;
    if (lane->requests.free_count >= chempi_setting(CHEMPI_SET_REQUEST_POOL)) {
        shrink(req);
        return;
    }
    req->u.tx.ep = (struct chempi_ep *)(void *)lane->requests.free;
    lane->requests.free = req;
    lane->requests.free_count++;
}

void chempi_request_open_lane(struct chempi_lane *lane)
{
    chempi_request_over[lane->number].lane = lane;
}

void chempi_request_fini(struct chempi_lane *lane)
{
    chempi_request_over[lane->number].lane = &chempi_lane_main;
    while (lane->requests.free) {
        struct chempi_request *req = lane->requests.free;

        lane->requests.free = (struct chempi_request *)(void *)req->u.tx.ep;
        shrink(req);
    }
    lane->requests.free_count = 0;
}

/* ---- completion ---- */

/* Of finish_locked(). */
CHEMPI_NOINLINE int chempi_request_finish_unlocked(struct chempi_request *req,
                                                   MPI_Status *status)
{
    struct chempi_lane *lane = req->lane;
    int error;

    chempi_lane_pause(lane);
    error = req->ops->finish(req, status);
    chempi_lane_lock(lane);
    return error;
}

void chempi_request_drop(struct chempi_request *req)
{
    req->ops->destroy(req);
}

void chempi_request_orphan(struct chempi_request *req)
{
    req->is_freed = true;
    req->lane->requests.orphans++;
}

uint32_t chempi_request_orphans(const struct chempi_lane *lane)
{
    return lane->requests.orphans;
}

/* Complete, and nobody has a handle: tell the parent, if any, and go. */
static CHEMPI_NOINLINE void finish_orphan(struct chempi_request *req)
{
    struct chempi_request *parent = req->parent;
    int error = req->error;

    req->lane->requests.orphans--;
    if (parent && req->kind == CHEMPI_REQUEST_RECV) {
        parent->source = req->source;
        parent->tag = req->tag;
        parent->bytes = req->bytes;
    }
    chempi_request_drop(req);
    if (parent)
        chempi_request_progress(parent, error);
}

void chempi_request_on_complete(void (*tell)(void))
{
    notify = tell;
}

CHEMPI_NOINLINE void chempi_request_owe_large(struct chempi_request *req)
{
    if (chempi_request_is_complete(req))
        return;
    req->is_owed = true;
    chempi_lane_owe(req->lane);
}

void chempi_request_progress(struct chempi_request *req, int error)
{
    uint32_t left;

    if (CHEMPI_UNLIKELY(error != MPI_SUCCESS) && req->error == MPI_SUCCESS)
        req->error = error;
    left = chempi_request_pending(req) - 1;
    chempi_request_set_pending(req, left);
    if (left != 0)
        return;
    if (CHEMPI_UNLIKELY(req->is_owed)) {
        req->is_owed = false;
        chempi_lane_repay(req->lane);
    }
    if (CHEMPI_UNLIKELY(req->is_freed)) {
        finish_orphan(req);
        return;
    }
    if (CHEMPI_LIKELY(!req->lane->is_locking))
        return;
    if (req->lane->number == 0)
        notify();
    else if (atomic_load_explicit(&req->lane->joined, memory_order_relaxed))
        req->lane->has_deferred = true;
}
