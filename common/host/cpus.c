/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of processors; see cpus.h. */
#define _GNU_SOURCE /* sched_setaffinity, CPU_SET_S */
#include "common/host/cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "common/base/number.h"

uint32_t chempi_cpus_count(const struct chempi_cpus *cpus)
{
    uint32_t count = 0;

    for (size_t i = 0; i < sizeof(cpus->bits); i++)
        for (uint32_t bits = cpus->bits[i]; bits; bits &= bits - 1)
            count++;
    return count;
}

/* ---- lists --------------------------------------------------------------- */

int chempi_cpus_scan(const char **text, struct chempi_cpus *cpus)
{
    struct chempi_cpus found = {{0}};
    uint32_t first;
    uint32_t last;

    for (;; ++*text) {
        if (!chempi_number_scan_range(text, CHEMPI_CPUS_MAX - 1, &first, &last))
            return -EINVAL;
        while (first <= last)
            chempi_cpus_add(&found, first++);
        if (**text != ',')
            break;
    }
    *cpus = found;
    return 0;
}

int chempi_cpus_parse(const char *text, struct chempi_cpus *cpus)
{
    struct chempi_cpus found;

    if (chempi_cpus_scan(&text, &found) || (*text && strcmp(text, "\n") != 0))
        return -EINVAL;
    *cpus = found;
    return 0;
}

bool chempi_cpus_format(const struct chempi_cpus *cpus, char *text, size_t size)
{
    size_t len = 0;

    text[0] = '\0';
    for (uint32_t cpu = 0; cpu < CHEMPI_CPUS_MAX; cpu++) {
        const uint32_t first = cpu;
        char range[32];
        int n;

        if (!chempi_cpus_has(cpus, cpu))
            continue;
        while (cpu + 1 < CHEMPI_CPUS_MAX && chempi_cpus_has(cpus, cpu + 1))
            cpu++;
        n = snprintf(range, sizeof(range), "%s%u", len ? "," : "", first);
        if (cpu > first)
            n += snprintf(range + n, sizeof(range) - (size_t)n, "-%u", cpu);
        if (len + (size_t)n >= size)
            return false;
        memcpy(text + len, range, (size_t)n + 1);
        len += (size_t)n;
    }
    return true;
}

/* ---- the kernel's -------------------------------------------------------- */

int chempi_cpus_get_of(int tid, struct chempi_cpus *cpus)
{
    cpu_set_t set[CHEMPI_CPUS_MAX / CPU_SETSIZE];
    const size_t size = sizeof(set);
    int left = 0;
    int rc = 0;

    if (sched_getaffinity(tid, size, set) < 0)
        rc = -errno;
    else
        left = CPU_COUNT_S(size, set);
    memset(cpus, 0, sizeof(*cpus));
    for (uint32_t cpu = 0; left > 0; cpu++)
        if (CPU_ISSET_S(cpu, size, set)) {
            chempi_cpus_add(cpus, cpu);
            left--;
        }
    return rc;
}

int chempi_cpus_get(struct chempi_cpus *cpus)
{
    return chempi_cpus_get_of(0, cpus);
}

int chempi_cpus_set(int tid, const struct chempi_cpus *cpus)
{
    cpu_set_t set[CHEMPI_CPUS_MAX / CPU_SETSIZE];
    const size_t size = sizeof(set);
    uint32_t left = chempi_cpus_count(cpus);

    CPU_ZERO_S(size, set);
    for (uint32_t cpu = 0; left > 0; cpu++)
        if (chempi_cpus_has(cpus, cpu)) {
            CPU_SET_S(cpu, size, set);
            left--;
        }
    return sched_setaffinity(tid, size, set) < 0 ? -errno : 0;
}
