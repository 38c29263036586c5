/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A growing buffer and a table of strings stored once each, for the builders.
 * The first failure sticks in `status`; later calls do nothing. Private to
 * common/table.
 */
#ifndef CHEMPI_COMMON_TABLE_BYTES_H
#define CHEMPI_COMMON_TABLE_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "common/containers/index.h"

struct chempi_bytes {
    unsigned char *data;
    size_t len;
    size_t room;
    int status; /* 0 or -errno */
};

/* `len` more bytes, zeroed, or NULL. The pointer is valid until the next
 * call. */
unsigned char *chempi_bytes_add(struct chempi_bytes *b, size_t len);
void chempi_bytes_fini(struct chempi_bytes *b);

struct chempi_strings {
    struct chempi_bytes bytes;
    struct chempi_index index; /* by text: offset */
};

/* Offset of a copy of `text`, equal strings sharing one. On failure 0 is
 * returned and bytes.status set. */
uint32_t chempi_strings_add(struct chempi_strings *s, const char *text);
void chempi_strings_fini(struct chempi_strings *s);

#endif
