/* SPDX-License-Identifier: BSD-3-Clause */
/* How much two words differ, for what a misspelt one may have meant. */
#ifndef CHEMPI_COMMON_WORDS_EDIT_DISTANCE_H
#define CHEMPI_COMMON_WORDS_EDIT_DISTANCE_H

#include <stddef.h>

#define CHEMPI_EDIT_DISTANCE_WORD_MAX 64u /* bytes without the zero */

/* Letters to insert, delete or change to make one word of the other
 * (Levenshtein); SIZE_MAX if one of them is longer than that. Thread-safe. */
size_t chempi_edit_distance(const char *a, const char *b);

#endif
