/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network description: one that can be read goes all the way, through
 * checks and routes into a table that must open. Reports go to a struct,
 * never to the terminal.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mdconfig/measure/figures.h"
#include "mdconfig/routes/check.h"
#include "mdconfig/routes/compile.h"
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
    chempi_check_run(&graph, CHEMPI_CHECK_NOTE, true, &check);
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

#define FIGURES_MAX 64u

/* Put the same figures for every protocol into the text. */
static int put(const struct chempi_desc *desc, const void *text, size_t len,
               char **out, size_t *out_len)
{
    const struct chempi_fit_figure figure = {12.34, 0.05, true};
    struct chempi_figures list[FIGURES_MAX];
    struct chempi_err err = {.code = 0};
    size_t count = 0;
    int rc;

    for (uint32_t i = 0; i < desc->network_count; i++) {
        const struct chempi_desc_network *net = &desc->networks[i];

        for (size_t k = 0; k < net->protocol_count; k++) {
            if (i > 0 && net->line == net[-1].line &&
                net->column == net[-1].column)
                continue; /* of the key before */
            if (count < FIGURES_MAX)
                list[count++] = (struct chempi_figures){
                    .network = i,
                    .protocol = k,
                    .fit = {.latency = figure, .bw = figure, .cost = figure}};
        }
    }
    rc = chempi_figures_put(desc, text, len, list, count, out, out_len, &err);
    if (rc && !err.text[0])
        abort(); /* an error without words */
    return rc;
}

/* Figures that were put in and are put in again change nothing. */
static void calibrate(const struct chempi_desc *desc, const void *text,
                      size_t len)
{
    struct chempi_desc measured;
    size_t once_len;
    size_t twice_len;
    char *once;
    char *twice;

    if (put(desc, text, len, &once, &once_len) != 0)
        return;
    if (chempi_desc_parse("once", once, once_len, &measured, NULL) != 0 ||
        put(&measured, once, once_len, &twice, &twice_len) != 0 ||
        once_len != twice_len || memcmp(once, twice, once_len) != 0)
        abort();
    chempi_desc_fini(&measured);
    free(twice);
    free(once);
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
    if (desc.network_count <= NETWORKS_MAX)
        calibrate(&desc, data, size);
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

    "nodes: { a: , b: }\r\n"
    "networks:\r\n"
    "    lan: { type: ethernet, attach: all, # all\r\n"
    "           protocols: { eager: , rendezvous: { min: 1, } } }\r\n"
    "    wan:\r\n"
    "        type: ethernet\r\n"
    "        protocols: &p\r\n"
    "            eager:\r\n"
    "                latency: 1 ms \xc2\xb1 3 %  # \xe2\x82\xac\r\n"
    "        attach: all\r\n"
    "    man: { type: via, attach: [ a, b ], protocols: { one-copy } }\r\n",
};

size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    return fuzz_text(seeds, sizeof(seeds) / sizeof(seeds[0]), i, out);
}
