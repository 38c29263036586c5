/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection table: what is built is read back, damage is found. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/base/sys.h"
#include "common/table/build.h"
#include "common/table/crc32c.h"
#include "common/table/format.h"
#include "common/table/network_types.h"
#include "common/table/table.h"

static const char *const three[] = {"node10", "node2", "a"};

static struct chempi_table *open_default(void **data, uint32_t self)
{
    struct chempi_table *t = NULL;
    struct chempi_err err = {.code = 0};
    size_t len;

    cr_assert_eq(chempi_table_build_default(three, 3, self, data, &len, &err),
                 0, "%s", err.text);
    cr_assert_eq(chempi_table_open(*data, len, &t, &err), 0, "%s", err.text);
    return t;
}

Test(crc32c, gives_the_published_check_value)
{
    cr_expect_eq(chempi_crc32c("123456789", 9), 0xe3069283u);
    cr_expect_eq(chempi_crc32c("", 0), 0u);
}

Test(default_table, has_its_nodes_in_the_order_given)
{
    void *data;
    struct chempi_table *t = open_default(&data, 1);

    cr_expect_eq(chempi_table_self(t), 1);
    cr_expect_eq(chempi_table_node_count(t), 3);
    for (uint32_t i = 0; i < 3; i++) {
        cr_expect_str_eq(chempi_table_node_name(t, i), three[i]);
        cr_expect_eq(chempi_table_find_node(t, three[i]), i);
        cr_expect_eq(chempi_table_node_slots(t, i), 1);
        cr_expect_not(chempi_table_node_has_slots(t, i));
        cr_expect(!chempi_table_node_is_gateway(t, i));
    }
    cr_expect_eq(chempi_table_find_node(t, "b"), CHEMPI_TABLE_NONE);
    cr_expect_eq(chempi_table_find_node(t, ""), CHEMPI_TABLE_NONE);
    cr_expect_str_eq(chempi_table_cluster(t), "");
    chempi_table_close(t);
    free(data);
}

Test(default_table, uses_shm_inside_a_node_and_tcp_between_nodes)
{
    void *data;
    struct chempi_table *t = open_default(&data, 0);
    static const char *const own[] = {"short", "eager", "pipeline",
                                      "single-copy"};
    const struct chempi_table_range *r;
    uint32_t n;

    r = chempi_table_ranges(t, 0, &n);
    cr_assert_eq(n, 4);
    for (uint32_t i = 0; i < n; i++) {
        cr_expect_str_eq(r[i].device, "shm");
        cr_expect_str_eq(r[i].protocol, own[i]);
        cr_expect_eq(r[i].stage_count, 1);
        cr_expect_null(r[i].stages[0].hops);
        cr_expect_gt(r[i].cost_us, 0);
    }
    cr_expect_eq(r[0].max_len, 288);
    cr_expect_eq(r[1].max_len, 16384);
    cr_expect(r[2].max_len > 30000 && r[2].max_len < 36000);
    cr_expect_eq(r[3].max_len, CHEMPI_TABLE_SIZE_MAX);
    r = chempi_table_ranges(t, 2, &n);
    cr_assert_eq(n, 2);
    cr_expect_str_eq(r[0].device, "tcp");
    cr_expect_str_eq(r[0].protocol, "eager");
    cr_expect_str_eq(r[1].protocol, "rendezvous");
    cr_expect_eq(r[1].stage_count, 1);
    cr_expect_eq(r[1].stages[0].hop_count, 0);
    chempi_table_close(t);
    free(data);
}

Test(default_table, needs_names_that_differ)
{
    static const char *const twice[] = {"a", "b", "a"};
    static const char *const empty[] = {"a", ""};
    struct chempi_err err;
    void *data;
    size_t len;

    cr_expect_eq(chempi_table_build_default(twice, 3, 0, &data, &len, &err),
                 -EINVAL);
    cr_expect(strstr(err.text, "node a is named twice"));
    cr_expect_eq(chempi_table_build_default(empty, 2, 0, &data, &len, &err),
                 -EINVAL);
    cr_expect_eq(chempi_table_build_default(twice, 1, 1, &data, &len, &err),
                 -EINVAL);
}

Test(default_table, has_names_that_can_be_compared)
{
    char name[CHEMPI_TABLE_NAME_MAX + 1];
    const char *const names[] = {name, "b"};
    struct chempi_table *t;
    struct chempi_err err;
    void *data;
    size_t len;

    memset(name, 'a', sizeof(name));
    for (size_t end = sizeof(name) - 2; end < sizeof(name); end++) {
        name[end] = '\0';
        cr_assert_eq(chempi_table_build_default(names, 2, 0, &data, &len, &err),
                     0);
        if (end < CHEMPI_TABLE_NAME_MAX) {
            cr_assert_eq(chempi_table_open(data, len, &t, &err), 0, "%s",
                         err.text);
            cr_expect_str_eq(chempi_table_node_name(t, 0), name);
            chempi_table_close(t);
        } else {
            cr_expect_eq(chempi_table_open(data, len, &t, &err), -EBADMSG);
        }
        free(data);
        name[end] = 'a';
    }
}

/* ---- a table with a gateway --------------------------------------------- */

static void build_gateway_table(struct chempi_blob *image)
{
    static const uint32_t gateways[] = {2, 1};
    struct chempi_dir_builder *d = chempi_dir_builder_create();
    struct chempi_routes_builder *r = chempi_routes_builder_create(0, 3);
    struct chempi_blob dir;
    struct chempi_blob routes;

    cr_assert(d && r);
    chempi_dir_builder_set_cluster(d, "test");
    chempi_dir_builder_add_network(d, "left", "sci", "scivia");
    chempi_dir_builder_add_network(d, "right", "ethernet", "tcp");
    chempi_dir_builder_add_node(d, "l", 0, 4, false);
    chempi_dir_builder_attach(d, 0, "127.0.0.2", NULL);
    chempi_dir_builder_add_node(d, "g1", 1, 1, true);
    chempi_dir_builder_attach(d, 0, NULL, NULL);
    chempi_dir_builder_attach(d, 1, NULL, "eth0");
    chempi_dir_builder_add_node(d, "g2", 1, 1, true);
    chempi_dir_builder_add_node(d, "r", 2, 65535, false);
    chempi_dir_builder_attach(d, 1, "::1", "lo");
    cr_assert_eq(chempi_dir_builder_finish(d, &dir, NULL), 0);
    chempi_routes_builder_begin(r, 1);
    chempi_routes_builder_add_range(r, UINT64_MAX, 5, 0, 1);
    chempi_routes_builder_add_stage(r, 0, "scivia", "zero-copy", NULL, 0);
    chempi_routes_builder_begin(r, 2);
    chempi_routes_builder_add_range(r, 100, 7.5, 65536, 2);
    chempi_routes_builder_add_stage(r, 0, "scivia", "one-copy", gateways, 2);
    chempi_routes_builder_add_stage(r, 1, "tcp", "eager", NULL, 0);
    chempi_routes_builder_add_range(r, UINT64_MAX, 9, 65536, 1);
    chempi_routes_builder_add_stage(r, 0, "scivia", "zero-copy", gateways, 2);
    chempi_routes_builder_set_times(
        r, &(struct chempi_table_times){0, 2, 0, 1024});
    chempi_routes_builder_add_stage(r, 1, "tcp", "eager", NULL, 0);
    chempi_routes_builder_set_times(r,
                                    &(struct chempi_table_times){5, 30, 1, 64});
    chempi_routes_builder_repeat(r, 3, 1);
    cr_assert_eq(chempi_routes_builder_finish(r, &routes, NULL), 0);
    cr_assert_eq(chempi_table_build_image(0, 0, &routes, &dir, image), 0);
    chempi_dir_builder_destroy(d);
    chempi_routes_builder_destroy(r);
    chempi_blob_fini(&dir);
    chempi_blob_fini(&routes);
}

Test(table, gives_back_gateways_and_stages)
{
    struct chempi_blob image;
    struct chempi_table *t;
    const struct chempi_table_range *r;
    uint32_t n;

    build_gateway_table(&image);
    cr_assert_eq(chempi_table_open(image.data, image.len, &t, NULL), 0);
    r = chempi_table_ranges(t, 3, &n);
    cr_assert_eq(n, 2);
    cr_expect_eq(r[0].max_len, 100);
    cr_expect_eq(r[0].switch_len, 65536);
    cr_expect_eq(r[0].share_count, 2);
    cr_expect_float_eq(r[0].cost_us, 7.5, 0);
    cr_assert_eq(r[0].stage_count, 2);
    cr_assert_eq(r[0].stages[0].hop_count, 2);
    cr_expect_eq(r[0].stages[0].hops[0], 2);
    cr_expect_eq(r[0].stages[0].hops[1], 1);
    cr_expect_str_eq(r[0].stages[1].device, "tcp");
    cr_expect_eq(r[0].stages[1].network, 1);
    cr_expect_null(r[0].stages[1].hops);
    r = chempi_table_ranges(t, 2, &n);
    cr_assert_eq(n, 1);
    cr_expect_null(r[0].stages[0].hops);
    cr_expect_null(chempi_table_ranges(t, 0, &n)[0].stages[0].hops);
    cr_expect_eq(n, 1);
    chempi_table_close(t);
    chempi_blob_fini(&image);
}

Test(table, gives_back_attachments)
{
    struct chempi_table_attachment a;
    struct chempi_blob image;
    struct chempi_table *t;

    build_gateway_table(&image);
    cr_assert_eq(chempi_table_open(image.data, image.len, &t, NULL), 0);
    cr_expect_str_eq(chempi_table_cluster(t), "test");
    cr_expect_str_eq(chempi_table_network(t, 0)->type, "sci");
    cr_expect_eq(chempi_table_network_count(t), 2);
    cr_expect_eq(chempi_table_attachment_count(t, 1), 2);
    cr_expect_eq(chempi_table_attachment_count(t, 2), 0);
    chempi_table_attachment(t, 1, 1, &a);
    cr_expect_eq(a.network, 1);
    cr_expect_null(a.address);
    cr_expect_str_eq(a.interface, "eth0");
    chempi_table_attachment(t, 3, 0, &a);
    cr_expect_str_eq(a.address, "::1");
    cr_expect_str_eq(a.interface, "lo");
    chempi_table_attachment(t, 0, 0, &a);
    cr_expect_str_eq(a.address, "127.0.0.2");
    cr_expect_null(a.interface);
    cr_expect_eq(chempi_table_node_slots(t, 3), 65535);
    cr_expect(chempi_table_node_is_gateway(t, 2));
    cr_expect_eq(chempi_table_class_count(t), 3);
    cr_expect_eq(chempi_table_node_class(t, 2), 1);
    chempi_table_close(t);
    chempi_blob_fini(&image);
}

Test(table, knows_who_is_attached_to_what)
{
    enum { L, G1, G2, R };
    struct chempi_blob image;
    struct chempi_table *t;

    build_gateway_table(&image);
    cr_assert_eq(chempi_table_open(image.data, image.len, &t, NULL), 0);
    cr_expect(chempi_table_is_attached(t, L, 0));
    cr_expect_not(chempi_table_is_attached(t, L, 1));
    cr_expect(chempi_table_is_attached(t, G1, 1));
    cr_expect_not(chempi_table_is_attached(t, G2, 0));
    cr_expect_not(chempi_table_is_attached(t, CHEMPI_TABLE_NONE, 0));
    cr_expect(chempi_table_has_common(t, L, G1));
    cr_expect(chempi_table_has_common(t, G1, R));
    cr_expect_not(chempi_table_has_common(t, L, R));
    cr_expect_not(chempi_table_has_common(t, G2, G2));
    cr_expect_not(chempi_table_has_common(t, L, CHEMPI_TABLE_NONE));
    chempi_table_close(t);
    chempi_blob_fini(&image);
}

Test(table, gives_back_addresses_as_they_were_written)
{
    static const char *const addresses[] = {
        "0.0.0.0", "255.255.255.255", "10.0.0.1",   "10.0.0.1 ", "010.0.0.1",
        "10.1",    "fe80::1%eth0",    "host.other", "",          NULL};
    struct chempi_dir_builder *d = chempi_dir_builder_create();
    struct chempi_routes_builder *r = chempi_routes_builder_create(0, 1);
    struct chempi_table_attachment a;
    struct chempi_blob dir;
    struct chempi_blob routes;
    struct chempi_blob image;
    struct chempi_table *t;

    cr_assert(d && r);
    chempi_dir_builder_add_node(d, "a", 0, 1, false);
    for (uint32_t i = 0; i < CHEMPI_ARRAY_LEN(addresses); i++) {
        chempi_dir_builder_add_network(d, "lan", "ethernet", "tcp");
        chempi_dir_builder_attach(d, i, addresses[i], i % 2 ? "eth0" : NULL);
    }
    cr_assert_eq(chempi_dir_builder_finish(d, &dir, NULL), 0);
    cr_assert_eq(chempi_routes_builder_finish(r, &routes, NULL), 0);
    cr_assert_eq(chempi_table_build_image(0, 0, &routes, &dir, &image), 0);
    cr_assert_eq(chempi_table_open(image.data, image.len, &t, NULL), 0);
    for (uint32_t i = 0; i < CHEMPI_ARRAY_LEN(addresses); i++) {
        chempi_table_attachment(t, 0, i, &a);
        cr_expect_eq(a.network, i);
        cr_expect(addresses[i] ? a.address && !strcmp(a.address, addresses[i])
                               : !a.address,
                  "%u", i);
        cr_expect_eq(a.interface != NULL, i % 2 == 1);
    }
    chempi_table_close(t);
    chempi_blob_fini(&image);
    chempi_blob_fini(&dir);
    chempi_blob_fini(&routes);
    chempi_dir_builder_destroy(d);
    chempi_routes_builder_destroy(r);
}

static bool is_not(void *arg, const char *gateway)
{
    return strcmp(arg, gateway) != 0;
}

static bool is_never(void *arg, const char *gateway)
{
    (void)arg;
    (void)gateway;
    return false;
}

Test(table, knows_where_a_way_breaks)
{
    struct chempi_blob image;
    struct chempi_table *t;
    const struct chempi_table_range *r;
    char g1[] = "g1";
    char g2[] = "g2";
    uint32_t n;

    build_gateway_table(&image);
    cr_assert_eq(chempi_table_open(image.data, image.len, &t, NULL), 0);
    r = chempi_table_ranges(t, 3, &n);
    cr_assert_eq(n, 2);
    cr_expect_eq(chempi_table_share(&r[0], 0), 2);
    cr_expect_eq(chempi_table_share(&r[1], 0), 1);
    for (uint32_t i = 0; i < n; i++) {
        cr_expect_eq(chempi_table_broken_stage(t, &r[i], NULL, NULL), 2);
        cr_expect_eq(chempi_table_broken_stage(t, &r[i], is_not, g1), 2);
        cr_expect_eq(chempi_table_broken_stage(t, &r[i], is_not, g2), 2);
        cr_expect_eq(chempi_table_broken_stage(t, &r[i], is_never, NULL), 0);
    }
    r = chempi_table_ranges(t, 1, &n); /* direct */
    cr_assert_eq(n, 1);
    cr_expect_eq(chempi_table_broken_stage(t, r, is_never, NULL), 1);
    chempi_table_close(t);
    chempi_blob_fini(&image);
}

/* ---- damage ------------------------------------------------------------- */

Test(table, refuses_every_shorter_length)
{
    struct chempi_blob image;
    struct chempi_table *t;

    build_gateway_table(&image);
    for (size_t len = 0; len < image.len; len++) {
        unsigned char *copy = malloc(len + 1); /* ASan sees what is read */

        cr_assert(copy);
        memcpy(copy, image.data, len);
        cr_expect_eq(chempi_table_open(copy, len, &t, NULL), -EBADMSG);
        free(copy);
    }
    chempi_blob_fini(&image);
}

Test(table, refuses_every_flipped_bit)
{
    struct chempi_blob image;
    struct chempi_table *t;
    int rc;

    build_gateway_table(&image);
    for (size_t bit = 0; bit < image.len * 8; bit++) {
        image.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        rc = chempi_table_open(image.data, image.len, &t, NULL);
        cr_expect(rc == -EBADMSG || rc == -EPROTO, "bit %zu: %d", bit, rc);
        image.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    chempi_blob_fini(&image);
}

/* Make the sums right again, as an attacker would. */
static void reseal(struct chempi_blob *image)
{
    unsigned char *at = image->data;
    unsigned char *sums = image->data + CHEMPI_NODE_ROUTES_SUM;

    for (size_t off = 0, i = 0; off < image->len; i++) {
        unsigned char *part = image->data + off;
        size_t len = (size_t)chempi_le64(part + CHEMPI_PART_LEN);

        chempi_put_le32(
            part + CHEMPI_PART_SUM,
            chempi_crc32c(part + CHEMPI_PART_HEAD, len - CHEMPI_PART_HEAD));
        chempi_put_le32(part + CHEMPI_PART_HEAD_SUM,
                        chempi_crc32c(part, CHEMPI_PART_HEAD_SUM));
        if (i > 0)
            memcpy(sums + (i - 1) * 4, part + CHEMPI_PART_SUM, 4);
        off += len;
    }
    chempi_put_le32(at + CHEMPI_PART_SUM,
                    chempi_crc32c(at + CHEMPI_PART_HEAD,
                                  CHEMPI_NODE_LEN - CHEMPI_PART_HEAD));
    chempi_put_le32(at + CHEMPI_PART_HEAD_SUM,
                    chempi_crc32c(at, CHEMPI_PART_HEAD_SUM));
}

static void walk(const struct chempi_table *t)
{
    struct chempi_table_attachment a;
    uint32_t n;

    for (uint32_t i = 0; i < chempi_table_node_count(t); i++) {
        const struct chempi_table_range *r = chempi_table_ranges(t, i, &n);

        for (uint32_t k = 0; k < n; k++) {
            cr_expect_geq(strlen(r[k].protocol), 0);
            for (uint32_t s = 0; s < r[k].stage_count; s++) {
                cr_expect_geq(strlen(r[k].stages[s].device), 0);
                for (uint32_t h = 0; h < r[k].stages[s].hop_count; h++)
                    cr_expect_lt(r[k].stages[s].hops[h],
                                 chempi_table_node_count(t));
            }
        }
        for (uint32_t k = 0; k < chempi_table_attachment_count(t, i); k++)
            chempi_table_attachment(t, i, k, &a);
    }
}

Test(table, survives_every_changed_byte_with_right_sums)
{
    static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    struct chempi_blob image;
    struct chempi_table *t;

    build_gateway_table(&image);
    for (size_t at = CHEMPI_NODE_SELF; at < image.len; at++) {
        unsigned char old = image.data[at];

        if ((at >= CHEMPI_NODE_LEN && at < CHEMPI_NODE_LEN + CHEMPI_PART_HEAD))
            continue;
        for (size_t v = 0; v < sizeof(values); v++) {
            size_t routes =
                (size_t)chempi_le64(image.data + CHEMPI_NODE_LEN + 16);

            if (at >= CHEMPI_NODE_LEN + routes &&
                at < CHEMPI_NODE_LEN + routes + CHEMPI_PART_HEAD)
                continue;
            image.data[at] = values[v];
            reseal(&image);
            if (chempi_table_open(image.data, image.len, &t, NULL) == 0) {
                walk(t);
                chempi_table_close(t);
            }
            image.data[at] = old;
        }
    }
    chempi_blob_fini(&image);
}

Test(table, tells_the_time_of_a_way_at_any_size)
{
    const struct chempi_table_range *ranges;
    struct chempi_blob image;
    struct chempi_table *t;
    uint32_t count;

    build_gateway_table(&image);
    cr_assert_eq(chempi_table_open(image.data, image.len, &t, NULL), 0);
    ranges = chempi_table_ranges(t, chempi_table_find_node(t, "r"), &count);
    cr_assert_eq(count, 2);
    cr_expect_lt(chempi_table_time(&ranges[0], 8), 0); /* nobody knows */
    cr_expect_float_eq(chempi_table_time(&ranges[1], 0), 38, 1e-9);
    cr_expect_float_eq(chempi_table_time(&ranges[1], 1024), 38 + 1 + 16, 1e-9);
    /* Fifteen further chunks at the pace of the slower stage. */
    cr_expect_float_eq(
        chempi_table_time(&ranges[1], 1 << 20),
        38 + 65608 / 1024. + 65608 / 64. + 15 * (5 + 1 + 65608 / 64.), 1e-9);
    chempi_table_close(t);
    chempi_blob_fini(&image);
}

Test(table, with_impossible_times_is_damaged)
{
    struct chempi_blob routes;
    struct chempi_routes_builder *r = chempi_routes_builder_create(0, 1);

    chempi_routes_builder_begin(r, 0);
    chempi_routes_builder_add_range(r, UINT64_MAX, 5, 0, 1);
    chempi_routes_builder_add_stage(r, 0, "tcp", "eager", NULL, 0);
    chempi_routes_builder_set_times(
        r,
        &(struct chempi_table_times){.latency_us = -1, .bw_bytes_per_us = 1});
    chempi_routes_builder_repeat(r, 1, 0);
    cr_assert_eq(chempi_routes_builder_finish(r, &routes, NULL), 0);
    chempi_routes_builder_destroy(r);
    {
        struct chempi_dir_builder *d = chempi_dir_builder_create();
        struct chempi_blob dir;
        struct chempi_blob image;
        struct chempi_table *t;
        struct chempi_err err;

        chempi_dir_builder_add_network(d, "lan", "ethernet", "tcp");
        chempi_dir_builder_add_node(d, "a", 0, 1, false);
        cr_assert_eq(chempi_dir_builder_finish(d, &dir, NULL), 0);
        cr_assert_eq(chempi_table_build_image(0, 0, &routes, &dir, &image), 0);
        cr_expect_eq(chempi_table_open(image.data, image.len, &t, &err),
                     -EBADMSG);
        cr_expect(strstr(err.text, "stage 0 is not valid"), "%s", err.text);
        chempi_dir_builder_destroy(d);
        chempi_blob_fini(&dir);
        chempi_blob_fini(&image);
    }
    chempi_blob_fini(&routes);
}

Test(table, of_another_version_says_so)
{
    struct chempi_err err;
    struct chempi_blob image;
    struct chempi_table *t;

    build_gateway_table(&image);
    image.data[CHEMPI_PART_VERSION] = 9;
    cr_expect_eq(chempi_table_open(image.data, image.len, &t, &err), -EPROTO);
    cr_expect(strstr(err.text, "version 9"), "%s", err.text);
    cr_expect_eq(chempi_table_open("#!/bin/sh\n", 10, &t, &err), -EBADMSG);
    cr_expect(strstr(err.text, "not a connection table"), "%s", err.text);
    chempi_blob_fini(&image);
}

/* ---- threads and failures ----------------------------------------------- */

static void *look_up(void *arg)
{
    const struct chempi_table *t = arg;
    uint32_t n;

    for (int round = 0; round < 100; round++) {
        for (uint32_t i = 0; i < 4; i++) {
            if (chempi_table_ranges(t, i, &n)[0].stage_count == 0)
                return arg;
        }
    }
    return NULL;
}

Test(table, can_be_read_by_several_threads)
{
    struct chempi_blob image;
    struct chempi_table *t;
    pthread_t threads[4];
    void *bad;

    build_gateway_table(&image);
    cr_assert_eq(chempi_table_open(image.data, image.len, &t, NULL), 0);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, look_up, t), 0);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(pthread_join(threads[i], &bad), 0);
        cr_expect_null(bad);
    }
    chempi_table_close(t);
    chempi_blob_fini(&image);
}

static int calls_left;

static void *rigged_calloc(size_t n, size_t size)
{
    return calls_left-- > 0 ? calloc(n, size) : NULL;
}

static void *rigged_realloc(void *ptr, size_t size)
{
    return calls_left-- > 0 ? realloc(ptr, size) : NULL;
}

Test(table, reports_every_allocation_that_fails)
{
    struct chempi_sys rigged = chempi_sys_libc;
    struct chempi_err err;
    struct chempi_table *t;
    void *data = NULL;
    size_t len = 0;
    int rc = -1;

    rigged.calloc = rigged_calloc;
    rigged.realloc = rigged_realloc;
    chempi_sys = &rigged;
    for (int nth = 0; rc; nth++) {
        calls_left = nth;
        rc = chempi_table_build_default(three, 3, 0, &data, &len, &err);
        cr_expect(rc == 0 || rc == -ENOMEM, "%d: %s", rc, err.text);
        cr_assert_lt(nth, 1000);
    }
    rc = -1;
    for (int nth = 0; rc; nth++) {
        calls_left = nth;
        rc = chempi_table_open(data, len, &t, &err);
        cr_expect(rc == 0 || rc == -ENOMEM, "%d: %s", rc, err.text);
        cr_assert_lt(nth, 1000);
    }
    chempi_sys = &chempi_sys_libc;
    chempi_table_close(t);
    free(data);
}
