/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool of transfers: their ids, and what becomes of them. */
#include <stdlib.h>

#include "common/base/array.h"
#include "common/base/sys.h"
#include "libchempi/devices/shm/internal.h"

static struct shm_xfer *xfer_create(struct shm_dev *dev)
{
    struct shm_xfer *xfer;

    if (!CHEMPI_ARRAY_FIT(dev->xfers, dev->xfer_room, dev->xfer_count + 1))
        return NULL;
    xfer = chempi_sys->calloc(1, sizeof(*xfer));
    if (!xfer)
        return NULL;
    xfer->index = dev->xfer_count;
    dev->xfers[dev->xfer_count++] = xfer;
    return xfer;
}

struct shm_xfer *chempi_shm_xfer_get(struct shm_ep *ep, enum shm_state state)
{
    struct shm_dev *dev = shm_dev_of(ep);
    struct shm_xfer *xfer;

    if (!chempi_list_is_empty(&dev->xfer_free)) {
        xfer = CHEMPI_CONTAINER_OF(chempi_list_first(&dev->xfer_free),
                                   struct shm_xfer, link);
        chempi_list_remove(&xfer->link);
    } else {
        xfer = xfer_create(dev);
        if (!xfer)
            return NULL;
        chempi_list_init(&xfer->link);
    }
    xfer->ep = ep;
    xfer->generation++;
    xfer->state = state;
    xfer->tx = NULL;
    xfer->rx = NULL;
    xfer->want = 0;
    xfer->done = 0;
    xfer->addr = 0;
    xfer->share = SHM_HELP_SLOTS;
    xfer->mine = 0;
    xfer->status = 0;
    xfer->is_refused = false;
    xfer->is_shared = false;
    xfer->is_claimed = false;
    return xfer;
}

void chempi_shm_xfer_put(struct shm_xfer *xfer)
{
    struct shm_dev *dev = shm_dev_of(xfer->ep);

    if (xfer->tx) {
        dev->outgoing--;
        if (xfer->share < SHM_HELP_SLOTS)
            xfer->ep->shares_used &= ~(1u << xfer->share);
    }
    xfer->state = SHM_STATE_FREE;
    chempi_list_remove(&xfer->link);
    chempi_list_prepend(&dev->xfer_free, &xfer->link);
}

uint64_t chempi_shm_xfer_id(const struct shm_xfer *xfer)
{
    return (uint64_t)xfer->generation << 32 | xfer->index;
}

struct shm_xfer *chempi_shm_xfer_find(struct shm_ep *ep, uint64_t id,
                                      enum shm_state state)
{
    struct shm_dev *dev = shm_dev_of(ep);
    uint32_t index = (uint32_t)id;
    struct shm_xfer *xfer;

    if (index >= dev->xfer_count)
        return NULL;
    xfer = dev->xfers[index];
    return xfer->generation == (uint32_t)(id >> 32) && xfer->ep == ep &&
                   xfer->state == state
               ? xfer
               : NULL;
}

void chempi_shm_xfer_fini(struct shm_dev *dev)
{
    for (uint32_t i = 0; i < dev->xfer_count; i++)
        free(dev->xfers[i]);
    free(dev->xfers);
}
