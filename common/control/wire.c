/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes of control messages; see wire.h. */
#include "common/control/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/containers/array.h"

#define FIRST_CAP 256 /* bytes of a writer's first buffer */

void chempi_wire_fix(struct chempi_writer *w, void *buf, size_t size)
{
    *w = (struct chempi_writer){.data = buf, .cap = size, .is_fixed = true};
}

void chempi_wire_clear(struct chempi_writer *w)
{
    if (!w->is_fixed)
        free(w->data);
    *w = (struct chempi_writer){0};
}

static bool grow(struct chempi_writer *w, size_t need)
{
    if (w->is_fixed)
        w->error = -EMSGSIZE;
    else if (!CHEMPI_ARRAY_FIT(w->data, w->cap,
                               need < FIRST_CAP ? FIRST_CAP : need))
        w->error = -ENOMEM;
    return !w->error;
}

uint8_t *chempi_wire_reserve(struct chempi_writer *w, size_t len)
{
    uint8_t *at;

    if (w->error)
        return NULL;
    if (len > SIZE_MAX - w->len) {
        w->error = -EMSGSIZE;
        return NULL;
    }
    if (w->len + len > w->cap && !grow(w, w->len + len))
        return NULL;
    at = w->data + w->len;
    w->len += len;
    return at;
}

static void put_le(struct chempi_writer *w, uint64_t v, size_t len)
{
    uint8_t *at = chempi_wire_reserve(w, len);

    if (!at)
        return;
    for (size_t i = 0; i < len; i++)
        at[i] = (uint8_t)(v >> (8 * i));
}

void chempi_wire_put_u8(struct chempi_writer *w, uint8_t v)
{
    put_le(w, v, 1);
}

void chempi_wire_put_u16(struct chempi_writer *w, uint16_t v)
{
    put_le(w, v, 2);
}

void chempi_wire_put_u32(struct chempi_writer *w, uint32_t v)
{
    put_le(w, v, 4);
}

void chempi_wire_put_u64(struct chempi_writer *w, uint64_t v)
{
    put_le(w, v, 8);
}

void chempi_wire_put_raw(struct chempi_writer *w, const void *data, size_t len)
{
    uint8_t *at = len ? chempi_wire_reserve(w, len) : NULL;

    if (at)
        memcpy(at, data, len);
}

void chempi_wire_put_blob(struct chempi_writer *w, const void *data, size_t len)
{
    if (len > UINT32_MAX) {
        w->error = w->error ? w->error : -EMSGSIZE;
        return;
    }
    chempi_wire_put_u32(w, (uint32_t)len);
    chempi_wire_put_raw(w, data, len);
}

void chempi_wire_put_str(struct chempi_writer *w, const char *s)
{
    chempi_wire_put_blob(w, s, strlen(s) + 1);
}

void chempi_wire_read(struct chempi_reader *r, const void *data, size_t len)
{
    r->next = data;
    r->end = r->next + len;
    r->is_bad = false;
}

const uint8_t *chempi_wire_get_raw(struct chempi_reader *r, size_t len)
{
    const uint8_t *at = r->next;

    if (r->is_bad || (size_t)(r->end - r->next) < len) {
        r->is_bad = true;
        return NULL;
    }
    r->next += len;
    return at;
}

static uint64_t get_le(struct chempi_reader *r, size_t len)
{
    const uint8_t *at = chempi_wire_get_raw(r, len);
    uint64_t v = 0;

    if (!at)
        return 0;
    for (size_t i = 0; i < len; i++)
        v |= (uint64_t)at[i] << (8 * i);
    return v;
}

uint8_t chempi_wire_get_u8(struct chempi_reader *r)
{
    return (uint8_t)get_le(r, 1);
}

uint16_t chempi_wire_get_u16(struct chempi_reader *r)
{
    return (uint16_t)get_le(r, 2);
}

uint32_t chempi_wire_get_u32(struct chempi_reader *r)
{
    return (uint32_t)get_le(r, 4);
}

uint64_t chempi_wire_get_u64(struct chempi_reader *r)
{
    return get_le(r, 8);
}

const uint8_t *chempi_wire_get_blob(struct chempi_reader *r, size_t max,
                                    size_t *len)
{
    static const uint8_t empty[1];
    uint32_t n = chempi_wire_get_u32(r);
    const uint8_t *at;

    *len = 0;
    if (n > max)
        r->is_bad = true;
    at = chempi_wire_get_raw(r, n);
    if (!at)
        return empty;
    *len = n;
    return at;
}

const char *chempi_wire_get_str(struct chempi_reader *r, size_t max)
{
    size_t len;
    const uint8_t *at = chempi_wire_get_blob(r, max, &len);

    /* One zero, and that at the end. */
    if (r->is_bad || len == 0 || memchr(at, 0, len) != at + len - 1) {
        r->is_bad = true;
        return "";
    }
    return (const char *)at;
}

uint32_t chempi_wire_get_count(struct chempi_reader *r, uint32_t max,
                               size_t each)
{
    uint32_t n = chempi_wire_get_u32(r);

    if (r->is_bad || n > max || n > (size_t)(r->end - r->next) / each) {
        r->is_bad = true;
        return 0;
    }
    return n;
}
