/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics as lines of words, which ranks report when they end: parsed,
 * sorted, and lines that tell of the same thing added up. Statistics are worth
 * no failure: a line that is not understood, or for which there is no memory,
 * is left out.
 */
#ifndef CHEMPI_CHEMPID_LINES_H
#define CHEMPI_CHEMPID_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHEMPI_LINES_LEN_MAX 768u /* of the text of a line */
#define CHEMPI_LINES_WORDS_MAX 16

/* One kind of line, whose first word is `word`. */
struct chempi_lines_kind {
    const char *word;
    int words;                                     /* of a line */
    size_t size;                                   /* of what parse() fills */
    bool (*parse)(char *const *words, void *line); /* line is zero before */
    int (*compare)(const void *a, const void *b);  /* as for qsort() */
    void (*add)(void *line, const void *other);    /* equal ones */
};

struct chempi_lines {
    void *list; /* lines of kind->size bytes, in order; free() it */
    size_t count;
};

/* Lines of this kind in the text; others are skipped. */
struct chempi_lines chempi_lines_sum(const struct chempi_lines_kind *kind,
                                     const char *text, size_t len);

/* For parse(): does the word fit? */
bool chempi_lines_word(const char *word, char *out, size_t size);

#endif
