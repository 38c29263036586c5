/* SPDX-License-Identifier: BSD-3-Clause */
/* Builders of the parts of a table; see build.h and format.h. */
#include "common/table/build.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "common/table/bytes.h"
#include "common/table/crc32c.h"
#include "common/table/format.h"

void chempi_blob_fini(struct chempi_blob *blob)
{
    free(blob->data);
    *blob = (struct chempi_blob){.data = NULL};
}

/* Fill in the header of a part that is complete otherwise. */
static void seal_part(unsigned char *part, size_t len, uint32_t kind)
{
    memcpy(part, CHEMPI_TABLE_MAGIC, sizeof(CHEMPI_TABLE_MAGIC) - 1);
    chempi_put_le32(part + CHEMPI_PART_VERSION, CHEMPI_TABLE_VERSION);
    chempi_put_le32(part + CHEMPI_PART_KIND, kind);
    chempi_put_le64(part + CHEMPI_PART_LEN, len);
    chempi_put_le32(
        part + CHEMPI_PART_SUM,
        chempi_crc32c(part + CHEMPI_PART_HEAD, len - CHEMPI_PART_HEAD));
    chempi_put_le32(part + CHEMPI_PART_HEAD_SUM,
                    chempi_crc32c(part, CHEMPI_PART_HEAD_SUM));
}

/* Head and sections of a part, copied together, padded and sealed. */
static int join_part(const unsigned char *head, size_t head_len,
                     const struct chempi_bytes *const *sections, size_t count,
                     uint32_t kind, struct chempi_blob *out)
{
    size_t len = head_len;
    unsigned char *part;
    size_t off = head_len;

    for (size_t i = 0; i < count; i++)
        len += sections[i]->len;
    len = (len + 7) / 8 * 8;
    part = chempi_sys->calloc(1, len);
    if (!part)
        return -ENOMEM;
    memcpy(part, head, head_len);
    for (size_t i = 0; i < count; i++) {
        if (sections[i]->len)
            memcpy(part + off, sections[i]->data, sections[i]->len);
        off += sections[i]->len;
    }
    seal_part(part, len, kind);
    *out = (struct chempi_blob){.data = part, .len = len};
    return 0;
}

/* ---- directory ---------------------------------------------------------- */

struct chempi_dir_builder {
    struct chempi_bytes nodes;
    struct chempi_bytes order;
    struct chempi_bytes kinds;
    struct chempi_strings kind_keys; /* of KIND_KEY_LEN bytes, in order */
    struct chempi_bytes attachments;
    struct chempi_bytes networks;
    struct chempi_strings strings;
    uint32_t node_count;
    uint32_t network_count;
    uint32_t attachment_count;
    uint32_t class_count;
    uint32_t cluster;
    int status;
};

struct chempi_dir_builder *chempi_dir_builder_create(void)
{
    struct chempi_dir_builder *b = chempi_sys->calloc(1, sizeof(*b));

    if (b)
        b->cluster = chempi_strings_add(&b->strings, "");
    return b;
}

void chempi_dir_builder_destroy(struct chempi_dir_builder *b)
{
    if (!b)
        return;
    chempi_bytes_fini(&b->nodes);
    chempi_bytes_fini(&b->order);
    chempi_bytes_fini(&b->kinds);
    chempi_strings_fini(&b->kind_keys);
    chempi_bytes_fini(&b->attachments);
    chempi_bytes_fini(&b->networks);
    chempi_strings_fini(&b->strings);
    free(b);
}

void chempi_dir_builder_set_cluster(struct chempi_dir_builder *b,
                                    const char *name)
{
    b->cluster = chempi_strings_add(&b->strings, name);
}

void chempi_dir_builder_add_network(struct chempi_dir_builder *b,
                                    const char *name, const char *type,
                                    const char *device)
{
    unsigned char *n = chempi_bytes_add(&b->networks, CHEMPI_NET_LEN);

    if (!n)
        return;
    chempi_put_le32(n + CHEMPI_NET_NAME, chempi_strings_add(&b->strings, name));
    chempi_put_le32(n + CHEMPI_NET_TYPE, chempi_strings_add(&b->strings, type));
    chempi_put_le32(n + CHEMPI_NET_DEVICE,
                    chempi_strings_add(&b->strings, device));
    b->network_count++;
}

void chempi_dir_builder_add_node(struct chempi_dir_builder *b, const char *name,
                                 uint32_t node_class, uint32_t slots,
                                 bool gateway)
{
    unsigned char *n;

    if (!*name || slots > UINT16_MAX || node_class >= UINT32_MAX - 1) {
        b->status = -EINVAL;
        return;
    }
    n = chempi_bytes_add(&b->nodes, CHEMPI_ENTRY_LEN);
    if (!n)
        return;
    chempi_put_le32(n + CHEMPI_ENTRY_NAME,
                    chempi_strings_add(&b->strings, name));
    chempi_put_le32(n + CHEMPI_ENTRY_FIRST, b->attachment_count);
    chempi_put_le32(n + CHEMPI_ENTRY_CLASS, node_class);
    chempi_put_le16(n + CHEMPI_ENTRY_SLOTS, slots ? slots : 1);
    chempi_put_le16(n + CHEMPI_ENTRY_FLAGS,
                    (gateway ? CHEMPI_ENTRY_GATEWAY : 0) |
                        (slots ? CHEMPI_ENTRY_HAS_SLOTS : 0));
    b->node_count++;
    if (node_class >= b->class_count)
        b->class_count = node_class + 1;
}

static uint32_t string_or_none(struct chempi_dir_builder *b, const char *text)
{
    return text ? chempi_strings_add(&b->strings, text) : CHEMPI_TABLE_NONE;
}

#define KIND_KEY_LEN 25u /* three numbers of eight digits, the zero */

/* The number of a kind, which is new or has been met before. */
static uint32_t kind_of(struct chempi_dir_builder *b, uint32_t network,
                        uint32_t interface, uint32_t form)
{
    uint32_t known = b->kind_keys.index.count;
    char key[KIND_KEY_LEN];
    uint32_t off;
    unsigned char *k;

    (void)snprintf(key, sizeof(key), "%08x%08x%08x", (unsigned)network,
                   (unsigned)interface, (unsigned)form);
    off = chempi_strings_add(&b->kind_keys, key);
    if (b->kind_keys.index.count > known) {
        k = chempi_bytes_add(&b->kinds, CHEMPI_KIND_LEN);
        if (k) {
            chempi_put_le32(k + CHEMPI_KIND_NETWORK, network);
            chempi_put_le32(k + CHEMPI_KIND_INTERFACE, interface);
            chempi_put_le32(k + CHEMPI_KIND_FORM, form);
        }
    }
    return off / KIND_KEY_LEN;
}

/* An IPv4 address that is written in the only way in which it is read back. */
static bool is_ipv4(const char *text, unsigned char bytes[4])
{
    char again[CHEMPI_TABLE_IPV4_MAX];

    return text && inet_pton(AF_INET, text, bytes) == 1 &&
           inet_ntop(AF_INET, bytes, again, sizeof(again)) &&
           strcmp(text, again) == 0;
}

void chempi_dir_builder_attach(struct chempi_dir_builder *b, uint32_t network,
                               const char *address, const char *interface)
{
    unsigned char ipv4[4];
    bool is_short = is_ipv4(address, ipv4);
    unsigned char *a;

    if (network >= b->network_count || b->node_count == 0) {
        b->status = -EINVAL;
        return;
    }
    a = chempi_bytes_add(&b->attachments, CHEMPI_ATT_LEN);
    if (!a)
        return;
    chempi_put_le32(a + CHEMPI_ATT_KIND,
                    kind_of(b, network, string_or_none(b, interface),
                            is_short ? CHEMPI_FORM_IPV4 : CHEMPI_FORM_TEXT));
    if (is_short)
        memcpy(a + CHEMPI_ATT_ADDRESS, ipv4, sizeof(ipv4));
    else
        chempi_put_le32(a + CHEMPI_ATT_ADDRESS, string_or_none(b, address));
    b->attachment_count++;
}

struct named {
    const char *name;
    uint32_t node;
};

static int order_named(const void *a, const void *b)
{
    const struct named *x = a;
    const struct named *y = b;

    return strcmp(x->name, y->name);
}

/* Node indices by ascending name. */
static int sort_nodes(struct chempi_dir_builder *b, struct chempi_err *err)
{
    struct named *list = chempi_sys->calloc(b->node_count, sizeof(*list));
    int rc = 0;

    if (!list)
        return -ENOMEM;
    for (uint32_t i = 0; i < b->node_count; i++) {
        uint32_t name =
            chempi_le32(b->nodes.data + (size_t)i * CHEMPI_ENTRY_LEN);

        list[i].name = (const char *)b->strings.bytes.data + name;
        list[i].node = i;
    }
    qsort(list, b->node_count, sizeof(*list), order_named);
    b->order.len = 0;
    for (uint32_t i = 0; i < b->node_count && !rc; i++) {
        unsigned char *o = chempi_bytes_add(&b->order, 4);

        if (o)
            chempi_put_le32(o, list[i].node);
        if (i > 0 && strcmp(list[i - 1].name, list[i].name) == 0)
            rc = chempi_err_set(err, -EINVAL, "node %s is named twice",
                                list[i].name);
    }
    free(list);
    return rc;
}

static int dir_status(const struct chempi_dir_builder *b)
{
    /* A call after a failed one may seem wrong: its status comes last. */
    const int all[] = {b->nodes.status,         b->order.status,
                       b->kinds.status,         b->kind_keys.bytes.status,
                       b->attachments.status,   b->networks.status,
                       b->strings.bytes.status, b->status};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i])
            return all[i];
    }
    return b->node_count ? 0 : -EINVAL;
}

static int builder_failed(struct chempi_err *err, int rc)
{
    return chempi_err_set(err, rc, "cannot build a connection table: %s",
                          chempi_err_name(rc));
}

int chempi_dir_builder_finish(struct chempi_dir_builder *b,
                              struct chempi_blob *out, struct chempi_err *err)
{
    const struct chempi_bytes *const sections[] = {
        &b->nodes,       &b->order,    &b->kinds,
        &b->attachments, &b->networks, &b->strings.bytes};
    unsigned char head[CHEMPI_DIR_HEAD] = {0};
    int rc = dir_status(b);

    if (rc)
        return builder_failed(err, rc);
    rc = sort_nodes(b, err);
    if (rc == -EINVAL)
        return rc;
    if (!rc)
        rc = dir_status(b);
    if (rc)
        return builder_failed(err, rc);
    chempi_put_le32(head + CHEMPI_DIR_NODES, b->node_count);
    chempi_put_le32(head + CHEMPI_DIR_NETWORKS, b->network_count);
    chempi_put_le32(head + CHEMPI_DIR_ATTACHMENTS, b->attachment_count);
    chempi_put_le32(head + CHEMPI_DIR_CLASSES, b->class_count);
    chempi_put_le32(head + CHEMPI_DIR_KINDS,
                    (uint32_t)(b->kinds.len / CHEMPI_KIND_LEN));
    chempi_put_le32(head + CHEMPI_DIR_STRINGS, (uint32_t)b->strings.bytes.len);
    chempi_put_le32(head + CHEMPI_DIR_CLUSTER, b->cluster);
    rc = join_part(head, sizeof(head), sections, CHEMPI_ARRAY_LEN(sections),
                   CHEMPI_TABLE_PART_DIRECTORY, out);
    return rc ? builder_failed(err, rc) : 0;
}

/* ---- routes ------------------------------------------------------------- */

struct chempi_routes_builder {
    uint32_t own_class;
    uint32_t class_count;
    uint32_t list; /* begun last, or NONE */
    uint32_t range_count;
    uint32_t stage_count;
    uint32_t hop_count;
    struct chempi_bytes lists;
    struct chempi_bytes ranges;
    struct chempi_bytes stages;
    struct chempi_bytes hops;
    struct chempi_strings strings;
    int status;
};

struct chempi_routes_builder *chempi_routes_builder_create(uint32_t own_class,
                                                           uint32_t class_count)
{
    struct chempi_routes_builder *b = chempi_sys->calloc(1, sizeof(*b));

    if (!b)
        return NULL;
    b->own_class = own_class;
    b->class_count = class_count;
    b->list = CHEMPI_TABLE_NONE;
    (void)chempi_bytes_add(&b->lists,
                           ((size_t)class_count + 1) * CHEMPI_LIST_LEN);
    return b;
}

void chempi_routes_builder_destroy(struct chempi_routes_builder *b)
{
    if (!b)
        return;
    chempi_bytes_fini(&b->lists);
    chempi_bytes_fini(&b->ranges);
    chempi_bytes_fini(&b->stages);
    chempi_bytes_fini(&b->hops);
    chempi_strings_fini(&b->strings);
    free(b);
}

void chempi_routes_builder_begin(struct chempi_routes_builder *b, uint32_t list)
{
    if (list > b->class_count || b->lists.status) {
        b->status = b->lists.status ? b->lists.status : -EINVAL;
        return;
    }
    b->list = list;
    chempi_put_le32(b->lists.data + (size_t)list * CHEMPI_LIST_LEN,
                    b->range_count);
}

void chempi_routes_builder_repeat(struct chempi_routes_builder *b,
                                  uint32_t list, uint32_t same_as)
{
    if (list > b->class_count || same_as > b->class_count || b->lists.status) {
        b->status = b->lists.status ? b->lists.status : -EINVAL;
        return;
    }
    memcpy(b->lists.data + (size_t)list * CHEMPI_LIST_LEN,
           b->lists.data + (size_t)same_as * CHEMPI_LIST_LEN, CHEMPI_LIST_LEN);
}

/* One more in a counter of the file. */
static void bump(unsigned char *counter)
{
    chempi_put_le32(counter, chempi_le32(counter) + 1);
}

void chempi_routes_builder_add_range(struct chempi_routes_builder *b,
                                     uint64_t max_len, double cost_us,
                                     uint32_t chunk, uint32_t share_count)
{
    unsigned char *list;
    unsigned char *r;

    if (b->list == CHEMPI_TABLE_NONE) {
        b->status = -EINVAL;
        return;
    }
    list = b->lists.data + (size_t)b->list * CHEMPI_LIST_LEN;
    if (chempi_le32(list + CHEMPI_LIST_COUNT) == CHEMPI_TABLE_RANGES_MAX) {
        b->status = -E2BIG;
        return;
    }
    r = chempi_bytes_add(&b->ranges, CHEMPI_RANGE_LEN);
    if (!r)
        return;
    chempi_put_le64(r + CHEMPI_RANGE_MAX, max_len);
    chempi_put_le_double(r + CHEMPI_RANGE_COST, cost_us);
    chempi_put_le32(r + CHEMPI_RANGE_FIRST, b->stage_count);
    chempi_put_le32(r + CHEMPI_RANGE_CHUNK, chunk);
    chempi_put_le32(r + CHEMPI_RANGE_SHARE, share_count);
    bump(list + CHEMPI_LIST_COUNT);
    b->range_count++;
}

void chempi_routes_builder_add_stage(struct chempi_routes_builder *b,
                                     uint32_t network, const char *device,
                                     const char *protocol, const uint32_t *hops,
                                     uint32_t hop_count)
{
    unsigned char *s = chempi_bytes_add(&b->stages, CHEMPI_STAGE_LEN);
    unsigned char *h = chempi_bytes_add(&b->hops, (size_t)hop_count * 4);

    if (!s || !h || b->ranges.len == 0) {
        b->status = b->ranges.len ? -ENOMEM : -EINVAL;
        return;
    }
    chempi_put_le32(s + CHEMPI_STAGE_NETWORK, network);
    chempi_put_le32(s + CHEMPI_STAGE_DEVICE,
                    chempi_strings_add(&b->strings, device));
    chempi_put_le32(s + CHEMPI_STAGE_PROTOCOL,
                    chempi_strings_add(&b->strings, protocol));
    chempi_put_le32(s + CHEMPI_STAGE_FIRST, b->hop_count);
    chempi_put_le32(s + CHEMPI_STAGE_COUNT, hop_count);
    for (uint32_t i = 0; i < hop_count; i++)
        chempi_put_le32(h + (size_t)i * 4, hops[i]);
    bump(b->ranges.data + b->ranges.len - CHEMPI_RANGE_LEN +
         CHEMPI_RANGE_COUNT);
    b->hop_count += hop_count;
    b->stage_count++;
}

static int routes_status(const struct chempi_routes_builder *b)
{
    const int all[] = {b->lists.status,         b->ranges.status,
                       b->stages.status,        b->hops.status,
                       b->strings.bytes.status, b->status};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i])
            return all[i];
    }
    return 0;
}

void chempi_routes_builder_set_times(struct chempi_routes_builder *b,
                                     const struct chempi_table_times *times)
{
    unsigned char *s = b->stages.data + b->stages.len - CHEMPI_STAGE_LEN;

    if (b->status || b->stages.len == 0)
        return;
    chempi_put_le_float(s + CHEMPI_STAGE_FORWARD, times->forward_us);
    chempi_put_le_float(s + CHEMPI_STAGE_LATENCY, times->latency_us);
    chempi_put_le_float(s + CHEMPI_STAGE_COST, times->cost_us);
    chempi_put_le_float(s + CHEMPI_STAGE_BW, times->bw_bytes_per_us);
}

int chempi_routes_builder_finish(struct chempi_routes_builder *b,
                                 struct chempi_blob *out,
                                 struct chempi_err *err)
{
    const struct chempi_bytes *const sections[] = {
        &b->lists, &b->ranges, &b->stages, &b->hops, &b->strings.bytes};
    unsigned char head[CHEMPI_ROUTES_HEAD] = {0};
    int rc = routes_status(b);

    if (rc)
        return builder_failed(err, rc);
    chempi_put_le32(head + CHEMPI_ROUTES_CLASS, b->own_class);
    chempi_put_le32(head + CHEMPI_ROUTES_CLASSES, b->class_count);
    chempi_put_le32(head + CHEMPI_ROUTES_RANGES, b->range_count);
    chempi_put_le32(head + CHEMPI_ROUTES_STAGES, b->stage_count);
    chempi_put_le32(head + CHEMPI_ROUTES_HOPS, b->hop_count);
    chempi_put_le32(head + CHEMPI_ROUTES_STRINGS,
                    (uint32_t)b->strings.bytes.len);
    rc = join_part(head, sizeof(head), sections, CHEMPI_ARRAY_LEN(sections),
                   CHEMPI_TABLE_PART_ROUTES, out);
    return rc ? builder_failed(err, rc) : 0;
}

/* ---- putting together --------------------------------------------------- */

static int put_file_name(unsigned char *at, const char *name)
{
    size_t len = name ? strlen(name) : 0;

    if (len >= CHEMPI_NODE_FILE_LEN)
        return -EINVAL;
    if (len)
        memcpy(at, name, len);
    return 0;
}

int chempi_table_build_node(uint32_t self, uint32_t self_class,
                            const struct chempi_blob *routes,
                            const struct chempi_blob *dir,
                            const char *routes_file, const char *dir_file,
                            struct chempi_blob *out)
{
    unsigned char *part = chempi_sys->calloc(1, CHEMPI_NODE_LEN);
    int rc;

    if (!part)
        return -ENOMEM;
    rc = put_file_name(part + CHEMPI_NODE_ROUTES_FILE, routes_file);
    if (!rc)
        rc = put_file_name(part + CHEMPI_NODE_DIR_FILE, dir_file);
    if (rc) {
        free(part);
        return rc;
    }
    chempi_put_le32(part + CHEMPI_NODE_SELF, self);
    chempi_put_le32(part + CHEMPI_NODE_CLASS, self_class);
    chempi_put_le32(part + CHEMPI_NODE_ROUTES_SUM,
                    chempi_le32(routes->data + CHEMPI_PART_SUM));
    chempi_put_le32(part + CHEMPI_NODE_DIR_SUM,
                    chempi_le32(dir->data + CHEMPI_PART_SUM));
    chempi_put_le64(part + CHEMPI_NODE_ROUTES_LEN, routes->len);
    chempi_put_le64(part + CHEMPI_NODE_DIR_LEN, dir->len);
    seal_part(part, CHEMPI_NODE_LEN, CHEMPI_TABLE_PART_NODE);
    *out = (struct chempi_blob){.data = part, .len = CHEMPI_NODE_LEN};
    return 0;
}

int chempi_table_build_image(uint32_t self, uint32_t self_class,
                             const struct chempi_blob *routes,
                             const struct chempi_blob *dir,
                             struct chempi_blob *out)
{
    struct chempi_blob node = {.data = NULL};
    unsigned char *image;
    int rc;

    rc = chempi_table_build_node(self, self_class, routes, dir, NULL, NULL,
                                 &node);
    if (rc)
        return rc;
    image = chempi_sys->realloc(node.data, node.len + routes->len + dir->len);
    if (!image) {
        chempi_blob_fini(&node);
        return -ENOMEM;
    }
    memcpy(image + node.len, routes->data, routes->len);
    memcpy(image + node.len + routes->len, dir->data, dir->len);
    *out = (struct chempi_blob){.data = image,
                                .len = node.len + routes->len + dir->len};
    return 0;
}
