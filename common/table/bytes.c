/* SPDX-License-Identifier: BSD-3-Clause */
/* Growing buffer and string table; see bytes.h. */
#include "common/table/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/sys.h"

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

static uint32_t hash_text(const char *text)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

static const char *text_at(const struct chempi_strings *s, uint32_t slot)
{
    return (const char *)s->bytes.data + (s->slots[slot] - 1);
}

/* The slot that holds `text`, or the free one where it belongs. */
static uint32_t find_slot(const struct chempi_strings *s, const char *text)
{
    uint32_t mask = s->slot_count - 1;
    uint32_t slot = hash_text(text) & mask;

    while (s->slots[slot] && strcmp(text_at(s, slot), text) != 0)
        slot = (slot + 1) & mask;
    return slot;
}

static int grow_slots(struct chempi_strings *s)
{
    struct chempi_strings grown = *s;

    grown.slot_count = s->slot_count ? s->slot_count * 2 : 64;
    grown.slots = chempi_sys->calloc(grown.slot_count, sizeof(*grown.slots));
    if (!grown.slots)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->slot_count; i++) {
        if (s->slots[i])
            grown.slots[find_slot(&grown, text_at(s, i))] = s->slots[i];
    }
    free(s->slots);
    *s = grown;
    return 0;
}

uint32_t chempi_strings_add(struct chempi_strings *s, const char *text)
{
    size_t len = strlen(text) + 1;
    unsigned char *at;
    uint32_t slot;

    if (!s->bytes.status && s->used >= s->slot_count / 2)
        s->bytes.status = grow_slots(s);
    if (s->bytes.status)
        return 0;
    slot = find_slot(s, text);
    if (s->slots[slot])
        return s->slots[slot] - 1;
    if (len >= UINT32_MAX / 2 - s->bytes.len) {
        s->bytes.status = -EOVERFLOW;
        return 0;
    }
    at = chempi_bytes_add(&s->bytes, len);
    if (!at)
        return 0;
    memcpy(at, text, len);
    s->slots[slot] = (uint32_t)(s->bytes.len - len) + 1;
    s->used++;
    return s->slots[slot] - 1;
}

void chempi_strings_fini(struct chempi_strings *s)
{
    chempi_bytes_fini(&s->bytes);
    free(s->slots);
    *s = (struct chempi_strings){.slots = NULL};
}
