/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunks of large blocks; see nt_copy.h. */
#include "libchempi/didl/coll/node/copy/nt_copy.h"

#include <string.h>

#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/call.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/services/layout/segment.h"

enum { LINE = 64, PAGE = 4096, LANES = 4, GROUP = LANES * PAGE };

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
        for (size_t i = at; i < at + PAGE; i += LINE)
            for (size_t k = 0; k < GROUP; k += PAGE)
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

void chempi_coll_nt_copy_past(void *dst, const void *src, size_t len)
{
    past(dst, src, len, false);
}

void chempi_coll_nt_copy_groups_past(void *dst, const void *src, size_t len)
{
    past(dst, src, len, true);
}

bool chempi_coll_nt_copy_is_long(uint64_t len)
{
    return len >= chempi_setting(CHEMPI_SET_COLL_NODE_PAST);
}

void chempi_coll_nt_copy_bytes(void *to, const void *from, uint64_t len,
                               bool is_past)
{
    if (CHEMPI_LIKELY(!is_past)) {
        memcpy(to, from, (size_t)len);
        return;
    }
    chempi_coll_nt_copy_past(to, from, (size_t)len);
    chempi_coll_count(CHEMPI_COLL_WAY_PAST);
}

void chempi_coll_nt_copy_pack(const void *buf, MPI_Count count,
                              const struct chempi_datatype *type, uint64_t at,
                              void *chunk, uint64_t len, bool is_past)
{
    struct chempi_segment iter;

    if (CHEMPI_LIKELY(type->is_contiguous)) {
        chempi_coll_nt_copy_bytes(
            chunk, chempi_coll_plus(buf, type->true_lb + (MPI_Count)at), len,
            is_past);
        return;
    }
    chempi_segment_init(&iter, buf, (uint64_t)count, type->layout);
    chempi_segment_seek(&iter, at);
    (void)chempi_segment_pack(&iter, chunk, (size_t)len);
}

void chempi_coll_nt_copy_unpack(void *buf, MPI_Count count,
                                const struct chempi_datatype *type, uint64_t at,
                                const void *chunk, uint64_t len, bool is_long)
{
    struct chempi_segment iter;
    void *to = chempi_coll_plus(buf, type->true_lb + (MPI_Count)at);

    if (CHEMPI_LIKELY(type->is_contiguous)) {
        if (is_long)
            chempi_coll_nt_copy_past(to, chunk, (size_t)len);
        else
            memcpy(to, chunk, (size_t)len);
        return;
    }
    chempi_segment_init(&iter, buf, (uint64_t)count, type->layout);
    chempi_segment_seek(&iter, at);
    (void)chempi_segment_unpack(&iter, chunk, (size_t)len);
}
