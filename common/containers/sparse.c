/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of which few entries are used; see sparse.h. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "common/containers/sparse.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/compiler.h"
#include "common/base/sys.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHEMPI_SEES_LEAKS 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define CHEMPI_SEES_LEAKS 1
#endif

#ifdef CHEMPI_SEES_LEAKS
#include <sanitizer/lsan_interface.h>

/* What stands in mappings only is taken for a leak where nobody is told. */
static void show(void *table, size_t len)
{
    __lsan_register_root_region(table, len);
}

static void hide(void *table, size_t len)
{
    __lsan_unregister_root_region(table, len);
}
#else
static void show(void *table, size_t len)
{
    (void)table;
    (void)len;
}

static void hide(void *table, size_t len)
{
    (void)table;
    (void)len;
}
#endif

/* Bytes; smaller tables are less than a mapping of their own costs. */
#define MAPPED_FROM ((size_t)16384)

static void *alloc_small(size_t len)
{
    void *table = NULL;

    if (chempi_sys->posix_memalign(&table, CHEMPI_CACHE_LINE, len) != 0)
        return NULL;
    return memset(table, 0, len);
}

void *chempi_sparse_alloc(size_t count, size_t size)
{
    void *table;

    if (size && count > SIZE_MAX / size)
        return NULL;
    if (count * size < MAPPED_FROM)
        return alloc_small(count * size);
    table =
        chempi_sys->mmap(NULL, count * size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED)
        return NULL;
    show(table, count * size);
    return table;
}

void *chempi_sparse_reserve(size_t count, size_t size, size_t open)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t used = (open * size + page - 1) / page * page;
    char *table = chempi_sparse_alloc(count, size);

    if (table && count * size >= MAPPED_FROM && used < count * size)
        (void)mprotect(table + used, count * size - used, PROT_NONE);
    return table; /* refused: all may be used */
}

bool chempi_sparse_open(void *table, size_t count, size_t size)
{
    return count * size < MAPPED_FROM ||
           mprotect(table, count * size, PROT_READ | PROT_WRITE) == 0;
}

void chempi_sparse_free(void *table, size_t count, size_t size)
{
    if (count * size < MAPPED_FROM) {
        free(table);
    } else if (table) {
        hide(table, count * size);
        (void)chempi_sys->munmap(table, count * size);
    }
}
