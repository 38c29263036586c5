/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls by place; see sites.h. */
#define _GNU_SOURCE /* clock_gettime */
#include "programs/libchempi-stats/sites.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/symbol/caller.h"
#include "common/symbol/source_line.h"
#include "common/symbol/symbol.h"
#include "common/words/json.h"

enum {
    ROOM = 4096,  /* places of a process, a power of two */
    TRIES = 64,   /* entries that are looked at for one */
    TAKEN = 512,  /* places that a process tells of */
    LINES = 128,  /* places whose lines are looked for */
    ID_SHIFT = 48 /* of a key, above the address of a program's code */
};

/* Whoever puts the key owns the entry's meaning; counts are added by all. */
struct entry {
    _Atomic uint64_t key; /* operation and return address; 0: free */
    _Atomic uint64_t calls;
    _Atomic uint64_t bytes;
    _Atomic uint64_t time_ns;
};

/* Behind ROOM an operation each: calls of it from elsewhere. */
static struct entry entries[ROOM + STATS_COUNT];

bool stats_sites_are_wanted(void)
{
    static _Atomic int wanted; /* 1: no, 2: yes */
    int found = atomic_load_explicit(&wanted, memory_order_relaxed);

    if (CHEMPI_UNLIKELY(found == 0)) {
        const char *text = getenv("CHEMPI_PROFILE_SITES");

        found = text && *text && strcmp(text, "0") != 0 ? 2 : 1;
        atomic_store_explicit(&wanted, found, memory_order_relaxed);
    }
    return found == 2;
}

static struct entry *find_entry(enum stats_id id, uint64_t key)
{
    const uint64_t at = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 52;

    for (uint64_t i = 0; i < TRIES; i++) {
        struct entry *e = &entries[(at + i) % ROOM];
        uint64_t found = atomic_load_explicit(&e->key, memory_order_relaxed);

        if (found == 0 && atomic_compare_exchange_strong(&e->key, &found, key))
            return e;
        if (found == key)
            return e;
    }
    return &entries[ROOM + id];
}

static void add(_Atomic uint64_t *to, uint64_t n)
{
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

void stats_sites_count(const struct stats_call *call)
{
    const uint64_t from =
        (uint64_t)(uintptr_t)chempi_caller_in_program(call->from);
    struct entry *e =
        find_entry(call->id, (uint64_t)call->id << ID_SHIFT |
                                 (from & ((UINT64_C(1) << ID_SHIFT) - 1)));

    add(&e->calls, 1);
    add(&e->bytes, call->bytes > 0 ? (uint64_t)call->bytes : 0);
    add(&e->time_ns, call->time_ns);
}

void stats_sites_forget(void)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(entries); i++) {
        entries[i].calls = 0;
        entries[i].bytes = 0;
        entries[i].time_ns = 0;
    }
}

/* ---- the end ---- */

/* Most time first. */
static int compare_times(const void *a, const void *b)
{
    const struct stats_site *x = a;
    const struct stats_site *y = b;

    return (x->time_ns < y->time_ns) - (x->time_ns > y->time_ns);
}

static int compare_places(const void *a, const void *b)
{
    const struct stats_site *x = a;
    const struct stats_site *y = b;
    const int file = strcmp(x->file, y->file);

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    if (file || x->address != y->address)
        return file ? file : (x->address < y->address ? -1 : 1);
    return strcmp(x->place, y->place);
}

static void describe(struct stats_site *site, uint64_t key)
{
    /* Where the call is, not what follows it. */
    const void *call =
        (const char *)(uintptr_t)(key & ((UINT64_C(1) << ID_SHIFT) - 1)) - 1;
    struct chempi_symbol symbol;

    (void)chempi_symbol_words(call, site->place, sizeof(site->place));
    if (!chempi_symbol_find(call, &symbol) ||
        strlen(symbol.path) >= sizeof(site->file))
        return;
    memcpy(site->file, symbol.path, strlen(symbol.path) + 1);
    site->address = symbol.address;
}

struct stats_sites stats_sites_take(void)
{
    struct stats_sites sites = {
        .list = calloc(CHEMPI_ARRAY_LEN(entries), sizeof(*sites.list))};

    for (size_t i = 0; sites.list && i < CHEMPI_ARRAY_LEN(entries); i++) {
        const struct entry *e = &entries[i];
        struct stats_site *to = &sites.list[sites.count];

        if (e->calls == 0)
            continue;
        *to = (struct stats_site){
            .id = (uint32_t)(i < ROOM ? e->key >> ID_SHIFT : i - ROOM),
            .ranks = 1,
            .calls = e->calls,
            .bytes = e->bytes,
            .time_ns = e->time_ns,
            .least_ns = e->time_ns,
            .most_ns = e->time_ns,
            .place = "elsewhere"};
        if (i < ROOM)
            describe(to, e->key);
        sites.count++;
    }
    if (sites.count)
        qsort(sites.list, sites.count, sizeof(*sites.list), compare_times);
    sites.count = sites.count < TAKEN ? sites.count : TAKEN;
    return sites;
}

static void add_site(struct stats_site *to, const struct stats_site *from)
{
    to->ranks += from->ranks;
    to->calls += from->calls;
    to->bytes += from->bytes;
    to->time_ns += from->time_ns;
    if (from->least_ns < to->least_ns)
        to->least_ns = from->least_ns;
    if (from->most_ns > to->most_ns)
        to->most_ns = from->most_ns;
}

void stats_sites_join(struct stats_sites *sites, uint32_t ranks)
{
    size_t count = 0;

    if (sites->count == 0)
        return;
    qsort(sites->list, sites->count, sizeof(*sites->list), compare_places);
    for (size_t i = 0; i < sites->count; i++) {
        const struct stats_site *from = &sites->list[i];
        struct stats_site *to = &sites->list[count];

        if (count == 0 || compare_places(to - 1, from) != 0) {
            *to = *from;
            count++;
            continue;
        }
        add_site(to - 1, from);
    }
    sites->count = count;
    for (size_t i = 0; i < count; i++)
        if (sites->list[i].ranks < ranks)
            sites->list[i].least_ns = 0;
    qsort(sites->list, count, sizeof(*sites->list), compare_times);
    for (size_t i = 0; i < count && i < LINES; i++) {
        struct stats_site *s = &sites->list[i];

        if (s->address)
            (void)chempi_source_line(s->file, s->address, s->place,
                                     sizeof(s->place));
    }
}

static double seconds(uint64_t ns)
{
    return (double)ns / (double)CHEMPI_NS_PER_S;
}

void stats_sites_print_text(FILE *file, const struct stats_sites *sites,
                            uint32_t ranks)
{
    (void)fprintf(
        file, "\n%-32s %-26s %12s %16s %12s %10s%s %6s\n", "operation",
        "called from", "calls", "bytes", "seconds", "us a call",
        ranks > 1 ? "    least of      mean     most of a rank" : "", "ranks");
    for (size_t i = 0; i < sites->count; i++) {
        const struct stats_site *s = &sites->list[i];

        (void)fprintf(
            file, "%-32s %-26s %12" PRIu64 " %16" PRIu64 " %12.6f %10.3f",
            stats_names[s->id], s->place, s->calls, s->bytes,
            seconds(s->time_ns), seconds(s->time_ns) * 1e6 / (double)s->calls);
        if (ranks > 1)
            (void)fprintf(file, " %11.6f %9.6f %16.6f", seconds(s->least_ns),
                          seconds(s->time_ns) / ranks, seconds(s->most_ns));
        (void)fprintf(file, " %6u\n", s->ranks);
    }
}

void stats_sites_print_json(struct chempi_json *j,
                            const struct stats_sites *sites)
{
    chempi_json_open_list(j, "sites");
    for (size_t i = 0; i < sites->count; i++) {
        const struct stats_site *s = &sites->list[i];

        chempi_json_open(j, NULL);
        chempi_json_text(j, "operation", stats_names[s->id]);
        chempi_json_text(j, "from", s->place);
        chempi_json_number(j, "calls", s->calls);
        chempi_json_number(j, "bytes", s->bytes);
        chempi_json_decimal(j, "seconds", s->time_ns, 9);
        chempi_json_decimal(j, "seconds_least", s->least_ns, 9);
        chempi_json_decimal(j, "seconds_most", s->most_ns, 9);
        chempi_json_number(j, "ranks", s->ranks);
        chempi_json_close(j);
    }
    chempi_json_close_list(j);
}
