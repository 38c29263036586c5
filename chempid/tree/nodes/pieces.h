/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a list of nodes is cut for a tree: into pieces of neighbours, all of one
 * length but the last. The first of each piece is told of the others in it, and
 * does the same with them.
 */
#ifndef CHEMPI_CHEMPID_PIECES_H
#define CHEMPI_CHEMPID_PIECES_H

#include <stdint.h>

#define CHEMPI_DAEMON_FANOUT 4u /* daemons that one orders directly */

/* The length of at most `most` pieces; 0: there is nothing to cut. */
static inline uint32_t chempi_pieces_len(uint32_t count, uint32_t most)
{
    return count / most + (count % most != 0);
}

/* The first of the piece in which `i` is. */
static inline uint32_t chempi_pieces_head(uint32_t i, uint32_t len)
{
    return i - i % len;
}

#endif
