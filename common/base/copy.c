/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/base/copy.h"

#include <assert.h>

/* What is loaded before the piece in front of it is stored: not less than
 * CHEMPI_COPY_NEAR, and two of them fit into registers. */
#define PIECE 64u

struct piece {
    char a[16];
    char b[16];
    char c[16];
    char d[16];
};
static_assert(sizeof(struct piece) == PIECE && PIECE >= CHEMPI_COPY_NEAR,
              "a store reaches no further than the piece behind its own");

CHEMPI_INLINE void load(struct piece *piece, const char *from)
{
    memcpy(piece->a, from, 16);
    memcpy(piece->b, from + 16, 16);
    memcpy(piece->c, from + 32, 16);
    memcpy(piece->d, from + 48, 16);
}

CHEMPI_INLINE void store(char *to, const struct piece *piece)
{
    memcpy(to, piece->a, 16);
    memcpy(to + 16, piece->b, 16);
    memcpy(to + 32, piece->c, 16);
    memcpy(to + 48, piece->d, 16);
}

/* Upwards, since processors look ahead in that direction; each load comes
 * before the store that it would wait for. */
void chempi_copy_ahead(void *to, const void *from, size_t len)
{
    char *dst = to;
    const char *src = from;
    struct piece even;
    struct piece odd;

    if (len >= 2 * PIECE)
        load(&even, src);
    for (; len >= 4 * PIECE; len -= 2 * PIECE) {
        load(&odd, src + PIECE);
        store(dst, &even);
        load(&even, src + 2 * PIECE);
        store(dst + PIECE, &odd);
        src += 2 * PIECE;
        dst += 2 * PIECE;
    }
    memcpy(dst, src, len);
}

void chempi_copy_blocks(void *to, const void *from, size_t len)
{
    char *dst = to;
    const char *src = from;

    for (; len > CHEMPI_COPY_BLOCK; len -= CHEMPI_COPY_BLOCK) {
        memcpy(dst, src, CHEMPI_COPY_BLOCK);
        dst += CHEMPI_COPY_BLOCK;
        src += CHEMPI_COPY_BLOCK;
    }
    memcpy(dst, src, len);
}
