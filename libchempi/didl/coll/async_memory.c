/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of collective requests; see async_memory.h. */
#include "libchempi/didl/coll/async_memory.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/invariant.h"
#include "common/base/sys.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/comm/message_request.h"

enum { POOL_MAX = 16 };

static struct async spare;
static bool is_spare_taken;

struct chempi_coll_async_pool chempi_coll_async_pool;

static void put_into_pool(struct async *a)
{
    a->next_free = chempi_coll_async_pool.free;
    chempi_coll_async_pool.free = a;
    chempi_coll_async_pool.count++;
}

CHEMPI_NOINLINE struct async *chempi_coll_async_grow(void)
{
    struct async *a = chempi_sys->malloc(sizeof(*a));

    if (!a)
        return is_spare_taken ? NULL : &spare;
    a->req.obj.magic = 0;
    chempi_request_track(&a->req, &chempi_lane_main);
    put_into_pool(a);
    return a;
}

void chempi_coll_async_take(struct async *a)
{
    if (CHEMPI_UNLIKELY(a == &spare)) {
        is_spare_taken = true;
        chempi_request_track(&a->req, &chempi_lane_main);
        return;
    }
    CHEMPI_CHECK(a == chempi_coll_async_pool.free
                     ? NULL
                     : "async E8: other memory was given back or "
                       "taken since this was found");
    chempi_coll_async_pool.free = a->next_free;
    chempi_coll_async_pool.count--;
}

bool chempi_coll_async_is_spare(const struct async *a)
{
    return a == &spare;
}

static CHEMPI_NOINLINE void shrink(struct async *a)
{
    chempi_request_untrack(&a->req);
    if (a == &spare)
        is_spare_taken = false;
    else
        free(a);
}

void chempi_coll_async_give(struct async *a)
{
    if (CHEMPI_LIKELY(a != &spare && chempi_coll_async_pool.count < POOL_MAX &&
                      chempi_coll_async_pool.count <
                          chempi_setting(CHEMPI_SET_REQUEST_POOL)))
        put_into_pool(a);
    else
        shrink(a);
}

void chempi_coll_async_memory_fini(void)
{
    while (chempi_coll_async_pool.free) {
        struct async *a = chempi_coll_async_pool.free;

        chempi_coll_async_pool.free = a->next_free;
        shrink(a);
    }
    chempi_coll_async_pool.count = 0;
}

/* ---- what it holds ---- */

void chempi_coll_async_hold_types(const struct async *a, uint32_t first,
                                  bool is_held)
{
    const struct chempi_coll_sched *s = &a->sched;

    for (uint32_t i = first; i < s->count; i++) {
        const struct chempi_coll_step *step = &s->steps[i];

        if (step->kind == CHEMPI_COLL_NODE) {
            chempi_node_later_hold_types(step->dst, is_held);
            continue;
        }
        chempi_coll_hold_type(step->type, is_held);
        if (step->dst_type)
            chempi_coll_hold_type(step->dst_type, is_held);
    }
}

bool chempi_coll_async_make_room(struct async *a)
{
    const int widest = a->sched.widest;
    const size_t len = (size_t)widest * sizeof(a->children[0]);
    bool had_few = a->children == a->few;
    struct chempi_request **children;

    if (CHEMPI_LIKELY(widest <= a->room))
        return true;
    children = had_few ? chempi_sys->malloc(len)
                       : chempi_sys->realloc(a->children, len);
    if (!children)
        return false;
    if (had_few)
        memcpy(children, a->few, sizeof(a->few));
    a->children = children;
    a->room = widest;
    return true;
}

void chempi_coll_async_hold_buffers(const struct async *a, bool is_held)
{
    const struct chempi_coll_sched *s = &a->sched;

    for (uint32_t i = 0; i < a->own_count; i++) {
        const struct chempi_coll_step *step = &s->steps[i];
        const void *buf =
            step->kind == CHEMPI_COLL_SEND ? step->src : step->dst;

        if (step->kind > CHEMPI_COLL_RECV)
            continue;
        if (is_held)
            chempi_message_hold_piece(buf, step->count, step->type);
        else
            chempi_message_unhold_piece(buf, step->count, step->type);
    }
}
