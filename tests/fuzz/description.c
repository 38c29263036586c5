/* SPDX-License-Identifier: BSD-3-Clause */
/* The network description. Reports go to a struct, never to the terminal. */
#include <string.h>

#include "mdconfig/desc.h"
#include "tests/fuzz/target.h"

#define NODES_MAX 4096u /* a larger description is slow, not wrong */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chempi_desc desc;
    struct chempi_err err;
    char text[256];

    if (chempi_desc_parse("fuzz.yaml", data, size, &desc, &err) != 0)
        return 0;
    if (desc.node_count && desc.node_count < NODES_MAX) {
        const char *names[1] = {desc.nodes[0].name};

        chempi_desc_fold(names, 1, text, sizeof(text));
    }
    for (uint32_t i = 0; i < desc.network_count; i++)
        (void)chempi_desc_attached(&desc, 0, i);
    chempi_desc_fini(&desc);
    return 0;
}

static const char *const seeds[] = {
    "cluster: two\n"
    "nodes:\n"
    "  a[0-1]: { slots: 2 }\n"
    "networks:\n"
    "  gigabit:\n"
    "    type: ethernet\n"
    "    protocols:\n"
    "      eager: { latency: 22 us, bandwidth: 940 Mbit/s, cost: 2 us }\n"
    "    attach:\n"
    "      a[0-1]: { address: \"192.168.1.[1-2]\", interface: eno1 }\n",

    "cluster: islands\n"
    "forwarding:\n"
    "  ways: fastest\n"
    "  chunk: 64 KiB\n"
    "nodes:\n"
    "  left[00-03]: { slots: 2 }\n"
    "  gate: { slots: 1, gateway: true, forward: 12 us }\n"
    "networks:\n"
    "  sci:\n"
    "    type: sci\n"
    "    device: tcp\n"
    "    protocols:\n"
    "      eager: { latency: 8 us, bandwidth: 62.5 MB/s, max: 256 KiB }\n"
    "      rendezvous: { latency: 80 us, bandwidth: 84.1 MB/s }\n"
    "    attach:\n"
    "      left[00-03]: 127.0.2.[10-13]\n"
    "      gate: fe80::1%eth0\n",

    "nodes: [a, b, \"c[0-2]\"]\n"
    "networks: {}\n",
};

size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    size_t len;

    if (i >= sizeof(seeds) / sizeof(seeds[0]))
        return 0;
    len = strlen(seeds[i]);
    memcpy(out, seeds[i], len);
    return len;
}
