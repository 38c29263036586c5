/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What registering memory costs, in the layout of table 1 of "Reliably locking
 * VIA memory", ours beside theirs, and how often the registration cache saves
 * it. No MPI: the adapter and the cache alone.
 *
 *   bench-registration [PERSONALITY]   a file, for the column "model"
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/clock.h"
#include "libchempi/devices/scivia/adapter/memory/lmm.h"
#include "libchempi/devices/scivia/adapter/via/via.h"
#include "libchempi/services/registration/regcache.h"

#define KIB ((size_t)1024)
#define MIB (KIB * KIB)
#define PAGE ((size_t)4096)
#define TRIES 15
#define STEPS 400u
#define BUFFERS_MAX 64u
#define BUFFERS_FIT 16u /* in the patterns' budget */

/* 450 MHz Pentium III, us. */
static const struct {
    size_t kib;
    double register_us;
    double deregister_us;
} papers[] = {
    {4, 6.7, 3.5},       {8, 8.0, 3.8},     {16, 10.7, 4.4},
    {32, 16.4, 5.8},     {64, 27.8, 8.7},   {128, 49.7, 14.2},
    {256, 92.8, 25.9},   {512, 185, 47.5},  {1024, 366, 103},
    {2048, 734, 203},    {4096, 1493, 381}, {8192, 2987, 817},
    {16384, 5856, 1666},
};

_Noreturn static void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench-registration: %s: %s\n", what, why);
    exit(1);
}

static char *map(size_t len)
{
    char *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        fail("mmap", "no memory");
    return at;
}

static double us_since(uint64_t start_ns)
{
    return (double)(chempi_clock_ns() - start_ns) / 1000.0;
}

static void keep_least(double *least, double value)
{
    if (value < *least)
        *least = value;
}

/* --- one card with a cache, as the device has them --- */

struct bench {
    struct chempi_adapter *adapter;
    struct chempi_memory *memory;
    struct chempi_memory_user user;
    struct chempi_regcache cache;
    uint32_t ptag;
};

static int enter(void *arg, uintptr_t start, size_t len, uint32_t access,
                 uint32_t *handle)
{
    struct bench *b = arg;

    return chempi_via_register(b->adapter, (const void *)start, len, b->ptag,
                               access, handle);
}

static void leave(void *arg, uint32_t handle)
{
    (void)chempi_via_deregister(((struct bench *)arg)->adapter, handle);
}

static void lost(void *arg, uint32_t handle)
{
    (void)chempi_via_lost(((struct bench *)arg)->adapter, handle);
}

static uint64_t room(void *arg)
{
    struct chempi_lmm *lmm = chempi_adapter_lmm(((struct bench *)arg)->adapter);

    return chempi_lmm_budget(lmm) - chempi_lmm_locked_bytes(lmm);
}

static const struct chempi_regcache_ops ops = {
    .enter = enter, .leave = leave, .lost = lost, .room = room};

static void gone(struct chempi_memory_user *user, uintptr_t start,
                 uintptr_t end)
{
    struct bench *b = CHEMPI_CONTAINER_OF(user, struct bench, user);

    chempi_regcache_gone(&b->cache, start, end);
}

static void held(struct chempi_memory_user *user, uintptr_t start,
                 uintptr_t end)
{
    struct bench *b = CHEMPI_CONTAINER_OF(user, struct bench, user);

    chempi_regcache_held(&b->cache, start, end);
}

static void share(struct chempi_memory_user *user)
{
    (void)user;
}

static const struct chempi_memory_events events = {
    .gone = gone, .held = held, .share = share};

static void open_bench(struct bench *b, const struct chempi_personality *model,
                       uint64_t budget)
{
    const struct chempi_adapter_params params = {.personality = model,
                                                 .lock_budget_bytes = budget};
    struct chempi_err err = {.text = ""};

    memset(b, 0, sizeof(*b));
    if (chempi_adapter_open(&params, &b->adapter, &err) < 0 ||
        chempi_via_ptag_create(b->adapter, &b->ptag) < 0)
        fail("opening the adapter", err.text);
    if (chempi_memory_create(CHEMPI_MEMORY_UNLIMITED, &b->memory) < 0)
        fail("opening the cache", "no memory");
    b->user.events = &events;
    chempi_regcache_init(&b->cache, &ops, b, b->memory, 256);
    chempi_memory_join(b->memory, &b->user);
}

static void close_bench(struct bench *b)
{
    chempi_regcache_fini(&b->cache);
    chempi_memory_leave(b->memory, &b->user);
    chempi_memory_destroy(b->memory);
    chempi_adapter_close(b->adapter);
}

/* --- table 1 --- */

struct cost {
    double fresh_us; /* pages that nobody has touched */
    double register_us;
    double deregister_us;
    double found_us; /* in the cache */
};

static void measure(struct bench *b, size_t len, struct cost *cost)
{
    uint32_t handle = 0;
    uint64_t start_ns;

    *cost = (struct cost){1e9, 1e9, 1e9, 1e9};
    for (int i = 0; i < TRIES; i++) {
        char *at = map(len);

        chempi_memory_hear(b->memory); /* of the last buffer's end */
        for (int k = 0; k < 2; k++) {
            start_ns = chempi_clock_ns();
            if (enter(b, (uintptr_t)at, len, 0, &handle) < 0)
                fail("registering", chempi_adapter_words(b->adapter)->text);
            keep_least(k ? &cost->register_us : &cost->fresh_us,
                       us_since(start_ns));
            start_ns = chempi_clock_ns();
            leave(b, handle);
            keep_least(&cost->deregister_us, us_since(start_ns));
        }
        chempi_regcache_put(&b->cache,
                            chempi_regcache_get(&b->cache, at, len, 0));
        start_ns = chempi_clock_ns();
        chempi_regcache_put(&b->cache,
                            chempi_regcache_get(&b->cache, at, len, 0));
        keep_least(&cost->found_us, us_since(start_ns));
        (void)munmap(at, len);
    }
}

static void print_row(size_t i, uint64_t most, struct bench *ours,
                      struct bench *modelled)
{
    size_t len = papers[i].kib * KIB;
    struct cost cost;

    (void)printf("%9zu  %8.1f %10.1f", papers[i].kib, papers[i].register_us,
                 papers[i].deregister_us);
    if (len > most) {
        (void)printf("   more than may be locked (\"ulimit -l\")\n");
        return;
    }
    measure(ours, len, &cost);
    (void)printf("   %8.1f %11.1f %10.1f %6.2f", cost.register_us,
                 cost.fresh_us, cost.deregister_us, cost.found_us);
    if (modelled) {
        measure(modelled, len, &cost);
        (void)printf("   %8.1f %10.1f", cost.register_us, cost.deregister_us);
    }
    (void)printf("\n");
    (void)fflush(stdout);
}

/* Returns how much may be locked, bytes. */
static uint64_t print_costs(const struct chempi_personality *model)
{
    struct bench ours;
    struct bench modelled;
    uint64_t most;

    open_bench(&ours, NULL, UINT64_MAX);
    most = room(&ours);
    if (model)
        open_bench(&modelled, model, UINT64_MAX);
    (void)printf("Times for memory registration/deregistration (us)\n\n"
                 "           LMM table 1           ours, free clock%s\n"
                 "Size (KB)  register deregister   register (untouched) "
                 "deregister  found%s\n",
                 model ? "                          model" : "",
                 model ? "   register deregister" : "");
    for (size_t i = 0; i < sizeof(papers) / sizeof(papers[0]); i++)
        print_row(i, most, &ours, model ? &modelled : NULL);
    if (model)
        close_bench(&modelled);
    close_bench(&ours);
    return most;
}

/* --- hit rates --- */

/* The plain policy for comparison: the buffers last used are kept. */
struct lru {
    const char *at[BUFFERS_MAX]; /* latest first */
    size_t count;
    uint64_t hits;
};

static void use_lru(struct lru *lru, const char *at, size_t room_for)
{
    size_t i = 0;

    while (i < lru->count && lru->at[i] != at)
        i++;
    if (i < lru->count)
        lru->hits++;
    else if (lru->count < room_for)
        i = lru->count++;
    else
        i = lru->count - 1;
    memmove(&lru->at[1], &lru->at[0], i * sizeof(lru->at[0]));
    lru->at[0] = at;
}

struct pattern {
    const char *text;
    uint32_t hot;    /* buffers used again and again, in turn */
    uint32_t stream; /* further ones, one of them after each hot one */
    uint32_t held;   /* of the hot ones, of persistent requests */
    bool is_new;     /* the stream's are mapped anew each time */
    bool is_malloc;  /* from the heap, freed after each use */
};

static const struct pattern patterns[] = {
    {.text = "one buffer", .hot = 1},
    {.text = "8 buffers in turn", .hot = 8},
    {.text = "24 buffers in turn, 15 fit", .hot = 24},
    {.text = "12 buffers, 40 others between", .hot = 12, .stream = 40},
    {.text = "12 persistent, 40 others between",
     .hot = 12,
     .stream = 40,
     .held = 12},
    {.text = "12 buffers, new ones between",
     .hot = 12,
     .stream = 1,
     .is_new = true},
    {.text = "malloc and free each time", .hot = 1, .is_malloc = true},
    {.text = "mapped anew each time", .stream = 1, .is_new = true},
};

/* Bytes of a buffer: as many as leave room for all that are to fit. */
static size_t buffer_bytes(uint64_t most)
{
    size_t len = MIB;

    while (len > PAGE && len > most / BUFFERS_FIT)
        len /= 2;
    return len;
}

static double use(struct bench *b, const char *at, size_t len)
{
    uint64_t start_ns = chempi_clock_ns();

    chempi_regcache_put(&b->cache, chempi_regcache_get(&b->cache, at, len, 0));
    return us_since(start_ns);
}

static double use_once(struct bench *b, const struct pattern *p,
                       char *const *buffers, size_t len, uint32_t step,
                       struct lru *lru)
{
    bool is_stream = p->stream && (p->hot == 0 || step % 2);
    uint32_t turn = p->stream && p->hot ? step / 2 : step;
    char *at;
    double us;

    if (p->is_malloc) {
        at = malloc(len);
        us = use(b, at, len);
        free(at);
    } else if (is_stream && p->is_new) {
        at = map(len);
        memset(at, 1, len);
        us = use(b, at, len);
        (void)munmap(at, len);
        at = NULL;
    } else {
        at = buffers[is_stream ? p->hot + turn % p->stream : turn % p->hot];
        us = use(b, at, len);
    }
    use_lru(lru, at ? at : (const char *)(uintptr_t)(step + 1), BUFFERS_FIT);
    return us;
}

static void run_pattern(const struct pattern *p, size_t len)
{
    char *buffers[BUFFERS_MAX] = {NULL};
    struct lru lru = {.count = 0};
    struct bench b;
    double us = 0;

    open_bench(&b, NULL, BUFFERS_FIT * len);
    for (uint32_t i = 0; i < p->hot + p->stream; i++) {
        buffers[i] = map(len);
        memset(buffers[i], 1, len);
        if (i < p->held)
            chempi_memory_hold(b.memory, buffers[i], len);
    }
    for (uint32_t step = 0; step < STEPS; step++)
        us += use_once(&b, p, buffers, len, step, &lru);
    (void)printf("%-34s %6.1f %% %8.1f %% %10.1f %10llu %14llu\n", p->text,
                 100.0 * (double)b.cache.counters.hits / STEPS,
                 100.0 * (double)lru.hits / STEPS, us / STEPS,
                 (unsigned long long)b.cache.counters.evictions,
                 (unsigned long long)b.cache.counters.invalidations);
    (void)fflush(stdout);
    close_bench(&b);
    for (uint32_t i = 0; i < p->hot + p->stream; i++)
        (void)munmap(buffers[i], len);
}

int main(int argc, char **argv)
{
    struct chempi_personality model;
    struct chempi_err err = {.text = ""};
    uint64_t most;
    size_t len;

    if (argc > 2) {
        (void)fprintf(stderr, "usage: bench-registration [PERSONALITY]\n");
        return 2;
    }
    if (argc > 1 && chempi_personality_load(argv[1], &model, &err) < 0)
        fail("model", err.text);
    if (argc > 1 && !model.has_via)
        fail("model", "a card without a VIA half registers no memory");
    /* One size of chunk keeps the heap's memory where it is. */
    (void)mallopt(M_MMAP_THRESHOLD, 32 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 64 << 20);
    most = print_costs(argc > 1 ? &model : NULL);
    if (most < BUFFERS_FIT * PAGE) {
        (void)printf("\nToo little may be locked for a cache.\n");
        return 0;
    }
    len = buffer_bytes(most);
    (void)printf("\nRegistration cache: %u uses of %zu KiB, budget %zu KiB\n\n"
                 "%-34s %8s %10s %10s %10s %14s\n",
                 STEPS, len / KIB, BUFFERS_FIT * len / KIB, "buffers", "hits",
                 "LRU's", "us per use", "evictions", "invalidations");
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
        run_pattern(&patterns[i], len);
    return 0;
}
