/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of a description that can be read; see check.h. */
#include "mdconfig/routes/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/table/lower_envelope.h"
#include "common/table/network_types.h"
#include "common/words/fold.h"
#include "mdconfig/description/text.h"
#include "mdconfig/routes/circle.h"
#include "mdconfig/routes/loss.h"

#define SAME_KIND_MAX 8u /* findings of one kind before they are summed up */
#define NAMES_LEN 160
#define CIRCLE_LEN 512  /* bytes of a circle in words */
#define SPREAD_MAX 0.25 /* of a figure; beyond it a note */
#define JUMP_MAX 2.0    /* ratio of times on both sides of a limit */

static void add(struct chempi_check *c, enum chempi_check_level level,
                char *text)
{
    c->findings =
        chempi_mem_grow(c->findings, c->count, &c->room, sizeof(*c->findings));
    c->findings[c->count++] =
        (struct chempi_check_finding){.level = level, .text = text};
}

/* ---- networks ----------------------------------------------------------- */

/* Once for all networks of a device: the first one is named. */
static void check_device(struct chempi_check *c, const struct chempi_desc *d,
                         const struct chempi_desc_network *n)
{
    const struct chempi_network_types_device *device =
        chempi_network_types_device_find(n->device);
    char more[48] = "";
    uint32_t others = 0;

    if (!device->remark)
        return;
    for (uint32_t i = 0; i < d->network_count; i++) {
        if (strcmp(d->networks[i].device, n->device) != 0)
            continue;
        if (&d->networks[i] < n)
            return; /* said already */
        others += &d->networks[i] > n;
    }
    if (others > 0)
        (void)snprintf(more, sizeof(more), " and %u more", (unsigned)others);
    add(c, CHEMPI_CHECK_WARNING,
        chempi_arena_format(&c->arena, "%s:%zu:%zu: network %s%s: device %s %s",
                            d->file, n->line, n->column, n->name, more,
                            n->device, device->remark));
}

/* The time jumps where a protocol's limit, and not its speed, ends its use:
 * then the limit, or a figure, is most likely a slip. */
static void check_limit(struct chempi_check *c, const struct chempi_desc *d,
                        const struct chempi_desc_network *n,
                        const struct chempi_line *lines,
                        const struct chempi_piece *piece)
{
    const struct chempi_piece *next = piece + 1;
    double here = chempi_line_at(&lines[piece->line], piece->max_len);
    double there = chempi_line_at(&lines[next->line], piece->max_len + 1);
    bool falls = there < here;
    size_t limited = falls ? next->line : piece->line;

    if (there < here * JUMP_MAX && here < there * JUMP_MAX)
        return;
    add(c, CHEMPI_CHECK_WARNING,
        chempi_arena_format(
            &c->arena,
            "%s:%zu:%zu: network %s: the time %s from %s to %s behind %s, "
            "where "
            "`%s` of protocol %s lies; is this limit meant, and are the "
            "figures of %s and %s right?",
            d->file, n->line, n->column, n->name, falls ? "falls" : "jumps",
            chempi_text_put_time(here).text, chempi_text_put_time(there).text,
            chempi_text_put_size(piece->max_len).text, falls ? "min" : "max",
            n->protocols[limited].name, n->protocols[piece->line].name,
            n->protocols[next->line].name));
}

/* A protocol that is named and never the fastest is most likely a slip of a
 * figure. */
static void check_protocols(struct chempi_check *c, const struct chempi_desc *d,
                            const struct chempi_desc_network *n)
{
    struct chempi_line lines[CHEMPI_DESC_PROTOCOLS_MAX];
    bool used[CHEMPI_DESC_PROTOCOLS_MAX] = {false};
    struct chempi_piece *pieces;
    size_t count;

    for (size_t i = 0; i < n->protocol_count; i++)
        lines[i] = (struct chempi_line){
            .base_us = n->protocols[i].latency_us + n->protocols[i].cost_us,
            .slope_us = 1.0 / n->protocols[i].bw_bytes_per_us,
            .min_len = n->protocols[i].min_len,
            .max_len = n->protocols[i].max_len,
        };
    if (chempi_lower_envelope(lines, n->protocol_count, &pieces, &count) != 0)
        chempi_mem_exhausted(n->protocol_count * sizeof(*lines));
    for (size_t i = 0; i < count; i++) {
        used[pieces[i].line] = true; /* there are no holes (D3) */
        if (i + 1 < count)
            check_limit(c, d, n, lines, &pieces[i]);
    }
    free(pieces);
    for (size_t i = 0; i < n->protocol_count; i++) {
        if (!used[i] && n->protocols[i].is_named)
            add(c, CHEMPI_CHECK_WARNING,
                chempi_arena_format(
                    &c->arena,
                    "%s:%zu:%zu: network %s: protocol %s is not "
                    "the fastest at any size",
                    d->file, n->line, n->column, n->name,
                    n->protocols[i].name));
    }
}

/* Figures that a measurement has not told well. */
static void check_spreads(struct chempi_check *c, const struct chempi_desc *d,
                          const struct chempi_desc_network *n)
{
    for (size_t i = 0; i < n->protocol_count; i++) {
        const struct chempi_desc_protocol *p = &n->protocols[i];
        const double spreads[] = {p->latency_spread, p->bw_spread,
                                  p->cost_spread};
        static const char *const names[] = {"latency", "bandwidth", "cost"};

        for (size_t k = 0; k < CHEMPI_ARRAY_LEN(spreads); k++) {
            if (spreads[k] > SPREAD_MAX)
                add(c, CHEMPI_CHECK_NOTE,
                    chempi_arena_format(
                        &c->arena,
                        "%s:%zu:%zu: network %s: the %s of %s is known to "
                        "%.0f %% only; measure it again when the nodes have "
                        "less to do",
                        d->file, n->line, n->column, n->name, names[k], p->name,
                        spreads[k] * 100));
        }
    }
}

/* Figures that nobody has measured. */
static void check_figures(struct chempi_check *c, const struct chempi_desc *d,
                          const struct chempi_desc_network *n)
{
    char names[NAMES_LEN] = "";
    size_t at = 0;

    for (size_t i = 0; i < n->protocol_count; i++) {
        int len;

        if (!n->protocols[i].is_default)
            continue;
        len = snprintf(names + at, sizeof(names) - at, "%s%s", at ? ", " : "",
                       n->protocols[i].name);
        if (len < 0 || (size_t)len >= sizeof(names) - at)
            break;
        at += (size_t)len;
    }
    if (at > 0 && !n->implied)
        add(c, CHEMPI_CHECK_NOTE,
            chempi_arena_format(&c->arena,
                                "%s:%zu:%zu: network %s: default figures, not "
                                "measured ones, for %s",
                                d->file, n->line, n->column, n->name, names));
}

/* Nodes attached to each network, whatever the direction. */
static uint32_t *count_members(const struct chempi_desc *d)
{
    uint32_t *members = chempi_mem_get(d->network_count, sizeof(*members));

    for (uint32_t i = 0; i < d->node_count; i++) {
        for (size_t k = 0; k < d->nodes[i].attachment_count; k++)
            members[d->nodes[i].attachments[k].network]++;
    }
    return members;
}

static void check_networks(struct chempi_check *c, const struct chempi_graph *g)
{
    const struct chempi_desc *d = g->desc;
    uint32_t *members = count_members(d);
    const struct chempi_desc_network *before = NULL;

    for (uint32_t i = 0; i < d->network_count; i++) {
        const struct chempi_desc_network *n = &d->networks[i];

        if (!n->inside_node && members[i] < 2)
            add(c, CHEMPI_CHECK_WARNING,
                chempi_arena_format(&c->arena,
                                    "%s:%zu:%zu: network %s joins %s", d->file,
                                    n->line, n->column, n->name,
                                    members[i] ? "one node only" : "no nodes"));
        if (before && n->line == before->line && n->column == before->column)
            continue; /* of the same key as the one before */
        before = n->line > 0 ? n : NULL;
        check_device(c, d, n);
        check_protocols(c, d, n);
        check_figures(c, d, n);
        check_spreads(c, d, n);
    }
    free(members);
}

/* ---- nodes -------------------------------------------------------------- */

static bool is_same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* Two networks of a node behind one interface or address. */
static bool check_interfaces(struct chempi_check *c,
                             const struct chempi_desc *d,
                             const struct chempi_desc_node *n)
{
    for (size_t i = 0; i < n->attachment_count; i++) {
        for (size_t k = 0; k < i; k++) {
            const struct chempi_desc_attachment *a = &n->attachments[k];
            const struct chempi_desc_attachment *b = &n->attachments[i];
            bool address = is_same_text(a->address, b->address);

            if (!address && !is_same_text(a->interface, b->interface))
                continue;
            add(c, CHEMPI_CHECK_WARNING,
                chempi_arena_format(&c->arena,
                                    "%s:%u:%u: node %s: networks %s and %s "
                                    "share the %s %s, so "
                                    "their bandwidth is counted twice",
                                    d->file, b->line, b->column, n->name,
                                    d->networks[a->network].name,
                                    d->networks[b->network].name,
                                    address ? "address" : "interface",
                                    address ? a->address : a->interface));
            return true;
        }
    }
    return false;
}

/* An address that another node of the network has, too. */
static void tell_address(struct chempi_check *c, const struct chempi_desc *d,
                         const struct chempi_desc_node *first,
                         const struct chempi_desc_node *n,
                         const struct chempi_desc_attachment *a)
{
    const struct chempi_desc_attachment *before = a;
    char place[32] = "";

    for (size_t i = 0; i < first->attachment_count; i++)
        if (first->attachments[i].network == a->network)
            before = &first->attachments[i];
    if (before->line != a->line)
        (void)snprintf(place, sizeof(place), " (the first on line %u)",
                       (unsigned)before->line);
    add(c, CHEMPI_CHECK_ERROR,
        chempi_arena_format(&c->arena,
                            "%s:%u:%u: nodes %s and %s have the same address "
                            "%s on network %s%s",
                            d->file, (unsigned)a->line, (unsigned)a->column,
                            first->name, n->name, a->address,
                            d->networks[a->network].name, place));
}

/* An address belongs to one node of a network. */
static void check_addresses(struct chempi_check *c, const struct chempi_desc *d)
{
    struct chempi_names seen = {.count = 0};
    uint32_t found = 0;

    for (uint32_t i = 0; i < d->node_count && found < SAME_KIND_MAX; i++) {
        const struct chempi_desc_node *n = &d->nodes[i];

        for (size_t k = 0; k < n->attachment_count; k++) {
            const struct chempi_desc_attachment *a = &n->attachments[k];
            char *key;
            uint32_t other;

            if (!a->address)
                continue;
            key =
                chempi_arena_format(&c->arena, "%u %s", a->network, a->address);
            other = chempi_names_find(&seen, key);
            if (other == CHEMPI_NAMES_NONE) {
                chempi_names_add(&seen, key, i);
                continue;
            }
            found++;
            tell_address(c, d, &d->nodes[other], n, a);
        }
    }
    chempi_names_fini(&seen);
}

/* Networks that lead out of the node. */
static uint32_t count_networks(const struct chempi_desc *d,
                               const struct chempi_desc_node *n)
{
    uint32_t count = 0;

    for (size_t i = 0; i < n->attachment_count; i++)
        count += !d->networks[n->attachments[i].network].inside_node;
    return count;
}

static void check_nodes(struct chempi_check *c, const struct chempi_graph *g)
{
    const struct chempi_desc *d = g->desc;
    uint32_t found = 0;

    for (uint32_t i = 0; i < d->node_count && found < SAME_KIND_MAX; i++)
        found += check_interfaces(c, d, &d->nodes[i]);
    check_addresses(c, d);
    for (uint32_t i = 0; i < g->class_count; i++) {
        const struct chempi_desc_node *n = chempi_graph_model(g, i);
        uint32_t networks = count_networks(d, n);
        char names[NAMES_LEN];

        if (n->gateway && networks < 2)
            add(c, CHEMPI_CHECK_WARNING,
                chempi_arena_format(
                    &c->arena,
                    "%s:%zu:%zu: gateway %s is attached to %s, so it has "
                    "nothing to forward between",
                    d->file, n->line, n->column,
                    chempi_graph_members(g, i, names, sizeof(names)),
                    networks ? "one network" : "no network"));
    }
}

/* ---- reach -------------------------------------------------------------- */

/* reach[a * classes + b]: nodes of class a reach nodes of class b. */
struct reach {
    const struct chempi_graph *graph;
    unsigned char *can;
    uint32_t *queue;
    unsigned char *seen;
};

/* Mark what class `from` reaches by at most so many stages when class `lost`
 * does not forward. */
static void flood(const struct reach *r, uint32_t from, uint32_t lost,
                  uint32_t most)
{
    const struct chempi_graph *g = r->graph;
    bool forward = g->desc->ways != CHEMPI_DESC_DIRECT;
    uint32_t head = 0;
    uint32_t tail = 0;
    uint32_t end = 1; /* of those that so many stages lead to */
    uint32_t stages = 0;

    memset(r->seen, 0, g->class_count);
    r->queue[tail++] = from;
    for (bool first = true; head < tail; first = false) {
        uint32_t c;

        if (head == end) {
            end = tail;
            stages++;
        }
        if (stages == most)
            break;
        c = r->queue[head++];
        if (!first && c == from)
            continue; /* its networks have been walked */
        for (uint32_t i = g->out_first[c]; i < g->out_first[c + 1]; i++) {
            uint32_t n = g->out[i];

            for (uint32_t k = g->in_first[n]; k < g->in_first[n + 1]; k++) {
                uint32_t next = g->in[k];

                if (r->seen[next])
                    continue;
                r->seen[next] = 1;
                if (forward && next != lost && chempi_graph_forwards(g, next))
                    r->queue[tail++] = next;
            }
        }
    }
}

/* A class of one node needs no way to itself over networks. */
static bool is_pair(const struct chempi_graph *g, uint32_t a, uint32_t b)
{
    return a != b || chempi_graph_size(g, a) > 1;
}

/* Would nodes of class `between` take messages on from class a to b? */
static bool is_between(const struct chempi_graph *g, uint32_t a,
                       uint32_t between, uint32_t b)
{
    bool is_near = false;
    bool is_far = false;

    for (uint32_t i = g->out_first[a]; i < g->out_first[a + 1]; i++)
        is_near |= chempi_graph_receives(g, between, g->out[i]);
    for (uint32_t i = g->out_first[between];
         is_near && i < g->out_first[between + 1]; i++)
        is_far |= chempi_graph_receives(g, b, g->out[i]);
    return is_far;
}

/* What would lead from class a to b and back, where no gateway does. */
static const char *propose_gateway(struct chempi_arena *arena,
                                   const struct chempi_graph *g, uint32_t a,
                                   uint32_t b)
{
    const char **names = chempi_mem_get(g->desc->node_count, sizeof(*names));
    char list[NAMES_LEN];
    uint32_t count = 0;

    for (uint32_t k = 0; k < g->class_count; k++) {
        if (!is_between(g, a, k, b) || !is_between(g, b, k, a))
            continue;
        for (uint32_t i = g->member_first[k]; i < g->member_first[k + 1]; i++)
            names[count++] = g->desc->nodes[g->members[i]].name;
    }
    chempi_fold_sorted(names, count, list, sizeof(list));
    free(names);
    if (count == 0)
        return "attach them to a common network, or a gateway to networks of "
               "both sides";
    return chempi_arena_format(arena,
                               "say `gateway: true` for %s%s, which %s on "
                               "networks of both sides, or attach them to a "
                               "common one",
                               count > 1 ? "one of " : "", list,
                               count > 1 ? "are" : "is");
}

/* Does a way lead there, if one of more stages than a table holds? */
static bool is_too_far(const struct chempi_graph *g, uint32_t a, uint32_t b)
{
    const size_t n = g->class_count;
    struct reach r = {.graph = g};
    bool is_far;

    r.queue = chempi_mem_get(n + 2, sizeof(*r.queue));
    r.seen = chempi_mem_get(n, 1);
    flood(&r, a, CHEMPI_SEARCH_NONE, UINT32_MAX);
    is_far = r.seen[b];
    free(r.queue);
    free(r.seen);
    return is_far;
}

const char *chempi_check_remedy(const struct chempi_graph *g, uint32_t a,
                                uint32_t b, bool is_back,
                                struct chempi_arena *arena)
{
    if (is_too_far(g, a, b))
        return chempi_arena_format(arena,
                                   "every way passes through more than %u "
                                   "networks, the limit; attach a gateway to "
                                   "networks that are farther apart",
                                   (unsigned)CHEMPI_TABLE_STAGES_MAX);
    if (is_back)
        return "though the way back exists: a one-way link";
    if (g->desc->ways == CHEMPI_DESC_DIRECT)
        return "no network is shared and gateways are switched off "
               "(forwarding: ways: direct)";
    return chempi_arena_format(
        arena, "no network is shared and no gateway lies between; %s",
        propose_gateway(arena, g, a, b));
}

static void tell_unreachable(struct chempi_check *c, const struct reach *r,
                             uint32_t a, uint32_t b)
{
    const struct chempi_graph *g = r->graph;
    bool back = r->can[(size_t)b * g->class_count + a];
    char from[NAMES_LEN];
    char to[NAMES_LEN];

    add(c, CHEMPI_CHECK_ERROR,
        chempi_arena_format(&c->arena, "%s:%zu:%zu: %s cannot reach %s: %s",
                            g->desc->file, chempi_graph_model(g, a)->line,
                            chempi_graph_model(g, a)->column,
                            chempi_graph_members(g, a, from, sizeof(from)),
                            chempi_graph_members(g, b, to, sizeof(to)),
                            chempi_check_remedy(g, a, b, back, &c->arena)));
    c->findings[c->count - 1].is_reach = true;
}

static void check_pairs(struct chempi_check *c, const struct reach *r,
                        bool is_whole)
{
    const struct chempi_graph *g = r->graph;
    uint64_t found = 0;

    for (uint32_t a = 0; a < g->class_count; a++) {
        for (uint32_t b = 0; b < g->class_count; b++) {
            bool there = r->can[(size_t)a * g->class_count + b];
            bool back = r->can[(size_t)b * g->class_count + a];

            if (there || !is_pair(g, a, b) || (!back && b < a))
                continue; /* a pair cut both ways is told once */
            if (found++ < SAME_KIND_MAX || is_whole)
                tell_unreachable(c, r, a, b);
        }
    }
    if (found > SAME_KIND_MAX && !is_whole) {
        add(c, CHEMPI_CHECK_ERROR,
            chempi_arena_format(&c->arena,
                                "%s: and %llu more pairs of classes cannot "
                                "reach each other (mdconfig check --all lists "
                                "them)",
                                g->desc->file,
                                (unsigned long long)(found - SAME_KIND_MAX)));
        c->findings[c->count - 1].is_reach = true;
    }
}

/* A lone gateway between others: what is cut off without it? marks has room
 * for all pairs of classes. */
static void check_loss(struct chempi_check *c, const struct reach *r,
                       uint32_t lost, uint8_t *marks, bool is_whole)
{
    const struct chempi_graph *g = r->graph;
    const size_t n = g->class_count;
    bool is_any = false;
    char *text;

    memset(marks, 0, n * n);
    for (uint32_t a = 0; a < g->class_count; a++) {
        if (a == lost)
            continue;
        flood(r, a, lost, CHEMPI_TABLE_STAGES_MAX);
        for (uint32_t b = 0; b < g->class_count; b++) {
            if (b == lost || r->seen[b] || !is_pair(g, a, b) ||
                !r->can[(size_t)a * n + b])
                continue;
            marks[a * n + b] = 1;
            is_any = true;
        }
    }
    if (!is_any)
        return;
    text = chempi_loss_put(g, marks, is_whole);
    add(c, CHEMPI_CHECK_WARNING,
        chempi_arena_format(&c->arena,
                            "%s:%zu:%zu: gateway %s is a single point of "
                            "failure: without it there is no way%s",
                            g->desc->file, chempi_graph_model(g, lost)->line,
                            chempi_graph_model(g, lost)->column,
                            chempi_graph_model(g, lost)->name, text));
    free(text);
}

/* Pairs of classes beyond which the check of lost gateways, cubic in the
 * number of classes, would take longer than compiling. */
#define LOSS_PAIRS_MAX 40000u

static void check_reach(struct chempi_check *c, const struct chempi_graph *g,
                        bool is_whole)
{
    size_t n = g->class_count;
    struct reach r = {.graph = g};
    uint32_t lone = 0;
    uint8_t *marks;

    r.can = chempi_mem_get(n * n, 1);
    r.queue = chempi_mem_get(n + 2, sizeof(*r.queue));
    r.seen = chempi_mem_get(n, 1);
    for (uint32_t a = 0; a < g->class_count; a++) {
        flood(&r, a, CHEMPI_SEARCH_NONE, CHEMPI_TABLE_STAGES_MAX);
        memcpy(r.can + a * n, r.seen, n);
    }
    check_pairs(c, &r, is_whole);
    marks = chempi_mem_get(n * n, 1);
    for (uint32_t i = 0; i < g->class_count; i++) {
        if (!chempi_graph_forwards(g, i) || chempi_graph_size(g, i) > 1)
            continue;
        if (lone++ * n > LOSS_PAIRS_MAX && !is_whole) {
            add(c, CHEMPI_CHECK_NOTE,
                chempi_arena_format(&c->arena,
                                    "%s: only the first %u lone gateways "
                                    "were checked for single points of "
                                    "failure (--all checks all)",
                                    g->desc->file, lone - 1));
            break;
        }
        check_loss(c, &r, i, marks, is_whole);
    }
    free(marks);
    free(r.can);
    free(r.queue);
    free(r.seen);
}

/* ---- circles ------------------------------------------------------------ */

/* Gateways hold nothing back for each other, so a circle does no harm; who
 * wonders about the load of its networks may want to know of it. */
static void check_circles(struct chempi_check *c, const struct chempi_graph *g)
{
    char text[CIRCLE_LEN];

    if (chempi_circle_find(g, text, sizeof(text)))
        add(c, CHEMPI_CHECK_NOTE,
            chempi_arena_format(&c->arena,
                                "%s: ways lead through gateways in a circle, "
                                "which does no harm: %s",
                                g->desc->file, text));
}

void chempi_check_run(const struct chempi_graph *graph,
                      enum chempi_check_level from, bool is_whole,
                      struct chempi_check *out)
{
    *out = (struct chempi_check){.count = 0};
    check_networks(out, graph);
    check_nodes(out, graph);
    check_reach(out, graph, is_whole);
    if (from == CHEMPI_CHECK_NOTE) /* it takes as long as compiling does */
        check_circles(out, graph);
}

void chempi_check_fini(struct chempi_check *check)
{
    free(check->findings);
    chempi_arena_fini(&check->arena);
    *check = (struct chempi_check){.count = 0};
}
