/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lower envelope of straight lines over message size: which of several
 * ways, each with time = base_us + size * slope_us and valid for some sizes
 * only, is the fastest for every size. Exact to the byte.
 */
#ifndef CHEMPI_COMMON_TABLE_LOWER_ENVELOPE_H
#define CHEMPI_COMMON_TABLE_LOWER_ENVELOPE_H

#include <stddef.h>
#include <stdint.h>

#define CHEMPI_LOWER_ENVELOPE_NONE SIZE_MAX /* no line is valid here */

struct chempi_line {
    double base_us;
    double slope_us;  /* per byte; >= 0 */
    uint64_t min_len; /* bytes, inclusive */
    uint64_t max_len; /* bytes, inclusive */
    uint32_t rank;    /* of equally fast lines the lowest rank wins */
};

struct chempi_piece {
    uint64_t max_len; /* inclusive; pieces ascend, the last is UINT64_MAX */
    size_t line;      /* index, or CHEMPI_LOWER_ENVELOPE_NONE */
};

double chempi_line_at(const struct chempi_line *line, uint64_t len);

/*
 * Pieces that cover 0 .. UINT64_MAX, neighbours of different lines; *out is
 * malloc'ed and the caller's. Lines that differ by less than one part in 10^12
 * count as equal, since that may be rounding: where a set of valid lines
 * begins, the lower rank, then the lower index, wins; a line then stays until
 * another one is ahead of it.
 * Errors: -ENOMEM.
 */
int chempi_lower_envelope(const struct chempi_line *lines, size_t count,
                          struct chempi_piece **out, size_t *out_count);

#endif
