/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings or single copies, for exchanges of large blocks: which is faster
 * depends on the size, the number of members, how far apart cores are, and what
 * the kernel takes to look pages up. With 170 ns from core to core four members
 * exchanged blocks of 64 KiB in 44 us by copies, and in 77 us through rings. So
 * the first member of a communicator, for whose word all others wait anyway,
 * measures what either takes, and chooses.
 *
 *   -   of CHEMPI_WAY_EVERY exchanges of a class of sizes and numbers of
 *       members four take the way that is not chosen, and the medians of the
 *       last three of each way are compared: one that was disturbed does not
 *       decide, nor the first of the four. The other way must be better by an
 *       eighth. At first all are copied, which needs no memory; the trials come
 *       when pages and places have been looked up (of blocks of 64 KiB the
 *       first copies took two to ten times as long as the twentieth)
 *   -   exchanges that do not fit the caches have no choice, nor has a crowd of
 *       more than four members for each processor: they go through rings (eight
 *       members on two cores exchanged blocks of 1 MiB in 9.2 ms so, and in
 *       11.7 by copies; sixteen of 16 KiB in 0.55 and 0.6 ms)
 *   -   the classes are the process's, so that a new communicator knows what
 *       others have learnt
 *   -   what one takes is the time until the next one, as a member may be
 *       through long before others are. So whoever computes in between measures
 *       that, too: where it is long, the way matters little. Blocking exchanges
 *       and those that are waited for later learn apart
 *   -   it is advice. Threads may lose each other's times
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_COPY_WAY_CHOICE_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_COPY_WAY_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

enum { CHEMPI_WAY_EVERY = 256 };

/* An exchange of blocks of about so many bytes, at one member. */
struct chempi_way_exchange {
    uint64_t block_len;
    int members;
    bool is_later;
};

/* Does it have a choice? */
bool chempi_way_is_open(const struct chempi_way_exchange *x);

/* Shall this one, which is counted, go through rings? */
bool chempi_way_is_rings(const struct chempi_way_exchange *x);

/* What it has taken, by the way that it went. */
void chempi_way_note(const struct chempi_way_exchange *x, bool by_rings,
                     uint64_t took_ns);

#endif
