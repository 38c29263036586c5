/* SPDX-License-Identifier: BSD-3-Clause */
/* What file access has done; see count.h. */
#include "libchempi/didl/io/count.h"

#include <stdatomic.h>

static _Atomic uint64_t counts[CHEMPI_IO_COUNTERS];

void chempi_io_count(enum chempi_io_counter which, uint64_t n)
{
    (void)atomic_fetch_add_explicit(&counts[which], n, memory_order_relaxed);
}

uint64_t chempi_io_counted(enum chempi_io_counter which)
{
    return atomic_load_explicit(&counts[which], memory_order_relaxed);
}
