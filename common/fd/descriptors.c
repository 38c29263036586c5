/* SPDX-License-Identifier: BSD-3-Clause */
/* The limit of descriptors; see descriptors.h. */
#include "common/fd/descriptors.h"

#include <sys/resource.h>

enum { KEPT = 64, KEPT_FOR_EACH = 4 };

uint64_t chempi_descriptors_limit(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? 0 : limit.rlim_cur;
}

bool chempi_descriptors_lift(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
        limit.rlim_cur >= limit.rlim_max)
        return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static uint64_t most_of_strangers(uint32_t proc_count)
{
    const uint64_t limit = chempi_descriptors_limit();
    const uint64_t kept = KEPT + KEPT_FOR_EACH * (uint64_t)proc_count;

    return limit - (kept < limit / 4 ? kept : limit / 4);
}

bool chempi_descriptors_are_spare(int fd, uint32_t proc_count)
{
    return (uint64_t)fd < most_of_strangers(proc_count) ||
           (chempi_descriptors_lift() &&
            (uint64_t)fd < most_of_strangers(proc_count));
}
