/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single copy by cross-memory attach: the receiver reads the payload from the
 * sender's memory straight to its place. Whether the kernel allows that is
 * found out per peer with a real byte; when it changes its mind later, the
 * rest of the message and all following ones come through the ring.
 */
#include <errno.h>

#include "libchempi/devices/shm/internal.h"
#include "libchempi/services/cma.h"

#define SLICE_MAX (UINT64_C(1) << 20) /* bytes per transfer and progress */

bool chempi_shm_copy_is_possible(struct shm_ep *ep)
{
    if (CHEMPI_LIKELY(ep->cma != SHM_CMA_UNKNOWN))
        return ep->cma == SHM_CMA_WORKS;
    ep->cma_pid = (pid_t)ep->rx_pair->sender.pid;
    ep->cma = SHM_CMA_REFUSED;
    if (ep->cma_pid > 0 &&
        chempi_cma_probe(
            ep->cma_pid,
            (const void *)(uintptr_t)ep->rx_pair->sender.probe_addr,
            (unsigned char)ep->rx_pair->sender.probe_value) == 0)
        ep->cma = SHM_CMA_WORKS;
    return ep->cma == SHM_CMA_WORKS;
}

static void advance(struct shm_xfer *xfer)
{
    struct shm_ep *ep = xfer->ep;
    struct chempi_rx *rx = xfer->rx;
    uint64_t len = xfer->want - xfer->done;
    uint64_t got = 0;
    char *dst = rx->iter ? NULL : (char *)rx->buf + xfer->done;
    int rc;

    len = len < SLICE_MAX ? len : SLICE_MAX;
    rc = chempi_cma_read(ep->cma_pid, dst, rx->iter, xfer->addr + xfer->done,
                         len, &got);
    xfer->done += got;
    if (rc < 0) {
        if (rc != -EFAULT)
            ep->cma = SHM_CMA_REFUSED; /* EPERM, ESRCH, ENOSYS, ENOMEM */
        xfer->is_refused = rc != -EFAULT;
        chempi_shm_rndv_fall_back(xfer);
    } else if (xfer->done == xfer->want) {
        chempi_shm_rndv_finish(xfer);
    }
}

int chempi_shm_copy_advance(struct shm_dev *dev)
{
    int events = 0;

    CHEMPI_LIST_FOR_SAFE (node, &dev->copying) {
        advance(CHEMPI_CONTAINER_OF(node, struct shm_xfer, link));
        events++;
    }
    return events;
}
