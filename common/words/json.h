/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One printer of JSON (RFC 8259) for all programs. Values follow each other in
 * the order of the calls; commas, blanks and quotes are put here. Nothing that
 * users have chosen can break out of a string; bytes that are no UTF-8 become
 * U+FFFD.
 *
 * A failing file shows at its own end (fflush, fclose).
 */
#ifndef CHEMPI_COMMON_WORDS_JSON_H
#define CHEMPI_COMMON_WORDS_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct chempi_json {
    FILE *file;
    bool has_some; /* a value before, in what is open */
};

/* name: of a member of an object; NULL: an element of a list, or the whole. */
void chempi_json_open(struct chempi_json *j, const char *name); /* { */
void chempi_json_close(struct chempi_json *j);
void chempi_json_open_list(struct chempi_json *j, const char *name);
void chempi_json_close_list(struct chempi_json *j);
/* text NULL: null */
void chempi_json_text(struct chempi_json *j, const char *name,
                      const char *text);
void chempi_json_number(struct chempi_json *j, const char *name, uint64_t n);
/* With so many digits behind the point, whatever the locale: n * 10^-digits. */
void chempi_json_decimal(struct chempi_json *j, const char *name, uint64_t n,
                         int digits);
/* Nine significant digits, whatever the locale; null if it is not finite. */
void chempi_json_real(struct chempi_json *j, const char *name, double x);
void chempi_json_bool(struct chempi_json *j, const char *name, bool is_true);
/* null if it is UINT64_MAX: without end. */
void chempi_json_limit(struct chempi_json *j, const char *name, uint64_t n);
/* A list of texts. */
void chempi_json_texts(struct chempi_json *j, const char *name,
                       const char *const *texts, size_t count);
/* A value that somebody else has written: chempi_json_is_value(). */
void chempi_json_embed(struct chempi_json *j, const char *name,
                       const char *text, size_t len);
/* The end of the whole: a new line. */
void chempi_json_end(struct chempi_json *j);

/* Is this one value of JSON and nothing else but blanks, in UTF-8, nested
 * CHEMPI_JSON_DEPTH_MAX deep at most? */
#define CHEMPI_JSON_DEPTH_MAX 32
bool chempi_json_is_value(const char *text, size_t len);

#endif
