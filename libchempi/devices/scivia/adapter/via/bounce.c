/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving data when cross-memory attach is refused: piece by piece through a
 * memory file of the active side. Each byte is copied twice, which is counted.
 *
 * The active side says WORD_BOUNCE: token is the passive VI; id the operation;
 * arg the bytes; a and b address and handle in the passive side's memory;
 * `reserved` is 1 when the memory file comes along. The passive side checks
 * its own table, copies, and says WORD_BOUNCED with the status. One piece of
 * one VI is under way on a link at a time.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "libchempi/devices/scivia/adapter/internal.h"

enum { BOUNCE_INTO = 1, BOUNCE_OUT_OF = 2, BOUNCE_RECEIVE = 3 };

/* Copy between the descriptor's segments, from `skip` on, and the area. */
static void copy_local(struct chempi_adapter_link *link,
                       const struct chempi_via_descriptor *d, uint64_t skip,
                       uint64_t len, bool is_write)
{
    unsigned char *area = link->bounce;

    for (uint32_t i = 0; i < d->segment_count && len > 0; i++) {
        uint64_t size = d->segments[i].len;
        char *addr = (char *)d->segments[i].addr + skip;

        if (skip >= size) {
            skip -= size;
            continue;
        }
        size = size - skip < len ? size - skip : len;
        if (is_write)
            memcpy(area, addr, (size_t)size);
        else
            memcpy(addr, area, (size_t)size);
        area += size;
        len -= size;
        skip = 0;
    }
}

/* The piece of remote memory that starts `moved` bytes into the list. */
static struct vi_piece piece_at(const struct vi_piece *remote, uint32_t count,
                                uint64_t moved, uint64_t left)
{
    struct vi_piece piece = {0};

    for (uint32_t i = 0; i < count; i++) {
        if (moved >= remote[i].len) {
            moved -= remote[i].len;
            continue;
        }
        piece = remote[i];
        piece.addr += moved;
        piece.len -= (uint32_t)moved;
        break;
    }
    if (piece.len > ADAPTER_BOUNCE_BYTES)
        piece.len = ADAPTER_BOUNCE_BYTES;
    if (piece.len > left)
        piece.len = (uint32_t)left;
    return piece;
}

/* Make the area if need be; *fd is to be sent along, or -1. */
static int open_area(struct chempi_adapter_link *link, int *fd)
{
    void *memory;
    int rc;

    *fd = -1;
    if (link->bounce)
        return 0;
    rc =
        chempi_adapter_map_new(link->adapter, "chempi-bounce",
                               ADAPTER_BOUNCE_BYTES, &link->bounce_fd, &memory);
    if (rc < 0)
        return rc;
    link->bounce = memory;
    *fd = link->bounce_fd;
    return 0;
}

int chempi_bounce_start(struct chempi_via_vi *vi,
                        const struct chempi_via_descriptor *d,
                        const struct vi_piece *remote, uint32_t remote_count,
                        uint64_t len)
{
    struct chempi_adapter_link *link = vi->at;
    bool is_read = d->op == CHEMPI_VIA_RDMA_READ;
    struct word word = {.type = WORD_BOUNCE, .token = vi->peer_token};
    struct vi_piece piece;
    int fd;
    int rc;

    if (vi->bounce_status < 0) {
        rc = vi->bounce_status;
        vi->bounce_status = 0;
        return rc;
    }
    if (vi->moved == len)
        return 0;
    if (link->bouncing && link->bouncing != vi)
        return -EINPROGRESS; /* the queue is run again by the service */
    rc = open_area(link, &fd);
    if (rc < 0)
        return rc;
    piece = piece_at(remote, remote_count, vi->moved, len - vi->moved);
    if (!is_read)
        copy_local(link, d, vi->moved, piece.len, true);
    word.id = is_read                    ? BOUNCE_OUT_OF
              : d->op == CHEMPI_VIA_SEND ? BOUNCE_RECEIVE
                                         : BOUNCE_INTO;
    word.arg = vi->bounce_len = piece.len;
    word.a = piece.addr;
    word.b = piece.handle;
    word.reserved = fd >= 0;
    link->bouncing = vi;
    vi->is_bouncing = true;
    if (chempi_adapter_link_say(link, &word, fd, -1) < 0)
        return -ECONNRESET;
    return -EINPROGRESS;
}

static int serve(struct chempi_adapter_link *link,
                 const struct chempi_via_vi *vi, const struct word *word)
{
    struct chempi_adapter *adapter = link->adapter;
    uint32_t enables = word->id == BOUNCE_INTO     ? CHEMPI_VIA_ENABLE_WRITE
                       : word->id == BOUNCE_OUT_OF ? CHEMPI_VIA_ENABLE_READ
                                                   : 0;
    void *memory = (void *)(uintptr_t)word->a;

    if (!vi || !link->peer_bounce || word->arg > ADAPTER_BOUNCE_BYTES ||
        chempi_tpt_check(adapter->tpt.entries, adapter->tpt.region_max,
                         (uint32_t)word->b, vi->attributes.ptag, word->a,
                         word->arg, enables) < 0) {
        adapter->counters.refused++;
        return -EACCES;
    }
    if (word->id == BOUNCE_OUT_OF)
        memcpy(link->peer_bounce, memory, word->arg);
    else
        memcpy(memory, link->peer_bounce, word->arg);
    return 0;
}

void chempi_bounce_asked(struct chempi_adapter_link *link,
                         const struct chempi_via_vi *vi,
                         const struct word *word, int fd)
{
    struct word answer = {.type = WORD_BOUNCED, .id = word->token};
    size_t len = 0;
    void *memory;

    if (fd >= 0 && link->peer_bounce)
        (void)close(fd); /* there is one already */
    else if (fd >= 0 &&
             chempi_adapter_map_foreign(link->adapter, fd, ADAPTER_BOUNCE_BYTES,
                                        &len, &memory) == 0)
        link->peer_bounce = memory;
    answer.status = serve(link, vi, word);
    (void)chempi_adapter_link_say(link, &answer, -1, -1); /* else it is down */
}

struct chempi_via_vi *chempi_bounce_answered(struct chempi_adapter_link *link,
                                             const struct word *word)
{
    struct chempi_via_vi *vi = link->bouncing;
    struct chempi_via_descriptor *d;
    uint64_t size;

    link->bouncing = NULL;
    if (!vi || !vi->is_bouncing || chempi_list_is_empty(&vi->sends))
        return NULL; /* it was given up meanwhile */
    vi->is_bouncing = false;
    d = CHEMPI_CONTAINER_OF(chempi_list_first(&vi->sends),
                            struct chempi_via_descriptor, link);
    size = vi->bounce_len;
    if (word->status < 0) {
        vi->bounce_status = word->status;
    } else {
        if (d->op == CHEMPI_VIA_RDMA_READ)
            copy_local(link, d, vi->moved, size, false);
        vi->moved += size;
        link->adapter->counters.bytes_moved += size;
        link->adapter->counters.bytes_bounced += size;
    }
    return vi;
}
