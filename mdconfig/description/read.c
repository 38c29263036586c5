/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a description: the top of the file, forwarding and nodes. */
#include <errno.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/base/invariant.h"
#include "mdconfig/description/interval.h"
#include "mdconfig/description/reader.h"

static int read_cluster(struct chempi_desc_reader *r, chempi_yaml_value value,
                        void *target)
{
    const char *text = "";
    int rc = chempi_reader_text(r, value, "the name of the cluster", &text);

    (void)target;
    if (!rc)
        rc =
            chempi_reader_check_name(r, value, "the name of the cluster", text);
    if (!rc)
        r->desc->cluster = chempi_arena_text(&r->desc->arena, text);
    return rc;
}

/* ---- forwarding --------------------------------------------------------- */

static int read_ways(struct chempi_desc_reader *r, chempi_yaml_value value,
                     void *target)
{
    static const char *const words[] = {"fastest", "needed", "direct"};
    static const enum chempi_desc_ways ways[] = {
        CHEMPI_DESC_FASTEST, CHEMPI_DESC_NEEDED, CHEMPI_DESC_DIRECT};
    size_t i = 0;
    int rc = chempi_reader_choice(r, value, "fastest, needed or direct", words,
                                  CHEMPI_ARRAY_LEN(words), &i);

    (void)target;
    if (!rc)
        r->desc->ways = ways[i];
    return rc;
}

static int read_forward_cost(struct chempi_desc_reader *r,
                             chempi_yaml_value value, void *target)
{
    (void)target;
    return chempi_reader_time(r, value, false, &r->desc->forward_us, NULL);
}

static int read_chunk(struct chempi_desc_reader *r, chempi_yaml_value value,
                      void *target)
{
    uint64_t chunk;
    int rc = chempi_reader_size(r, value, &chunk);

    (void)target;
    if (rc)
        return rc;
    if (chunk < 1024 || chunk > (16u << 20))
        return chempi_yaml_expected(r->yaml, value, r->err,
                                    "a chunk from 1 KiB to 16 MiB");
    r->desc->chunk = (uint32_t)chunk;
    return 0;
}

static int read_forwarding(struct chempi_desc_reader *r,
                           chempi_yaml_value value, void *target)
{
    static const struct chempi_reader_field fields[] = {
        {"ways", read_ways, false},
        {"cost", read_forward_cost, false},
        {"chunk", read_chunk, false},
    };

    return chempi_reader_fields(r, value, "forwarding", fields,
                                CHEMPI_ARRAY_LEN(fields), target);
}

/* ---- nodes -------------------------------------------------------------- */

static int read_slots(struct chempi_desc_reader *r, chempi_yaml_value value,
                      void *target)
{
    struct chempi_desc_node *node = target;
    uint64_t slots = 0;
    const char *text = chempi_yaml_text(r->yaml, value);

    if (chempi_yaml_kind_of(r->yaml, value) == CHEMPI_YAML_SCALAR &&
        strlen(text) <= 5 && strspn(text, "0123456789") == strlen(text)) {
        for (; *text; text++)
            slots = slots * 10 + (uint64_t)(*text - '0');
    }
    if (slots < 1 || slots > UINT16_MAX)
        return chempi_yaml_expected(r->yaml, value, r->err,
                                    "a number of processes from 1 to 65535");
    node->slots = (uint32_t)slots;
    node->has_slots = true;
    return 0;
}

static int read_gateway(struct chempi_desc_reader *r, chempi_yaml_value value,
                        void *target)
{
    static const char *const words[] = {"true", "false", "yes", "no"};
    struct chempi_desc_node *node = target;
    size_t i = 0;
    int rc = chempi_reader_choice(r, value, "true or false", words,
                                  CHEMPI_ARRAY_LEN(words), &i);

    if (!rc)
        node->gateway = i % 2 == 0;
    return rc;
}

static int read_forward(struct chempi_desc_reader *r, chempi_yaml_value value,
                        void *target)
{
    struct chempi_desc_node *node = target;

    if (!node->gateway)
        return chempi_yaml_fail(r->yaml, value, r->err,
                                "expected 'gateway: true' beside 'forward', "
                                "found a node that is no gateway");
    return chempi_reader_time(r, value, false, &node->forward_us, NULL);
}

static int add_nodes(struct chempi_desc_reader *r, chempi_yaml_value at,
                     const struct chempi_unfold *pattern,
                     const struct chempi_desc_node *model)
{
    struct chempi_desc *d = r->desc;
    char name[CHEMPI_UNFOLD_NAME_MAX];
    uint32_t other;
    int rc;

    if (pattern->count > CHEMPI_DESC_NODES_MAX - d->node_count)
        return chempi_yaml_fail(r->yaml, at, r->err,
                                "expected at most %u nodes, found more",
                                CHEMPI_DESC_NODES_MAX);
    for (uint32_t i = 0; i < pattern->count; i++) {
        struct chempi_desc_node *node;

        chempi_unfold_name(pattern, i, name);
        rc = chempi_reader_check_name(r, at, "the name of a node", name);
        if (rc)
            return rc;
        other = chempi_names_find(&d->node_names, name);
        if (other != CHEMPI_NAMES_NONE)
            return chempi_yaml_fail(r->yaml, at, r->err,
                                    "expected each node once, found '%s' "
                                    "again (first in line %zu)",
                                    name, d->nodes[other].line);
        d->nodes = chempi_mem_grow(d->nodes, d->node_count, &d->node_room,
                                   sizeof(*d->nodes));
        node = &d->nodes[d->node_count];
        *node = *model;
        node->name = chempi_arena_text(&d->arena, name);
        node->line = chempi_yaml_line(r->yaml, at);
        node->column = chempi_yaml_column(r->yaml, at);
        chempi_names_add(&d->node_names, node->name, d->node_count++);
    }
    return 0;
}

/* One pattern of nodes with its properties (0: none). */
static int read_node(struct chempi_desc_reader *r, chempi_yaml_value key,
                     chempi_yaml_value value)
{
    static const struct chempi_reader_field fields[] = {
        {"slots", read_slots, false},
        {"gateway", read_gateway, false},
        {"forward", read_forward, false},
    };
    struct chempi_desc_node model = {.slots = 1,
                                     .forward_us = r->desc->forward_us};
    struct chempi_unfold pattern;
    int rc = chempi_reader_pattern(r, key, "a node's name", &pattern);

    if (!rc && chempi_yaml_kind_of(r->yaml, value) != CHEMPI_YAML_NULL)
        rc = chempi_reader_fields(r, value, "a node", fields,
                                  CHEMPI_ARRAY_LEN(fields), &model);
    if (!rc)
        rc = add_nodes(r, key, &pattern, &model);
    return rc;
}

static int read_node_list(struct chempi_desc_reader *r, chempi_yaml_value value)
{
    size_t count = chempi_yaml_count(r->yaml, value);
    int rc = 0;

    for (size_t i = 0; i < count && !rc; i++)
        rc = read_node(r, chempi_yaml_item(r->yaml, value, i), 0);
    return rc;
}

static int read_node_mapping(struct chempi_desc_reader *r,
                             chempi_yaml_value value)
{
    struct chempi_yaml_pair *pairs;
    size_t count;
    int rc = chempi_yaml_pairs(r->yaml, value, "nodes", &r->scratch, &pairs,
                               &count, r->err);

    for (size_t i = 0; !rc && i < count; i++)
        rc = read_node(r, pairs[i].key, pairs[i].value);
    return rc;
}

static int read_nodes(struct chempi_desc_reader *r, chempi_yaml_value value,
                      void *target)
{
    int rc;

    (void)target;
    switch (chempi_yaml_kind_of(r->yaml, value)) {
    case CHEMPI_YAML_SCALAR:
        rc = read_node(r, value, 0);
        break;
    case CHEMPI_YAML_LIST:
        rc = read_node_list(r, value);
        break;
    case CHEMPI_YAML_MAPPING:
        rc = read_node_mapping(r, value);
        break;
    default:
        rc = 0;
    }
    if (!rc && r->desc->node_count == 0)
        rc = chempi_yaml_expected(r->yaml, value, r->err,
                                  "the names of nodes such as node[00-31]");
    return rc;
}

/* ---- the whole ---------------------------------------------------------- */

static int read_top(struct chempi_desc_reader *r)
{
    static const struct chempi_reader_field fields[] = {
        {"cluster", read_cluster, false},
        {"forwarding", read_forwarding, false},
        {"nodes", read_nodes, true},
        {"networks", chempi_reader_networks, false},
    };
    int rc = chempi_reader_fields(r, chempi_yaml_root(r->yaml),
                                  "a network description", fields,
                                  CHEMPI_ARRAY_LEN(fields), NULL);

    if (rc)
        return rc;
    rc = chempi_reader_imply_smp(r);
    if (rc)
        return rc;
    if (!chempi_intervals_fit(r->desc))
        return chempi_err_set(r->err, -E2BIG,
                              "%s: expected fewer different limits: the `min` "
                              "and `max` of protocols cut the sizes into too "
                              "many intervals; give networks of a kind the "
                              "same ones",
                              r->desc->file);
    chempi_desc_classify(r->desc);
    CHEMPI_CHECK(chempi_desc_check(r->desc));
    return 0;
}

static int read_desc(const struct chempi_yaml *yaml, const char *name,
                     struct chempi_desc *desc, struct chempi_err *err)
{
    struct chempi_desc made = {.cluster = "",
                               .forward_us = CHEMPI_DESC_FORWARD_US,
                               .chunk = CHEMPI_DESC_CHUNK};
    struct chempi_desc_reader r = {.yaml = yaml, .desc = &made, .err = err};
    int rc;

    made.file = chempi_arena_text(&made.arena, name);
    rc = read_top(&r);
    chempi_arena_fini(&r.scratch);
    if (rc)
        chempi_desc_fini(&made);
    else
        *desc = made;
    return rc;
}

int chempi_desc_open(const char *path, struct chempi_desc *desc,
                     struct chempi_err *err)
{
    struct chempi_yaml *yaml;
    int rc = chempi_yaml_open(path, &yaml, err);

    if (rc)
        return rc;
    rc = read_desc(yaml, path, desc, err);
    chempi_yaml_close(yaml);
    return rc;
}

int chempi_desc_parse(const char *name, const void *text, size_t len,
                      struct chempi_desc *desc, struct chempi_err *err)
{
    struct chempi_yaml *yaml;
    int rc = chempi_yaml_parse(name, text, len, &yaml, err);

    if (rc)
        return rc;
    rc = read_desc(yaml, name, desc, err);
    chempi_yaml_close(yaml);
    return rc;
}
