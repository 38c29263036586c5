/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory from MPI (MPI 5.0, section 9.2): aligned for every device, cache line
 * and vector unit. Large pieces begin at a page, where registering them costs
 * least.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/number.h"
#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/info/info.h"

#define ALIGNMENT_KEY "mpi_minimum_memory_alignment"

enum {
    ALIGN_MIN = 64,        /* bytes */
    ALIGN_LARGE = 4096,    /* for pieces of at least ... */
    LARGE = 4 * 4096,      /* ... this many bytes */
    ALIGN_MAX = 1073741824 /* beyond it, a wish is a mistake */
};

/* What the hints ask for, as the standard has it: a power of two. A hint that
 * is no such number is not followed. */
static size_t wanted_alignment(const struct chempi_info *info)
{
    const char *text = chempi_info_find(info, ALIGNMENT_KEY);
    uint64_t value;

    if (!text || !chempi_number_parse(text, 0, ALIGN_MAX, &value) ||
        (value & (value - 1)) != 0)
        return 0;
    return (size_t)value;
}

int chempi_memory_alloc(MPI_Aint size, struct chempi_info *info, void *baseptr)
{
    size_t align = wanted_alignment(info);
    size_t least = size >= LARGE ? ALIGN_LARGE : ALIGN_MIN;
    void *memory = NULL;

    if (size < 0)
        return chempi_error_set(MPI_ERR_ARG, "the size %lld is negative",
                                (long long)size);
    if (align < least)
        align = least;
    if (chempi_sys->posix_memalign(&memory, align, size ? (size_t)size : 1))
        return chempi_error_set(MPI_ERR_NO_MEM,
                                "no memory for %lld bytes at an address that "
                                "is a multiple of %zu",
                                (long long)size, align);
    memcpy(baseptr, &memory, sizeof(memory)); /* a pointer of any type */
    return MPI_SUCCESS;
}

int chempi_memory_free(void *base)
{
    free(base);
    return MPI_SUCCESS;
}
