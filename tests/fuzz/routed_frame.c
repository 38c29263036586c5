/* SPDX-License-Identifier: BSD-3-Clause */
/* What gateways and ranks read of each other: frames. */
#include <stdlib.h>
#include <string.h>

#include "libchempi/neighbors/frame.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t again[CHEMPI_NEIGHBOR_FIXED_MAX];
    struct chempi_neighbor_frame head;
    struct chempi_neighbor_frame frame;
    const char *why;
    int n = chempi_neighbor_frame_head(data, size, &head, &why);
    int rc = chempi_neighbor_frame_get(data, size, &frame, &why);
    size_t len;

    if (n < 0 && rc == 0)
        abort(); /* a frame whose head is none */
    if (rc)
        return 0;
    len = chempi_neighbor_frame_put(again, &frame);
    if (len + frame.len != size || frame.data != data + len)
        abort(); /* it has lost bytes, or found some */
    if (head.gateway_count > CHEMPI_NEIGHBOR_GATEWAYS_MAX ||
        head.at > head.gateway_count)
        abort();
    return 0;
}

size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    struct chempi_neighbor_frame frame = {
        .kind = (uint8_t)(i + 1),
        .gateway_count = (uint8_t)(i % 3 + 1),
        .src = 1,
        .dst = 2,
        .seq = 77,
        .ack = 66,
        .gateways = {8, 9, 10},
        .env = {.len = 10, .context = 4, .kind = CHEMPI_KIND_MESSAGE},
        .sender = 1,
        .receiver = 2,
        .number = 10,
    };
    size_t len;

    if (i + 1 > CHEMPI_NEIGHBOR_FLUSHED)
        return 0;
    if (frame.kind == CHEMPI_NEIGHBOR_PART)
        frame.env.len = 20; /* the second half of it */
    len = chempi_neighbor_frame_put(out, &frame);
    if (frame.kind != CHEMPI_NEIGHBOR_EAGER &&
        frame.kind != CHEMPI_NEIGHBOR_DATA &&
        frame.kind != CHEMPI_NEIGHBOR_PART)
        return len;
    memset(out + len, 'x', 10);
    return len + 10;
}
