/* SPDX-License-Identifier: BSD-3-Clause */
/* The search stage by stage; see search.h. */
#include "mdconfig/routes/search.h"

#include <stdlib.h>
#include <string.h>

#include "common/table/table.h"

struct run {
    struct chempi_search *search;
    const struct chempi_interval *interval;
    struct chempi_arena *arena;
    uint32_t source;
    uint32_t stage; /* being added, from 1 */
};

void chempi_search_init(struct chempi_search *search,
                        const struct chempi_graph *graph)
{
    *search = (struct chempi_search){.graph = graph};
    search->classes =
        chempi_mem_get(graph->class_count, sizeof(*search->classes));
    search->networks =
        chempi_mem_get(graph->network_count, sizeof(*search->networks));
    search->class_changed = chempi_mem_get(graph->class_count, 1);
    search->network_changed = chempi_mem_get(graph->network_count, 1);
}

void chempi_search_fini(struct chempi_search *search)
{
    for (uint32_t i = 0; i < search->graph->class_count; i++)
        chempi_pareto_fini(&search->classes[i]);
    for (uint32_t i = 0; i < search->graph->network_count; i++)
        chempi_pareto_fini(&search->networks[i]);
    free(search->classes);
    free(search->networks);
    free(search->class_changed);
    free(search->network_changed);
    *search = (struct chempi_search){.graph = NULL};
}

static const struct chempi_search_label *
label_at(const struct chempi_pareto *front, size_t i)
{
    return (const struct chempi_search_label *)front->points[i];
}

const struct chempi_search_label *
chempi_search_label_of(const struct chempi_search *search, uint32_t node_class,
                       size_t i)
{
    return label_at(&search->classes[node_class], i);
}

/* From a class, behind the label `before` (NULL: the source), onto one
 * network. */
static void cross(struct run *r, uint32_t node_class,
                  const struct chempi_search_label *before, uint32_t network)
{
    const struct chempi_interval *interval = r->interval;
    double forward =
        before ? chempi_graph_model(r->search->graph, node_class)->forward_us
               : 0;
    double u = before ? before->point.u + forward : 0;
    double v = before ? before->point.v : 0;

    for (uint32_t i = interval->first[network];
         i < interval->first[network + 1]; i++) {
        const struct chempi_interval_crossing *c = &interval->crossings[i];
        struct chempi_search_label label = {
            .before = before,
            .from_class = node_class,
            .network = network,
            .protocol = c->protocol,
            .stages = r->stage,
        };
        struct chempi_search_label *kept;

        label.point.u = u + c->point.u;
        if (!interval->streams)
            label.point.v = v + forward + c->point.v;
        else if (v > forward + c->point.v)
            label.point.v = v;
        else
            label.point.v = forward + c->point.v;
        /* Labels that are refused are many: they take no memory. */
        if (!chempi_pareto_would_add(&r->search->networks[network],
                                     &label.point, !interval->streams))
            continue;
        kept = chempi_arena_get(r->arena, 1, sizeof(*kept));
        *kept = label;
        (void)chempi_pareto_add(&r->search->networks[network], &kept->point,
                                !interval->streams);
        r->search->network_changed[network] = 1;
    }
}

/* Go on from the labels that the stage before has brought to a class. */
static void leave_class(struct run *r, uint32_t node_class)
{
    const struct chempi_graph *g = r->search->graph;
    const struct chempi_pareto *front = &r->search->classes[node_class];

    for (size_t i = 0; i < front->count; i++) {
        const struct chempi_search_label *label = label_at(front, i);

        if (label->stages + 1 != r->stage)
            continue;
        for (uint32_t k = g->out_first[node_class];
             k < g->out_first[node_class + 1]; k++) {
            if (g->out[k] != label->network)
                cross(r, node_class, label, g->out[k]);
        }
    }
}

/* Has the way been at nodes of the class already? A longer one there is never
 * better, but rounding could make it look so. */
static bool passes(const struct chempi_search_label *label, uint32_t node_class)
{
    for (; label; label = label->before) {
        if (label->from_class == node_class)
            return true;
    }
    return false;
}

/* Hand the labels that this stage has brought to a network to its classes.
 * True when a class that forwards has a new one. */
static bool leave_network(struct run *r, uint32_t network)
{
    const struct chempi_graph *g = r->search->graph;
    const struct chempi_pareto *front = &r->search->networks[network];
    bool changed = false;

    for (size_t i = 0; i < front->count; i++) {
        const struct chempi_search_label *label = label_at(front, i);

        if (label->stages != r->stage)
            continue;
        for (uint32_t k = g->in_first[network]; k < g->in_first[network + 1];
             k++) {
            uint32_t c = g->in[k];

            if ((c != r->source && passes(label, c)) ||
                !chempi_pareto_add(&r->search->classes[c], &label->point,
                                   !r->interval->streams) ||
                c == r->source || !chempi_graph_forwards(g, c))
                continue;
            r->search->class_changed[c] = 1;
            changed = true;
        }
    }
    return changed;
}

static bool add_stage(struct run *r)
{
    const struct chempi_graph *g = r->search->graph;
    bool changed = false;

    if (r->stage == 1) {
        for (uint32_t k = g->out_first[r->source];
             k < g->out_first[r->source + 1]; k++)
            cross(r, r->source, NULL, g->out[k]);
    }
    for (uint32_t c = 0; c < g->class_count; c++) {
        if (r->search->class_changed[c])
            leave_class(r, c);
    }
    memset(r->search->class_changed, 0, g->class_count);
    for (uint32_t n = 0; n < g->network_count; n++) {
        if (r->search->network_changed[n] && leave_network(r, n))
            changed = true;
    }
    memset(r->search->network_changed, 0, g->network_count);
    return changed;
}

void chempi_search_run(struct chempi_search *search, uint32_t source,
                       const struct chempi_interval *interval,
                       struct chempi_arena *arena)
{
    struct run r = {.search = search,
                    .interval = interval,
                    .arena = arena,
                    .source = source};

    for (uint32_t i = 0; i < search->graph->class_count; i++)
        search->classes[i].count = 0;
    for (uint32_t i = 0; i < search->graph->network_count; i++)
        search->networks[i].count = 0;
    for (r.stage = 1; r.stage <= CHEMPI_TABLE_STAGES_MAX; r.stage++) {
        if (!add_stage(&r))
            break;
    }
    memset(search->class_changed, 0, search->graph->class_count);
}
