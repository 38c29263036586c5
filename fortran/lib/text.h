/* SPDX-License-Identifier: BSD-3-Clause */
/* Strings between Fortran (length, blanks at the end) and C. */
#ifndef CHEMPI_FORTRAN_TEXT_H
#define CHEMPI_FORTRAN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct chempi_text {
    char *chars; /* NULL when out of memory */
    char small[256];
};

/*
 * A Fortran string of len characters as a C string, without the blanks at its
 * end and, if is_stripped, those at its start. Ended by chempi_text_fini().
 */
void chempi_text_init(struct chempi_text *text, const char *from, size_t len,
                      bool is_stripped);
void chempi_text_fini(struct chempi_text *text);

/* Fill a Fortran string of len characters from a C string: cut off, or
 * followed by blanks. */
void chempi_text_out(char *to, size_t len, const char *from);

/*
 * A NULL-terminated array of C strings in one allocation, from Fortran
 * strings of len characters each, `step` strings apart: `count` of them, or,
 * if count is negative, up to the first blank one. Leading and trailing blanks
 * go. NULL when out of memory; given back by free().
 */
char **chempi_text_list(const char *from, size_t len, size_t step, long count);

#endif
