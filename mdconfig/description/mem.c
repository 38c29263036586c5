/* SPDX-License-Identifier: BSD-3-Clause */
/* Arenas and growing arrays; see mem.h. */
#include "mdconfig/description/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/containers/array.h"

#define BLOCK_LEN 65536u /* bytes; larger objects get a block of their own */

struct chempi_mem_block {
    struct chempi_mem_block *next;
    size_t used;
    size_t room;
    _Alignas(max_align_t) unsigned char data[];
};

CHEMPI_NORETURN void chempi_mem_exhausted(size_t len)
{
    (void)fprintf(stderr, "mdconfig: out of memory (%zu bytes wanted)\n", len);
    exit(70);
}

static struct chempi_mem_block *add_block(struct chempi_arena *arena,
                                          size_t len)
{
    size_t room = len > BLOCK_LEN ? len : BLOCK_LEN;
    struct chempi_mem_block *block =
        chempi_sys->calloc(1, sizeof(*block) + room);

    if (!block)
        chempi_mem_exhausted(room);
    block->room = room;
    block->next = arena->blocks;
    arena->blocks = block;
    return block;
}

void *chempi_arena_get(struct chempi_arena *arena, size_t count, size_t size)
{
    struct chempi_mem_block *block = arena->blocks;
    const size_t align = _Alignof(max_align_t);
    size_t len;
    void *at;

    if (size && count > (SIZE_MAX / 2 - align) / size)
        chempi_mem_exhausted(SIZE_MAX);
    len = (count * size + align - 1) / align * align;
    if (!block || len > block->room - block->used)
        block = add_block(arena, len);
    at = block->data + block->used;
    block->used += len;
    return at;
}

char *chempi_arena_text(struct chempi_arena *arena, const char *text)
{
    size_t len = strlen(text) + 1;
    char *copy = chempi_arena_get(arena, len, 1);

    memcpy(copy, text, len);
    return copy;
}

char *chempi_arena_format(struct chempi_arena *arena, const char *fmt, ...)
{
    va_list args;
    va_list again;
    char *text;
    int len;

    va_start(args, fmt);
    va_copy(again, args);
    len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    text = chempi_arena_get(arena, len > 0 ? (size_t)len + 1 : 1, 1);
    if (len > 0) /* else it is empty, or cannot be put in words */
        (void)vsnprintf(text, (size_t)len + 1, fmt, again);
    va_end(again);
    return text;
}

void chempi_arena_fini(struct chempi_arena *arena)
{
    struct chempi_mem_block *next;

    for (struct chempi_mem_block *b = arena->blocks; b; b = next) {
        next = b->next;
        free(b);
    }
    arena->blocks = NULL;
}

void *chempi_mem_get(size_t count, size_t size)
{
    void *at = chempi_sys->calloc(count ? count : 1, size ? size : 1);

    if (!at)
        chempi_mem_exhausted(count * size);
    return at;
}

void *chempi_mem_grow(void *array, size_t count, size_t *room, size_t size)
{
    if (count == *room &&
        !chempi_array_grow(&array, size, room, sizeof(*room), count + 1))
        chempi_mem_exhausted((count + 1) * size);
    return array;
}
