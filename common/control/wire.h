/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes of control messages: numbers are little-endian, a string is a u32
 * length (with its terminating zero) and the bytes, a blob a u32 length and
 * the bytes. A writer grows and remembers failure; a reader never passes its
 * end and remembers the first malformed field, so both are checked once.
 */
#ifndef CHEMPI_COMMON_CONTROL_WIRE_H
#define CHEMPI_COMMON_CONTROL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"

struct chempi_writer {
    uint8_t *data;
    size_t len; /* bytes written */
    size_t cap;
    int error;     /* 0 or the first -errno; writes after it do nothing */
    bool is_fixed; /* data is the caller's and does not grow */
};

struct chempi_reader {
    const uint8_t *next;
    const uint8_t *end;
    bool is_bad; /* a field was malformed; getters then return 0, "" */
};

/* Write into memory of the caller's, which need not be released; what does not
 * fit is the error -EMSGSIZE. */
void chempi_wire_fix(struct chempi_writer *w, void *buf, size_t size);

/* Release the bytes; the writer is empty and usable again. */
void chempi_wire_clear(struct chempi_writer *w);

/* Make room for `len` bytes more and return where they go, NULL on failure;
 * they count as written. Valid until the next write. */
uint8_t *chempi_wire_reserve(struct chempi_writer *w, size_t len);

void chempi_wire_put_u8(struct chempi_writer *w, uint8_t v);
void chempi_wire_put_u16(struct chempi_writer *w, uint16_t v);
void chempi_wire_put_u32(struct chempi_writer *w, uint32_t v);
void chempi_wire_put_u64(struct chempi_writer *w, uint64_t v);
void chempi_wire_put_raw(struct chempi_writer *w, const void *data, size_t len);
void chempi_wire_put_str(struct chempi_writer *w, const char *s);
void chempi_wire_put_blob(struct chempi_writer *w, const void *data,
                          size_t len);

void chempi_wire_read(struct chempi_reader *r, const void *data, size_t len);
uint8_t chempi_wire_get_u8(struct chempi_reader *r);
uint16_t chempi_wire_get_u16(struct chempi_reader *r);
uint32_t chempi_wire_get_u32(struct chempi_reader *r);
uint64_t chempi_wire_get_u64(struct chempi_reader *r);
/* `len` bytes in place, or NULL. */
const uint8_t *chempi_wire_get_raw(struct chempi_reader *r, size_t len);
/* In place; at most max bytes with the zero. Never NULL. */
const char *chempi_wire_get_str(struct chempi_reader *r, size_t max);
/* In place; at most max bytes. Never NULL. */
const uint8_t *chempi_wire_get_blob(struct chempi_reader *r, size_t max,
                                    size_t *len);
/* A count of things that take at least `each` bytes: bounded by what is left,
 * so that no allocation exceeds the message's own size by more than a
 * constant factor. */
uint32_t chempi_wire_get_count(struct chempi_reader *r, uint32_t max,
                               size_t each);

/* All fields were good and none is left over. */
static inline bool chempi_wire_is_done(const struct chempi_reader *r)
{
    return !r->is_bad && r->next == r->end;
}

#endif
