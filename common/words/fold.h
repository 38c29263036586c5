/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of names for people: numbers that follow each other become ranges. */
#ifndef CHEMPI_COMMON_WORDS_FOLD_H
#define CHEMPI_COMMON_WORDS_FOLD_H

#include <stddef.h>

/* "a[0-3], b7": neighbours in the list that differ in their last number only
 * go into one pair of brackets, so names in the order of numbers become short.
 * What does not fit into len (> 0) bytes is cut, with dots. Thread-safe. */
void chempi_fold_names(const char *const *names, size_t count, char *buf,
                       size_t len);

/* The same of names in any order, which is not kept: each prefix stands once,
 * its numbers ascending. (Without memory they are folded as they are.) */
void chempi_fold_sorted(const char *const *names, size_t count, char *buf,
                        size_t len);

#endif
