/* SPDX-License-Identifier: BSD-3-Clause */
/* The first steps of a connection, which whoever wants to send takes; pair.c
 * goes on with it. */
#include <errno.h>

#include "libchempi/devices/scivia/internal.h"

/* Export what the peer will write. */
static int export_pair(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    int rc;

    if (ep->framed) {
        rc = chempi_scivia_via_eager_init(ep);
        dev->is_awaiting |= rc == -EAGAIN;
        if (rc == -EAGAIN) {
            chempi_scivia_endpoint_mend(ep);
            return rc;
        }
        return rc < 0
                   ? chempi_err_prefix(&dev->base.err, "connecting to rank %u",
                                       (unsigned)ep->base.proc)
                   : 0;
    }
    if (ep->in)
        return 0;
    rc = chempi_sci_segment_create(
        dev->adapter, SCIVIA_SEGMENT_PAIR(ep->base.proc),
        sizeof(struct scivia_pair), dev->tag, &ep->segment);
    if (rc == 0)
        rc = chempi_sci_segment_prepare(ep->segment);
    if (rc == 0)
        rc = chempi_sci_segment_set_available(ep->segment);
    if (rc < 0) {
        dev->base.err = *chempi_adapter_words(dev->adapter);
        chempi_sci_segment_remove(ep->segment);
        ep->segment = NULL;
        return chempi_err_prefix(&dev->base.err, "connecting to rank %u",
                                 (unsigned)ep->base.proc);
    }
    ep->in = chempi_sci_segment_memory(ep->segment);
    chempi_list_append(&dev->used, &ep->used_link);
    return 0;
}

int chempi_scivia_connect_open(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    int rc = export_pair(ep);

    if (rc < 0)
        return rc;
    chempi_scivia_endpoint_mend(ep);
    if (!ep->has_card || ep->at)
        return -EAGAIN;
    rc = chempi_link_open(dev->adapter, ep->address, sizeof(ep->address), ep,
                          &ep->at);
    if (rc == 0 || rc == -EAGAIN)
        return -EAGAIN;
    dev->base.err = *chempi_adapter_words(dev->adapter);
    if (ep->was_reached)
        chempi_scivia_endpoint_end(ep, false); /* P4 */
    return chempi_err_prefix(&dev->base.err, "connecting to rank %u",
                             (unsigned)ep->base.proc);
}

int chempi_scivia_connect_via(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct chempi_via_attributes attributes = {
        .ptag = dev->ptag,
        .reliability = CHEMPI_VIA_RELIABLE_RECEPTION,
        .send_cq = dev->cq,
        .user = ep,
    };
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
        rc = chempi_via_vi_create(dev->adapter, &attributes, &ep->tx_vi);
        if (rc == 0)
            rc = chempi_via_connect_request(ep->tx_vi, ep->at,
                                            SCIVIA_DISCRIMINATOR_PAYLOAD);
        if (rc < 0 && rc != -ENOTCONN) {
            ep->is_via_refused = true; /* the ring serves all */
            return 0;
        }
        rc = -EAGAIN;
    }
    if (rc == -EAGAIN)
        chempi_scivia_endpoint_mend(ep);
    return rc;
}
