/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at how far cores are (distance.h), counted: for programs that are
 * linked with these in place of the library's. */
#ifndef CHEMPI_TESTS_MPI_INSIDE_LOOKS_H
#define CHEMPI_TESTS_MPI_INSIDE_LOOKS_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "libchempi/didl/coll/node/cores/distance.h"

static struct {
    uint64_t since_ns; /* 0: none counts */
    int count;         /* of those at what was written since then */
} looks;

static void count_look(uint64_t wrote_ns)
{
    looks.count += looks.since_ns != 0 && wrote_ns >= looks.since_ns &&
                   wrote_ns <= chempi_clock_ns();
}

typedef void look_fn(const struct chempi_yield_policy *policy, int member,
                     uint64_t wrote_ns, const void *word);
typedef void look_at_time_fn(const struct chempi_yield_policy *policy,
                             int member, const _Atomic uint64_t *wrote_ns);
look_fn __real_chempi_distance_look;
look_fn __wrap_chempi_distance_look;
look_at_time_fn __real_chempi_distance_look_at_time;
look_at_time_fn __wrap_chempi_distance_look_at_time;

void __wrap_chempi_distance_look(const struct chempi_yield_policy *policy,
                                 int member, uint64_t wrote_ns,
                                 const void *word)
{
    count_look(wrote_ns);
    __real_chempi_distance_look(policy, member, wrote_ns, word);
}

void __wrap_chempi_distance_look_at_time(
    const struct chempi_yield_policy *policy, int member,
    const _Atomic uint64_t *wrote_ns)
{
    count_look(atomic_load(wrote_ns));
    __real_chempi_distance_look_at_time(policy, member, wrote_ns);
}

#endif
