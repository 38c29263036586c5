/* SPDX-License-Identifier: BSD-3-Clause */
/* Packing into the user's buffers (MPI 5.0, section 5.2), and copying between
 * two layouts. */
#include "common/base/copy.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/datatype/recipe.h"
#include "libchempi/didl/error/error.h"

/* Copies between two non-contiguous layouts go through this much stack. */
#define CHUNK_BYTES 16384

/* Where the consecutive bytes of a contiguous type begin. */
static char *start_of(const void *buf, const struct chempi_datatype *type)
{
    return (char *)((uintptr_t)buf + (uintptr_t)type->true_lb);
}

/* Room for count elements from *position on? */
static int check(struct chempi_datatype *type, MPI_Count count,
                 MPI_Count bufsize, MPI_Count position, MPI_Count *bytes)
{
    bool is_overflown = false;

    *bytes = chempi_datatype_muladd(count, type->size, 0, &is_overflown);
    if (position < 0 || position > bufsize)
        return chempi_error_set(MPI_ERR_ARG,
                                "position %lld is not in a "
                                "buffer of %lld bytes",
                                (long long)position, (long long)bufsize);
    if (is_overflown || *bytes > bufsize - position)
        return chempi_error_set(MPI_ERR_TRUNCATE,
                                "%lld elements of %lld "
                                "bytes do not fit the %lld bytes from "
                                "position %lld on",
                                (long long)count, (long long)type->size,
                                (long long)(bufsize - position),
                                (long long)position);
    if (!type->is_committed)
        return chempi_error_set(MPI_ERR_TYPE, "the datatype is not committed");
    return MPI_SUCCESS;
}

int chempi_datatype_pack(const void *inbuf, MPI_Count incount,
                         struct chempi_datatype *datatype, void *outbuf,
                         MPI_Count outsize, MPI_Count *position,
                         struct chempi_comm *comm)
{
    MPI_Count bytes = 0;
    struct chempi_segment iter;
    int rc = check(datatype, incount, outsize, *position, &bytes);

    (void)comm; /* all processes represent data alike */
    if (rc != MPI_SUCCESS || bytes == 0)
        return rc;
    if (datatype->is_contiguous) {
        chempi_copy((char *)outbuf + *position, start_of(inbuf, datatype),
                    (size_t)bytes);
    } else {
        chempi_segment_init(&iter, inbuf, (uint64_t)incount, datatype->layout);
        (void)chempi_segment_pack(&iter, (char *)outbuf + *position,
                                  (size_t)bytes);
    }
    *position += bytes;
    return MPI_SUCCESS;
}

int chempi_datatype_unpack(const void *inbuf, MPI_Count insize,
                           MPI_Count *position, void *outbuf,
                           MPI_Count outcount, struct chempi_datatype *datatype,
                           struct chempi_comm *comm)
{
    MPI_Count bytes = 0;
    struct chempi_segment iter;
    int rc = check(datatype, outcount, insize, *position, &bytes);

    (void)comm; /* all processes represent data alike */
    if (rc != MPI_SUCCESS || bytes == 0)
        return rc;
    if (datatype->is_contiguous) {
        chempi_copy(start_of(outbuf, datatype), (const char *)inbuf + *position,
                    (size_t)bytes);
    } else {
        chempi_segment_init(&iter, outbuf, (uint64_t)outcount,
                            datatype->layout);
        (void)chempi_segment_unpack(&iter, (const char *)inbuf + *position,
                                    (size_t)bytes);
    }
    *position += bytes;
    return MPI_SUCCESS;
}

int chempi_datatype_pack_size(MPI_Count incount,
                              struct chempi_datatype *datatype,
                              struct chempi_comm *comm, MPI_Count *size)
{
    bool is_overflown = false;

    (void)comm;
    *size = chempi_datatype_muladd(incount, datatype->size, 0, &is_overflown);
    if (is_overflown)
        return chempi_error_set(MPI_ERR_COUNT,
                                "the packed size of %lld "
                                "elements exceeds 2^63 bytes",
                                (long long)incount);
    return MPI_SUCCESS;
}

/* Both sides are scattered: through a chunk that stays in the cache. */
static void copy_chunks(struct chempi_segment *from, struct chempi_segment *to,
                        uint64_t bytes)
{
    char chunk[CHUNK_BYTES];

    while (bytes > 0) {
        size_t n = bytes < sizeof(chunk) ? (size_t)bytes : sizeof(chunk);

        n = chempi_segment_pack(from, chunk, n);
        (void)chempi_segment_unpack(to, chunk, n);
        bytes -= n;
    }
}

static void begin_at(struct chempi_segment *iter, const void *buf,
                     MPI_Count count, const struct chempi_datatype *type,
                     uint64_t at)
{
    if (type->is_contiguous)
        return;
    chempi_segment_init(iter, buf, (uint64_t)count, type->layout);
    if (at > 0)
        chempi_segment_seek(iter, at);
}

void chempi_datatype_copy_piece(const void *src, MPI_Count scount,
                                const struct chempi_datatype *stype, void *dst,
                                MPI_Count rcount,
                                const struct chempi_datatype *rtype,
                                uint64_t at, uint64_t bytes)
{
    struct chempi_segment from;
    struct chempi_segment to;

    if (bytes == 0)
        return; /* buffers may be null */
    begin_at(&from, src, scount, stype, at);
    begin_at(&to, dst, rcount, rtype, at);
    if (stype->is_contiguous && rtype->is_contiguous)
        chempi_copy(start_of(dst, rtype) + at, start_of(src, stype) + at,
                    bytes);
    else if (stype->is_contiguous)
        (void)chempi_segment_unpack(&to, start_of(src, stype) + at, bytes);
    else if (rtype->is_contiguous)
        (void)chempi_segment_pack(&from, start_of(dst, rtype) + at, bytes);
    else
        copy_chunks(&from, &to, bytes);
}

int chempi_datatype_copy(const void *src, MPI_Count scount,
                         struct chempi_datatype *stype, void *dst,
                         MPI_Count rcount, struct chempi_datatype *rtype)
{
    uint64_t have = (uint64_t)scount * (uint64_t)stype->size;
    uint64_t room = (uint64_t)rcount * (uint64_t)rtype->size;

    chempi_datatype_copy_piece(src, scount, stype, dst, rcount, rtype, 0,
                               have < room ? have : room);
    if (have > room)
        return chempi_error_set(MPI_ERR_TRUNCATE,
                                "a message of %llu bytes "
                                "for a buffer of %llu",
                                (unsigned long long)have,
                                (unsigned long long)room);
    return MPI_SUCCESS;
}
