/* SPDX-License-Identifier: BSD-3-Clause */
/* What a gateway says itself; see gateway.h. */
#include <errno.h>
#include <string.h>

#include "programs/gateway/gateway.h"

bool gateway_answer(struct gateway *g, const struct chempi_neighbor_frame *f,
                    struct chempi_neighbor_frame *answer)
{
    uint8_t head[CHEMPI_NEIGHBOR_FIXED_MAX];
    struct chempi_neighbor_buf *buf;
    size_t len;
    int rc;

    answer->gateway_count = (uint8_t)(f->at + 1u);
    answer->at = 1;
    answer->src = f->dst;
    answer->dst = f->src;
    for (uint32_t i = 0; i <= f->at; i++)
        answer->gateways[i] = f->gateways[f->at - i];
    len = chempi_neighbor_frame_put(head, answer);
    buf = chempi_neighbor_buf_create(len);
    if (!buf)
        return false;
    memcpy(buf->data, head, len);
    rc = chempi_neighbors_queue(
        &g->neighbors,
        answer->gateway_count > 1 ? answer->gateways[1] : answer->dst, buf);
    if (rc) /* but for memory, whoever asks is lost */
        chempi_neighbor_buf_drop(buf);
    return rc != -ENOMEM;
}
