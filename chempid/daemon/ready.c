/* SPDX-License-Identifier: BSD-3-Clause */
/* Ready files, read when they change; see ready.h. */
#define _GNU_SOURCE /* CLOCK_REALTIME_COARSE */
#include "chempid/daemon/ready.h"

#include <sys/stat.h>

#include "common/base/clock.h"

/* What comes within a tick of the file systems' clock may not be seen in the
 * directory's time. */
#define SETTLE_NS (100 * CHEMPI_NS_PER_MS)
#define MISSES_MAX 64u /* then all files are read */

static bool is_equal(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_long_ago(const struct timespec *t)
{
    struct timespec now;
    int64_t ns;

    if (clock_gettime(CLOCK_REALTIME_COARSE, &now) < 0)
        return false;
    ns = (now.tv_sec - t->tv_sec) * INT64_C(1000000000) + now.tv_nsec -
         t->tv_nsec;
    return ns > (int64_t)SETTLE_NS;
}

void chempi_ready_look(struct chempi_ready *ready, const char *dir)
{
    struct stat st;
    const bool is_there = stat(dir, &st) == 0;

    if (is_there && ready->is_settled && is_equal(&st.st_mtim, &ready->changed))
        return;
    chempi_ready_fini(ready);
    ready->is_settled = is_there && is_long_ago(&st.st_mtim);
    if (is_there)
        ready->changed = st.st_mtim;
}

const struct chempi_member *chempi_ready_find(struct chempi_ready *ready,
                                              const char *dir, const char *node)
{
    const struct chempi_member *m = chempi_members_find(&ready->list, node);

    if (m || ready->is_whole)
        return m;
    if (ready->misses == MISSES_MAX)
        return chempi_members_find(chempi_ready_all(ready, dir), node);
    chempi_members_seek(&ready->list, dir, node);
    m = chempi_members_find(&ready->list, node);
    ready->misses += !m;
    return m;
}

const struct chempi_members *chempi_ready_all(struct chempi_ready *ready,
                                              const char *dir)
{
    if (!ready->is_whole) {
        chempi_members_fini(&ready->list); /* in order, then */
        chempi_members_scan(&ready->list, dir);
        ready->is_whole = true;
    }
    return &ready->list;
}

void chempi_ready_fini(struct chempi_ready *ready)
{
    chempi_members_fini(&ready->list);
    ready->misses = 0;
    ready->is_settled = ready->is_whole = false;
}
