/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunks of large blocks; see nt_copy.h. */
#include "libchempi/didl/coll/node/copy/nt_copy.h"

#include <string.h>

#include "common/base/copy.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/call.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/services/layout/segment.h"

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
    chempi_copy_past(to, from, (size_t)len);
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
            chempi_copy_past(to, chunk, (size_t)len);
        else
            memcpy(to, chunk, (size_t)len);
        return;
    }
    chempi_segment_init(&iter, buf, (uint64_t)count, type->layout);
    chempi_segment_seek(&iter, at);
    (void)chempi_segment_unpack(&iter, chunk, (size_t)len);
}
