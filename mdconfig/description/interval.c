/* SPDX-License-Identifier: BSD-3-Clause */
/* Intervals of sizes; see interval.h. */
#include "mdconfig/description/interval.h"

#include <stdlib.h>

#include "common/table/table.h"

static int order_sizes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

uint32_t chempi_interval_next_chunk(const struct chempi_desc *desc,
                                    uint32_t chunk)
{
    uint32_t next = chunk ? 2 * chunk : CHEMPI_INTERVAL_CHUNK_MIN;

    if (chunk == desc->chunk)
        return 0;
    return next < desc->chunk ? next : desc->chunk;
}

uint64_t chempi_interval_least_cut(const struct chempi_desc *desc,
                                   uint32_t chunk)
{
    return chunk < desc->chunk && chunk < CHEMPI_INTERVAL_CUT_MIN
               ? CHEMPI_INTERVAL_CUT_MIN
               : (uint64_t)chunk + 1;
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
crossing_point(const struct chempi_interval *interval,
               const struct chempi_desc_protocol *p)
{
    double base = p->latency_us + p->cost_us;
    double bw = p->bw_bytes_per_us;

    if (interval->streams) {
        const struct chempi_table_times times = {.cost_us = p->cost_us,
                                                 .bw_bytes_per_us = bw};
        const double busy = chempi_table_busy_us(&times, interval->chunk);

        return (struct chempi_pareto_point){p->latency_us + busy, busy};
    }
    return (struct chempi_pareto_point){base + (double)interval->from / bw,
                                        base + (double)interval->to / bw};
}

/* The crossings of one network that can be of use. */
static uint32_t find_crossings(const struct chempi_interval *interval,
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
        all[i] = (struct chempi_interval_crossing){crossing_point(interval, p),
                                                   (uint32_t)i};
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
                find_crossings(interval, net, interval->crossings + at);
    }
}

/* Too many sizes at which protocols change to search each with all chunks? */
static bool needs_coarse(const struct chempi_desc *d, const uint64_t *ends,
                         size_t count)
{
    size_t above = 0;

    for (size_t i = 0; i < count; i++)
        above += ends[i] >= CHEMPI_INTERVAL_CUT_MIN;
    return above * d->class_count > CHEMPI_INTERVAL_CUTS_MAX;
}

/* Add one to the list, if there is a list; 1. */
static size_t put(struct chempi_intervals *out, const struct chempi_desc *d,
                  const struct chempi_interval *interval)
{
    if (out) {
        struct chempi_interval *at = &out->list[out->count++];

        *at = *interval;
        init_interval(at, d, &out->arena);
    }
    return 1;
}

/* What messages of from to end bytes are searched for; how many. */
static size_t split(const struct chempi_desc *d, uint64_t from, uint64_t end,
                    bool is_coarse, struct chempi_intervals *out)
{
    size_t count = 0;

    if (end <= d->chunk)
        count += put(out, d,
                     &(struct chempi_interval){
                         .from = from, .to = end, .chunk = d->chunk});
    for (uint32_t c = 0; (c = chempi_interval_next_chunk(d, c)) != 0;) {
        const uint64_t least = chempi_interval_least_cut(d, c);

        if (end >= least && (!is_coarse || c == d->chunk))
            count += put(
                out, d,
                &(struct chempi_interval){.from = from > least ? from : least,
                                          .to = end,
                                          .chunk = c,
                                          .streams = true});
    }
    return count;
}

/* The same for all of them; fills out unless it is NULL. */
static size_t split_all(const struct chempi_desc *d, const uint64_t *ends,
                        size_t end_count, struct chempi_intervals *out)
{
    const bool is_coarse = needs_coarse(d, ends, end_count);
    uint64_t from = 0;
    size_t count = 0;

    for (size_t i = 0; i < end_count; i++) {
        count += split(d, from, ends[i], is_coarse, out);
        from = ends[i] + 1; /* wraps after the last one */
    }
    return count;
}

bool chempi_intervals_fit(const struct chempi_desc *desc)
{
    uint64_t *ends;
    size_t count = find_ends(desc, &ends);

    count = split_all(desc, ends, count, NULL);
    free(ends);
    return count * count_protocols(desc) <= CHEMPI_INTERVAL_CROSSINGS_MAX;
}

void chempi_intervals_init(struct chempi_intervals *intervals,
                           const struct chempi_desc *desc)
{
    uint64_t *ends;
    size_t count = find_ends(desc, &ends);

    *intervals =
        (struct chempi_intervals){.is_coarse = needs_coarse(desc, ends, count)};
    intervals->list =
        chempi_arena_get(&intervals->arena, split_all(desc, ends, count, NULL),
                         sizeof(*intervals->list));
    (void)split_all(desc, ends, count, intervals);
    free(ends);
}

void chempi_intervals_fini(struct chempi_intervals *intervals)
{
    chempi_arena_fini(&intervals->arena);
    *intervals = (struct chempi_intervals){.count = 0};
}
