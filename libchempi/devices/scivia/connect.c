/* SPDX-License-Identifier: BSD-3-Clause */
/* The first steps of a connection, which whoever wants to send takes; pair.c
 * goes on with it. */
#include <errno.h>

#include "libchempi/devices/scivia/internal.h"

/* Make what the peer will write. */
static int prepare(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    int rc = ep->carrier->prepare(ep);

    if (rc == -EAGAIN) {
        dev->is_awaiting = true;
        chempi_scivia_endpoint_mend(ep);
    } else if (rc < 0) {
        return chempi_err_prefix(&dev->base.err, "connecting to rank %u",
                                 (unsigned)ep->base.proc);
    }
    return rc;
}

int chempi_scivia_connect_open(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    int rc = prepare(ep);

    if (rc < 0)
        return rc;
    chempi_scivia_endpoint_mend(ep);
    if (!ep->has_card || ep->at)
        return -EAGAIN;
    rc = chempi_adapter_link_open(dev->adapter, ep->address,
                                  sizeof(ep->address), ep, &ep->at);
    if (rc == 0 || rc == -EAGAIN ||
        (rc == -ENOMEM && chempi_shortage_may_wait(&ep->shortage)))
        return -EAGAIN;
    dev->base.err = *chempi_adapter_words(dev->adapter);
    if (ep->was_reached)
        chempi_scivia_endpoint_end(ep, false); /* P4 */
    return chempi_err_prefix(&dev->base.err, "connecting to rank %u",
                             (unsigned)ep->base.proc);
}

static int create_vi(struct scivia_ep *ep, struct chempi_via_cq *send_cq,
                     struct chempi_via_cq *recv_cq, struct chempi_via_vi **out)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct chempi_via_attributes attributes = {
        .ptag = dev->ptag,
        .reliability = CHEMPI_VIA_RELIABLE_RECEPTION,
        .send_cq = send_cq,
        .recv_cq = recv_cq,
        .user = ep,
    };

    return chempi_via_vi_create(dev->adapter, &attributes, out);
}

int chempi_scivia_connect_vi(struct scivia_ep *ep, struct chempi_via_vi **vi,
                             struct chempi_via_cq *send_cq,
                             enum scivia_discriminator discriminator)
{
    int rc = create_vi(ep, send_cq, NULL, vi);

    if (rc == 0)
        rc = chempi_via_connect_request(*vi, ep->at, discriminator);
    return rc < 0 ? rc : -EAGAIN;
}

int chempi_scivia_connect_receiver(struct scivia_ep *ep,
                                   struct chempi_via_vi **vi)
{
    return create_vi(ep, NULL, scivia_dev_of(ep)->cq, vi);
}

int chempi_scivia_connect_post(struct chempi_via_vi *vi,
                               struct chempi_via_descriptor *receives,
                               uint32_t count, void *memory, uint32_t len,
                               uint32_t handle, uint32_t *posted)
{
    int rc = 0;

    *posted = 0;
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        receives[i] = (struct chempi_via_descriptor){
            .op = CHEMPI_VIA_RECEIVE,
            .segment_count = 1,
            .segments = {{.addr = (unsigned char *)memory + (size_t)i * len,
                          .handle = handle,
                          .len = len}},
        };
        rc = chempi_via_post_recv(vi, &receives[i]);
        *posted += rc == 0;
    }
    return rc;
}

int chempi_scivia_connect_via(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    int rc;

    if (!dev->attributes.has_via || ep->is_via_refused ||
        (!dev->stage_handle && !chempi_scivia_memory_stage(dev)))
        return 0;
    if (ep->is_vi_broken || !ep->at) {
        rc = -EAGAIN; /* replaced first */
    } else if (ep->tx_vi) {
        rc = chempi_via_vi_state(ep->tx_vi) == CHEMPI_VIA_CONNECTING ? -EAGAIN
                                                                     : 0;
    } else {
        rc = chempi_scivia_connect_vi(ep, &ep->tx_vi, dev->cq,
                                      SCIVIA_DISCRIMINATOR_PAYLOAD);
        if (rc != -EAGAIN && rc != -ENOTCONN) {
            ep->is_via_refused = true; /* the ring serves all */
            return 0;
        }
        rc = -EAGAIN;
    }
    if (rc == -EAGAIN)
        chempi_scivia_endpoint_mend(ep);
    return rc;
}
