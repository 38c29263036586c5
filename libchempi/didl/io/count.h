/* SPDX-License-Identifier: BSD-3-Clause */
/* What file access has done, for performance variables and --stats. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_COUNT_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_COUNT_H

#include <stdint.h>

#include "libchempi/didl/base/counter_words.h"

struct chempi_writer;

enum chempi_io_counter {
    CHEMPI_IO_COUNT_ASKED,        /* bytes that the program asked for */
    CHEMPI_IO_COUNT_READ,         /* bytes from the file */
    CHEMPI_IO_COUNT_WRITTEN,      /* bytes to the file */
    CHEMPI_IO_COUNT_CALLS,        /* of the system that transfer */
    CHEMPI_IO_COUNT_SIEVED,       /* bytes of windows with holes */
    CHEMPI_IO_COUNT_MAPPED,       /* bytes stored through mappings */
    CHEMPI_IO_COUNT_EXCHANGED,    /* bytes sent to and by aggregators */
    CHEMPI_IO_COUNT_AGGREGATIONS, /* two-phase accesses as an aggregator */
    CHEMPI_IO_COUNT_ROUNDS,       /* of two-phase access at aggregators */
    CHEMPI_IO_COUNT_AGREE_NS,     /* time in telling and agreeing */
    CHEMPI_IO_COUNT_ACCESS_NS,    /* time in file access of collectives */
    CHEMPI_IO_COUNT_EXCHANGE_NS,  /* time in exchanges of collectives */
    CHEMPI_IO_COUNTERS
};

/* A performance variable is chempi_io_<name>. */
extern const struct chempi_counter_words
    chempi_io_counter_words[CHEMPI_IO_COUNTERS];

/* Any thread. */
void chempi_io_count(enum chempi_io_counter which, uint64_t n);
uint64_t chempi_io_counted(enum chempi_io_counter which);

/* Count from 0 again; nobody counts meanwhile. */
void chempi_io_count_init(void);

/* What was counted since the last report and is not 0, as lines of
 * chempid/stats/files.h. Under the lane lock. */
void chempi_io_count_report(struct chempi_writer *out);

#endif
