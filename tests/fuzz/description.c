/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network description: one that can be read goes all the way, through
 * checks and routes into a table that must open. Reports go to a struct,
 * never to the terminal.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mdconfig/check.h"
#include "mdconfig/compile.h"
#include "tests/fuzz/target.h"

/* A larger description is slow, not wrong. */
#define NODES_MAX 64u
#define NETWORKS_MAX 16u

static void compile(const struct chempi_desc *desc)
{
    struct chempi_graph graph;
    struct chempi_check check;
    struct chempi_blob image;
    struct chempi_table *table;
    int rc;

    chempi_graph_init(&graph, desc);
    chempi_check_run(&graph, &check);
    chempi_check_fini(&check);
    rc = chempi_compile_image(&graph, 0, &image, NULL);
    chempi_graph_fini(&graph);
    if (rc == -E2BIG)
        return; /* more ranges than a table holds: said, not compiled */
    if (rc || chempi_table_open(image.data, image.len, &table, NULL) != 0)
        abort();
    chempi_table_close(table);
    chempi_blob_fini(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chempi_desc desc;
    struct chempi_err err = {.code = 0};

    if (chempi_desc_parse("fuzz.yaml", data, size, &desc, &err) != 0) {
        if (!err.text[0])
            abort(); /* an error without words */
        return 0;
    }
    if (desc.node_count <= NODES_MAX && desc.network_count <= NETWORKS_MAX)
        compile(&desc);
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
    "      gate: fe80::1%eth0\n"
    "  far:\n"
    "    type: myrinet\n"
    "    device: tcp\n"
    "    attach: { gate: { direction: send }, left[01-02]: }\n",

    ("nodes: [a, b, \"c[0-2]\"]\n"
     "networks: {}\n"),
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
