/* SPDX-License-Identifier: BSD-3-Clause */
/* The processors of this process; see affinity.h. */
#define _GNU_SOURCE /* sched_getcpu */
#include "libchempi/didl/locality/affinity.h"

#include <dirent.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/number.h"
#include "common/control/client.h"
#include "common/host/cpus.h"

static struct {
    bool is_roomy;
    uint32_t cores;
    uint32_t cores_each;
    _Atomic bool is_own; /* a thread may begin while another one waits */
    struct chempi_cpus own;
    struct chempi_cpus all;
} affinity;

static bool read_list(const char *variable, struct chempi_cpus *cpus)
{
    const char *text = getenv(variable);

    return text && chempi_cpus_parse(text, cpus) == 0;
}

static uint32_t read_number(const char *variable, uint32_t otherwise)
{
    const char *text = getenv(variable);
    uint32_t value = otherwise;

    if (text)
        (void)chempi_number_parse32(text, 1, UINT32_MAX, &value);
    return value;
}

static bool is_same(const struct chempi_cpus *a, const struct chempi_cpus *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

void chempi_affinity_init(uint32_t procs)
{
    const bool has_own = read_list(CHEMPI_CPUS_ENV, &affinity.own);
    const bool has_all = read_list(CHEMPI_HOST_CPUS_ENV, &affinity.all);
    struct chempi_cpus now;
    uint32_t cores = 1;

    procs = read_number(CHEMPI_HOST_SIZE_ENV, procs);
    affinity.is_own = false;
    if (chempi_cpus_get(&now) == 0) {
        affinity.is_own = has_own && has_all && is_same(&now, &affinity.own);
        cores = chempi_cpus_count(
            has_all && (affinity.is_own || !has_own) ? &affinity.all : &now);
    }
    affinity.cores = cores;
    affinity.cores_each = procs > 0 ? cores / procs : cores;
    affinity.is_roomy = procs <= cores;
}

uint32_t chempi_affinity_cores(void)
{
    return affinity.cores;
}

uint32_t chempi_affinity_cores_each(void)
{
    return affinity.cores_each;
}

bool chempi_affinity_is_roomy(void)
{
    return affinity.is_roomy;
}

bool chempi_affinity_is_own(void)
{
    return atomic_load_explicit(&affinity.is_own, memory_order_relaxed);
}

/* Threads that there are, unless they have chosen others by themselves; those
 * to come inherit it from theirs. */
static void widen_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    const struct dirent *e;

    (void)chempi_cpus_set(0, &affinity.all); /* else all stays as it is */
    while (dir && (e = readdir(dir))) {
        const int tid = atoi(e->d_name);
        struct chempi_cpus now;

        if (tid > 0 && chempi_cpus_get_of(tid, &now) == 0 &&
            is_same(&now, &affinity.own))
            (void)chempi_cpus_set(tid, &affinity.all); /* it may have ended */
    }
    if (dir)
        (void)closedir(dir); /* read only */
}

void chempi_affinity_widen(void)
{
    const bool was_own = chempi_affinity_is_own();
    struct chempi_cpus now;

    affinity.is_own = false;
    if (was_own && chempi_cpus_count(&affinity.own) == 1 &&
        chempi_cpus_get(&now) == 0 && is_same(&now, &affinity.own))
        widen_threads();
}

/* Leave for some of the processors that this thread may run on. */
static bool go(const struct chempi_cpus *may, const struct chempi_cpus *there)
{
    return chempi_cpus_set(0, there) == 0 && chempi_cpus_set(0, may) == 0;
}

bool chempi_affinity_go(const struct chempi_cpus *may, uint32_t cpu)
{
    struct chempi_cpus one = {{0}};

    chempi_cpus_add(&one, cpu);
    return go(may, &one);
}

void chempi_affinity_part(void)
{
    const int here = sched_getcpu();
    struct chempi_cpus may;
    struct chempi_cpus others;

    if (here < 0 || (uint32_t)here >= CHEMPI_CPUS_MAX ||
        chempi_cpus_get(&may) != 0 || !chempi_cpus_has(&may, (uint32_t)here))
        return;
    others = may;
    others.bits[here / 8] &= (uint8_t) ~(1u << (here % 8));
    if (chempi_cpus_count(&others) > 0)
        (void)go(&may, &others);
}

void chempi_affinity_free_thread(void)
{
    if (chempi_affinity_is_own())
        (void)chempi_cpus_set(0, &affinity.all); /* else it stays beside */
}
