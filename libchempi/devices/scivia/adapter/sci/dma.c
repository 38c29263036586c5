/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The DMA queue of the SCI half; see sci.h. The transfers of a queue are done
 * when it is started; a wicked adapter loses one or is late to say so.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/devices/scivia/adapter/internal.h"

#define DEPTH_MAX 1024u

struct transfer {
    struct chempi_sci_remote *remote;
    uint64_t offset;
    void *local;
    size_t len;
    enum chempi_sci_dma_direction direction;
};

struct chempi_sci_dma {
    struct chempi_adapter *adapter;
    uint32_t depth;
    uint32_t count;
    bool is_started;
    int result;
    uint32_t delay; /* states that say "in progress" */
    struct transfer transfers[];
};

int chempi_sci_dma_create(struct chempi_adapter *adapter, uint32_t depth,
                          struct chempi_sci_dma **out)
{
    struct chempi_sci_dma *dma;

    if (!adapter->has_sci)
        return ADAPTER_FAIL(adapter, -ENOTSUP,
                            "adapter %s has no shared-memory half",
                            adapter->personality.name);
    if (depth == 0 || depth > DEPTH_MAX)
        return ADAPTER_FAIL(adapter, -EINVAL,
                            "a DMA queue of %" PRIu32 " transfers", depth);
    dma = chempi_sys->calloc(1, sizeof(*dma) + depth * sizeof(struct transfer));
    if (!dma)
        return ADAPTER_FAIL(adapter, -ENOMEM, "out of memory");
    dma->adapter = adapter;
    dma->depth = depth;
    dma->result = -ENOENT;
    *out = dma;
    return 0;
}

void chempi_sci_dma_remove(struct chempi_sci_dma *dma)
{
    free(dma);
}

int chempi_sci_dma_enqueue(struct chempi_sci_dma *dma,
                           struct chempi_sci_remote *remote, uint64_t offset,
                           void *local, size_t len,
                           enum chempi_sci_dma_direction direction)
{
    struct chempi_adapter *adapter = dma->adapter;

    if (dma->is_started)
        return ADAPTER_FAIL(adapter, -EBUSY, "the DMA queue is under way");
    if (dma->count == dma->depth)
        return ADAPTER_FAIL(adapter, -ENOSPC, "the DMA queue is full");
    if ((offset | len | (uintptr_t)local) % CHEMPI_SCI_DMA_ALIGN || len == 0)
        return ADAPTER_FAIL(adapter, -EINVAL,
                            "DMA of %zu bytes at %" PRIu64
                            " is not aligned to %u",
                            len, offset, CHEMPI_SCI_DMA_ALIGN);
    if (remote->status < 0)
        return ADAPTER_FAIL(adapter, -ENOTCONN, "the segment is gone");
    if (offset > remote->len || len > remote->len - offset)
        return ADAPTER_FAIL(adapter, -ERANGE,
                            "%zu bytes at %" PRIu64
                            " exceed a segment of %" PRIu64 " bytes",
                            len, offset, remote->len);
    dma->transfers[dma->count++] = (struct transfer){
        .remote = remote,
        .offset = offset,
        .local = local,
        .len = len,
        .direction = direction,
    };
    return 0;
}

static int perform(struct chempi_sci_dma *dma, const struct transfer *t)
{
    struct chempi_adapter *adapter = dma->adapter;
    unsigned char *there = t->remote->memory + t->offset;

    if (t->remote->status < 0)
        return -ENOTCONN;
    chempi_timing_model_dma(&adapter->pace, t->len);
    if (chempi_dice_strikes(&adapter->dice, adapter->faults.lost_packet)) {
        adapter->counters.packets_lost++;
        return -EIO;
    }
    if (t->direction == CHEMPI_SCI_DMA_WRITE)
        memcpy(there, t->local, t->len);
    else
        memcpy(t->local, there, t->len);
    adapter->counters.bytes_moved += t->len;
    if (chempi_dice_strikes(&adapter->dice, adapter->faults.lost_response)) {
        adapter->counters.packets_lost++;
        return -EIO;
    }
    return 0;
}

int chempi_sci_dma_start(struct chempi_sci_dma *dma)
{
    struct chempi_adapter *adapter = dma->adapter;

    if (dma->is_started)
        return ADAPTER_FAIL(adapter, -EBUSY, "the DMA queue is under way");
    if (dma->count == 0)
        return ADAPTER_FAIL(adapter, -ENOENT, "the DMA queue is empty");
    dma->result = 0;
    for (uint32_t i = 0; i < dma->count; i++) {
        int rc = perform(dma, &dma->transfers[i]);

        if (rc < 0 && dma->result != -ENOTCONN)
            dma->result = rc;
    }
    atomic_thread_fence(memory_order_seq_cst); /* as a store barrier */
    dma->is_started = true;
    dma->delay = 0;
    if (chempi_dice_strikes(&adapter->dice, adapter->faults.late))
        dma->delay = 1 + chempi_dice_roll(&adapter->dice) % ADAPTER_LATE_MAX;
    return 0;
}

int chempi_sci_dma_state(struct chempi_sci_dma *dma)
{
    if (!dma->is_started)
        return dma->result;
    if (dma->delay > 0) {
        dma->delay--;
        return -EINPROGRESS;
    }
    dma->is_started = false;
    dma->count = 0;
    return dma->result;
}
