/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunks of large blocks; see stream.h. */
#include "libchempi/didl/coll/stream.h"

#include <string.h>

#include "libchempi/didl/coll/call.h"
#include "libchempi/didl/setting.h"
#include "libchempi/services/iter.h"

#if defined(__SSE2__)
#include <emmintrin.h>

enum { LINE = 64 };

/* One line; dst is aligned to it. */
static void store_line(char *dst, const char *src)
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

void chempi_coll_stream_past(void *dst, const void *src, size_t len)
{
    char *to = dst;
    const char *from = src;
    size_t head = -(uintptr_t)dst % LINE;

    head = head < len ? head : len;
    memcpy(to, from, head);
    to += head;
    from += head;
    len -= head;
    for (; len >= LINE; len -= LINE) {
        store_line(to, from);
        to += LINE;
        from += LINE;
    }
    memcpy(to, from, len);
    _mm_sfence(); /* such stores are not ordered by a release */
}
#else
void chempi_coll_stream_past(void *dst, const void *src, size_t len)
{
    memcpy(dst, src, len);
}
#endif

bool chempi_coll_stream_is_long(uint64_t len)
{
    return len >= chempi_setting(CHEMPI_SET_COLL_NODE_PAST);
}

void chempi_coll_stream_pack(const void *buf, MPI_Count count,
                             const struct chempi_datatype *type, uint64_t at,
                             void *chunk, uint64_t len)
{
    struct chempi_iter iter;

    if (CHEMPI_LIKELY(type->is_contiguous)) {
        memcpy(chunk, chempi_coll_plus(buf, type->true_lb + (MPI_Count)at),
               (size_t)len);
        return;
    }
    chempi_iter_init(&iter, buf, (uint64_t)count, type->layout);
    chempi_iter_seek(&iter, at);
    (void)chempi_iter_pack(&iter, chunk, (size_t)len);
}

void chempi_coll_stream_unpack(void *buf, MPI_Count count,
                               const struct chempi_datatype *type, uint64_t at,
                               const void *chunk, uint64_t len, bool is_long)
{
    struct chempi_iter iter;
    void *to = chempi_coll_plus(buf, type->true_lb + (MPI_Count)at);

    if (CHEMPI_LIKELY(type->is_contiguous)) {
        if (is_long)
            chempi_coll_stream_past(to, chunk, (size_t)len);
        else
            memcpy(to, chunk, (size_t)len);
        return;
    }
    chempi_iter_init(&iter, buf, (uint64_t)count, type->layout);
    chempi_iter_seek(&iter, at);
    (void)chempi_iter_unpack(&iter, chunk, (size_t)len);
}
