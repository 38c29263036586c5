/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where members run that copy for long, if ranks outnumber cores. The kernel
 * wakes a member on the core where it slept, or on the waker's, and evens loads
 * out only when all of them have been busy for milliseconds: of 16 members that
 * copy a megabyte each, 5 to 13 are found on one of two cores, which ends long
 * after the other one. So members count before the operation who runs where, by
 * what they have said (yield_policy.h), and whoever is beyond a core's fair
 * share, in the order of ranks, goes to a core that has less than its own.
 *
 *   -   all count alike; those who have found different things may take the
 * same place, and the next operation mends that
 *   -   it is no more than a beginning: the thread's mask is what it was, and
 *       during the operation the kernel moves threads as it likes. It may have
 *       reasons that members do not know of, so who has looked for another core
 *       does not do so again for some operations
 *   -   to the kernel the mask is one that somebody has set from then on: it
 *       does not grow with the set of processors that a container is given
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_PLACEMENT_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_PLACEMENT_H

#include "common/host/cpus.h"
#include "libchempi/didl/coll/node/cores/yield_policy.h"

/* Before a member takes part in an operation that is longer than a move, which
 * takes some 10 to 100 us. By any thread. */
void chempi_placement_even_out(struct chempi_yield_policy *policy);

/* The core, of those that it may run on, where this member should run. */
uint32_t chempi_placement_choose(const struct chempi_yield_policy *policy,
                                 const struct chempi_cpus *may);

#endif
