/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of mdconfig: arenas that are released as a whole, and growing
 * arrays. mdconfig is a program that reads one description and ends, so
 * running out of memory is said once, on standard error, and ends it with
 * exit code 70; no function here returns NULL.
 */
#ifndef CHEMPI_MDCONFIG_MEM_H
#define CHEMPI_MDCONFIG_MEM_H

#include <stddef.h>

#include "common/base/compiler.h"

struct chempi_mem_block;

struct chempi_arena { /* zero-initialised: empty */
    struct chempi_mem_block *blocks;
};

/* `count` zeroed objects of `size` bytes, valid until the arena's fini. */
void *chempi_arena_get(struct chempi_arena *arena, size_t count, size_t size);
char *chempi_arena_text(struct chempi_arena *arena, const char *text);
char *chempi_arena_format(struct chempi_arena *arena, const char *fmt, ...)
    CHEMPI_PRINTF(2, 3);
void chempi_arena_fini(struct chempi_arena *arena);

/* `count` zeroed objects; free() releases them. */
void *chempi_mem_get(size_t count, size_t size);

/* Room for one more object in an array of `count`: returns `array` or its
 * enlarged copy. *room is the number of objects that fit. */
void *chempi_mem_grow(void *array, size_t count, size_t *room, size_t size);

/* Say that `len` bytes could not be had, and end. */
CHEMPI_NORETURN void chempi_mem_exhausted(size_t len);

#endif
