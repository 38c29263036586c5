/* SPDX-License-Identifier: BSD-3-Clause */
/* A block of memory that is kept; see memory.h. */
#include "libchempi/didl/io/exchange/memory.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/base/sys.h"

/* Larger blocks are not kept: there, the pages cost less than the data. */
#define KEEP_MAX (UINT64_C(8) << 20)
#define LINE 64

struct block {
    void *start; /* what malloc() gave */
    uint64_t len;
};

static _Atomic(struct block *) kept;

/* The line before the memory is the block's. */
static struct block *block_of(char *memory)
{
    return (struct block *)(void *)(memory - LINE);
}

static char *memory_of(struct block *block)
{
    return (char *)block + LINE;
}

static struct block *make(uint64_t len)
{
    char *start =
        len < UINT64_MAX - 2 * LINE ? chempi_sys->malloc(len + 2 * LINE) : NULL;
    struct block *block;

    if (!start)
        return NULL;
    block =
        (struct block *)(void *)(((uintptr_t)start + LINE - 1) / LINE * LINE);
    *block = (struct block){start, len};
    return block;
}

static void drop(struct block *block)
{
    if (block)
        free(block->start);
}

char *chempi_io_memory_take(uint64_t len)
{
    struct block *block = atomic_exchange(&kept, NULL);

    if (!block || block->len < len) {
        drop(block);
        block = make(len);
    }
    return block ? memory_of(block) : NULL;
}

void chempi_io_memory_give(char *memory)
{
    struct block *block = memory ? block_of(memory) : NULL;

    if (block && block->len <= KEEP_MAX)
        block = atomic_exchange(&kept, block);
    drop(block);
}

void chempi_io_memory_fini(void)
{
    drop(atomic_exchange(&kept, NULL));
}
