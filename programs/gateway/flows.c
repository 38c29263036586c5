/* SPDX-License-Identifier: BSD-3-Clause */
/* The flows that pass through; see gateway.h. */
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "programs/gateway/gateway.h"

static uint32_t hash_pair(uint32_t src, uint32_t dst)
{
    uint64_t x = ((uint64_t)src << 32 | dst) * UINT64_C(0x9e3779b97f4a7c15);

    return (uint32_t)(x >> 32);
}

/* Where the pair stands in the index, or the free place where it belongs. */
static uint32_t *find(const struct gateway_flows *flows, uint32_t src,
                      uint32_t dst)
{
    uint32_t i = hash_pair(src, dst) & (flows->index_len - 1);

    while (flows->index[i]) {
        const struct gateway_flow *flow = &flows->at[flows->index[i] - 1];

        if (flow->src == src && flow->dst == dst)
            break;
        i = (i + 1) & (flows->index_len - 1);
    }
    return &flows->index[i];
}

static bool grow(struct gateway_flows *flows)
{
    uint32_t room = flows->room ? 2 * flows->room : 64;
    struct gateway_flow *at =
        chempi_sys->realloc(flows->at, room * sizeof(*at));
    uint32_t *index;

    if (!at)
        return false;
    flows->at = at;
    index = chempi_sys->calloc((size_t)room * 2, sizeof(*index));
    if (!index)
        return false;
    free(flows->index);
    flows->index = index;
    flows->index_len = room * 2;
    flows->room = room;
    for (uint32_t i = 0; i < flows->count; i++)
        *find(flows, at[i].src, at[i].dst) = i + 1;
    return true;
}

struct gateway_flow *gateway_flows_get(struct gateway_flows *flows,
                                       uint32_t src, uint32_t dst)
{
    uint32_t *at;

    if (flows->count == flows->room && !grow(flows))
        return NULL;
    at = find(flows, src, dst);
    if (!*at) {
        flows->at[flows->count] = (struct gateway_flow){
            .src = src, .dst = dst, .slot = flows->count + 1};
        *at = ++flows->count;
    }
    return &flows->at[*at - 1];
}

void gateway_flows_fini(struct gateway_flows *flows)
{
    free(flows->at);
    free(flows->index);
    *flows = (struct gateway_flows){0};
}
