/* SPDX-License-Identifier: BSD-3-Clause */
/* Monotonic time. Nanoseconds in 64 bits; never goes back. Thread-safe. */
#ifndef CHEMPI_COMMON_BASE_CLOCK_H
#define CHEMPI_COMMON_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CHEMPI_NS_PER_MS UINT64_C(1000000)
#define CHEMPI_NS_PER_S UINT64_C(1000000000)

static inline uint64_t chempi_clock_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail on Linux */
    return (uint64_t)t.tv_sec * CHEMPI_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Of two times to wait, where a negative one is for ever. */
static inline int chempi_clock_shorter_ms(int a_ms, int b_ms)
{
    if (a_ms < 0)
        return b_ms;
    return b_ms < 0 || a_ms < b_ms ? a_ms : b_ms;
}

#endif
