/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The compiled envelopes agree with brute force: on small random networks
 * every simple path over nodes, with every choice of protocols, is priced by
 * the streaming formula, and none beats the compiled way at any size tried:
 * random ones, the chunk, the protocols' limits, every breakpoint and their
 * neighbours. The tolerance is far below what one byte is worth, so the
 * breakpoints are right to the byte.
 *
 * A failure names its seed; CHEMPI_TEST_SEED=seed tries that network alone.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mdconfig/routes/hops.h"
#include "mdconfig/routes/route.h"

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

static uint64_t state; /* of the random numbers; xorshift64* */

static int pick(int n)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (int)((state * UINT64_C(2685821657736338717) >> 33) % (unsigned)n);
}

/* Round figures make many ways equally fast. */
static void put_protocol(struct text *t, const char *name, bool limited,
                         bool round)
{
    if (round)
        put(t, "      %s: { latency: %d us, bandwidth: %d MB/s, cost: 0 us",
            name, 10 << pick(3), 25 << pick(4));
    else
        put(t, "      %s: { latency: %d.%d us, bandwidth: %d MB/s, cost: %d us",
            name, 1 + pick(60), pick(10), 5 + pick(6) * 20 + pick(3), pick(4));
    put(t, limited && pick(2) ? ", max: %d }\n" : ", max: none }\n",
        100 + pick(3) * 1000 + pick(200000));
}

static void put_network(struct text *t, int network, int nodes, bool round)
{
    static const char *const protocols[] = {"zero-copy", "one-copy",
                                            "shared-memory"};
    int count = 1 + pick(3);
    bool any = false;

    put(t, "  net%d:\n    type: sci\n    protocols:\n", network);
    for (int i = 0; i < count; i++)
        put_protocol(t, protocols[i], i > 0, round);
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
    bool round = pick(3) == 0;

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
        put_network(t, i, nodes, round);
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
    long double least;
};

/* Through gateways: whole up to the description's chunk, or in chunks. */
static long double price_in(const struct brute *b, uint32_t chunk)
{
    long double slowest = 0;
    long double us = 0;

    for (uint32_t i = 0; i < b->count; i++) {
        const struct chempi_desc_protocol *p = b->stages[i].protocol;
        const uint64_t piece = chunk ? chunk : b->len;
        const long double busy =
            p->cost_us + b->stages[i].forward_us +
            ((long double)piece + (chunk ? CHEMPI_TABLE_FRAME_BYTES : 0)) /
                p->bw_bytes_per_us;

        us += p->latency_us + busy;
        slowest = fmaxl(slowest, busy);
    }
    return chunk ? us + ((long double)b->len - chunk) / chunk * slowest : us;
}

static long double price(const struct brute *b)
{
    const uint32_t most = b->desc->chunk;
    long double least = INFINITY;

    if (b->count == 1 || b->len <= most)
        least = price_in(b, 0);
    if (b->count == 1)
        return least;
    for (uint32_t c = 1024; c < most && c < b->len; c *= 2) {
        if (b->len >= 2048)
            least = fminl(least, price_in(b, c));
    }
    return b->len > most ? fminl(least, price_in(b, most)) : least;
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
                    b->least = fminl(b->least, price(b));
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

static long double brute_force(const struct chempi_desc *d, uint32_t from,
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

#define TOLERANCE 1e-11 /* relative; ways this close count as equal */

struct comparing {
    const struct chempi_graph *graph;
    const struct chempi_route_list *list;
    uint32_t from; /* nodes */
    uint32_t to;
    uint64_t seed;
    const char *text; /* the description */
};

/* Every gateway that may stand in at a stage can, at no less cost, and a way
 * through any of them comes to no node twice. */
static void check_hops(const struct comparing *c, const struct chempi_route *r)
{
    const struct chempi_desc *d = c->graph->desc;
    uint32_t source = d->nodes[c->from].node_class;
    bool used[8] = {false};
    struct chempi_hops hops;

    used[c->from] = used[c->to] = true;
    for (uint32_t i = 0; i + 1 < r->stage_count; i++) {
        double us =
            chempi_graph_model(c->graph, r->stages[i].end_class)->forward_us;

        chempi_hops_find(c->graph, source, r->stages, r->stage_count, i, &hops);
        cr_assert(hops.share_count > 0 && hops.share_count <= hops.count);
        for (uint32_t k = 0; k < hops.count; k++) {
            const struct chempi_desc_node *n = &d->nodes[hops.nodes[k]];

            cr_assert(chempi_hops_fits(c->graph, n->node_class, r->stages, i));
            cr_assert_not(used[hops.nodes[k]],
                          "seed %lu: n%u to n%u: %s stands in twice\n%s",
                          (unsigned long)c->seed, c->from, c->to, n->name,
                          c->text);
            if (k < hops.share_count)
                cr_assert(n->forward_us >= us && n->forward_us <= us);
            else
                cr_assert_gt(n->forward_us, us);
            used[hops.nodes[k]] = true;
        }
    }
}

/* The way goes from node to node, and to none of them twice. */
static void check_stages(const struct comparing *c,
                         const struct chempi_route *r, uint64_t len)
{
    const struct chempi_graph *g = c->graph;
    uint32_t at = g->desc->nodes[c->from].node_class;

    for (uint32_t i = 0; i < r->stage_count; i++) {
        const struct chempi_route_stage *s = &r->stages[i];
        const struct chempi_desc_protocol *p =
            &g->desc->networks[s->network].protocols[s->protocol];
        bool sends = false;

        for (uint32_t k = g->out_first[at]; k < g->out_first[at + 1]; k++)
            sends = sends || g->out[k] == s->network;
        cr_assert(sends && chempi_graph_receives(g, s->end_class, s->network),
                  "seed %lu: n%u to n%u, %lu B: stage %u leads nowhere\n%s",
                  (unsigned long)c->seed, c->from, c->to, (unsigned long)len, i,
                  c->text);
        cr_assert(p->min_len <= len && len <= p->max_len,
                  "seed %lu: n%u to n%u: %s does not take %lu B\n%s",
                  (unsigned long)c->seed, c->from, c->to, p->name,
                  (unsigned long)len, c->text);
        at = s->end_class;
        cr_assert(i + 1 == r->stage_count || chempi_graph_forwards(g, at));
        for (uint32_t k = 0; k < i; k++)
            cr_assert_neq(r->stages[k].end_class, at,
                          "seed %lu: n%u to n%u, %lu B: back again\n%s",
                          (unsigned long)c->seed, c->from, c->to,
                          (unsigned long)len, c->text);
    }
    cr_assert_eq(at, g->desc->nodes[c->to].node_class);
    check_hops(c, r);
}

static void compare_at(const struct comparing *c, uint64_t len)
{
    const struct chempi_route *r = chempi_route_for(c->list, len);
    long double least = brute_force(c->graph->desc, c->from, c->to, len);
    double us;

    if (!r) {
        cr_assert(isinf(least),
                  "seed %lu: n%u to n%u, %lu B: a way was missed\n%s",
                  (unsigned long)c->seed, c->from, c->to, (unsigned long)len,
                  c->text);
        return;
    }
    us = chempi_route_time(c->graph, r->stages, r->stage_count, r->chunk, len);
    cr_assert(fabsl(us - least) <= TOLERANCE * least,
              "seed %lu: n%u to n%u, %lu B: compiled %.15g us, brute force "
              "%.15Lg us\n%s",
              (unsigned long)c->seed, c->from, c->to, (unsigned long)len, us,
              least, c->text);
    check_stages(c, r, len);
}

/* A size and its neighbours. */
static void compare_around(const struct comparing *c, uint64_t len)
{
    if (len > 0)
        compare_at(c, len - 1);
    compare_at(c, len);
    if (len < UINT64_MAX)
        compare_at(c, len + 1);
}

static void compare_limits(const struct comparing *c)
{
    const struct chempi_desc *d = c->graph->desc;

    for (uint32_t n = 0; n < d->network_count; n++) {
        for (size_t i = 0; i < d->networks[n].protocol_count; i++)
            compare_around(c, d->networks[n].protocols[i].max_len);
    }
    compare_around(c, d->chunk);
}

static void compare_pair(const struct comparing *c)
{
    compare_limits(c);
    compare_at(c, 0);
    compare_at(c, UINT64_C(1) << 40);
    for (int i = 0; i < 6; i++)
        compare_at(c, (uint64_t)pick(1 << (4 * i + 4)));
    for (size_t i = 0; i + 1 < c->list->count; i++)
        compare_around(c, c->list->routes[i].max_len);
}

/* Compare all pairs of one random network; returns how many of them need a
 * gateway. */
static size_t compare_network(uint64_t seed)
{
    static struct text t;
    struct comparing c = {.seed = seed, .text = t.buf};
    struct chempi_err err = {.code = 0};
    struct chempi_desc desc;
    struct chempi_graph graph;
    size_t with_gateways = 0;

    state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    put_description(&t);
    cr_assert_eq(chempi_desc_parse("random", t.buf, t.len, &desc, &err), 0,
                 "seed %lu: %s\n%s", (unsigned long)seed, err.text, t.buf);
    chempi_graph_init(&graph, &desc);
    c.graph = &graph;
    for (c.from = 0; c.from < desc.node_count; c.from++) {
        struct chempi_routes routes;

        chempi_route_source(&graph, desc.nodes[c.from].node_class, &routes);
        for (c.to = 0; c.to < desc.node_count; c.to++) {
            c.list = &routes.lists[desc.nodes[c.to].node_class];
            if (c.to == c.from)
                continue;
            compare_pair(&c);
            if (c.list->count > 0 && c.list->routes[0].stage_count > 1)
                with_gateways++;
        }
        chempi_routes_fini(&routes);
    }
    chempi_graph_fini(&graph);
    chempi_desc_fini(&desc);
    return with_gateways;
}

Test(routes, agree_with_brute_force_on_random_networks, .timeout = 120)
{
    const char *only = getenv("CHEMPI_TEST_SEED");
    size_t with_gateways = 0;

    if (only) {
        (void)compare_network(strtoull(only, NULL, 0));
        return;
    }
    for (uint64_t seed = 1; seed <= 400; seed++)
        with_gateways += compare_network(seed);
    cr_assert_gt(with_gateways, 100, "too few ways through gateways tried");
}
