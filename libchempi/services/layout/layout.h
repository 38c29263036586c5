/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compiled layouts: where the packed bytes of one element lie in memory. A
 * layout is a tree of immutable nodes, shared by reference, in a normal form
 * that the iterator walks fast and can enter at any byte:
 *
 *   BLOCK    `size` consecutive bytes
 *   STRIDED  `count` copies of child, `stride` bytes apart
 *   INDEXED  `count` copies of child at base + offsets[i]
 *   RUNS     `count` blocks at base + offsets[i] of starts[i + 1] - starts[i]
 *            bytes; starts[i] is the packed position
 *   PARTS    `count` different children at base + offsets[i], packed positions
 *            as in RUNS
 *
 *   L1  every node but an empty root has size > 0 and count >= 2
 *   L2  among the blocks of one list no two neighbours in packed order are
 *       neighbours in memory: they are merged
 *   L3  a list of equally long blocks at equal distances is STRIDED, of
 *       equally long blocks INDEXED, any other list of blocks RUNS
 *   L4  displacements of a node's children are relative to the node's base,
 *       to which `offset` is added first
 *   L5  sizes and displacements fit 63 bits (constructors answer NULL)
 *   L6  a tree is at most CHEMPI_LAYOUT_DEPTH_MAX deep; a deeper one is
 *       written out as a list of blocks
 *
 * chempi_layout_check() looks at L1, L2, L5 and L6 of one node, since many
 * nodes share what is below them; constructors' callers check each.
 */
#ifndef CHEMPI_LIBCHEMPI_SERVICES_LAYOUT_H
#define CHEMPI_LIBCHEMPI_SERVICES_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define CHEMPI_LAYOUT_DEPTH_MAX 64

enum chempi_layout_kind {
    CHEMPI_LAYOUT_BLOCK,
    CHEMPI_LAYOUT_STRIDED,
    CHEMPI_LAYOUT_INDEXED,
    CHEMPI_LAYOUT_RUNS,
    CHEMPI_LAYOUT_PARTS
};

struct chempi_layout_node {
    _Atomic uint32_t refs;
    uint16_t kind;   /* enum chempi_layout_kind */
    uint16_t depth;  /* levels below and including this one; BLOCK, RUNS: 1 */
    uint64_t size;   /* packed bytes */
    int64_t offset;  /* bytes, added to the base on entry */
    uint64_t count;  /* of children or runs; 1 for BLOCK */
    int64_t stride;  /* STRIDED: bytes */
    uint64_t blocks; /* contiguous runs in all (saturates) */
    const struct chempi_layout_node *child;           /* STRIDED, INDEXED */
    const int64_t *offsets;                           /* [count] */
    const uint64_t *starts;                           /* [count + 1] */
    const struct chempi_layout_node *const *children; /* PARTS: [count] */
};

/* One element of a datatype: a tree and the distance to the next element. */
struct chempi_layout {
    uint64_t size;  /* packed bytes of one element */
    int64_t extent; /* bytes from one element to the next */
    const struct chempi_layout_node *root;
};

/*
 * Constructors. Each takes over the references of its children, also when it
 * fails; NULL means out of memory or a size beyond 63 bits. Threads: any.
 */

/* len bytes at displacement offset; len 0 is the empty layout. */
const struct chempi_layout_node *chempi_layout_block(int64_t offset,
                                                     uint64_t len);

/* child moved by offset bytes. */
const struct chempi_layout_node *
chempi_layout_shift(const struct chempi_layout_node *child, int64_t offset);

/* count copies of child, stride bytes apart. */
const struct chempi_layout_node *
chempi_layout_repeat(const struct chempi_layout_node *child, uint64_t count,
                     int64_t stride);

/* count copies of child at offsets[i]. The array stays the caller's. */
const struct chempi_layout_node *
chempi_layout_indexed(const struct chempi_layout_node *child, uint64_t count,
                      const int64_t *offsets);

/* lens[i] bytes at offsets[i], in this order. The arrays stay the caller's. */
const struct chempi_layout_node *chempi_layout_blocks(uint64_t count,
                                                      const int64_t *offsets,
                                                      const uint64_t *lens);

/* children[i] at offsets[i], in this order. The arrays stay the caller's. */
const struct chempi_layout_node *
chempi_layout_join(uint64_t count, const int64_t *offsets,
                   const struct chempi_layout_node *const *children);

const struct chempi_layout_node *
chempi_layout_hold(const struct chempi_layout_node *node);
void chempi_layout_release(const struct chempi_layout_node *node);

/* The child (or run) of a list in which packed position pos lies, and where it
 * begins; on every way into a tree. */
static inline uint64_t
chempi_layout_child(const struct chempi_layout_node *node, uint64_t pos,
                    uint64_t *start)
{
    uint64_t low = 0;
    uint64_t high = node->count;

    if (!node->starts) {
        low = pos / node->child->size;
        *start = low * node->child->size;
        return low;
    }
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;

        if (node->starts[middle] <= pos)
            low = middle;
        else
            high = middle;
    }
    *start = node->starts[low];
    return low;
}

/* NULL, or what does not hold (invariant.h). Linear in its children. */
const char *chempi_layout_check(const struct chempi_layout_node *node);

#endif
