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

#endif
