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

enum { LINE = 64, LANES = 4, GROUP = LANES * CHEMPI_COPY_PAGE };

#if defined(__SSE2__)
#include <emmintrin.h>

/* One line; dst is aligned to it. */
static inline void past_line(char *dst, const char *src)
{
    const __m128i *from = (const void *)src;
    __m128i *to = (void *)dst;
    __m128i a = _mm_loadu_si128(from);
    __m128i b = _mm_loadu_si128(from + 1);
    __m128i c = _mm_loadu_si128(from + 2);
    __m128i d = _mm_loadu_si128(from + 3);

    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
}

static inline void order(void)
{
    _mm_sfence(); /* such stores are not ordered by a release */
}
#else
static inline void past_line(char *dst, const char *src)
{
    memcpy(dst, src, LINE);
}

static inline void order(void)
{
}
#endif

/* Groups of four pages at the front of len bytes, a line of each in turn: the
 * processor fetches ahead in each page, but begins anew on every page. Returns
 * how many bytes. */
static inline size_t past_groups(char *to, const char *from, size_t len)
{
    size_t at = 0;

    for (; len - at >= GROUP; at += GROUP)
        for (size_t i = at; i < at + CHEMPI_COPY_PAGE; i += LINE)
            for (size_t k = 0; k < GROUP; k += CHEMPI_COPY_PAGE)
                past_line(to + i + k, from + i + k);
    return at;
}

static void past(char *to, const char *from, size_t len, bool in_groups)
{
    size_t head = -(uintptr_t)to % LINE;
    size_t at;

    head = head < len ? head : len;
    memcpy(to, from, head);
    to += head;
    from += head;
    len -= head;
    at = in_groups ? past_groups(to, from, len) : 0;
    for (; len - at >= LINE; at += LINE)
        past_line(to + at, from + at);
    memcpy(to + at, from + at, len - at);
    order();
}

void chempi_copy_past(void *to, const void *from, size_t len)
{
    past(to, from, len, false);
}

void chempi_copy_groups_past(void *to, const void *from, size_t len)
{
    past(to, from, len, true);
}
