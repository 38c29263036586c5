/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying that depends neither on where in a page the two places lie nor on how
 * much there is.
 *
 * Where a store goes to the same offset in a page as a load that follows soon,
 * processors that compare only those bits first take the load for one of what
 * was just stored. Copying upwards to a place a few bytes further in its page
 * than the source is in its own does that with every load; the C library's
 * memcpy then takes up to 15 times longer (4 KiB, 8 bytes further: 1.2 us in
 * place of 0.08 us on an AMD EPYC). Rows and columns of arrays often lie so:
 * memory that malloc took from the kernel begins 16 bytes into a page.
 *
 * On processors with a fast move of strings the C library uses it up to the
 * size of the second-level cache and loops beyond, which are slower (1 MiB:
 * 16.1 us in place of 14.4 us, 8 MiB: 136 in place of 128). So long copies are
 * made block by block.
 */
#ifndef CHEMPI_COMMON_BASE_COPY_H
#define CHEMPI_COMMON_BASE_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/compiler.h"

#define CHEMPI_COPY_LONG 2048u /* bytes; shorter copies suffer little */
#define CHEMPI_COPY_SHORT 48u  /* bytes */
#define CHEMPI_COPY_PAGE 4096u
#define CHEMPI_COPY_NEAR 64u           /* bytes further in the page */
#define CHEMPI_COPY_BLOCK (256u << 10) /* bytes */

/* Like memcpy, for places that meet in this way: loads are ahead of stores. */
void chempi_copy_ahead(void *to, const void *from, size_t len);

/* memcpy that leaves the caches alone where the processor can write past them:
 * half the traffic when the place is much larger than they are, and no waiting
 * for another core that has it in its own. What was written is ordered before
 * later stores. */
void chempi_copy_past(void *to, const void *from, size_t len);

/* The same, several pages at a time: faster where the other copies that go on
 * read from memory. */
void chempi_copy_groups_past(void *to, const void *from, size_t len);

CHEMPI_INLINE bool chempi_copy_meets(const void *to, const void *from)
{
    uintptr_t further = (uintptr_t)to - (uintptr_t)from;

    return (further - 1) % CHEMPI_COPY_PAGE < CHEMPI_COPY_NEAR - 1;
}

/* memcpy of up to CHEMPI_COPY_SHORT bytes, without a call; from may be NULL if
 * there are none. */
CHEMPI_INLINE void chempi_copy_short(void *to, const void *from, size_t len)
{
    unsigned char *dst = to;
    const unsigned char *src = from;

    if (len >= 16) {
        memcpy(dst, src, 16);
        if (len > 32)
            memcpy(dst + 16, src + 16, 16);
        memcpy(dst + len - 16, src + len - 16, 16);
    } else if (len >= 8) {
        memcpy(dst, src, 8);
        memcpy(dst + len - 8, src + len - 8, 8);
    } else if (len >= 4) {
        memcpy(dst, src, 4);
        memcpy(dst + len - 4, src + len - 4, 4);
    } else if (len > 0) {
        dst[0] = src[0];
        dst[len / 2] = src[len / 2];
        dst[len - 1] = src[len - 1];
    }
}

/* memcpy of any length. */
void chempi_copy_blocks(void *to, const void *from, size_t len);

/* memcpy; may be slower for short copies. */
CHEMPI_INLINE void chempi_copy(void *to, const void *from, size_t len)
{
    if (len >= CHEMPI_COPY_LONG && chempi_copy_meets(to, from))
        chempi_copy_ahead(to, from, len);
    else if (len > CHEMPI_COPY_BLOCK)
        chempi_copy_blocks(to, from, len);
    else
        memcpy(to, from, len);
}

#endif
