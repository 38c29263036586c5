/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/base/copy.h"

/* memcpy loads all of so little, or nearly all, before it stores. */
#define PIECE 512u

/* By pieces from the end: each load comes before the store that it would wait
 * for. */
void chempi_copy_downwards(void *to, const void *from, size_t len)
{
    char *dst = to;
    const char *src = from;
    size_t tail = len % PIECE;

    len -= tail;
    memcpy(dst + len, src + len, tail);
    while (len > 0) {
        len -= PIECE;
        memcpy(dst + len, src + len, PIECE);
    }
}
