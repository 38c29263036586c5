/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection table: whatever opens must be safe to look up everywhere.
 * Every input is also tried with its checksums put right, since a checksum
 * finds damage only. */
#include "common/table/table.h"

#include <stdlib.h>
#include <string.h>

#include "common/table/build.h"
#include "common/table/crc32c.h"
#include "common/table/format.h"
#include "tests/fuzz/target.h"

static uint64_t load(const uint8_t *p, int bytes)
{
    uint64_t v = 0;

    for (int i = bytes - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static void store32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t look_up_range(const struct chempi_table *table,
                              const struct chempi_table_range *r)
{
    uint64_t sum = r->max_len + strlen(r->protocol);

    if (r->stage_count == 0 ||
        (r->stage_count > 1 && r->share_count > r->stages[0].hop_count) ||
        r->network >= chempi_table_network_count(table))
        abort();
    for (uint32_t i = 0; i < r->stage_count; i++) {
        sum += strlen(r->stages[i].device);
        for (uint32_t k = 0; k < r->stages[i].hop_count; k++)
            sum += strlen(chempi_table_node_name(table, r->stages[i].hops[k]));
    }
    return sum;
}

static uint64_t look_up_all(const struct chempi_table *table)
{
    uint32_t nodes = chempi_table_node_count(table);
    struct chempi_table_attachment at;
    uint64_t sum = chempi_table_self(table);
    uint32_t count;

    for (uint32_t i = 0; i < nodes; i++) {
        const struct chempi_table_range *ranges =
            chempi_table_ranges(table, i, &count);

        for (uint32_t k = 0; k < count; k++)
            sum += look_up_range(table, &ranges[k]);
        sum += strlen(chempi_table_node_name(table, i));
        sum += chempi_table_find_node(table, chempi_table_node_name(table, i));
        count = chempi_table_attachment_count(table, i);
        for (uint32_t k = 0; k < count; k++) {
            chempi_table_attachment(table, i, k, &at);
            sum += at.network + (at.address ? strlen(at.address) : 0);
        }
    }
    for (uint32_t i = 0; i < chempi_table_network_count(table); i++)
        sum += strlen(chempi_table_network(table, i)->name);
    return sum;
}

static void open_and_look(const uint8_t *data, size_t size)
{
    struct chempi_table *table;
    struct chempi_err err;
    volatile uint64_t sum = 0;

    if (chempi_table_open(data, size, &table, &err) != 0)
        return;
    sum = sum + look_up_all(table);
    chempi_table_close(table);
}

/* Put right the checksums of the parts, and of the parts that NODE names. */
static void mend(uint8_t *data, size_t size)
{
    size_t at = 0;

    for (int part = 0; part < 3 && size - at >= CHEMPI_PART_HEAD; part++) {
        uint64_t len = load(data + at + CHEMPI_PART_LEN, 8);
        uint32_t sum;

        if (len < CHEMPI_PART_HEAD || len > size - at)
            return;
        sum = chempi_crc32c(data + at + CHEMPI_PART_HEAD,
                            (size_t)len - CHEMPI_PART_HEAD);
        store32(data + at + CHEMPI_PART_SUM, sum);
        store32(data + at + CHEMPI_PART_HEAD_SUM,
                chempi_crc32c(data + at, CHEMPI_PART_HEAD_SUM));
        if (part == 1 && size >= CHEMPI_NODE_LEN)
            store32(data + CHEMPI_NODE_ROUTES_SUM, sum);
        if (part == 2 && size >= CHEMPI_NODE_LEN)
            store32(data + CHEMPI_NODE_DIR_SUM, sum);
        at += (size_t)len;
    }
    if (size >= CHEMPI_NODE_LEN) {
        store32(data + CHEMPI_PART_SUM,
                chempi_crc32c(data + CHEMPI_PART_HEAD,
                              CHEMPI_NODE_LEN - CHEMPI_PART_HEAD));
        store32(data + CHEMPI_PART_HEAD_SUM,
                chempi_crc32c(data, CHEMPI_PART_HEAD_SUM));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy;

    open_and_look(data, size);
    copy = malloc(size ? size : 1);
    if (!copy)
        return 0;
    if (size)
        memcpy(copy, data, size);
    mend(copy, size);
    open_and_look(copy, size);
    free(copy);
    return 0;
}

/* A table with a gateway, which that of no description has. */
static void build_gateway_table(struct chempi_blob *image)
{
    static const uint32_t neighbors = 1;
    struct chempi_dir_builder *d = chempi_dir_builder_create();
    struct chempi_routes_builder *r = chempi_routes_builder_create(0, 3);
    struct chempi_blob dir = {.data = NULL};
    struct chempi_blob routes = {.data = NULL};

    if (!d || !r)
        abort();
    chempi_dir_builder_add_network(d, "left", "sci", "tcp");
    chempi_dir_builder_add_network(d, "right", "via", "tcp");
    for (uint32_t i = 0; i < 3; i++) {
        static const char *const names[] = {"l", "gate", "r"};

        chempi_dir_builder_add_node(d, names[i], i, 2, i == 1);
        chempi_dir_builder_attach(d, i / 2, "127.0.0.2", "lo");
    }
    for (uint32_t i = 1; i < 4; i++) {
        chempi_routes_builder_begin(r, i);
        chempi_routes_builder_add_range(r, UINT64_MAX, 3, 65536, 1);
        if (i == 2)
            chempi_routes_builder_add_stage(r, 0, "tcp", "eager", &neighbors,
                                            1);
        chempi_routes_builder_add_stage(r, i / 2 % 2, "tcp", "eager", NULL, 0);
    }
    if (chempi_dir_builder_finish(d, &dir, NULL) != 0 ||
        chempi_routes_builder_finish(r, &routes, NULL) != 0 ||
        chempi_table_build_image(0, 0, &routes, &dir, image) != 0)
        abort();
    chempi_dir_builder_destroy(d);
    chempi_routes_builder_destroy(r);
    chempi_blob_fini(&dir);
    chempi_blob_fini(&routes);
}

size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    static const char *const names[] = {"a0", "a1", "m3", "gw"};
    struct chempi_blob image = {.data = NULL};
    void *data;

    if (i == 4)
        build_gateway_table(&image);
    else if (i > 4 || chempi_table_build_default(names, i + 1, i, &data,
                                                 &image.len, NULL) != 0)
        return 0;
    else
        image.data = data;
    if (image.len <= FUZZ_INPUT_MAX)
        memcpy(out, image.data, image.len);
    free(image.data);
    return image.len <= FUZZ_INPUT_MAX ? image.len : 0;
}
