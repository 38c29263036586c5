/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers: their ids, and what becomes of them. */
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/devices/shm/internal.h"

struct shm_xfer *chempi_shm_xfer_get(struct shm_ep *ep, enum shm_state state)
{
    struct shm_xfer *xfer = chempi_sys->malloc(sizeof(*xfer));

    if (!xfer)
        return NULL;
    *xfer =
        (struct shm_xfer){.ep = ep, .state = state, .share = SHM_HELP_SLOTS};
    chempi_list_init(&xfer->link);
    if (chempi_slots_put(&shm_dev_of(ep)->xfers, xfer, &xfer->id) == 0)
        return xfer;
    free(xfer);
    return NULL;
}

void chempi_shm_xfer_put(struct shm_xfer *xfer)
{
    struct shm_dev *dev = shm_dev_of(xfer->ep);

    if (xfer->tx) {
        dev->outgoing--;
        if (xfer->share < SHM_HELP_SLOTS)
            xfer->ep->shares_used &= ~(1u << xfer->share);
    }
    chempi_list_remove(&xfer->link);
    (void)chempi_slots_take(&dev->xfers, xfer->id);
    chempi_shm_form_free(xfer);
    free(xfer);
}

struct shm_xfer *chempi_shm_xfer_find(struct shm_ep *ep, uint64_t id,
                                      enum shm_state state)
{
    struct shm_xfer *xfer = chempi_slots_get(&shm_dev_of(ep)->xfers, id);

    return xfer && xfer->ep == ep && xfer->state == state ? xfer : NULL;
}

void chempi_shm_xfer_fini(struct shm_dev *dev)
{
    struct shm_xfer *xfer;

    while ((xfer = chempi_slots_pop(&dev->xfers)) != NULL) {
        chempi_shm_form_free(xfer);
        free(xfer);
    }
    chempi_slots_fini(&dev->xfers);
}
