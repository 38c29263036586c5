/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The view on a table; see table.h.
 *
 * Invariants:
 *   T1  the layout has passed chempi_table_verify(); nothing is checked again
 *   T2  networks, stages and ranges are made at open and never change; none
 *       of them is made for a node: what is kept grows with the number of
 *       classes
 */
#include "common/table/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "common/table/format.h"
#include "common/table/verify.h"

struct chempi_table {
    struct chempi_table_layout l;
    struct chempi_table_network *networks;
    struct chempi_table_stage *stages;
    uint32_t *hops;
    struct chempi_table_range *ranges;
};

static const unsigned char *entry_of(const struct chempi_table *t,
                                     uint32_t node)
{
    return t->l.nodes + (size_t)node * CHEMPI_ENTRY_LEN;
}

static const unsigned char *list_of(const struct chempi_table *t, uint32_t list)
{
    return t->l.lists + (size_t)list * CHEMPI_LIST_LEN;
}

static const char *dir_string(const struct chempi_table *t, uint32_t off)
{
    return off == CHEMPI_TABLE_NONE ? NULL : t->l.dir_strings + off;
}

/* ---- opening ------------------------------------------------------------ */

static void make_networks(struct chempi_table *t)
{
    for (uint32_t i = 0; i < t->l.network_count; i++) {
        const unsigned char *n = t->l.networks + (size_t)i * CHEMPI_NET_LEN;

        t->networks[i] = (struct chempi_table_network){
            .name = dir_string(t, chempi_le32(n + CHEMPI_NET_NAME)),
            .type = dir_string(t, chempi_le32(n + CHEMPI_NET_TYPE)),
            .device = dir_string(t, chempi_le32(n + CHEMPI_NET_DEVICE)),
        };
    }
}

static void make_stages(struct chempi_table *t)
{
    for (uint32_t i = 0; i < t->l.hop_count; i++)
        t->hops[i] = chempi_le32(t->l.hops + (size_t)i * 4);
    for (uint32_t i = 0; i < t->l.stage_count; i++) {
        const unsigned char *s = t->l.stages + (size_t)i * CHEMPI_STAGE_LEN;
        uint32_t count = chempi_le32(s + CHEMPI_STAGE_COUNT);

        t->stages[i] = (struct chempi_table_stage){
            .device =
                t->l.routes_strings + chempi_le32(s + CHEMPI_STAGE_DEVICE),
            .protocol =
                t->l.routes_strings + chempi_le32(s + CHEMPI_STAGE_PROTOCOL),
            .network = chempi_le32(s + CHEMPI_STAGE_NETWORK),
            .hop_count = count,
            .hops =
                count ? t->hops + chempi_le32(s + CHEMPI_STAGE_FIRST) : NULL,
            .times = {.forward_us = chempi_le_float(s + CHEMPI_STAGE_FORWARD),
                      .latency_us = chempi_le_float(s + CHEMPI_STAGE_LATENCY),
                      .cost_us = chempi_le_float(s + CHEMPI_STAGE_COST),
                      .bw_bytes_per_us = chempi_le_float(s + CHEMPI_STAGE_BW)},
        };
    }
}

static void make_ranges(struct chempi_table *t)
{
    for (uint32_t i = 0; i < t->l.range_count; i++) {
        const unsigned char *r = t->l.ranges + (size_t)i * CHEMPI_RANGE_LEN;
        const struct chempi_table_stage *first =
            t->stages + chempi_le32(r + CHEMPI_RANGE_FIRST);

        t->ranges[i] = (struct chempi_table_range){
            .max_len = chempi_le64(r + CHEMPI_RANGE_MAX),
            .device = first->device,
            .protocol = first->protocol,
            .network = first->network,
            .switch_len = chempi_le32(r + CHEMPI_RANGE_CHUNK),
            .cost_us = chempi_le_double(r + CHEMPI_RANGE_COST),
            .share_count = chempi_le32(r + CHEMPI_RANGE_SHARE),
            .stage_count = chempi_le32(r + CHEMPI_RANGE_COUNT),
            .stages = first,
        };
    }
}

/* One entry more than needed: calloc of nothing may give NULL. */
static int allocate(struct chempi_table *t)
{
    const struct chempi_table_layout *l = &t->l;

    t->networks =
        chempi_sys->calloc((size_t)l->network_count + 1, sizeof(*t->networks));
    t->stages =
        chempi_sys->calloc((size_t)l->stage_count + 1, sizeof(*t->stages));
    t->hops = chempi_sys->calloc((size_t)l->hop_count + 1, sizeof(*t->hops));
    t->ranges =
        chempi_sys->calloc((size_t)l->range_count + 1, sizeof(*t->ranges));
    if (!t->networks || !t->stages || !t->hops || !t->ranges)
        return -ENOMEM;
    return 0;
}

int chempi_table_open(const void *data, size_t len, struct chempi_table **out,
                      struct chempi_err *err)
{
    struct chempi_table *t = chempi_sys->calloc(1, sizeof(*t));
    int rc;

    if (!t)
        return chempi_err_set(err, -ENOMEM,
                              "no memory to open a connection table");
    rc = chempi_table_verify(data, len, &t->l, err);
    if (rc)
        goto fail;
    rc = allocate(t);
    if (rc) {
        (void)chempi_err_set(err, rc,
                             "no memory for a connection table of %u nodes",
                             t->l.node_count);
        goto fail;
    }
    make_networks(t);
    make_stages(t);
    make_ranges(t);
    *out = t;
    return 0;

fail:
    chempi_table_close(t);
    return rc;
}

void chempi_table_close(struct chempi_table *table)
{
    if (!table)
        return;
    free(table->ranges);
    free(table->hops);
    free(table->stages);
    free(table->networks);
    free(table);
}

/* ---- nodes -------------------------------------------------------------- */

uint32_t chempi_table_self(const struct chempi_table *table)
{
    return table->l.self;
}

uint32_t chempi_table_node_count(const struct chempi_table *table)
{
    return table->l.node_count;
}

const char *chempi_table_node_name(const struct chempi_table *table,
                                   uint32_t node)
{
    return dir_string(table,
                      chempi_le32(entry_of(table, node) + CHEMPI_ENTRY_NAME));
}

uint32_t chempi_table_node_slots(const struct chempi_table *table,
                                 uint32_t node)
{
    return chempi_le16(entry_of(table, node) + CHEMPI_ENTRY_SLOTS);
}

bool chempi_table_node_has_slots(const struct chempi_table *table,
                                 uint32_t node)
{
    return (chempi_le16(entry_of(table, node) + CHEMPI_ENTRY_FLAGS) &
            CHEMPI_ENTRY_HAS_SLOTS) != 0;
}

bool chempi_table_node_is_gateway(const struct chempi_table *table,
                                  uint32_t node)
{
    return (chempi_le16(entry_of(table, node) + CHEMPI_ENTRY_FLAGS) &
            CHEMPI_ENTRY_GATEWAY) != 0;
}

uint32_t chempi_table_class_count(const struct chempi_table *table)
{
    return table->l.class_count;
}

uint32_t chempi_table_node_class(const struct chempi_table *table,
                                 uint32_t node)
{
    return chempi_le32(entry_of(table, node) + CHEMPI_ENTRY_CLASS);
}

const char *chempi_table_cluster(const struct chempi_table *table)
{
    return table->l.dir_strings + table->l.cluster;
}

uint32_t chempi_table_find_node(const struct chempi_table *table,
                                const char *name)
{
    uint32_t low = 0;
    uint32_t high = table->l.node_count;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        uint32_t node = chempi_le32(table->l.order + (size_t)mid * 4);
        int order = strcmp(chempi_table_node_name(table, node), name);

        if (order == 0)
            return node;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return CHEMPI_TABLE_NONE;
}

/* ---- ranges ------------------------------------------------------------- */

const struct chempi_table_range *
chempi_table_ranges(const struct chempi_table *table, uint32_t node,
                    uint32_t *count)
{
    uint32_t index = node == table->l.self
                         ? table->l.class_count
                         : chempi_table_node_class(table, node);
    const unsigned char *list = list_of(table, index);

    *count = chempi_le32(list + CHEMPI_LIST_COUNT);
    return *count ? table->ranges + chempi_le32(list + CHEMPI_LIST_FIRST)
                  : NULL;
}

/* ---- networks and attachments ------------------------------------------- */

uint32_t chempi_table_network_count(const struct chempi_table *table)
{
    return table->l.network_count;
}

const struct chempi_table_network *
chempi_table_network(const struct chempi_table *table, uint32_t network)
{
    return &table->networks[network];
}

static uint32_t first_attachment(const struct chempi_table *t, uint32_t node)
{
    if (node == t->l.node_count)
        return t->l.attachment_count;
    return chempi_le32(entry_of(t, node) + CHEMPI_ENTRY_FIRST);
}

uint32_t chempi_table_attachment_count(const struct chempi_table *table,
                                       uint32_t node)
{
    return first_attachment(table, node + 1) - first_attachment(table, node);
}

void chempi_table_attachment(const struct chempi_table *table, uint32_t node,
                             uint32_t i, struct chempi_table_attachment *out)
{
    const unsigned char *a =
        table->l.attachments +
        (size_t)(first_attachment(table, node) + i) * CHEMPI_ATT_LEN;
    const unsigned char *k =
        table->l.kinds +
        (size_t)chempi_le32(a + CHEMPI_ATT_KIND) * CHEMPI_KIND_LEN;

    *out = (struct chempi_table_attachment){
        .network = chempi_le32(k + CHEMPI_KIND_NETWORK),
        .interface = dir_string(table, chempi_le32(k + CHEMPI_KIND_INTERFACE)),
    };
    a += CHEMPI_ATT_ADDRESS;
    if (chempi_le32(k + CHEMPI_KIND_FORM) == CHEMPI_FORM_IPV4) {
        (void)snprintf(out->ipv4, sizeof(out->ipv4), "%u.%u.%u.%u",
                       (unsigned)a[0], (unsigned)a[1], (unsigned)a[2],
                       (unsigned)a[3]);
        out->address = out->ipv4;
    } else {
        out->address = dir_string(table, chempi_le32(a));
    }
}

/* Those of a node that may be NONE. */
static uint32_t attachments_of(const struct chempi_table *t, uint32_t node)
{
    return node == CHEMPI_TABLE_NONE ? 0
                                     : chempi_table_attachment_count(t, node);
}

bool chempi_table_is_attached(const struct chempi_table *table, uint32_t node,
                              uint32_t network)
{
    for (uint32_t i = 0; i < attachments_of(table, node); i++) {
        struct chempi_table_attachment a;

        chempi_table_attachment(table, node, i, &a);
        if (a.network == network)
            return true;
    }
    return false;
}

bool chempi_table_has_common(const struct chempi_table *table, uint32_t a,
                             uint32_t b)
{
    for (uint32_t i = 0; i < attachments_of(table, a); i++) {
        struct chempi_table_attachment at;

        chempi_table_attachment(table, a, i, &at);
        if (chempi_table_is_attached(table, b, at.network))
            return true;
    }
    return false;
}

/* ---- ways --------------------------------------------------------------- */

uint32_t chempi_table_share(const struct chempi_table_range *range,
                            uint32_t stage)
{
    return stage == 0 ? range->share_count : range->stages[stage].hop_count;
}

uint32_t chempi_table_broken_stage(const struct chempi_table *table,
                                   const struct chempi_table_range *range,
                                   chempi_table_usable_fn *is_usable, void *arg)
{
    for (uint32_t i = 0; i + 1 < range->stage_count; i++) {
        const struct chempi_table_stage *s = &range->stages[i];
        uint32_t k = 0;

        while (k < s->hop_count && is_usable &&
               !is_usable(arg, chempi_table_node_name(table, s->hops[k])))
            k++;
        if (k == s->hop_count)
            return i;
    }
    return range->stage_count;
}

double chempi_table_way_us(const struct chempi_table_times *times,
                           uint32_t count, uint64_t chunk, uint64_t len)
{
    const bool is_cut = chunk > 0 && len > chunk;
    double slowest = 0;
    double us = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct chempi_table_times *t = &times[i];
        const double busy = is_cut ? chempi_table_busy_us(t, chunk)
                                   : t->forward_us + t->cost_us +
                                         (double)len / t->bw_bytes_per_us;

        us += t->latency_us + busy;
        if (busy > slowest)
            slowest = busy;
    }
    return is_cut ? us + (double)(len - chunk) / (double)chunk * slowest : us;
}

double chempi_table_time(const struct chempi_table_range *range, uint64_t len)
{
    struct chempi_table_times times[CHEMPI_TABLE_STAGES_MAX];

    for (uint32_t i = 0; i < range->stage_count; i++) {
        times[i] = range->stages[i].times;
        if (times[i].bw_bytes_per_us <= 0)
            return -1;
    }
    return chempi_table_way_us(times, range->stage_count,
                               range->stage_count > 1 ? range->switch_len : 0,
                               len);
}
