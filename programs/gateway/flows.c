/* SPDX-License-Identifier: BSD-3-Clause */
/* The flows that pass through; see gateway.h. */
#include <stdlib.h>
#include <string.h>

#include "common/containers/array.h"
#include "programs/gateway/gateway.h"

static bool has_pair(const void *elements, uint32_t number, const void *key)
{
    const struct gateway_flow *flow =
        (const struct gateway_flow *)elements + number;
    const uint32_t *pair = key;

    return flow->src == pair[0] && flow->dst == pair[1];
}

struct gateway_flow *gateway_flows_get(struct gateway_flows *flows,
                                       uint32_t src, uint32_t dst)
{
    const uint32_t pair[] = {src, dst};
    const uint32_t hash = chempi_index_hash_number((uint64_t)src << 32 | dst);
    uint32_t at =
        chempi_index_find(&flows->index, hash, has_pair, flows->at, pair);

    if (at == CHEMPI_INDEX_NONE) {
        at = flows->count;
        if (!CHEMPI_ARRAY_FIT(flows->at, flows->room, at + 1) ||
            !chempi_index_add(&flows->index, hash, at))
            return NULL;
        flows->at[flows->count++] =
            (struct gateway_flow){.src = src, .dst = dst, .slot = at + 1};
    }
    return &flows->at[at];
}

void gateway_flows_fini(struct gateway_flows *flows)
{
    for (uint32_t i = 0; i < flows->count; i++)
        chempi_neighbor_buf_drop(flows->at[i].flush);
    free(flows->at);
    chempi_index_fini(&flows->index);
    *flows = (struct gateway_flows){0};
}
