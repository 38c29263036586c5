/* SPDX-License-Identifier: BSD-3-Clause */
/* Counting; see cost.h. The linker puts these functions in the place of the C
 * library's (--wrap) for all code of the program. */
#define _GNU_SOURCE /* clock_gettime */
#include "bench/scale/cost.h"

#include <malloc.h>
#include <stddef.h>
#include <time.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *ptr, size_t size);
void __real_free(void *ptr);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
void __wrap_free(void *ptr);
void __sanitizer_cov_trace_pc(void);

static struct {
    uint64_t steps;
    uint64_t allocations;
    uint64_t live;
    uint64_t peak;
} now;

/* ---- what is counted ---- */

static void *added(void *ptr)
{
    if (ptr) {
        now.allocations++;
        now.live += malloc_usable_size(ptr);
        if (now.live > now.peak)
            now.peak = now.live;
    }
    return ptr;
}

void *__wrap_malloc(size_t size)
{
    return added(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return added(__real_calloc(n, size));
}

void *__wrap_realloc(void *ptr, size_t size)
{
    const size_t before = ptr ? malloc_usable_size(ptr) : 0;
    void *moved = __real_realloc(ptr, size);

    if (moved)
        now.live -= before;
    return added(moved);
}

void __wrap_free(void *ptr)
{
    if (ptr)
        now.live -= malloc_usable_size(ptr);
    __real_free(ptr);
}

/* The compiler calls it in each basic block (-fsanitize-coverage=trace-pc). */
void __sanitizer_cov_trace_pc(void)
{
    now.steps++;
}

/* ---- a piece of code ---- */

static uint64_t clock_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void cost_begin(struct cost *cost)
{
    now.peak = now.live;
    *cost = (struct cost){.steps = now.steps,
                          .allocations = now.allocations,
                          .peak = now.live,
                          .kept = now.live};
    cost->ns = clock_ns();
}

/* What was there before may have been given back. */
static uint64_t above(uint64_t value, uint64_t before)
{
    return value > before ? value - before : 0;
}

void cost_end(struct cost *cost)
{
    cost->ns = clock_ns() - cost->ns;
    cost->steps = now.steps - cost->steps;
    cost->allocations = now.allocations - cost->allocations;
    cost->peak = above(now.peak, cost->peak);
    cost->kept = above(now.live, cost->kept);
}
