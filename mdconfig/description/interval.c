/* SPDX-License-Identifier: BSD-3-Clause */
/* Intervals of sizes; see interval.h. */
#include "mdconfig/description/interval.h"

#include <stdlib.h>

static int order_sizes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The last size of every interval, ascending; *ends is malloc'ed. */
static size_t find_ends(const struct chempi_desc *d, uint64_t **ends)
{
    uint64_t *list = NULL;
    size_t room = 0;
    size_t count = 0;
    size_t kept = 0;

    for (uint32_t n = 0; n < d->network_count; n++) {
        const struct chempi_desc_network *net = &d->networks[n];

        for (size_t i = 0; i < net->protocol_count && !net->inside_node; i++) {
            list = chempi_mem_grow(list, count, &room, sizeof(*list));
            list[count++] = net->protocols[i].max_len;
            if (net->protocols[i].min_len == 0)
                continue;
            list = chempi_mem_grow(list, count, &room, sizeof(*list));
            list[count++] = net->protocols[i].min_len - 1;
        }
    }
    list = chempi_mem_grow(list, count, &room, sizeof(*list));
    list[count++] = d->chunk;
    list = chempi_mem_grow(list, count, &room, sizeof(*list));
    list[count++] = UINT64_MAX;
    qsort(list, count, sizeof(*list), order_sizes);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || list[kept - 1] != list[i])
            list[kept++] = list[i];
    }
    *ends = list;
    return kept;
}

static struct chempi_pareto_point
crossing_point(const struct chempi_desc *d,
               const struct chempi_interval *interval,
               const struct chempi_desc_protocol *p)
{
    double base = p->latency_us + p->cost_us;
    double bw = p->bw_bytes_per_us;

    if (interval->streams)
        return (struct chempi_pareto_point){base + d->chunk / bw, 1 / bw};
    return (struct chempi_pareto_point){base + (double)interval->from / bw,
                                        base + (double)interval->to / bw};
}

/* The crossings of one network that can be of use. */
static uint32_t find_crossings(const struct chempi_desc *d,
                               const struct chempi_interval *interval,
                               const struct chempi_desc_network *net,
                               struct chempi_interval_crossing *out)
{
    struct chempi_interval_crossing all[CHEMPI_DESC_PROTOCOLS_MAX];
    struct chempi_pareto front = {.count = 0};
    uint32_t count;

    for (size_t i = 0; i < net->protocol_count; i++) {
        const struct chempi_desc_protocol *p = &net->protocols[i];

        if (interval->from < p->min_len || interval->from > p->max_len)
            continue;
        all[i] = (struct chempi_interval_crossing){
            crossing_point(d, interval, p), (uint32_t)i};
        (void)chempi_pareto_add(&front, &all[i].point, !interval->streams);
    }
    count = (uint32_t)front.count;
    for (size_t i = 0; i < front.count; i++)
        out[i] = *(const struct chempi_interval_crossing *)front.points[i];
    chempi_pareto_fini(&front);
    return count;
}

static size_t count_protocols(const struct chempi_desc *d)
{
    size_t total = 0;

    for (uint32_t n = 0; n < d->network_count; n++)
        total += d->networks[n].protocol_count;
    return total;
}

static void init_interval(struct chempi_interval *interval,
                          const struct chempi_desc *d,
                          struct chempi_arena *arena)
{
    interval->crossings = chempi_arena_get(arena, count_protocols(d),
                                           sizeof(*interval->crossings));
    interval->first = chempi_arena_get(arena, (size_t)d->network_count + 1,
                                       sizeof(*interval->first));
    for (uint32_t n = 0; n < d->network_count; n++) {
        const struct chempi_desc_network *net = &d->networks[n];
        uint32_t at = interval->first[n];

        interval->first[n + 1] = at;
        if (!net->inside_node)
            interval->first[n + 1] +=
                find_crossings(d, interval, net, interval->crossings + at);
    }
}

bool chempi_intervals_fit(const struct chempi_desc *desc)
{
    uint64_t *ends;
    size_t count = find_ends(desc, &ends);

    free(ends);
    return count * count_protocols(desc) <= CHEMPI_INTERVAL_CROSSINGS_MAX;
}

void chempi_intervals_init(struct chempi_intervals *intervals,
                           const struct chempi_desc *desc)
{
    uint64_t *ends;
    uint64_t from = 0;

    *intervals = (struct chempi_intervals){.count = 0};
    intervals->count = find_ends(desc, &ends);
    intervals->list = chempi_arena_get(&intervals->arena, intervals->count,
                                       sizeof(*intervals->list));
    for (size_t i = 0; i < intervals->count; i++) {
        struct chempi_interval *interval = &intervals->list[i];

        interval->from = from;
        interval->to = ends[i];
        interval->streams = interval->to > desc->chunk;
        init_interval(interval, desc, &intervals->arena);
        from = ends[i] + 1; /* wraps after the last one */
    }
    free(ends);
}

void chempi_intervals_fini(struct chempi_intervals *intervals)
{
    chempi_arena_fini(&intervals->arena);
    *intervals = (struct chempi_intervals){.count = 0};
}
