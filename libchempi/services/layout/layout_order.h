/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layouts over a file: which packed byte lies where, the other way round. A
 * layout is *ordered* when displacements grow with packed positions and no two
 * bytes share one; only there is "how many packed bytes lie before x" a walk
 * of one path of the tree. Also the form in which a layout travels.
 * Threads: any; nothing is changed.
 */
#ifndef CHEMPI_LIBCHEMPI_SERVICES_LAYOUT_ORDER_H
#define CHEMPI_LIBCHEMPI_SERVICES_LAYOUT_ORDER_H

#include <stdbool.h>

#include "libchempi/services/layout/layout.h"

/* Displacement of the first packed byte; the layout is not empty. */
int64_t chempi_layout_first(const struct chempi_layout_node *node);

/* Displacement after the last byte of an ordered layout that is not empty. */
int64_t chempi_layout_end(const struct chempi_layout_node *node);

/* Costs a look at every node and every list entry. */
bool chempi_layout_is_ordered(const struct chempi_layout_node *node);

/* The same but for overlaps: no piece begins before the one that it follows. */
bool chempi_layout_is_ascending(const struct chempi_layout_node *node);

/* Displacement of the packed byte at `position`, which is less than size. */
int64_t chempi_layout_at(const struct chempi_layout_node *node,
                         uint64_t position);

/* Packed bytes of an ordered layout at displacements below x. */
uint64_t chempi_layout_below(const struct chempi_layout_node *node, int64_t x);

/*
 * The layout as a row of 64-bit words, for processes of the same job (which
 * have the same byte order). Writes at most `room` words and returns how many
 * there are in all; with room 0 it only counts.
 */
uint64_t chempi_layout_encode(const struct chempi_layout_node *node,
                              uint64_t *words, uint64_t room);

/* The layout behind `count` words; a reference of the caller's. NULL when they
 * are no layout, or out of memory. Trusts nothing in them. */
const struct chempi_layout_node *chempi_layout_decode(const uint64_t *words,
                                                      uint64_t count);

#endif
