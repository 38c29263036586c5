/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a piece of code costs: time, memory, and steps. A step is a basic block
 * that is run of code which is compiled to count them (scale-counted); in
 * other programs there are none.
 */
#ifndef CHEMPI_BENCH_SCALE_COST_H
#define CHEMPI_BENCH_SCALE_COST_H

#include <stdint.h>

struct cost {
    uint64_t ns;
    uint64_t steps;
    uint64_t allocations;
    uint64_t peak; /* bytes at most at a time, besides what was held before */
    uint64_t kept; /* bytes at the end */
};

void cost_begin(struct cost *cost);
void cost_end(struct cost *cost);

#endif
