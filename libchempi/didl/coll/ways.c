/* SPDX-License-Identifier: BSD-3-Clause */
/* How often each way was gone; see coll.h. */
#include <stdatomic.h>

#include "libchempi/didl/coll/coll.h"

static _Atomic uint64_t counts[CHEMPI_COLL_WAYS];

void chempi_coll_count_anew(void)
{
    for (int way = 0; way < CHEMPI_COLL_WAYS; way++)
        atomic_store_explicit(&counts[way], 0, memory_order_relaxed);
}

void chempi_coll_count(enum chempi_coll_way way)
{
    (void)atomic_fetch_add_explicit(&counts[way], 1, memory_order_relaxed);
}

uint64_t chempi_coll_counted(enum chempi_coll_way way)
{
    return atomic_load_explicit(&counts[way], memory_order_relaxed);
}
