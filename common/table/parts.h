/* SPDX-License-Identifier: BSD-3-Clause */
/* What a way's modelled time is made of, for whoever explains it. */
#ifndef CHEMPI_COMMON_TABLE_PARTS_H
#define CHEMPI_COMMON_TABLE_PARTS_H

#include <stdint.h>

#include "common/table/table.h"

enum chempi_table_part {
    CHEMPI_TABLE_FORWARDING, /* by the gateways in front of the stage */
    CHEMPI_TABLE_LATENCY,
    CHEMPI_TABLE_COST,
    CHEMPI_TABLE_FIRST_CHUNK,
    CHEMPI_TABLE_BYTES,
    CHEMPI_TABLE_REST /* all but the first chunk, over the slowest stage */
};

/* One part, of that stage. */
typedef void chempi_table_part_fn(void *arg, enum chempi_table_part part,
                                  uint32_t stage, double us);

/* The parts, in the order of the way, that make chempi_table_way_us(). */
void chempi_table_each_part(const struct chempi_table_times *times,
                            uint32_t count, uint64_t chunk, uint64_t len,
                            chempi_table_part_fn *put, void *arg);

/* "first chunk" */
const char *chempi_table_part_name(enum chempi_table_part part);
/* "the first chunk over ", before the name of a network; "forwarding" */
const char *chempi_table_part_words(enum chempi_table_part part);

#endif
