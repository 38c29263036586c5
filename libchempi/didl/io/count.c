/* SPDX-License-Identifier: BSD-3-Clause */
/* What file access has done; see count.h. */
#include "libchempi/didl/io/count.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "common/control/wire.h"

static _Atomic uint64_t counts[CHEMPI_IO_COUNTERS];
static uint64_t told[CHEMPI_IO_COUNTERS]; /* under the lane lock */

const struct chempi_counter_words chempi_io_counter_words[CHEMPI_IO_COUNTERS] =
    {
        [CHEMPI_IO_COUNT_ASKED] =
            {"bytes_asked",
             "What the program asked to read or write, in bytes.", true},
        [CHEMPI_IO_COUNT_READ] = {"bytes_read",
                                  "What was read from files, in bytes.", true},
        [CHEMPI_IO_COUNT_WRITTEN] =
            {"bytes_written",
             "What was written to files by calls of the system, in bytes.",
             true},
        [CHEMPI_IO_COUNT_CALLS] =
            {"calls", "Calls of the system that read or wrote, a count.",
             false},
        [CHEMPI_IO_COUNT_SIEVED] =
            {"bytes_sieved",
             "Windows with holes that were read or written back, in bytes.",
             false},
        [CHEMPI_IO_COUNT_MAPPED] =
            {"bytes_mapped",
             "What was stored through mappings of files, in bytes.", false},
        [CHEMPI_IO_COUNT_EXCHANGED] =
            {"bytes_exchanged", "What was sent to or by aggregators, in bytes.",
             true},
        [CHEMPI_IO_COUNT_AGGREGATIONS] =
            {"aggregations",
             "Collective accesses in which this process was an aggregator, a "
             "count.",
             false},
        [CHEMPI_IO_COUNT_ROUNDS] =
            {"rounds",
             "Windows that this process accessed as an aggregator, a count.",
             false},
        [CHEMPI_IO_COUNT_AGREE_NS] =
            {"agree_ns",
             "How long collective accesses told each other what they have and "
             "how they ended, in nanoseconds.",
             false},
        [CHEMPI_IO_COUNT_ACCESS_NS] =
            {"access_ns",
             "How long it accessed files as an aggregator, in nanoseconds.",
             false},
        [CHEMPI_IO_COUNT_EXCHANGE_NS] =
            {"exchange_ns",
             "How long it waited in exchanges with aggregators, in "
             "nanoseconds.",
             false},
};

void chempi_io_count(enum chempi_io_counter which, uint64_t n)
{
    (void)atomic_fetch_add_explicit(&counts[which], n, memory_order_relaxed);
}

uint64_t chempi_io_counted(enum chempi_io_counter which)
{
    return atomic_load_explicit(&counts[which], memory_order_relaxed);
}

void chempi_io_count_init(void)
{
    for (int i = 0; i < CHEMPI_IO_COUNTERS; i++) {
        atomic_store_explicit(&counts[i], 0, memory_order_relaxed);
        told[i] = 0;
    }
}

void chempi_io_count_report(struct chempi_writer *out)
{
    for (int i = 0; i < CHEMPI_IO_COUNTERS; i++) {
        uint64_t now = chempi_io_counted((enum chempi_io_counter)i);
        char line[96];
        int len = snprintf(line, sizeof(line), "file %s %" PRIu64 "\n",
                           chempi_io_counter_words[i].name, now - told[i]);

        if (now == told[i])
            continue;
        chempi_wire_put_raw(out, line, (size_t)len);
        told[i] = now;
    }
}
