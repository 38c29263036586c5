/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The compiled envelopes agree with brute force: on small random networks
 * every simple path over nodes, with every choice of protocols, is priced by
 * the streaming formula, and none beats the compiled way at any size tried,
 * the breakpoints and their neighbours included.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mdconfig/route.h"

/* ---- random descriptions ------------------------------------------------ */

struct text {
    char buf[16384];
    size_t len;
};

static void put(struct text *t, const char *fmt, ...) CHEMPI_PRINTF(2, 3);

static void put(struct text *t, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(t->buf + t->len, sizeof(t->buf) - t->len, fmt, args);
    va_end(args);
    cr_assert(n >= 0 && (size_t)n < sizeof(t->buf) - t->len);
    t->len += (size_t)n;
}

static int pick(int n)
{
    return rand() % n;
}

static void put_protocol(struct text *t, const char *name, bool limited)
{
    put(t, "      %s: { latency: %d.%d us, bandwidth: %d MB/s, cost: %d us",
        name, 1 + pick(60), pick(10), 5 + pick(6) * 20 + pick(3), pick(4));
    put(t, limited && pick(2) ? ", max: %d }\n" : ", max: none }\n",
        100 + pick(3) * 1000 + pick(200000));
}

static void put_network(struct text *t, int network, int nodes)
{
    static const char *const protocols[] = {"zero-copy", "one-copy",
                                            "shared-memory"};
    int count = 1 + pick(3);
    bool any = false;

    put(t, "  net%d:\n    type: sci\n    protocols:\n", network);
    for (int i = 0; i < count; i++)
        put_protocol(t, protocols[i], i > 0);
    put(t, "    attach:\n");
    for (int i = 0; i < nodes; i++) {
        if (pick(2) && (any || i + 1 < nodes))
            continue;
        any = true;
        put(t, "      n%d: { direction: %s }\n", i,
            pick(8)   ? "both"
            : pick(2) ? "send"
                      : "receive");
    }
}

static void put_description(struct text *t)
{
    static const char *const ways[] = {"fastest", "fastest", "needed",
                                       "direct"};
    int nodes = 2 + pick(5);
    int networks = 1 + pick(4);

    t->len = 0;
    put(t, "forwarding: { ways: %s, chunk: %d }\nnodes:\n", ways[pick(4)],
        1024 + pick(2) * 64512 + pick(100));
    for (int i = 0; i < nodes; i++) {
        if (pick(3))
            put(t, "  n%d: { gateway: true, forward: %d us }\n", i,
                pick(3) * 10);
        else
            put(t, "  n%d:\n", i);
    }
    put(t, "networks:\n");
    for (int i = 0; i < networks; i++)
        put_network(t, i, nodes);
}

/* ---- brute force -------------------------------------------------------- */

struct stage {
    const struct chempi_desc_protocol *protocol;
    double forward_us; /* of the node before it */
};

struct brute {
    const struct chempi_desc *desc;
    uint32_t target;
    uint64_t len;
    struct stage stages[8];
    uint32_t count;
    bool passed[8];
    bool shares_network;
    double least;
};

static double price(const struct brute *b)
{
    double chunk = fmin((double)b->len, b->desc->chunk);
    double slowest = INFINITY;
    double us = 0;

    for (uint32_t i = 0; i < b->count; i++) {
        const struct chempi_desc_protocol *p = b->stages[i].protocol;

        us += p->latency_us + p->cost_us + b->stages[i].forward_us +
              chunk / p->bw_bytes_per_us;
        slowest = fmin(slowest, p->bw_bytes_per_us);
    }
    return us + ((double)b->len - chunk) / slowest;
}

static bool is_allowed(const struct brute *b)
{
    return b->count == 1 || b->desc->ways == CHEMPI_DESC_FASTEST ||
           (b->desc->ways == CHEMPI_DESC_NEEDED && !b->shares_network);
}

static void walk(struct brute *b, uint32_t node, bool is_source);

static void step(struct brute *b, uint32_t network, double forward_us)
{
    const struct chempi_desc *d = b->desc;
    const struct chempi_desc_network *net = &d->networks[network];

    for (size_t p = 0; p < net->protocol_count; p++) {
        const struct chempi_desc_protocol *protocol = &net->protocols[p];

        if (b->len < protocol->min_len || b->len > protocol->max_len)
            continue;
        b->stages[b->count++] = (struct stage){protocol, forward_us};
        for (uint32_t i = 0; i < d->node_count; i++) {
            const struct chempi_desc_attachment *a =
                chempi_desc_attached(d, i, network);

            if (!a || !a->can_receive || b->passed[i])
                continue;
            if (i == b->target) {
                if (is_allowed(b))
                    b->least = fmin(b->least, price(b));
            } else if (d->nodes[i].gateway) {
                walk(b, i, false);
            }
        }
        b->count--;
    }
}

static void walk(struct brute *b, uint32_t node, bool is_source)
{
    const struct chempi_desc_node *n = &b->desc->nodes[node];

    b->passed[node] = true;
    for (size_t i = 0; i < n->attachment_count; i++) {
        const struct chempi_desc_attachment *a = &n->attachments[i];

        if (a->can_send && !b->desc->networks[a->network].inside_node)
            step(b, a->network, is_source ? 0 : n->forward_us);
    }
    b->passed[node] = false;
}

static bool share_network(const struct chempi_desc *d, uint32_t from,
                          uint32_t to)
{
    for (uint32_t i = 0; i < d->network_count; i++) {
        const struct chempi_desc_attachment *a =
            chempi_desc_attached(d, from, i);
        const struct chempi_desc_attachment *b = chempi_desc_attached(d, to, i);

        if (!d->networks[i].inside_node && a && b && a->can_send &&
            b->can_receive)
            return true;
    }
    return false;
}

static double brute_force(const struct chempi_desc *d, uint32_t from,
                          uint32_t to, uint64_t len)
{
    struct brute b = {.desc = d,
                      .target = to,
                      .len = len,
                      .shares_network = share_network(d, from, to),
                      .least = INFINITY};

    walk(&b, from, true);
    return b.least;
}

/* ---- comparison --------------------------------------------------------- */

static void compare_at(const struct chempi_graph *g, uint32_t from, uint32_t to,
                       const struct chempi_route_list *list, uint64_t len,
                       const char *text)
{
    const struct chempi_route *r = chempi_route_for(list, len);
    double least = brute_force(g->desc, from, to, len);
    double us;

    if (!r) {
        cr_assert(isinf(least), "n%u to n%u, %lu B: a way was missed\n%s", from,
                  to, (unsigned long)len, text);
        return;
    }
    us = chempi_route_time(g, r->stages, r->stage_count, len);
    cr_assert(fabs(us - least) <= 1e-9 * (1 + least),
              "n%u to n%u, %lu B: compiled %.9g us, brute force %.9g us\n%s",
              from, to, (unsigned long)len, us, least, text);
    for (uint32_t i = 0; i < r->stage_count; i++) {
        const struct chempi_desc_protocol *p =
            &g->desc->networks[r->stages[i].network]
                 .protocols[r->stages[i].protocol];

        cr_assert(p->min_len <= len && len <= p->max_len);
    }
}

static void compare_pair(const struct chempi_graph *g,
                         const struct chempi_routes *routes, uint32_t from,
                         uint32_t to, const char *text)
{
    const struct chempi_route_list *list =
        &routes->lists[g->desc->nodes[to].node_class];

    compare_at(g, from, to, list, 0, text);
    compare_at(g, from, to, list, g->desc->chunk, text);
    compare_at(g, from, to, list, g->desc->chunk + 1, text);
    compare_at(g, from, to, list, UINT64_C(1) << 40, text);
    for (int i = 0; i < 6; i++)
        compare_at(g, from, to, list, (uint64_t)pick(1 << (4 * i + 4)), text);
    for (size_t i = 0; i + 1 < list->count; i++) {
        compare_at(g, from, to, list, list->routes[i].max_len, text);
        compare_at(g, from, to, list, list->routes[i].max_len + 1, text);
    }
}

Test(routes, agree_with_brute_force_on_random_networks, .timeout = 120)
{
    static struct text t;
    size_t with_gateways = 0;

    srand(20);
    for (int round = 0; round < 400; round++) {
        struct chempi_err err = {.code = 0};
        struct chempi_desc desc;
        struct chempi_graph graph;

        put_description(&t);
        cr_assert_eq(chempi_desc_parse("random", t.buf, t.len, &desc, &err), 0,
                     "%s\n%s", err.text, t.buf);
        chempi_graph_init(&graph, &desc);
        for (uint32_t i = 0; i < desc.node_count; i++) {
            struct chempi_routes routes;

            chempi_route_source(&graph, desc.nodes[i].node_class, &routes);
            for (uint32_t k = 0; k < desc.node_count; k++) {
                const struct chempi_route_list *list =
                    &routes.lists[desc.nodes[k].node_class];

                if (k == i)
                    continue;
                compare_pair(&graph, &routes, i, k, t.buf);
                if (list->count > 0 && list->routes[0].stage_count > 1)
                    with_gateways++;
            }
            chempi_routes_fini(&routes);
        }
        chempi_graph_fini(&graph);
        chempi_desc_fini(&desc);
    }
    cr_assert_gt(with_gateways, 100, "too few ways through gateways tried");
}
