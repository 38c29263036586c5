/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables and descriptions in words; see show.h. */
#include "mdconfig/pictures/show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/table/network_types.h"
#include "common/words/fold.h"
#include "mdconfig/description/text.h"

#define NAMES_LEN 256 /* bytes of a list of names on one line */

/* ---- tables ------------------------------------------------------------- */

static void show_networks(const struct chempi_table *t, FILE *out)
{
    uint32_t self = chempi_table_self(t);
    struct chempi_table_attachment a;

    (void)fprintf(out, "attached to\n");
    for (uint32_t i = 0; i < chempi_table_attachment_count(t, self); i++) {
        const struct chempi_table_network *n;

        chempi_table_attachment(t, self, i, &a);
        n = chempi_table_network(t, a.network);
        (void)fprintf(out, "  %-16s type %s, device %s%s%s%s%s\n", n->name,
                      n->type, n->device, a.address ? ", address " : "",
                      a.address ? a.address : "",
                      a.interface ? ", interface " : "",
                      a.interface ? a.interface : "");
    }
}

/* Gateways of a stage, "gw[0,1]"; behind those that share come alternates. */
static void put_hops(const struct chempi_table *t,
                     const struct chempi_table_range *r, uint32_t stage,
                     FILE *out)
{
    const struct chempi_table_stage *s = &r->stages[stage];
    const uint32_t share_count = chempi_table_share(r, stage);
    const char **names = chempi_mem_get(s->hop_count, sizeof(*names));
    char text[NAMES_LEN];

    for (uint32_t i = 0; i < s->hop_count; i++)
        names[i] = chempi_table_node_name(t, s->hops[i]);
    chempi_fold_sorted(names, share_count, text, sizeof(text));
    (void)fprintf(out, " to %s", text);
    if (share_count < s->hop_count) {
        chempi_fold_names(names + share_count, s->hop_count - share_count, text,
                          sizeof(text));
        (void)fprintf(out, " (or else %s)", text);
    }
    (void)fprintf(out, ", then");
    free(names);
}

static void show_range(const struct chempi_table *t, uint64_t from,
                       const struct chempi_table_range *r, FILE *out)
{
    bool open = r->max_len == CHEMPI_TABLE_SIZE_MAX;

    (void)fprintf(out, "  %12s .. %-12s", chempi_text_put_size(from).text,
                  chempi_text_put_size(r->max_len).text);
    for (uint32_t i = 0; i < r->stage_count; i++) {
        const struct chempi_table_stage *s = &r->stages[i];

        (void)fprintf(out, " %s %s on %s", s->device, s->protocol,
                      chempi_table_network(t, s->network)->name);
        if (s->hop_count)
            put_hops(t, r, i, out);
    }
    if (r->switch_len && r->max_len > r->switch_len)
        (void)fprintf(out, ", in chunks of %s",
                      chempi_text_put_size(r->switch_len).text);
    (void)fprintf(out, "; %s%s\n", chempi_text_put_time(r->cost_us).text,
                  open ? " at 1 MiB" : "");
}

static void show_ranges(const struct chempi_table *t, uint32_t node, FILE *out)
{
    uint32_t count;
    const struct chempi_table_range *r = chempi_table_ranges(t, node, &count);
    uint64_t from = 0;

    if (count == 0)
        (void)fprintf(out, "  cannot be reached\n");
    for (uint32_t i = 0; i < count; i++) {
        show_range(t, from, &r[i], out);
        from = r[i].max_len + 1;
    }
}

/* Other nodes of a class: their names and the first of them. */
static uint32_t fold_class(const struct chempi_table *t, uint32_t node_class,
                           char *text, size_t len)
{
    uint32_t n = chempi_table_node_count(t);
    const char **names = chempi_mem_get(n, sizeof(*names));
    uint32_t first = CHEMPI_TABLE_NONE;
    size_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (i == chempi_table_self(t) ||
            chempi_table_node_class(t, i) != node_class)
            continue;
        if (count == 0)
            first = i;
        names[count++] = chempi_table_node_name(t, i);
    }
    chempi_fold_sorted(names, count, text, len);
    free(names);
    return first;
}

void chempi_show_table(const struct chempi_table *table, FILE *out)
{
    uint32_t self = chempi_table_self(table);
    uint32_t slots = chempi_table_node_slots(table, self);
    const char *cluster = chempi_table_cluster(table);
    char text[NAMES_LEN];

    (void)fprintf(
        out, "node %s%s%s: %u slot%s%s, one of %u node%s\n",
        chempi_table_node_name(table, self), *cluster ? " of cluster " : "",
        cluster, slots, chempi_text_plural(slots),
        chempi_table_node_is_gateway(table, self) ? ", a gateway" : "",
        chempi_table_node_count(table),
        chempi_text_plural(chempi_table_node_count(table)));
    show_networks(table, out);
    (void)fprintf(out, "inside the node\n");
    show_ranges(table, self, out);
    for (uint32_t c = 0; c < chempi_table_class_count(table); c++) {
        uint32_t node = fold_class(table, c, text, sizeof(text));

        if (node == CHEMPI_TABLE_NONE)
            continue;
        (void)fprintf(out, "to %s\n", text);
        show_ranges(table, node, out);
    }
}

/* ---- descriptions ------------------------------------------------------- */

static void show_protocol(const struct chempi_desc_protocol *p, FILE *out)
{
    (void)fprintf(out, "    %-14s %10s %12s, %s per message, %s .. %s%s",
                  p->name, chempi_text_put_time(p->latency_us).text,
                  chempi_text_put_bandwidth(p->bw_bytes_per_us).text,
                  chempi_text_put_time(p->cost_us).text,
                  chempi_text_put_size(p->min_len).text,
                  chempi_text_put_size(p->max_len).text,
                  p->is_default ? " (default figures)" : "");
    if (p->latency_spread > 0 || p->bw_spread > 0 || p->cost_spread > 0)
        (void)fprintf(out, " (measured to %.2g, %.2g and %.2g %%)",
                      p->latency_spread * 100, p->bw_spread * 100,
                      p->cost_spread * 100);
    (void)fprintf(out, "\n");
}

/* Networks beyond this many are counted only. */
#define NETWORKS_SHOWN 32u

static void show_desc_networks(const struct chempi_desc *d, FILE *out)
{
    for (uint32_t i = 0; i < d->network_count && i < NETWORKS_SHOWN; i++) {
        const struct chempi_desc_network *n = &d->networks[i];

        (void)fprintf(out, "network %s: type %s, device %s%s%s%s\n", n->name,
                      n->type, n->device, n->card ? ", card " : "",
                      n->card ? n->card : "",
                      n->implied ? " (not in the description)" : "");
        for (size_t k = 0; k < n->protocol_count; k++)
            show_protocol(&n->protocols[k], out);
    }
    if (d->network_count > NETWORKS_SHOWN)
        (void)fprintf(out, "and %u more networks\n",
                      d->network_count - NETWORKS_SHOWN);
}

static void show_class(const struct chempi_graph *g, uint32_t node_class,
                       FILE *out)
{
    const struct chempi_desc_node *n = chempi_graph_model(g, node_class);
    uint32_t count = chempi_graph_size(g, node_class);
    char names[NAMES_LEN];

    (void)fprintf(out, "class %u: %s\n", node_class,
                  chempi_graph_members(g, node_class, names, sizeof(names)));
    (void)fprintf(out, "    %u node%s", count, chempi_text_plural(count));
    if (n->gateway)
        (void)fprintf(out, ", gateway at %s per message",
                      chempi_text_put_time(n->forward_us).text);
    (void)fprintf(out, "; attached to");
    if (n->attachment_count == 0)
        (void)fprintf(out, " nothing");
    for (size_t i = 0; i < n->attachment_count; i++) {
        const struct chempi_desc_attachment *a = &n->attachments[i];

        (void)fprintf(out, "%s %s%s", i ? "," : "",
                      g->desc->networks[a->network].name,
                      !a->can_send      ? " (receives only)"
                      : !a->can_receive ? " (sends only)"
                                        : "");
    }
    (void)fprintf(out, "\n");
}

void chempi_show_desc(const struct chempi_graph *graph, FILE *out)
{
    static const char *const ways[] = {"wherever that is faster",
                                       "where no network is shared", "never"};
    const struct chempi_desc *d = graph->desc;
    uint64_t slots = 0;

    for (uint32_t i = 0; i < d->node_count; i++)
        slots += d->nodes[i].slots;
    (void)fprintf(out, "%s%s%u node%s with %" PRIu64 " slot%s, %u network%s\n",
                  d->cluster, *d->cluster ? ": " : "", d->node_count,
                  chempi_text_plural(d->node_count), slots,
                  chempi_text_plural(slots), d->network_count,
                  chempi_text_plural(d->network_count));
    (void)fprintf(
        out, "messages pass through gateways %s, in chunks of at most %s\n",
        ways[d->ways], chempi_text_put_size(d->chunk).text);
    show_desc_networks(d, out);
    for (uint32_t c = 0; c < d->class_count; c++)
        show_class(graph, c, out);
}
