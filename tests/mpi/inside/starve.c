/* SPDX-License-Identifier: BSD-3-Clause */
/* A memory that runs out; see starve.h. */
#include "tests/mpi/inside/starve.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "libchempi/didl/transport/lane.h"

static struct starve_sizes counted;
static atomic_int left = INT_MAX; /* INT_MAX: as many as one likes */
static atomic_int refused;
static atomic_int given;
static atomic_int refusals; /* still to come, then there is memory again */

struct chempi_sys starve_sys;

static bool is_refused(size_t len)
{
    int n = atomic_load(&left);

    if (len < counted.least && (!counted.also || len != counted.also))
        return false;
    do {
        if (n == INT_MAX)
            return false;
    } while (!atomic_compare_exchange_weak(&left, &n, n > 0 ? n - 1 : 0));
    if (n > 0)
        return false;
    n = atomic_fetch_sub(&refusals, 1);
    if (n == 1)
        atomic_store(&left, INT_MAX);
    if (n <= 0)
        return false; /* another thread's was the last one */
    atomic_fetch_add(&refused, 1);
    errno = ENOMEM;
    return true;
}

static bool is_given(size_t len)
{
    if (is_refused(len))
        return false;
    atomic_fetch_add(&given, 1);
    return true;
}

static void *take(size_t len)
{
    return is_given(len) ? malloc(len) : NULL;
}

static void *take_more(void *p, size_t len)
{
    return is_given(len) ? realloc(p, len) : NULL;
}

static void *take_zeroed(size_t n, size_t len)
{
    return is_given(n * len) ? calloc(n, len) : NULL;
}

void starve_start(struct starve_sizes sizes)
{
    counted = sizes;
    starve_sys = chempi_sys_libc;
    starve_sys.malloc = take;
    starve_sys.realloc = take_more;
    starve_sys.calloc = take_zeroed;
    chempi_sys = &starve_sys;
}

void starve_some(int pieces, int count)
{
    atomic_store(&refusals, count);
    atomic_store(&left, pieces);
}

void starve_one(int pieces)
{
    starve_some(pieces, 1);
}

void starve_all(int pieces)
{
    starve_some(pieces, INT_MAX);
}

void starve_end(void)
{
    atomic_store(&left, INT_MAX);
}

void starve_be_patient(void)
{
    chempi_lane_lock(&chempi_lane_main);
    chempi_shortage_end(&chempi_lane_main.engine.shortage);
    chempi_lane_unlock(&chempi_lane_main);
}

int starve_refused(void)
{
    return atomic_exchange(&refused, 0);
}

int starve_given(void)
{
    return atomic_exchange(&given, 0);
}
