/* SPDX-License-Identifier: BSD-3-Clause */
/* Which nodes a job needs as gateways; see gateways.h. */
#include "chempid/hosts/gateways.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/job/namelist.h"
#include "common/containers/array.h"
#include "common/control/msg.h"
#include "common/table/load.h"
#include "common/table/table.h"

/* Names of gateways found so far; the strings are the pool's. */
struct found {
    struct chempi_spec *spec;
    char **names;
    uint32_t count;
    uint32_t room;
};

static int add(struct found *f, const char *name)
{
    for (uint32_t i = 0; i < f->count; i++)
        if (strcmp(f->names[i], name) == 0)
            return 0;
    if (f->count == CHEMPI_SPEC_GATEWAYS_MAX)
        return 0; /* more would not help any pair */
    if (!CHEMPI_ARRAY_FIT(f->names, f->room, f->count + 1))
        return -ENOMEM;
    f->names[f->count] = chempi_pool_str(&f->spec->pool, name);
    return f->names[f->count++] ? 0 : -ENOMEM;
}

static int add_nodes(struct found *f, const struct chempi_table *table,
                     const uint32_t *nodes, uint32_t count)
{
    int rc = 0;

    for (uint32_t i = 0; !rc && i < count; i++)
        rc = add(f, chempi_table_node_name(table, nodes[i]));
    return rc;
}

static int add_range(struct found *f, const struct chempi_table *table,
                     const struct chempi_table_range *range)
{
    int rc = 0;

    for (uint32_t i = 0; !rc && i + 1 < range->stage_count; i++)
        rc = add_nodes(f, table, range->stages[i].hops,
                       range->stages[i].hop_count);
    return rc;
}

/* The gateways of all ways from the table's node to the job's. */
static int add_ways(struct found *f, const struct chempi_table *table)
{
    int rc = 0;

    for (uint32_t n = 0; !rc && n < f->spec->node_count; n++) {
        uint32_t node = chempi_table_find_node(table, f->spec->node_names[n]);
        const struct chempi_table_range *ranges;
        uint32_t count = 0;

        if (node == CHEMPI_TABLE_NONE)
            continue; /* the supervisor finds words for it */
        ranges = chempi_table_ranges(table, node, &count);
        for (uint32_t i = 0; !rc && i < count; i++)
            rc = add_range(f, table, &ranges[i]);
    }
    return rc;
}

/* ---- without the tables of all nodes ------------------------------------ */

/* Does the node touch a network of some node of the job? */
static bool is_near(const struct found *f, const struct chempi_table *table,
                    uint32_t node)
{
    for (uint32_t n = 0; n < f->spec->node_count; n++) {
        uint32_t other = chempi_table_find_node(table, f->spec->node_names[n]);

        if (other != CHEMPI_TABLE_NONE &&
            chempi_table_has_common(table, node, other))
            return true;
    }
    return false;
}

static bool is_split(const struct found *f, const struct chempi_table *table)
{
    for (uint32_t n = 0; n < f->spec->node_count; n++)
        for (uint32_t m = n + 1; m < f->spec->node_count; m++) {
            uint32_t a = chempi_table_find_node(table, f->spec->node_names[n]);
            uint32_t b = chempi_table_find_node(table, f->spec->node_names[m]);

            if (a != CHEMPI_TABLE_NONE && b != CHEMPI_TABLE_NONE &&
                !chempi_table_has_common(table, a, b))
                return true;
        }
    return false;
}

static int add_near(struct found *f, const struct chempi_table *table)
{
    int rc = 0;

    if (!is_split(f, table))
        return 0;
    for (uint32_t n = 0; !rc && n < chempi_table_node_count(table); n++)
        if (chempi_table_node_is_gateway(table, n) && is_near(f, table, n))
            rc = add(f, chempi_table_node_name(table, n));
    return rc;
}

/* ---- all ---------------------------------------------------------------- */

/* 1: there is no such file. */
static int add_table(struct found *f, const char *dir, const char *node,
                     bool wants_near, struct chempi_err *err)
{
    struct chempi_table *table = NULL;
    void *data = NULL;
    size_t len = 0;
    char path[4096];
    int rc =
        snprintf(path, sizeof(path), "%s/%s" CHEMPI_TABLE_SUFFIX, dir, node);

    if (rc < 0 || (size_t)rc >= sizeof(path))
        return 1; /* the supervisor finds words for it */
    rc = chempi_table_load(path, &data, &len, err);
    if (rc)
        return rc == -ENOMEM ? rc : 1; /* as above */
    rc = chempi_table_open(data, len, &table, err);
    if (!rc) {
        rc = wants_near ? add_near(f, table) : add_ways(f, table);
        chempi_table_close(table);
    } else if (rc != -ENOMEM) {
        rc = 1;
    }
    free(data);
    return rc;
}

/* The nodes become the job's, and a process of each is numbered. */
static int enrol(struct chempi_spec *spec, const struct found *f)
{
    const uint32_t old = spec->node_count;
    const size_t most = (size_t)old + f->count;
    struct chempi_namelist list;
    char **names = chempi_pool_array(&spec->pool, most, sizeof(char *));
    uint32_t *offsets = chempi_pool_array(&spec->pool, most, sizeof(uint32_t));
    uint32_t *busy = chempi_pool_array(&spec->pool, most, sizeof(uint32_t));
    uint32_t *places = chempi_pool_array(
        &spec->pool, (size_t)spec->size + f->count, sizeof(uint32_t));

    if (!names || !offsets || !busy || !places ||
        chempi_namelist_init(&list, (const char *const *)spec->node_names, old))
        return -ENOMEM;
    memcpy(names, spec->node_names, old * sizeof(char *));
    memcpy(offsets, spec->bind_offset, old * sizeof(uint32_t));
    for (size_t i = 0; i < most; i++)
        busy[i] =
            i < old && spec->busy_max ? spec->busy_max[i] : CHEMPI_BUSY_ANY;
    memcpy(places, spec->node_of_rank, spec->size * sizeof(uint32_t));
    for (uint32_t i = 0; i < f->count; i++) {
        uint32_t n = chempi_namelist_find(&list, f->names[i]);

        if (n == CHEMPI_NAMELIST_NONE) {
            n = spec->node_count;
            names[spec->node_count++] = f->names[i];
        }
        places[spec->size + spec->gateway_count++] = n;
    }
    chempi_namelist_fini(&list);
    spec->node_names = names;
    spec->bind_offset = offsets;
    spec->busy_max = busy;
    spec->node_of_rank = places;
    return 0;
}

int chempi_gateways_plan(struct chempi_spec *spec, const char *dir,
                         struct chempi_err *err)
{
    struct found f = {.spec = spec};
    bool is_missing = false;
    int rc = 0;

    for (uint32_t n = 0;
         rc >= 0 && spec->node_count > 1 && n < spec->node_count; n++) {
        rc = add_table(&f, dir, spec->node_names[n], false, err);
        is_missing |= rc == 1;
    }
    for (uint32_t n = 0; rc >= 0 && is_missing && n < spec->node_count; n++) {
        rc = add_table(&f, dir, spec->node_names[n], true, err);
        if (rc == 0)
            break;
    }
    if (rc >= 0)
        rc = f.count ? enrol(spec, &f) : 0;
    free(f.names);
    return rc ? chempi_err_set(err, rc, "out of memory") : 0;
}
