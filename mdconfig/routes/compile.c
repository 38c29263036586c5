/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables from routes; see compile.h. */
#include "mdconfig/routes/compile.h"

#include <errno.h>
#include <string.h>

#include "mdconfig/routes/hops.h"

#define OPEN_COST_LEN 1048576u /* where an open range states its cost */

int chempi_compile_directory(const struct chempi_desc *desc,
                             struct chempi_blob *out, struct chempi_err *err)
{
    struct chempi_dir_builder *b = chempi_dir_builder_create();
    int rc;

    if (!b)
        return chempi_err_set(err, -ENOMEM, "no memory for a table");
    chempi_dir_builder_set_cluster(b, desc->cluster);
    for (uint32_t i = 0; i < desc->network_count; i++)
        chempi_dir_builder_add_network(b, desc->networks[i].name,
                                       desc->networks[i].type,
                                       desc->networks[i].device);
    for (uint32_t i = 0; i < desc->node_count; i++) {
        const struct chempi_desc_node *n = &desc->nodes[i];

        chempi_dir_builder_add_node(b, n->name, n->node_class,
                                    n->has_slots ? n->slots : 0, n->gateway);
        for (size_t k = 0; k < n->attachment_count; k++)
            chempi_dir_builder_attach(b, n->attachments[k].network,
                                      n->attachments[k].address,
                                      n->attachments[k].interface);
    }
    rc = chempi_dir_builder_finish(b, out, err);
    chempi_dir_builder_destroy(b);
    return rc;
}

/* ---- routes ------------------------------------------------------------- */

/* The gateways of a way: those of the range before it when it differs in its
 * chunk alone. */
struct gateways {
    const struct chempi_route *of; /* NULL: none yet */
    struct chempi_hops stages[CHEMPI_TABLE_STAGES_MAX];
};

static void find_gateways(const struct chempi_graph *g, uint32_t source,
                          const struct chempi_route *r, struct gateways *out)
{
    const struct chempi_route *of = out->of;

    out->of = r;
    if (of && chempi_route_is_same_way(of, r))
        return;
    for (uint32_t i = 0; i + 1 < r->stage_count; i++) {
        struct chempi_hops *hops = &out->stages[i];

        chempi_hops_find(g, source, r->stages, r->stage_count, i, hops);
        if (i > 0)
            hops->count = hops->share_count; /* alternates of the first only */
    }
}

static void add_range(struct chempi_routes_builder *b,
                      const struct chempi_graph *g, uint32_t source,
                      const struct chempi_route *r, struct gateways *gateways)
{
    const struct chempi_desc *d = g->desc;
    uint64_t at = r->max_len == UINT64_MAX ? OPEN_COST_LEN : r->max_len;

    find_gateways(g, source, r, gateways);
    chempi_routes_builder_add_range(
        b, r->max_len,
        chempi_route_time(g, r->stages, r->stage_count, r->chunk, at), r->chunk,
        r->stage_count > 1 ? gateways->stages[0].share_count : 1);
    for (uint32_t i = 0; i < r->stage_count; i++) {
        const struct chempi_route_stage *s = &r->stages[i];
        const struct chempi_desc_network *net = &d->networks[s->network];
        const bool is_last = i + 1 == r->stage_count; /* the destination */
        const struct chempi_hops *hops = &gateways->stages[i];
        const struct chempi_table_times times =
            chempi_route_times(g, r->stages, i);

        chempi_routes_builder_add_stage(
            b, s->network, net->device, net->protocols[s->protocol].name,
            is_last ? NULL : hops->nodes, is_last ? 0 : hops->count);
        chempi_routes_builder_set_times(b, &times);
    }
}

/* The same ranges in the table: the destination's class does not show. */
static bool is_same_list(const struct chempi_route_list *a,
                         const struct chempi_route_list *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const struct chempi_route *x = &a->routes[i];
        const struct chempi_route *y = &b->routes[i];
        uint32_t last = x->stage_count - 1;

        if (x->max_len != y->max_len || x->chunk != y->chunk ||
            x->stage_count != y->stage_count ||
            memcmp(x->stages, y->stages, last * sizeof(*x->stages)) != 0 ||
            x->stages[last].network != y->stages[last].network ||
            x->stages[last].protocol != y->stages[last].protocol)
            return false;
    }
    return true;
}

/* An earlier list with the same ranges, or `list` itself. */
static uint32_t find_same(const struct chempi_routes *routes, uint32_t list)
{
    for (uint32_t i = 0; i < list; i++) {
        if (is_same_list(&routes->lists[i], &routes->lists[list]))
            return i;
    }
    return list;
}

int chempi_compile_routes(const struct chempi_graph *graph,
                          const struct chempi_routes *routes,
                          struct chempi_blob *out, struct chempi_err *err)
{
    struct chempi_routes_builder *b =
        chempi_routes_builder_create(routes->source, graph->class_count);
    int rc;

    if (!b)
        return chempi_err_set(err, -ENOMEM, "no memory for a table");
    for (uint32_t i = 0; i <= graph->class_count; i++) {
        const struct chempi_route_list *list = &routes->lists[i];
        uint32_t same = find_same(routes, i);
        struct gateways gateways;

        if (same < i) {
            chempi_routes_builder_repeat(b, i, same);
            continue;
        }
        chempi_routes_builder_begin(b, i);
        gateways.of = NULL;
        for (size_t k = 0; k < list->count; k++)
            add_range(b, graph, routes->source, &list->routes[k], &gateways);
    }
    rc = chempi_routes_builder_finish(b, out, err);
    if (rc == -E2BIG)
        (void)chempi_err_set(err, rc,
                             "%s: a destination of node %s has more than %u "
                             "size ranges; merge protocols or networks whose "
                             "figures hardly differ",
                             graph->desc->file,
                             chempi_graph_model(graph, routes->source)->name,
                             (unsigned)CHEMPI_TABLE_RANGES_MAX);
    chempi_routes_builder_destroy(b);
    return rc;
}

int chempi_compile_image(const struct chempi_graph *graph, uint32_t node,
                         struct chempi_blob *out, struct chempi_err *err)
{
    uint32_t node_class = graph->desc->nodes[node].node_class;
    struct chempi_blob dir = {.data = NULL};
    struct chempi_blob part = {.data = NULL};
    struct chempi_routes routes;
    int rc;

    chempi_route_source(graph, node_class, &routes);
    rc = chempi_compile_routes(graph, &routes, &part, err);
    chempi_routes_fini(&routes);
    if (!rc)
        rc = chempi_compile_directory(graph->desc, &dir, err);
    if (!rc) {
        rc = chempi_table_build_image(node, node_class, &part, &dir, out);
        if (rc)
            (void)chempi_err_set(err, rc, "the table of node %s: %s",
                                 graph->desc->nodes[node].name,
                                 chempi_err_name(rc));
    }
    chempi_blob_fini(&dir);
    chempi_blob_fini(&part);
    return rc;
}
