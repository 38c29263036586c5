/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Comparing two descriptions; see diff.h. Nodes and networks are told by
 * their names. Nodes that had the same class before and have the same class
 * now behave alike: ways are compared once for each such group.
 */
#include "mdconfig/pictures/diff.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fold.h"
#include "mdconfig/description/text.h"
#include "mdconfig/routes/ways.h"

#define NAMES_LEN 200
#define WAY_LEN 512

struct diffing {
    const struct chempi_graph *a; /* before */
    const struct chempi_graph *b; /* after */
    FILE *out;
    size_t found;
};

/* Nodes that are in both, alike in both. */
struct group {
    uint32_t class_a;
    uint32_t class_b;
    const char **names;
    size_t count;
    size_t room;
};

struct groups {
    struct group *list;
    size_t count;
    size_t room;
};

/* ---- nodes and networks that come and go -------------------------------- */

static void tell_nodes(struct diffing *d, const struct chempi_desc *of,
                       const struct chempi_desc *other, const char *word)
{
    const char **names = chempi_mem_get(of->node_count, sizeof(*names));
    char text[NAMES_LEN];
    size_t count = 0;

    for (uint32_t i = 0; i < of->node_count; i++) {
        if (chempi_names_find(&other->node_names, of->nodes[i].name) ==
            CHEMPI_NAMES_NONE)
            names[count++] = of->nodes[i].name;
    }
    if (count > 0) {
        chempi_fold_sorted(names, count, text, sizeof(text));
        (void)fprintf(d->out, "%s node%s %s\n", word, chempi_text_plural(count),
                      text);
        d->found++;
    }
    free(names);
}

static void tell_networks(struct diffing *d, const struct chempi_desc *of,
                          const struct chempi_desc *other, const char *word)
{
    for (uint32_t i = 0; i < of->network_count; i++) {
        if (chempi_names_find(&other->network_names, of->networks[i].name) !=
            CHEMPI_NAMES_NONE)
            continue;
        (void)fprintf(d->out, "%s network %s (%s, device %s)\n", word,
                      of->networks[i].name, of->networks[i].type,
                      of->networks[i].device);
        d->found++;
    }
}

static void compare_forwarding(struct diffing *d)
{
    static const char *const rules[] = {"fastest", "needed", "direct"};
    const struct chempi_desc *a = d->a->desc;
    const struct chempi_desc *b = d->b->desc;
    char x[CHEMPI_TEXT_QUANTITY_MAX];
    char y[CHEMPI_TEXT_QUANTITY_MAX];

    if (a->ways != b->ways) {
        (void)fprintf(d->out, "forwarding: ways %s -> %s\n", rules[a->ways],
                      rules[b->ways]);
        d->found++;
    }
    if (a->chunk != b->chunk) {
        (void)fprintf(d->out, "forwarding: chunk %s -> %s\n",
                      chempi_text_put_size(x, a->chunk),
                      chempi_text_put_size(y, b->chunk));
        d->found++;
    }
}

/* ---- figures ------------------------------------------------------------ */

static bool is_near(double x, double y)
{
    double more = x > y ? x : y;

    return more - (x > y ? y : x) <= more * 1e-9;
}

static void tell_figure(struct diffing *d, const char *network,
                        const char *protocol, const char *what,
                        const char *before, const char *after)
{
    (void)fprintf(d->out, "network %s: %s: %s %s -> %s\n", network, protocol,
                  what, before, after);
    d->found++;
}

static void compare_protocol(struct diffing *d, const char *network,
                             const struct chempi_desc_protocol *a,
                             const struct chempi_desc_protocol *b)
{
    char x[CHEMPI_TEXT_QUANTITY_MAX];
    char y[CHEMPI_TEXT_QUANTITY_MAX];

    if (!is_near(a->latency_us, b->latency_us))
        tell_figure(d, network, a->name, "latency",
                    chempi_text_put_time(x, a->latency_us),
                    chempi_text_put_time(y, b->latency_us));
    if (!is_near(a->bw_bytes_per_us, b->bw_bytes_per_us))
        tell_figure(d, network, a->name, "bandwidth",
                    chempi_text_put_bandwidth(x, a->bw_bytes_per_us),
                    chempi_text_put_bandwidth(y, b->bw_bytes_per_us));
    if (!is_near(a->cost_us, b->cost_us))
        tell_figure(d, network, a->name, "cost",
                    chempi_text_put_time(x, a->cost_us),
                    chempi_text_put_time(y, b->cost_us));
    if (a->min_len != b->min_len)
        tell_figure(d, network, a->name, "min",
                    chempi_text_put_size(x, a->min_len),
                    chempi_text_put_size(y, b->min_len));
    if (a->max_len != b->max_len)
        tell_figure(d, network, a->name, "max",
                    chempi_text_put_size(x, a->max_len),
                    chempi_text_put_size(y, b->max_len));
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

static void compare_network(struct diffing *d,
                            const struct chempi_desc_network *a,
                            const struct chempi_desc_network *b)
{
    if (strcmp(a->device, b->device) != 0 || strcmp(a->type, b->type) != 0) {
        (void)fprintf(d->out, "network %s: %s, device %s -> %s, device %s\n",
                      a->name, a->type, a->device, b->type, b->device);
        d->found++;
    }
    for (size_t i = 0; i < a->protocol_count; i++) {
        const struct chempi_desc_protocol *p =
            find_protocol(b, a->protocols[i].name);

        if (p)
            compare_protocol(d, a->name, &a->protocols[i], p);
        else
            tell_figure(d, a->name, a->protocols[i].name, "protocol", "used",
                        "not used");
    }
    for (size_t i = 0; i < b->protocol_count; i++) {
        if (!find_protocol(a, b->protocols[i].name))
            tell_figure(d, a->name, b->protocols[i].name, "protocol",
                        "not used", "used");
    }
}

static void compare_networks(struct diffing *d)
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
static bool is_same_node(const struct diffing *d, uint32_t i, uint32_t k)
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

static void compare_nodes(struct diffing *d)
{
    const struct chempi_desc *a = d->a->desc;
    const char **names = chempi_mem_get(a->node_count, sizeof(*names));
    char text[NAMES_LEN];
    size_t count = 0;

    for (uint32_t i = 0; i < a->node_count; i++) {
        uint32_t k =
            chempi_names_find(&d->b->desc->node_names, a->nodes[i].name);

        if (k != CHEMPI_NAMES_NONE && !is_same_node(d, i, k))
            names[count++] = a->nodes[i].name;
    }
    if (count > 0) {
        chempi_fold_sorted(names, count, text, sizeof(text));
        (void)fprintf(d->out,
                      "slots, forwarding or attachments of %s changed\n", text);
        d->found++;
    }
    free(names);
}

/* ---- ways --------------------------------------------------------------- */

static struct group *find_group(struct groups *g, struct chempi_names *index,
                                struct chempi_arena *arena, uint32_t class_a,
                                uint32_t class_b)
{
    char key[32];
    uint32_t at;

    (void)snprintf(key, sizeof(key), "%u %u", class_a, class_b);
    at = chempi_names_find(index, key);
    if (at != CHEMPI_NAMES_NONE)
        return &g->list[at];
    g->list = chempi_mem_grow(g->list, g->count, &g->room, sizeof(*g->list));
    g->list[g->count] = (struct group){.class_a = class_a, .class_b = class_b};
    chempi_names_add(index, chempi_arena_text(arena, key), (uint32_t)g->count);
    return &g->list[g->count++];
}

static void make_groups(const struct diffing *d, struct groups *out)
{
    const struct chempi_desc *a = d->a->desc;
    const struct chempi_desc *b = d->b->desc;
    struct chempi_names index = {.count = 0};
    struct chempi_arena arena = {.blocks = NULL};

    for (uint32_t i = 0; i < a->node_count; i++) {
        uint32_t k = chempi_names_find(&b->node_names, a->nodes[i].name);
        struct group *g;

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
        (void)chempi_ways_name(g, r->stages, r->stage_count, buf, WAY_LEN);
    else
        (void)snprintf(buf, WAY_LEN, "no way");
}

/* One stretch of sizes with the same two ways. */
struct stretch {
    uint64_t from;
    char before[WAY_LEN];
    char after[WAY_LEN];
};

static void tell_stretch(struct diffing *d, const struct stretch *s,
                         uint64_t to, const char *head, bool *told)
{
    char low[CHEMPI_TEXT_QUANTITY_MAX];
    char high[CHEMPI_TEXT_QUANTITY_MAX];

    if (strcmp(s->before, s->after) == 0)
        return;
    if (!*told)
        (void)fprintf(d->out, "%s\n", head);
    *told = true;
    (void)fprintf(d->out, "  %s .. %s: %s\n    -> %s\n",
                  chempi_text_put_size(low, s->from),
                  chempi_text_put_size(high, to), s->before, s->after);
    d->found++;
}

static void compare_lists(struct diffing *d, const struct chempi_route_list *a,
                          const struct chempi_route_list *b, const char *head)
{
    struct stretch s = {.from = 0};
    struct stretch next;
    uint64_t at = 0;
    bool told = false;

    for (;;) {
        const struct chempi_route *x = chempi_route_for(a, at);
        const struct chempi_route *y = chempi_route_for(b, at);
        uint64_t end = UINT64_MAX;

        end = x && x->max_len < end ? x->max_len : end;
        end = y && y->max_len < end ? y->max_len : end;
        next.from = at;
        name_way(d->a, x, next.before);
        name_way(d->b, y, next.after);
        if (at > 0 && (strcmp(s.before, next.before) != 0 ||
                       strcmp(s.after, next.after) != 0)) {
            tell_stretch(d, &s, at - 1, head, &told);
            s = next;
        } else if (at == 0) {
            s = next;
        }
        if (end == UINT64_MAX)
            break;
        at = end + 1;
    }
    tell_stretch(d, &s, UINT64_MAX, head, &told);
}

static void compare_ways_from(struct diffing *d, const struct groups *groups,
                              const struct group *from)
{
    struct chempi_routes a;
    struct chempi_routes b;
    char source[NAMES_LEN];
    char target[NAMES_LEN];
    char head[2 * NAMES_LEN + 32];

    chempi_route_source(d->a, from->class_a, &a);
    chempi_route_source(d->b, from->class_b, &b);
    chempi_fold_sorted(from->names, from->count, source, sizeof(source));
    for (size_t i = 0; i < groups->count; i++) {
        const struct group *to = &groups->list[i];

        if (to == from && to->count == 1)
            continue;
        chempi_fold_sorted(to->names, to->count, target, sizeof(target));
        (void)snprintf(head, sizeof(head), "ways from %s to %s", source,
                       target);
        compare_lists(d, &a.lists[to->class_a], &b.lists[to->class_b], head);
    }
    (void)snprintf(head, sizeof(head), "ways inside %s", source);
    compare_lists(d, &a.lists[d->a->class_count], &b.lists[d->b->class_count],
                  head);
    chempi_routes_fini(&a);
    chempi_routes_fini(&b);
}

size_t chempi_diff(const struct chempi_graph *before,
                   const struct chempi_graph *after, FILE *out)
{
    struct diffing d = {.a = before, .b = after, .out = out};
    struct groups groups = {.count = 0};

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
    return d.found;
}
