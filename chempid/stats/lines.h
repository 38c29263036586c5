/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics as lines of words, which ranks report when they end: parsed,
 * sorted, and lines that tell of the same thing added up. A line is its kind's
 * word, then the words of its keys, which say what it tells of, then amounts.
 * Statistics are worth no failure: a line that is not understood, or for which
 * there is no memory, is left out.
 */
#ifndef CHEMPI_CHEMPID_LINES_H
#define CHEMPI_CHEMPID_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "common/control/wire.h"

#define CHEMPI_LINES_LEN_MAX 768u /* of the text of a line */
#define CHEMPI_LINES_WORDS_MAX 16

struct chempi_lines_key {
    uint8_t word;    /* which one of the line, from 1 */
    uint16_t offset; /* in the line's struct */
    uint16_t size;   /* of a text with its zero; 0: a number, a uint64_t */
    uint64_t max;    /* of a number */
};

#define CHEMPI_LINES_TEXT(number, type, member)                                \
    {                                                                          \
        .word = (number), .offset = offsetof(type, member),                    \
        .size = sizeof(((type *)NULL)->member)                                 \
    }
#define CHEMPI_LINES_NUMBER(number, type, member, most)                        \
    {                                                                          \
        .word = (number), .offset = offsetof(type, member), .max = (most)      \
    }

/* One kind of line, whose first word is `word`. */
struct chempi_lines_kind {
    const char *word;
    size_t size;                         /* of the line's struct */
    const struct chempi_lines_key *keys; /* in the order of sorting */
    uint32_t key_count;
    uint32_t amount_count;
    size_t amounts; /* offset of the first uint64_t of them */
};

struct chempi_lines {
    void *list; /* lines of kind->size bytes, in order; free() it */
    size_t count;
};

/* Lines of this kind in the text; others are skipped. */
struct chempi_lines chempi_lines_sum(const struct chempi_lines_kind *kind,
                                     const char *text, size_t len);

/* The same as text, whose lines differ in their keys. */
void chempi_lines_merge(const struct chempi_lines_kind *kind, const char *text,
                        size_t len, struct chempi_writer *out);

#endif
