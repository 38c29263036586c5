/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes that ranks hand in at the end (chempirun --trace-routes), as lines:
 *   route FROM TO SIZE NETWORK DEVICE PROTOCOL VIA MESSAGES BYTES WAITS
 * FROM and TO are node indices; SIZE is the largest message of the class in
 * bytes; VIA is "-", or the nodes of gateways with commas between them; WAITS
 * says how often a message or a piece had to wait for room. Lines that are not
 * of this form are dropped.
 */
#ifndef CHEMPI_CHEMPID_TRACE_H
#define CHEMPI_CHEMPID_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/control/wire.h"

/* Sum lines that differ in their counters only. */
void chempi_trace_merge(const void *text, size_t len,
                        struct chempi_writer *out);

/* Print merged lines as a table with the nodes' names. */
void chempi_trace_print(FILE *file, const void *text, size_t len,
                        char *const *node_names, uint32_t node_count);

#endif
