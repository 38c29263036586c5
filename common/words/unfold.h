/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names and addresses with ranges: "node[00-31]", "a[1,3,5-7]",
 * "r[0-3]n[00-15]". A pattern stands for a list of names; the last bracket
 * varies fastest. Numbers keep the width of the first number of their range.
 */
#ifndef CHEMPI_COMMON_WORDS_UNFOLD_H
#define CHEMPI_COMMON_WORDS_UNFOLD_H

#include <stddef.h>
#include <stdint.h>

#define CHEMPI_UNFOLD_COUNT_MAX 1048576u /* names of one pattern */
#define CHEMPI_UNFOLD_NAME_MAX 256u      /* bytes with the zero */

struct chempi_unfold {
    const char *text; /* the caller's, of len bytes */
    size_t len;
    uint32_t count; /* names */
};

/* 0, or -EINVAL with *why = what is wrong (static text) and *at = the offset of
 * it. *out names the text. */
int chempi_unfold_parse(const char *text, size_t len, struct chempi_unfold *out,
                        const char **why, size_t *at);

/* Name number i (< count). Names are shorter than the limit, which parse
 * checks. Takes as many steps as the text has bytes. */
void chempi_unfold_name(const struct chempi_unfold *pattern, uint32_t i,
                        char buf[CHEMPI_UNFOLD_NAME_MAX]);

/* Bytes of the first pattern of a list with commas, up to the next one that
 * stands in no bracket. */
size_t chempi_unfold_word(const char *list, size_t len);

#endif
