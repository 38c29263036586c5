/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Comparing two descriptions; see diff.h. Nodes and networks are told by
 * their names. Nodes that had the same class before and have the same class
 * now behave alike: ways are compared once for each such group.
 */
#include "mdconfig/pictures/diff.h"

#include <stdlib.h>
#include <string.h>

#include "mdconfig/pictures/diff_print.h"
#include "mdconfig/routes/ways.h"

struct groups {
    struct chempi_diff_group *list;
    size_t count;
    size_t room;
};

/* ---- nodes and networks that come and go -------------------------------- */

static void tell_nodes(struct chempi_diff *d, const struct chempi_desc *of,
                       const struct chempi_desc *other, const char *word)
{
    const char **names = chempi_mem_get(of->node_count, sizeof(*names));
    size_t count = 0;

    for (uint32_t i = 0; i < of->node_count; i++) {
        if (chempi_names_find(&other->node_names, of->nodes[i].name) ==
            CHEMPI_NAMES_NONE)
            names[count++] = of->nodes[i].name;
    }
    if (count > 0)
        chempi_diff_print_nodes(d, word, names, count);
    free(names);
}

static void tell_networks(struct chempi_diff *d, const struct chempi_desc *of,
                          const struct chempi_desc *other, const char *word)
{
    for (uint32_t i = 0; i < of->network_count; i++) {
        if (chempi_names_find(&other->network_names, of->networks[i].name) !=
            CHEMPI_NAMES_NONE)
            continue;
        chempi_diff_print_network(d, word, &of->networks[i]);
    }
}

/* ---- figures ------------------------------------------------------------ */

static bool is_near(double x, double y)
{
    double more = x > y ? x : y;

    return more - (x > y ? y : x) <= more * 1e-9;
}

static void compare_reals(struct chempi_diff *d, struct chempi_diff_figure f,
                          double before, double after)
{
    if (!is_near(before, after))
        chempi_diff_print_figure(d, &f, (union chempi_diff_value){.x = before},
                                 (union chempi_diff_value){.x = after});
}

static void compare_sizes(struct chempi_diff *d, struct chempi_diff_figure f,
                          uint64_t before, uint64_t after)
{
    if (before != after)
        chempi_diff_print_figure(d, &f,
                                 (union chempi_diff_value){.len = before},
                                 (union chempi_diff_value){.len = after});
}

static void compare_words(struct chempi_diff *d, struct chempi_diff_figure f,
                          const char *before, const char *after)
{
    if (strcmp(before, after) != 0)
        chempi_diff_print_figure(d, &f,
                                 (union chempi_diff_value){.word = before},
                                 (union chempi_diff_value){.word = after});
}

static void compare_forwarding(struct chempi_diff *d)
{
    static const char *const rules[] = {"fastest", "needed", "direct"};
    const struct chempi_desc *a = d->a->desc;
    const struct chempi_desc *b = d->b->desc;

    compare_words(
        d, (struct chempi_diff_figure){NULL, NULL, "ways", CHEMPI_DIFF_WORD},
        rules[a->ways], rules[b->ways]);
    compare_sizes(
        d, (struct chempi_diff_figure){NULL, NULL, "chunk", CHEMPI_DIFF_BYTES},
        a->chunk, b->chunk);
}

static void compare_protocol(struct chempi_diff *d, const char *network,
                             const struct chempi_desc_protocol *a,
                             const struct chempi_desc_protocol *b)
{
    compare_reals(d,
                  (struct chempi_diff_figure){network, a->name, "latency",
                                              CHEMPI_DIFF_US},
                  a->latency_us, b->latency_us);
    compare_reals(d,
                  (struct chempi_diff_figure){network, a->name, "bandwidth",
                                              CHEMPI_DIFF_BYTES_PER_US},
                  a->bw_bytes_per_us, b->bw_bytes_per_us);
    compare_reals(
        d,
        (struct chempi_diff_figure){network, a->name, "cost", CHEMPI_DIFF_US},
        a->cost_us, b->cost_us);
    compare_sizes(
        d,
        (struct chempi_diff_figure){network, a->name, "min", CHEMPI_DIFF_BYTES},
        a->min_len, b->min_len);
    compare_sizes(
        d,
        (struct chempi_diff_figure){network, a->name, "max", CHEMPI_DIFF_BYTES},
        a->max_len, b->max_len);
}

static const struct chempi_desc_protocol *
find_protocol(const struct chempi_desc_network *n, const char *name)
{
    for (size_t i = 0; i < n->protocol_count; i++) {
        if (strcmp(n->protocols[i].name, name) == 0)
            return &n->protocols[i];
    }
    return NULL;
}

static void compare_network(struct chempi_diff *d,
                            const struct chempi_desc_network *a,
                            const struct chempi_desc_network *b)
{
    if (strcmp(a->device, b->device) != 0 || strcmp(a->type, b->type) != 0)
        chempi_diff_print_type(d, a, b);
    for (size_t i = 0; i < a->protocol_count; i++) {
        const struct chempi_desc_protocol *p =
            find_protocol(b, a->protocols[i].name);

        if (p)
            compare_protocol(d, a->name, &a->protocols[i], p);
        else
            compare_words(
                d,
                (struct chempi_diff_figure){a->name, a->protocols[i].name,
                                            "protocol", CHEMPI_DIFF_WORD},
                "used", "not used");
    }
    for (size_t i = 0; i < b->protocol_count; i++) {
        if (!find_protocol(a, b->protocols[i].name))
            compare_words(
                d,
                (struct chempi_diff_figure){a->name, b->protocols[i].name,
                                            "protocol", CHEMPI_DIFF_WORD},
                "not used", "used");
    }
}

static void compare_networks(struct chempi_diff *d)
{
    const struct chempi_desc *a = d->a->desc;
    const struct chempi_desc *b = d->b->desc;

    for (uint32_t i = 0; i < a->network_count; i++) {
        uint32_t k = chempi_names_find(&b->network_names, a->networks[i].name);

        if (k != CHEMPI_NAMES_NONE)
            compare_network(d, &a->networks[i], &b->networks[k]);
    }
}

/* ---- addresses ---------------------------------------------------------- */

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Nothing of the node itself changed. */
static bool is_same_node(const struct chempi_diff *d, uint32_t i, uint32_t k)
{
    const struct chempi_desc_node *n = &d->a->desc->nodes[i];
    const struct chempi_desc *b = d->b->desc;

    if (n->slots != b->nodes[k].slots ||
        n->has_slots != b->nodes[k].has_slots ||
        n->gateway != b->nodes[k].gateway ||
        (n->gateway && !is_near(n->forward_us, b->nodes[k].forward_us)) ||
        n->attachment_count != b->nodes[k].attachment_count)
        return false;
    for (size_t j = 0; j < n->attachment_count; j++) {
        const struct chempi_desc_attachment *x = &n->attachments[j];
        const struct chempi_desc_attachment *y;
        uint32_t network = chempi_names_find(
            &b->network_names, d->a->desc->networks[x->network].name);

        y = network == CHEMPI_NAMES_NONE ? NULL
                                         : chempi_desc_attached(b, k, network);
        if (!y || !is_same_text(x->address, y->address) ||
            !is_same_text(x->interface, y->interface) ||
            x->can_send != y->can_send || x->can_receive != y->can_receive)
            return false;
    }
    return true;
}

static void compare_nodes(struct chempi_diff *d)
{
    const struct chempi_desc *a = d->a->desc;
    const char **names = chempi_mem_get(a->node_count, sizeof(*names));
    size_t count = 0;

    for (uint32_t i = 0; i < a->node_count; i++) {
        uint32_t k =
            chempi_names_find(&d->b->desc->node_names, a->nodes[i].name);

        if (k != CHEMPI_NAMES_NONE && !is_same_node(d, i, k))
            names[count++] = a->nodes[i].name;
    }
    if (count > 0)
        chempi_diff_print_nodes(d, "changed", names, count);
    free(names);
}

/* ---- ways --------------------------------------------------------------- */

static struct chempi_diff_group *find_group(struct groups *g,
                                            struct chempi_names *index,
                                            struct chempi_arena *arena,
                                            uint32_t class_a, uint32_t class_b)
{
    char key[32];
    uint32_t at;

    (void)snprintf(key, sizeof(key), "%u %u", class_a, class_b);
    at = chempi_names_find(index, key);
    if (at != CHEMPI_NAMES_NONE)
        return &g->list[at];
    g->list = chempi_mem_grow(g->list, g->count, &g->room, sizeof(*g->list));
    g->list[g->count] =
        (struct chempi_diff_group){.class_a = class_a, .class_b = class_b};
    chempi_names_add(index, chempi_arena_text(arena, key), (uint32_t)g->count);
    return &g->list[g->count++];
}

static void make_groups(const struct chempi_diff *d, struct groups *out)
{
    const struct chempi_desc *a = d->a->desc;
    const struct chempi_desc *b = d->b->desc;
    struct chempi_names index = {.count = 0};
    struct chempi_arena arena = {.blocks = NULL};

    for (uint32_t i = 0; i < a->node_count; i++) {
        uint32_t k = chempi_names_find(&b->node_names, a->nodes[i].name);
        struct chempi_diff_group *g;

        if (k == CHEMPI_NAMES_NONE)
            continue;
        g = find_group(out, &index, &arena, a->nodes[i].node_class,
                       b->nodes[k].node_class);
        g->names =
            chempi_mem_grow(g->names, g->count, &g->room, sizeof(*g->names));
        g->names[g->count++] = a->nodes[i].name;
    }
    chempi_names_fini(&index);
    chempi_arena_fini(&arena);
}

static void name_way(const struct chempi_graph *g, const struct chempi_route *r,
                     char *buf)
{
    if (r)
        (void)chempi_ways_name(g, r->stages, r->stage_count, buf,
                               CHEMPI_DIFF_WAY_MAX);
    else
        (void)snprintf(buf, CHEMPI_DIFF_WAY_MAX, "no way");
}

static void tell_stretch(struct chempi_diff *d,
                         const struct chempi_diff_stretch *s, uint64_t to_len,
                         struct chempi_diff_ends *e)
{
    if (strcmp(s->before, s->after) != 0)
        chempi_diff_print_stretch(d, s, to_len, e);
}

static void compare_lists(struct chempi_diff *d,
                          const struct chempi_route_list *a,
                          const struct chempi_route_list *b,
                          struct chempi_diff_ends e)
{
    struct chempi_diff_stretch s = {.from_len = 0};
    struct chempi_diff_stretch next;
    uint64_t at = 0;

    for (;;) {
        const struct chempi_route *x = chempi_route_for(a, at);
        const struct chempi_route *y = chempi_route_for(b, at);
        uint64_t end = UINT64_MAX;

        end = x && x->max_len < end ? x->max_len : end;
        end = y && y->max_len < end ? y->max_len : end;
        next.from_len = at;
        next.x = x;
        next.y = y;
        name_way(d->a, x, next.before);
        name_way(d->b, y, next.after);
        if (at > 0 && (strcmp(s.before, next.before) != 0 ||
                       strcmp(s.after, next.after) != 0)) {
            tell_stretch(d, &s, at - 1, &e);
            s = next;
        } else if (at == 0) {
            s = next;
        }
        if (end == UINT64_MAX)
            break;
        at = end + 1;
    }
    tell_stretch(d, &s, UINT64_MAX, &e);
}

static void compare_ways_from(struct chempi_diff *d,
                              const struct groups *groups,
                              const struct chempi_diff_group *from)
{
    struct chempi_routes a;
    struct chempi_routes b;

    chempi_route_source(d->a, from->class_a, &a);
    chempi_route_source(d->b, from->class_b, &b);
    for (size_t i = 0; i < groups->count; i++) {
        const struct chempi_diff_group *to = &groups->list[i];

        if (to == from && to->count == 1)
            continue;
        compare_lists(d, &a.lists[to->class_a], &b.lists[to->class_b],
                      (struct chempi_diff_ends){from, to, false});
    }
    compare_lists(d, &a.lists[d->a->class_count], &b.lists[d->b->class_count],
                  (struct chempi_diff_ends){from, NULL, false});
    chempi_routes_fini(&a);
    chempi_routes_fini(&b);
}

size_t chempi_diff(const struct chempi_graph *before,
                   const struct chempi_graph *after, bool is_json, FILE *out)
{
    struct chempi_json j = {.file = out};
    struct chempi_diff d = {
        .a = before, .b = after, .out = out, .json = is_json ? &j : NULL};
    struct groups groups = {.count = 0};

    if (is_json)
        chempi_json_open_list(&j, NULL);
    tell_nodes(&d, before->desc, after->desc, "without");
    tell_nodes(&d, after->desc, before->desc, "with");
    tell_networks(&d, before->desc, after->desc, "without");
    tell_networks(&d, after->desc, before->desc, "with");
    compare_forwarding(&d);
    compare_networks(&d);
    compare_nodes(&d);
    make_groups(&d, &groups);
    for (size_t i = 0; i < groups.count; i++)
        compare_ways_from(&d, &groups, &groups.list[i]);
    for (size_t i = 0; i < groups.count; i++)
        free(groups.list[i].names);
    free(groups.list);
    if (is_json) {
        chempi_json_close_list(&j);
        chempi_json_end(&j);
    }
    return d.found;
}
