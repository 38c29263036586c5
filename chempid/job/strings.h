/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strings of job descriptions as bytes: lists that end with NULL, and strings
 * that may be missing, for which an empty one stands.
 *
 * What is read is copied to a pool. The reader goes bad, and NULL is returned,
 * when that fails or a string is too long (CHEMPI_SPEC_STRING_MAX).
 */
#ifndef CHEMPI_CHEMPID_STRINGS_H
#define CHEMPI_CHEMPID_STRINGS_H

#include <stddef.h>
#include <stdint.h>

#include "chempid/tree/pool.h"
#include "common/control/wire.h"

/* In all of these NULL is an empty list. */
uint32_t chempi_strings_count(char *const *list);
void chempi_strings_write(char *const *list, struct chempi_writer *w);
void chempi_strings_write_optional(const char *s, struct chempi_writer *w);

/* Of at most max bytes. */
char *chempi_strings_read_one(struct chempi_pool *pool, struct chempi_reader *r,
                              size_t max);
char *chempi_strings_read_optional(struct chempi_pool *pool,
                                   struct chempi_reader *r);
/* At most CHEMPI_SPEC_STRINGS_MAX. */
char **chempi_strings_read(struct chempi_pool *pool, struct chempi_reader *r);

#endif
