/* SPDX-License-Identifier: BSD-3-Clause */
/* Circles of waits between gateways; see circle.h. */
#include "mdconfig/routes/circle.h"

#include <stdio.h>
#include <stdlib.h>

#include "mdconfig/routes/hops.h"

/* A buffer: gateways of a class, filled from a network. */
struct buffer {
    uint32_t network;
    uint32_t node_class;
};

struct waits {
    const struct chempi_graph *graph;
    struct chempi_names buffer_index; /* "network class" */
    struct chempi_names known;        /* "a b": a waits for b */
    struct chempi_names done;         /* pairs of stages looked at */
    struct buffer *buffers;
    size_t buffer_count;
    size_t buffer_room;
    uint32_t *from; /* edges */
    uint32_t *to;
    size_t edge_count;
    size_t from_room;
    size_t to_room;
    struct chempi_arena arena;
};

static uint32_t buffer_of(struct waits *w, uint32_t network,
                          uint32_t node_class)
{
    char key[32];
    uint32_t at;

    (void)snprintf(key, sizeof(key), "%u %u", network, node_class);
    at = chempi_names_find(&w->buffer_index, key);
    if (at != CHEMPI_NAMES_NONE)
        return at;
    w->buffers = chempi_mem_grow(w->buffers, w->buffer_count, &w->buffer_room,
                                 sizeof(*w->buffers));
    at = (uint32_t)w->buffer_count++;
    w->buffers[at] = (struct buffer){network, node_class};
    chempi_names_add(&w->buffer_index, chempi_arena_text(&w->arena, key), at);
    return at;
}

static void add_wait(struct waits *w, uint32_t from, uint32_t to)
{
    char key[32];

    (void)snprintf(key, sizeof(key), "%u %u", from, to);
    if (chempi_names_find(&w->known, key) != CHEMPI_NAMES_NONE)
        return;
    chempi_names_add(&w->known, chempi_arena_text(&w->arena, key), 1);
    w->from = chempi_mem_grow(w->from, w->edge_count, &w->from_room,
                              sizeof(*w->from));
    w->to = chempi_mem_grow(w->to, w->edge_count, &w->to_room, sizeof(*w->to));
    w->from[w->edge_count] = from;
    w->to[w->edge_count++] = to;
}

/* All that can forward at the end of a stage wait for all that can at the end
 * of the next one. Only the first stage has alternates. */
static void add_waits(struct waits *w, const struct chempi_route_stage *stages,
                      uint32_t i)
{
    const struct chempi_graph *g = w->graph;
    uint32_t near = stages[i].network;
    uint32_t far = stages[i + 1].network;

    for (uint32_t k = g->in_first[near]; k < g->in_first[near + 1]; k++) {
        uint32_t a = g->in[k];

        if (i == 0 ? !chempi_hops_fits(g, a, stages, i)
                   : !chempi_hops_is_equal(g, a, stages, i))
            continue;
        for (uint32_t m = g->in_first[far]; m < g->in_first[far + 1]; m++) {
            uint32_t b = g->in[m];

            uint32_t waiting;

            if (b == a || !chempi_hops_is_equal(g, b, stages, i + 1))
                continue;
            waiting = buffer_of(w, near, a);
            add_wait(w, waiting, buffer_of(w, far, b));
        }
    }
}

/* All pairs of neighbouring gateways on a way. */
static void add_route(struct waits *w, const struct chempi_route *r)
{
    for (uint32_t i = 0; i + 2 < r->stage_count; i++) {
        const struct chempi_route_stage *s = &r->stages[i];
        char key[64];

        (void)snprintf(key, sizeof(key), "%u %u %u %u %u %d", s[0].network,
                       s[0].end_class, s[1].network, s[1].end_class,
                       s[2].network, i == 0);
        if (chempi_names_find(&w->done, key) != CHEMPI_NAMES_NONE)
            continue;
        chempi_names_add(&w->done, chempi_arena_text(&w->arena, key), 1);
        add_waits(w, r->stages, i);
    }
}

static void add_source(struct waits *w, uint32_t source)
{
    struct chempi_routes routes;

    chempi_route_source(w->graph, source, &routes);
    for (uint32_t i = 0; i < w->graph->class_count; i++) {
        for (size_t k = 0; k < routes.lists[i].count; k++)
            add_route(w, &routes.lists[i].routes[k]);
    }
    chempi_routes_fini(&routes);
}

/* Take away buffers that wait for nobody until none is left; what stays is
 * waited for in circles. */
static void strip(const struct waits *w, uint32_t *waiting)
{
    bool changed = true;

    for (size_t i = 0; i < w->edge_count; i++)
        waiting[w->from[i]]++;
    while (changed) {
        changed = false;
        for (uint32_t b = 0; b < w->buffer_count; b++) {
            if (waiting[b] != 0)
                continue;
            waiting[b] = CHEMPI_SEARCH_NONE; /* taken away */
            changed = true;
            for (size_t i = 0; i < w->edge_count; i++) {
                if (w->to[i] == b && waiting[w->from[i]] != 0 &&
                    waiting[w->from[i]] != CHEMPI_SEARCH_NONE)
                    waiting[w->from[i]]--;
            }
        }
    }
}

static uint32_t next_in_circle(const struct waits *w, const uint32_t *waiting,
                               uint32_t buffer)
{
    for (size_t i = 0; i < w->edge_count; i++) {
        if (w->from[i] == buffer && waiting[w->to[i]] != CHEMPI_SEARCH_NONE)
            return w->to[i];
    }
    return buffer;
}

static void name_circle(const struct waits *w, const uint32_t *waiting,
                        uint32_t start, char *text, size_t len)
{
    uint32_t at = start;
    size_t used = 0;
    char names[96];

    /* After as many steps as there are buffers we are inside the circle. */
    for (size_t i = 0; i < w->buffer_count; i++)
        at = next_in_circle(w, waiting, at);
    start = at;
    do {
        const struct buffer *b = &w->buffers[at];
        int n = snprintf(
            text + used, len - used, "%s%s (from %s)", used ? " hands to " : "",
            chempi_graph_members(w->graph, b->node_class, names, sizeof(names)),
            w->graph->desc->networks[b->network].name);

        if (n < 0 || (size_t)n >= len - used)
            return;
        used += (size_t)n;
        at = next_in_circle(w, waiting, at);
    } while (at != start);
    (void)snprintf(text + used, len - used, " hands to the first");
}

bool chempi_circle_find(const struct chempi_graph *graph, char *text,
                        size_t len)
{
    struct waits w = {.graph = graph};
    uint32_t *waiting;
    bool found = false;

    for (uint32_t i = 0; i < graph->class_count; i++)
        add_source(&w, i);
    waiting = chempi_mem_get(w.buffer_count, sizeof(*waiting));
    strip(&w, waiting);
    for (uint32_t b = 0; b < w.buffer_count && !found; b++) {
        if (waiting[b] != CHEMPI_SEARCH_NONE) {
            name_circle(&w, waiting, b, text, len);
            found = true;
        }
    }
    free(waiting);
    free(w.buffers);
    free(w.from);
    free(w.to);
    chempi_names_fini(&w.buffer_index);
    chempi_names_fini(&w.known);
    chempi_names_fini(&w.done);
    chempi_arena_fini(&w.arena);
    return found;
}
