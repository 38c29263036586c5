/* SPDX-License-Identifier: BSD-3-Clause */
/* Growing buffer and string table; see bytes.h. */
#include "common/table/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/containers/array.h"

unsigned char *chempi_bytes_add(struct chempi_bytes *b, size_t len)
{
    unsigned char *at;

    if (b->status)
        return NULL;
    /* One more than is wanted, so that data is never NULL. */
    if (len >= SIZE_MAX - b->len ||
        !CHEMPI_ARRAY_FIT(b->data, b->room, b->len + len + 1)) {
        b->status = -ENOMEM;
        return NULL;
    }
    at = b->data + b->len;
    memset(at, 0, len);
    b->len += len;
    return at;
}

void chempi_bytes_fini(struct chempi_bytes *b)
{
    free(b->data);
    *b = (struct chempi_bytes){.data = NULL};
}

/* ---- strings ------------------------------------------------------------ */

static bool has_text(const void *elements, uint32_t number, const void *key)
{
    return strcmp((const char *)elements + number, key) == 0;
}

uint32_t chempi_strings_add(struct chempi_strings *s, const char *text)
{
    const size_t len = strlen(text) + 1;
    const uint32_t hash = chempi_index_hash_text(0, text);
    const uint32_t offset = (uint32_t)s->bytes.len;
    unsigned char *at;
    uint32_t known;

    if (s->bytes.status)
        return 0;
    known = chempi_index_find(&s->index, hash, has_text, s->bytes.data, text);
    if (known != CHEMPI_INDEX_NONE)
        return known;
    if (len >= UINT32_MAX / 2 - s->bytes.len) {
        s->bytes.status = -EOVERFLOW;
        return 0;
    }
    at = chempi_bytes_add(&s->bytes, len);
    if (!at)
        return 0;
    memcpy(at, text, len);
    if (!chempi_index_add(&s->index, hash, offset))
        s->bytes.status = -ENOMEM;
    return s->bytes.status ? 0 : offset;
}

void chempi_strings_fini(struct chempi_strings *s)
{
    chempi_bytes_fini(&s->bytes);
    chempi_index_fini(&s->index);
}
