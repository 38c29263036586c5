/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of collective requests; see async_memory.h. */
#include "libchempi/didl/coll/async_memory.h"

#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/setting.h"

enum { POOL_MAX = 16 };

static struct async spare;
static bool is_spare_taken;

/* Memory of requests that are gone, for the next ones. */
static struct {
    struct chempi_list free; /* struct async.link */
    uint32_t count;
} pool = {.free = {&pool.free, &pool.free}};

static void put_into_pool(struct async *a)
{
    chempi_list_prepend(&pool.free, &a->link); /* the caches have it */
    pool.count++;
}

struct async *chempi_coll_async_find(void)
{
    struct async *a;

    if (CHEMPI_LIKELY(!chempi_list_is_empty(&pool.free)))
        return chempi_coll_async_of_link(pool.free.next);
    a = chempi_sys->malloc(sizeof(*a));
    if (a)
        put_into_pool(a);
    else if (!is_spare_taken)
        a = &spare;
    return a;
}

void chempi_coll_async_take(struct async *a)
{
    if (CHEMPI_UNLIKELY(a == &spare)) {
        is_spare_taken = true;
        return;
    }
    chempi_list_remove(&a->link);
    pool.count--;
}

bool chempi_coll_async_is_spare(const struct async *a)
{
    return a == &spare;
}

void chempi_coll_async_give(struct async *a)
{
    if (CHEMPI_UNLIKELY(a == &spare))
        is_spare_taken = false;
    else if (pool.count < POOL_MAX &&
             pool.count < chempi_setting(CHEMPI_SET_REQUEST_POOL))
        put_into_pool(a);
    else
        free(a);
}

void chempi_coll_async_memory_fini(void)
{
    CHEMPI_LIST_FOR_SAFE (pos, &pool.free)
        free(chempi_coll_async_of_link(pos));
    chempi_list_init(&pool.free);
    pool.count = 0;
}
