/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pairs of things, told in groups: all that belong to the same others in the
 * same way are one group, so that few groups say what many pairs are.
 */
#ifndef CHEMPI_COMMON_WORDS_PAIRS_H
#define CHEMPI_COMMON_WORDS_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

/* Each of `from` and each of `to` are a pair, in both directions unless
 * is_one_way. Not 0: stop and return it. */
typedef int chempi_pairs_fn(void *arg, const uint32_t *from,
                            uint32_t from_count, const uint32_t *to,
                            uint32_t to_count, bool is_one_way);

/*
 * marks[a * n + b]: 1 if a and b are a pair in this direction, else 0; the
 * marks are used up. A pair in both directions is told once. scratch has room
 * for 2 n numbers. Takes n * n steps, and n * n more for each group at most.
 * Returns 0 or what the function returned.
 */
int chempi_pairs_group(uint8_t *marks, uint32_t n, uint32_t *scratch,
                       chempi_pairs_fn *tell, void *arg);

#endif
