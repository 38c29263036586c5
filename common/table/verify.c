/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks of a table's bytes; see verify.h. */
#define _GNU_SOURCE /* strnlen */
#include "common/table/verify.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "common/base/compiler.h"
#include "common/table/crc32c.h"
#include "common/table/format.h"
#include "common/table/table.h"

static const char *part_name(uint32_t kind)
{
    switch (kind) {
    case CHEMPI_TABLE_PART_NODE:
        return "node";
    case CHEMPI_TABLE_PART_ROUTES:
        return "routes";
    default:
        return "directory";
    }
}

static int damaged(struct chempi_err *err, uint32_t kind, size_t off,
                   const char *what)
{
    return chempi_err_set(err, -EBADMSG,
                          "damaged connection table: %s part, byte %zu: %s; "
                          "compile it again with mdconfig",
                          part_name(kind), off, what);
}

static int invalid(struct chempi_err *err, const char *what, uint32_t number,
                   const char *why)
{
    return chempi_err_set(err, -EBADMSG,
                          "damaged connection table: %s %u %s; compile it "
                          "again with mdconfig",
                          what, (unsigned)number, why);
}

int chempi_table_verify_part(const unsigned char *data, size_t len,
                             uint32_t kind, size_t *part_len,
                             struct chempi_err *err)
{
    uint32_t version;
    uint64_t claimed;

    if (len < CHEMPI_PART_HEAD ||
        memcmp(data, CHEMPI_TABLE_MAGIC, sizeof(CHEMPI_TABLE_MAGIC) - 1) != 0)
        return chempi_err_set(err, -EBADMSG,
                              "not a connection table (expected its %s part); "
                              "tables are written by mdconfig compile",
                              part_name(kind));
    version = chempi_le32(data + CHEMPI_PART_VERSION);
    if (version != CHEMPI_TABLE_VERSION)
        return chempi_err_set(err, -EPROTO,
                              "connection table of version %u, this program "
                              "reads version %u; compile it again with the "
                              "mdconfig of this version",
                              version, (unsigned)CHEMPI_TABLE_VERSION);
    if (chempi_crc32c(data, CHEMPI_PART_HEAD_SUM) !=
        chempi_le32(data + CHEMPI_PART_HEAD_SUM))
        return damaged(err, kind, 0, "wrong checksum of the header");
    if (chempi_le32(data + CHEMPI_PART_KIND) != kind)
        return damaged(err, kind, CHEMPI_PART_KIND, "another part was found");
    claimed = chempi_le64(data + CHEMPI_PART_LEN);
    if (claimed > len || claimed < CHEMPI_PART_HEAD || claimed % 8 != 0)
        return damaged(err, kind, CHEMPI_PART_LEN, "cut off or wrong length");
    if (chempi_crc32c(data + CHEMPI_PART_HEAD,
                      (size_t)claimed - CHEMPI_PART_HEAD) !=
        chempi_le32(data + CHEMPI_PART_SUM))
        return damaged(err, kind, CHEMPI_PART_HEAD, "wrong checksum");
    *part_len = (size_t)claimed;
    return 0;
}

/* ---- sections ----------------------------------------------------------- */

struct cursor {
    const unsigned char *part;
    uint64_t len; /* of the part */
    uint64_t off;
};

/* Take the next `count` entries; NULL when the part is too short. Counts and
 * entry lengths are 32-bit, so the product cannot wrap. */
static const unsigned char *take(struct cursor *c, uint32_t count,
                                 uint32_t entry_len)
{
    uint64_t need = (uint64_t)count * entry_len;
    const unsigned char *at = c->part + c->off;

    if (need > c->len - c->off)
        return NULL;
    c->off += need;
    return at;
}

/* A part ends within the 8 bytes after its last section. */
static bool is_at_end(const struct cursor *c)
{
    return c->len - c->off < 8;
}

static bool strings_end(const char *strings, uint32_t len)
{
    return len == 0 || strings[len - 1] == '\0';
}

static int locate_routes(const unsigned char *part, size_t len,
                         struct chempi_table_layout *l, struct chempi_err *err)
{
    const uint32_t kind = CHEMPI_TABLE_PART_ROUTES;
    struct cursor c = {part, len, CHEMPI_ROUTES_HEAD};
    uint32_t classes;

    if (len < CHEMPI_ROUTES_HEAD)
        return damaged(err, kind, CHEMPI_PART_LEN, "too short");
    classes = chempi_le32(part + CHEMPI_ROUTES_CLASSES);
    if (classes != l->class_count || classes == UINT32_MAX)
        return damaged(err, kind, CHEMPI_ROUTES_CLASSES,
                       "the directory has another number of classes");
    if (chempi_le32(part + CHEMPI_ROUTES_CLASS) != l->self_class)
        return damaged(err, kind, CHEMPI_ROUTES_CLASS,
                       "the node is of another class");
    l->range_count = chempi_le32(part + CHEMPI_ROUTES_RANGES);
    l->stage_count = chempi_le32(part + CHEMPI_ROUTES_STAGES);
    l->hop_count = chempi_le32(part + CHEMPI_ROUTES_HOPS);
    l->routes_strings_len = chempi_le32(part + CHEMPI_ROUTES_STRINGS);
    l->lists = take(&c, classes + 1, CHEMPI_LIST_LEN);
    if (!l->lists)
        return damaged(err, kind, CHEMPI_ROUTES_CLASSES, "too many classes");
    l->ranges = take(&c, l->range_count, CHEMPI_RANGE_LEN);
    if (!l->ranges)
        return damaged(err, kind, CHEMPI_ROUTES_RANGES, "too many ranges");
    l->stages = take(&c, l->stage_count, CHEMPI_STAGE_LEN);
    if (!l->stages)
        return damaged(err, kind, CHEMPI_ROUTES_STAGES, "too many stages");
    l->hops = take(&c, l->hop_count, 4);
    if (!l->hops)
        return damaged(err, kind, CHEMPI_ROUTES_HOPS, "too many hops");
    l->routes_strings = (const char *)take(&c, l->routes_strings_len, 1);
    if (!l->routes_strings || !is_at_end(&c) ||
        !strings_end(l->routes_strings, l->routes_strings_len))
        return damaged(err, kind, CHEMPI_ROUTES_STRINGS,
                       "strings of the wrong length");
    return 0;
}

static int locate_directory(const unsigned char *part, size_t len,
                            struct chempi_table_layout *l,
                            struct chempi_err *err)
{
    const uint32_t kind = CHEMPI_TABLE_PART_DIRECTORY;
    struct cursor c = {part, len, CHEMPI_DIR_HEAD};

    if (len < CHEMPI_DIR_HEAD)
        return damaged(err, kind, CHEMPI_PART_LEN, "too short");
    l->node_count = chempi_le32(part + CHEMPI_DIR_NODES);
    l->network_count = chempi_le32(part + CHEMPI_DIR_NETWORKS);
    l->attachment_count = chempi_le32(part + CHEMPI_DIR_ATTACHMENTS);
    l->class_count = chempi_le32(part + CHEMPI_DIR_CLASSES);
    l->kind_count = chempi_le32(part + CHEMPI_DIR_KINDS);
    l->dir_strings_len = chempi_le32(part + CHEMPI_DIR_STRINGS);
    l->cluster = chempi_le32(part + CHEMPI_DIR_CLUSTER);
    l->nodes = take(&c, l->node_count, CHEMPI_ENTRY_LEN);
    l->order = l->nodes ? take(&c, l->node_count, 4) : NULL;
    if (!l->order || l->node_count == 0)
        return damaged(err, kind, CHEMPI_DIR_NODES, "wrong number of nodes");
    l->kinds = take(&c, l->kind_count, CHEMPI_KIND_LEN);
    if (!l->kinds)
        return damaged(err, kind, CHEMPI_DIR_KINDS,
                       "too many kinds of attachments");
    l->attachments = take(&c, l->attachment_count, CHEMPI_ATT_LEN);
    if (!l->attachments)
        return damaged(err, kind, CHEMPI_DIR_ATTACHMENTS,
                       "too many attachments");
    l->networks = take(&c, l->network_count, CHEMPI_NET_LEN);
    if (!l->networks)
        return damaged(err, kind, CHEMPI_DIR_NETWORKS, "too many networks");
    l->dir_strings = (const char *)take(&c, l->dir_strings_len, 1);
    if (!l->dir_strings || !is_at_end(&c) ||
        !strings_end(l->dir_strings, l->dir_strings_len))
        return damaged(err, kind, CHEMPI_DIR_STRINGS,
                       "strings of the wrong length");
    if (l->cluster >= l->dir_strings_len)
        return damaged(err, kind, CHEMPI_DIR_CLUSTER, "no such string");
    return 0;
}

/* ---- contents ----------------------------------------------------------- */

static int verify_networks(const struct chempi_table_layout *l,
                           struct chempi_err *err)
{
    for (uint32_t i = 0; i < l->network_count; i++) {
        const unsigned char *n = l->networks + (size_t)i * CHEMPI_NET_LEN;

        if (chempi_le32(n + CHEMPI_NET_NAME) >= l->dir_strings_len ||
            chempi_le32(n + CHEMPI_NET_TYPE) >= l->dir_strings_len ||
            chempi_le32(n + CHEMPI_NET_DEVICE) >= l->dir_strings_len)
            return invalid(err, "network", i,
                           "has no valid name, type or device");
    }
    return 0;
}

static bool is_string_or_none(uint32_t off, uint32_t strings_len)
{
    return off == CHEMPI_TABLE_NONE || off < strings_len;
}

static int verify_kinds(const struct chempi_table_layout *l,
                        struct chempi_err *err)
{
    for (uint32_t i = 0; i < l->kind_count; i++) {
        const unsigned char *k = l->kinds + (size_t)i * CHEMPI_KIND_LEN;

        if (chempi_le32(k + CHEMPI_KIND_NETWORK) >= l->network_count ||
            chempi_le32(k + CHEMPI_KIND_FORM) > CHEMPI_FORM_IPV4 ||
            !is_string_or_none(chempi_le32(k + CHEMPI_KIND_INTERFACE),
                               l->dir_strings_len))
            return invalid(err, "kind of attachments", i,
                           "has no valid network, form or interface");
    }
    return 0;
}

static bool is_attachment(const struct chempi_table_layout *l,
                          const unsigned char *a)
{
    uint32_t kind = chempi_le32(a + CHEMPI_ATT_KIND);
    const unsigned char *k = l->kinds + (size_t)kind * CHEMPI_KIND_LEN;

    return kind < l->kind_count &&
           (chempi_le32(k + CHEMPI_KIND_FORM) == CHEMPI_FORM_IPV4 ||
            is_string_or_none(chempi_le32(a + CHEMPI_ATT_ADDRESS),
                              l->dir_strings_len));
}

static int verify_attachments(const struct chempi_table_layout *l,
                              struct chempi_err *err)
{
    for (uint32_t i = 0; i < l->attachment_count; i++) {
        if (!is_attachment(l, l->attachments + (size_t)i * CHEMPI_ATT_LEN))
            return invalid(err, "attachment", i,
                           "has no valid kind or address");
    }
    return 0;
}

static const char *entry_name(const struct chempi_table_layout *l,
                              uint32_t node)
{
    return l->dir_strings +
           chempi_le32(l->nodes + (size_t)node * CHEMPI_ENTRY_LEN);
}

/* Neither empty nor so long that comparing many of them takes hours: strings
 * may overlap. */
static bool is_node_name(const struct chempi_table_layout *l, uint32_t off)
{
    size_t len;

    if (off >= l->dir_strings_len)
        return false;
    len = strnlen(l->dir_strings + off, CHEMPI_TABLE_NAME_MAX);
    return len > 0 && len < CHEMPI_TABLE_NAME_MAX;
}

static int verify_nodes(const struct chempi_table_layout *l,
                        struct chempi_err *err)
{
    uint32_t previous = 0;

    for (uint32_t i = 0; i < l->node_count; i++) {
        const unsigned char *n = l->nodes + (size_t)i * CHEMPI_ENTRY_LEN;
        uint32_t first = chempi_le32(n + CHEMPI_ENTRY_FIRST);

        if (!is_node_name(l, chempi_le32(n + CHEMPI_ENTRY_NAME)) ||
            first < previous || first > l->attachment_count ||
            (i == 0 && first != 0) ||
            chempi_le32(n + CHEMPI_ENTRY_CLASS) >= l->class_count ||
            chempi_le16(n + CHEMPI_ENTRY_SLOTS) == 0)
            return invalid(err, "the entry of node", i, "is not valid");
        previous = first;
    }
    /* Strictly ascending names: a permutation without duplicates. */
    for (uint32_t i = 0; i < l->node_count; i++) {
        uint32_t node = chempi_le32(l->order + (size_t)i * 4);

        if (node >= l->node_count ||
            (i > 0 &&
             strcmp(entry_name(l, previous), entry_name(l, node)) >= 0))
            return invalid(err, "the name of node", i, "is not in order");
        previous = node;
    }
    return 0;
}

/* Finite and not negative. */
static bool are_times(const unsigned char *stage)
{
    static const int places[] = {CHEMPI_STAGE_FORWARD, CHEMPI_STAGE_LATENCY,
                                 CHEMPI_STAGE_COST, CHEMPI_STAGE_BW};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(places); i++) {
        const double value = chempi_le_float(stage + places[i]);

        if (!(value >= 0 && value <= FLT_MAX))
            return false;
    }
    return true;
}

static int verify_stages(const struct chempi_table_layout *l,
                         struct chempi_err *err)
{
    for (uint32_t i = 0; i < l->hop_count; i++) {
        if (chempi_le32(l->hops + (size_t)i * 4) >= l->node_count)
            return invalid(err, "hop", i, "is no node");
    }
    for (uint32_t i = 0; i < l->stage_count; i++) {
        const unsigned char *s = l->stages + (size_t)i * CHEMPI_STAGE_LEN;
        uint32_t first = chempi_le32(s + CHEMPI_STAGE_FIRST);
        uint32_t count = chempi_le32(s + CHEMPI_STAGE_COUNT);

        if (chempi_le32(s + CHEMPI_STAGE_NETWORK) >= l->network_count ||
            chempi_le32(s + CHEMPI_STAGE_DEVICE) >= l->routes_strings_len ||
            chempi_le32(s + CHEMPI_STAGE_PROTOCOL) >= l->routes_strings_len ||
            first > l->hop_count || count > l->hop_count - first ||
            !are_times(s))
            return invalid(err, "stage", i, "is not valid");
    }
    return 0;
}

/* A way: all stages but the last one end at gateways. */
static bool is_way(const struct chempi_table_layout *l,
                   const unsigned char *range)
{
    uint32_t first = chempi_le32(range + CHEMPI_RANGE_FIRST);
    uint32_t count = chempi_le32(range + CHEMPI_RANGE_COUNT);
    uint32_t share = chempi_le32(range + CHEMPI_RANGE_SHARE);
    uint32_t first_hops = 0;

    if (count == 0 || count > CHEMPI_TABLE_STAGES_MAX ||
        first >= l->stage_count || count > l->stage_count - first)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const unsigned char *s =
            l->stages + (size_t)(first + i) * CHEMPI_STAGE_LEN;
        uint32_t hops = chempi_le32(s + CHEMPI_STAGE_COUNT);

        if ((hops == 0) != (i == count - 1))
            return false;
        if (i == 0)
            first_hops = hops ? hops : 1;
    }
    return share >= 1 && share <= first_hops;
}

static bool is_range(const struct chempi_table_layout *l,
                     const unsigned char *range)
{
    double cost = chempi_le_double(range + CHEMPI_RANGE_COST);

    return isfinite(cost) && cost >= 0 && is_way(l, range);
}

/* Ranges of a list ascend and end with "any size". */
static bool is_list(const struct chempi_table_layout *l,
                    const unsigned char *list)
{
    uint32_t first = chempi_le32(list + CHEMPI_LIST_FIRST);
    uint32_t count = chempi_le32(list + CHEMPI_LIST_COUNT);
    uint64_t previous = 0;

    if (count == 0)
        return true;
    if (count > CHEMPI_TABLE_RANGES_MAX || first >= l->range_count ||
        count > l->range_count - first)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const unsigned char *r =
            l->ranges + (size_t)(first + i) * CHEMPI_RANGE_LEN;
        uint64_t max = chempi_le64(r + CHEMPI_RANGE_MAX);

        if (i > 0 && max <= previous)
            return false;
        previous = max;
    }
    return previous == CHEMPI_TABLE_SIZE_MAX;
}

static int verify_routes(const struct chempi_table_layout *l,
                         struct chempi_err *err)
{
    const unsigned char *own =
        l->lists + (size_t)l->class_count * CHEMPI_LIST_LEN;

    for (uint32_t i = 0; i < l->range_count; i++) {
        if (!is_range(l, l->ranges + (size_t)i * CHEMPI_RANGE_LEN))
            return invalid(err, "range", i, "is not valid");
    }
    for (uint32_t i = 0; i <= l->class_count; i++) {
        if (!is_list(l, l->lists + (size_t)i * CHEMPI_LIST_LEN))
            return invalid(err, "the list of class", i, "is not valid");
    }
    for (uint32_t i = 0; i < chempi_le32(own + CHEMPI_LIST_COUNT); i++) {
        uint32_t at = chempi_le32(own + CHEMPI_LIST_FIRST) + i;
        const unsigned char *r = l->ranges + (size_t)at * CHEMPI_RANGE_LEN;

        if (chempi_le32(r + CHEMPI_RANGE_COUNT) != 1)
            return invalid(err, "range", i,
                           "of a node's own messages leads through a gateway");
    }
    return 0;
}

/* The three parts belong together: the NODE part holds the sums and lengths
 * of the two others. */
static int locate_parts(const unsigned char *data, size_t len, size_t at[3],
                        size_t lens[3], struct chempi_err *err)
{
    size_t off = 0;
    int rc;

    for (uint32_t i = 0; i < 3; i++) {
        rc = chempi_table_verify_part(data + off, len - off, i + 1, &lens[i],
                                      err);
        if (rc)
            return rc;
        at[i] = off;
        off += lens[i];
    }
    if (off != len)
        return damaged(err, CHEMPI_TABLE_PART_DIRECTORY, lens[2],
                       "more bytes follow");
    if (lens[0] != CHEMPI_NODE_LEN)
        return damaged(err, CHEMPI_TABLE_PART_NODE, CHEMPI_PART_LEN,
                       "wrong length");
    if (chempi_le32(data + CHEMPI_NODE_ROUTES_SUM) !=
            chempi_le32(data + at[1] + CHEMPI_PART_SUM) ||
        chempi_le32(data + CHEMPI_NODE_DIR_SUM) !=
            chempi_le32(data + at[2] + CHEMPI_PART_SUM) ||
        chempi_le64(data + CHEMPI_NODE_ROUTES_LEN) != lens[1] ||
        chempi_le64(data + CHEMPI_NODE_DIR_LEN) != lens[2])
        return damaged(err, CHEMPI_TABLE_PART_NODE, CHEMPI_NODE_ROUTES_SUM,
                       "the other parts come from another compilation");
    return 0;
}

int chempi_table_verify(const unsigned char *data, size_t len,
                        struct chempi_table_layout *out, struct chempi_err *err)
{
    struct chempi_table_layout l = {.self = 0};
    size_t at[3];
    size_t lens[3];
    int rc;

    rc = locate_parts(data, len, at, lens, err);
    if (rc)
        return rc;
    l.self = chempi_le32(data + CHEMPI_NODE_SELF);
    l.self_class = chempi_le32(data + CHEMPI_NODE_CLASS);
    rc = locate_directory(data + at[2], lens[2], &l, err);
    if (!rc)
        rc = locate_routes(data + at[1], lens[1], &l, err);
    if (!rc)
        rc = verify_networks(&l, err);
    if (!rc)
        rc = verify_kinds(&l, err);
    if (!rc)
        rc = verify_attachments(&l, err);
    if (!rc)
        rc = verify_nodes(&l, err);
    if (!rc)
        rc = verify_stages(&l, err);
    if (!rc)
        rc = verify_routes(&l, err);
    if (rc)
        return rc;
    if (l.self >= l.node_count ||
        chempi_le32(l.nodes + (size_t)l.self * CHEMPI_ENTRY_LEN +
                    CHEMPI_ENTRY_CLASS) != l.self_class)
        return damaged(err, CHEMPI_TABLE_PART_NODE, CHEMPI_NODE_SELF,
                       "the node is not in the directory with this class");
    *out = l;
    return 0;
}
