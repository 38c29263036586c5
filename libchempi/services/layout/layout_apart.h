/* SPDX-License-Identifier: BSD-3-Clause */
/* Do bytes of a layout, or of several elements of it in a row, lie at the same
 * place of memory? Threads: any; nothing is changed. */
#ifndef CHEMPI_LIBCHEMPI_SERVICES_LAYOUT_APART_H
#define CHEMPI_LIBCHEMPI_SERVICES_LAYOUT_APART_H

#include <stdint.h>

#include "libchempi/services/layout/layout.h"

/*
 * How many consecutive elements do not overlap: 0 if one does so by itself,
 * UINT64_MAX if no number of them does. Where the order of its pieces does not
 * tell, they are sorted: time n log n, memory 48 bytes for each. Of layouts
 * with more than 2^18 pieces, and where memory is missing, it says UINT64_MAX;
 * of more than 64 pieces at the same place modulo the extent, it may say more
 * than do not overlap.
 */
uint64_t chempi_layout_apart(const struct chempi_layout *layout);

#endif
