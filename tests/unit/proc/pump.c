/* SPDX-License-Identifier: BSD-3-Clause */
/* A process without a job; see pump.h. */
#define _GNU_SOURCE /* opendir */
#include "tests/unit/proc/pump.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>

#include "common/base/clock.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/services/pollset.h"

#define PATIENCE_NS (UINT64_C(60) * CHEMPI_NS_PER_S) /* a broken test ends */

void pump_open(void)
{
    cr_assert_eq(chempi_pollset_create(&chempi_ctx.services.pollset), 0);
}

void pump_close(void)
{
    cr_assert(chempi_pollset_is_empty(chempi_ctx.services.pollset));
    chempi_pollset_destroy(chempi_ctx.services.pollset);
    chempi_ctx.services.pollset = NULL;
}

void pump(int wait_ms)
{
    struct chempi_pollset *set = chempi_ctx.services.pollset;

    if (chempi_pollset_collect(set, wait_ms) > 0)
        (void)chempi_pollset_dispatch(set);
}

bool pump_until(pump_done_fn *done, void *arg)
{
    const uint64_t end = chempi_clock_ns() + PATIENCE_NS;

    while (!done(arg)) {
        if (chempi_clock_ns() > end)
            return false;
        pump(20);
    }
    return true;
}

static bool is_decided(void *arg)
{
    return chempi_exchange_state(arg, NULL) != 0;
}

int pump_state(struct chempi_exchange *x, struct chempi_err *err)
{
    cr_assert(pump_until(is_decided, x));
    return chempi_exchange_state(x, err);
}

struct taking {
    struct chempi_exchange *x;
    void *data;
    size_t len;
    int rc;
};

static bool has_taken(void *arg)
{
    struct taking *t = arg;

    t->rc = chempi_exchange_take(t->x, &t->data, &t->len, NULL);
    return t->rc != -EAGAIN;
}

void *pump_take(struct chempi_exchange *x, size_t *len)
{
    struct taking t = {.x = x};

    cr_assert(pump_until(has_taken, &t));
    *len = t.rc ? 0 : t.len;
    return t.rc ? NULL : t.data;
}

void pump_set_patience(unsigned ms)
{
    atomic_store(&chempi_setting_values[CHEMPI_SET_MEET_PATIENCE], ms);
}

size_t pump_count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;

    cr_assert_not_null(dir);
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}
