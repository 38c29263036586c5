/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Walking layouts. A walk is stateless: each call finds its place from
 * iter->position, by a division per strided or indexed level and a binary
 * search per list, then copies whole sub-trees with the kernels below.
 *
 * Each copying function exists once, for both directions; `dir` is a constant
 * wherever it is inlined.
 */
#include "libchempi/services/layout/segment.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/base/copy.h"
#include "libchempi/services/layout/layout.h"

/* Elements of small irregular shape are copied column by column, so that each
 * loop has one block length; a batch stays in the first-level cache. */
#define BATCH_BYTES 8192
#define COLUMNS_MAX 16

/* Longer blocks are worth a call of memcpy. */
#define STEPS_MAX 256

/* Lists of blocks with lines of their own (SPARSE_STRIDE_MIN) that reach beyond
 * the second-level cache (FAR_SPAN_MIN) wait for memory: loops of their own
 * keep more lines under way. doc/datatypes.md has the measurements. */
#define SPARSE_STRIDE_MIN 128 /* bytes */
#define FAR_SPAN_MIN (UINT64_C(2) << 20)

/*
 * Unpacking writes parts of lines, which must be fetched first, and the
 * processor looks less far ahead for stores than for loads. Asking for
 * ownership of a line AHEAD blocks early helps; the shortest blocks only where
 * the list is far.
 */
#define AHEAD 8
#define AHEAD_LEN_MIN 16

/*
 * A far list is packed from STREAMS places at a time, and one that is longer
 * than caches (STREAMS_LIST_MIN) unpacked where blocks are not the shortest:
 * the processor has more lines under way than in a single sequence of equal
 * strides.
 */
#define STREAMS 4
#define STREAMS_LIST_MIN 65536 /* blocks */
#define STREAMS_BLOCKS_MIN 64
#define STREAMS_SKEW 2 /* blocks */
#define STREAMS_AHEAD 4

/*
 * The first-level cache repeats its sets every SETS_BYTES: blocks whose
 * distance is a multiple of a high power of two share few of them. A processor
 * that runs ahead with stores (of STORE_BYTES each) asks for more lines at a
 * time than these sets hold, which throw each other out before they are used;
 * where the sets times the stores of a block are more than SETS_STORES, it does
 * not get so far ahead. So such blocks, if they are more than the sets hold,
 * are unpacked SETS_BLOCKS at a time, and the next not before the caches have
 * these. Lines of lists beyond SETS_LIST_MAX come from memory: it should be
 * asked for more of them at a time.
 */
#define SETS_BYTES 4096
#define SETS_STORES 8
#define SETS_WAYS 8 /* at least */
#define SETS_BLOCKS 16
#define SETS_LIST_MAX 32768 /* blocks */
#define STORE_BYTES 16

enum direction { PACK, UNPACK };

/* mem may be null: absolute displacements from MPI_BOTTOM. */
CHEMPI_INLINE char *at(char *mem, int64_t offset)
{
    return (char *)((uintptr_t)mem + (uintptr_t)offset);
}

CHEMPI_INLINE void move(char *mem, char *packed, size_t len, enum direction dir)
{
    if (dir == PACK)
        chempi_copy(packed, mem, len);
    else
        chempi_copy(mem, packed, len);
}

/* ---- kernels: n blocks of one length ---- */

/* head and tail cover the block and may overlap in it. */
CHEMPI_INLINE void move_pair(char *mem, char *packed, size_t len, size_t part,
                             enum direction dir)
{
    char *to = dir == PACK ? packed : mem;
    const char *from = dir == PACK ? mem : packed;
    char head[32];
    char tail[32];

    memcpy(head, from, part);
    memcpy(tail, from + len - part, part);
    memcpy(to, head, part);
    memcpy(to + len - part, tail, part);
}

/* Blocks of `len` bytes, constant or not, from memory stride to packed
 * stride. `part` 0: len is a constant or large; else it is between part and
 * 2 * part. */
CHEMPI_INLINE void strided_loop(char *mem, int64_t stride, char *packed,
                                int64_t packed_stride, uint64_t n, size_t len,
                                size_t part, enum direction dir)
{
    for (; n > 0; n--) {
        if (part != 0)
            move_pair(mem, packed, len, part, dir);
        else
            move(mem, packed, len, dir);
        mem += stride;
        packed += packed_stride;
    }
}

/* Small constant lengths are worth four blocks per turn. */
CHEMPI_INLINE void strided_fixed(char *mem, int64_t stride, char *packed,
                                 int64_t packed_stride, uint64_t n, size_t len,
                                 enum direction dir)
{
    for (; n >= 4; n -= 4) {
        move(mem, packed, len, dir);
        move(mem + stride, packed + packed_stride, len, dir);
        move(mem + 2 * stride, packed + 2 * packed_stride, len, dir);
        move(mem + 3 * stride, packed + 3 * packed_stride, len, dir);
        mem += 4 * stride;
        packed += 4 * packed_stride;
    }
    strided_loop(mem, stride, packed, packed_stride, n, len, 0, dir);
}

CHEMPI_INLINE void unpack_ahead_loop(char *mem, int64_t stride,
                                     const char *packed, int64_t packed_stride,
                                     uint64_t n, size_t len)
{
    for (; n > AHEAD; n--) {
        CHEMPI_PREFETCH_WRITE(mem + AHEAD * stride);
        memcpy(mem, packed, len);
        mem += stride;
        packed += packed_stride;
    }
    for (; n > 0; n--) {
        memcpy(mem, packed, len);
        mem += stride;
        packed += packed_stride;
    }
}

/* len is 4, 8, 16, 32 or 64. */
static CHEMPI_NOINLINE void unpack_ahead(char *mem, int64_t stride,
                                         const char *packed,
                                         int64_t packed_stride, uint64_t n,
                                         size_t len)
{
    if (len == 4)
        unpack_ahead_loop(mem, stride, packed, packed_stride, n, 4);
    else if (len == 8)
        unpack_ahead_loop(mem, stride, packed, packed_stride, n, 8);
    else if (len == 16)
        unpack_ahead_loop(mem, stride, packed, packed_stride, n, 16);
    else if (len == 32)
        unpack_ahead_loop(mem, stride, packed, packed_stride, n, 32);
    else
        unpack_ahead_loop(mem, stride, packed, packed_stride, n, 64);
}

CHEMPI_INLINE void unpack_in_sets_loop(char *mem, int64_t stride,
                                       const char *packed,
                                       int64_t packed_stride, uint64_t n,
                                       size_t len)
{
    for (uint64_t i = 1; i <= n; i++) {
        memcpy(mem, packed, len);
        mem += stride;
        packed += packed_stride;
        /* No partner: the next blocks are asked for when these are stored. */
        if (i % SETS_BLOCKS == 0)
            atomic_thread_fence(memory_order_seq_cst);
    }
}

/* len is one that meet_in_sets() knows. */
static CHEMPI_NOINLINE void unpack_in_sets(char *mem, int64_t stride,
                                           const char *packed,
                                           int64_t packed_stride, uint64_t n,
                                           size_t len)
{
    if (len == 4)
        unpack_in_sets_loop(mem, stride, packed, packed_stride, n, 4);
    else if (len == 8)
        unpack_in_sets_loop(mem, stride, packed, packed_stride, n, 8);
    else if (len == 12)
        unpack_in_sets_loop(mem, stride, packed, packed_stride, n, 12);
    else if (len == 16)
        unpack_in_sets_loop(mem, stride, packed, packed_stride, n, 16);
    else if (len == 24)
        unpack_in_sets_loop(mem, stride, packed, packed_stride, n, 24);
    else if (len == 32)
        unpack_in_sets_loop(mem, stride, packed, packed_stride, n, 32);
    else
        unpack_in_sets_loop(mem, stride, packed, packed_stride, n, 64);
}

/*
 * All parts but the last are STREAMS_SKEW blocks longer: where a part is a
 * whole number of pages, the streams would meet in one set of the cache.
 */
CHEMPI_INLINE void streams_loop(char *mem, int64_t stride, char *packed,
                                int64_t packed_stride, uint64_t n, size_t len,
                                enum direction dir)
{
    uint64_t part = n / STREAMS + STREAMS_SKEW;
    uint64_t last = n - (STREAMS - 1) * part;
    int64_t far = (int64_t)part * stride;
    int64_t packed_far = (int64_t)part * packed_stride;
    int64_t ahead = STREAMS_AHEAD * stride;

    for (uint64_t i = 0; i < last; i++) {
        if (dir == UNPACK) {
            CHEMPI_PREFETCH_WRITE(mem + ahead);
            CHEMPI_PREFETCH_WRITE(mem + far + ahead);
            CHEMPI_PREFETCH_WRITE(mem + 2 * far + ahead);
            CHEMPI_PREFETCH_WRITE(mem + 3 * far + ahead);
        }
        move(mem, packed, len, dir);
        move(mem + far, packed + packed_far, len, dir);
        move(mem + 2 * far, packed + 2 * packed_far, len, dir);
        move(mem + 3 * far, packed + 3 * packed_far, len, dir);
        mem += stride;
        packed += packed_stride;
    }
    for (int64_t k = 0; k < STREAMS - 1; k++)
        strided_loop(mem + k * far, stride, packed + k * packed_far,
                     packed_stride, part - last, len, 0, dir);
}

/* len is 4, 8, 16, 32 or 64. */
CHEMPI_INLINE void streams(char *mem, int64_t stride, char *packed,
                           int64_t packed_stride, uint64_t n, size_t len,
                           enum direction dir)
{
    if (len == 4)
        streams_loop(mem, stride, packed, packed_stride, n, 4, dir);
    else if (len == 8)
        streams_loop(mem, stride, packed, packed_stride, n, 8, dir);
    else if (len == 16)
        streams_loop(mem, stride, packed, packed_stride, n, 16, dir);
    else if (len == 32)
        streams_loop(mem, stride, packed, packed_stride, n, 32, dir);
    else
        streams_loop(mem, stride, packed, packed_stride, n, 64, dir);
}

/* Blocks of a length that streams() knows, each with lines of its own? */
CHEMPI_INLINE bool is_sparse(int64_t stride, size_t len)
{
    return (stride >= SPARSE_STRIDE_MIN || stride <= -SPARSE_STRIDE_MIN) &&
           (len & (len - 1)) == 0 && len >= 4 && len <= 64;
}

CHEMPI_INLINE void strided(char *mem, int64_t stride, char *packed,
                           int64_t packed_stride, uint64_t n, size_t len,
                           enum direction dir)
{
    switch (len) {
    case 1:
        strided_fixed(mem, stride, packed, packed_stride, n, 1, dir);
        return;
    case 2:
        strided_fixed(mem, stride, packed, packed_stride, n, 2, dir);
        return;
    case 4:
        strided_fixed(mem, stride, packed, packed_stride, n, 4, dir);
        return;
    case 8:
        strided_fixed(mem, stride, packed, packed_stride, n, 8, dir);
        return;
    case 12:
        strided_fixed(mem, stride, packed, packed_stride, n, 12, dir);
        return;
    case 16:
        strided_fixed(mem, stride, packed, packed_stride, n, 16, dir);
        return;
    case 24:
        strided_fixed(mem, stride, packed, packed_stride, n, 24, dir);
        return;
    case 32:
        strided_fixed(mem, stride, packed, packed_stride, n, 32, dir);
        return;
    case 64:
        strided_loop(mem, stride, packed, packed_stride, n, 64, 0, dir);
        return;
    default:
        break;
    }
    if (len < 4)
        strided_loop(mem, stride, packed, packed_stride, n, len, 2, dir);
    else if (len < 8)
        strided_loop(mem, stride, packed, packed_stride, n, len, 4, dir);
    else if (len < 16)
        strided_loop(mem, stride, packed, packed_stride, n, len, 8, dir);
    else if (len < 32)
        strided_loop(mem, stride, packed, packed_stride, n, len, 16, dir);
    else if (len < 64)
        strided_loop(mem, stride, packed, packed_stride, n, len, 32, dir);
    else
        strided_loop(mem, stride, packed, packed_stride, n, len, 0, dir);
}

CHEMPI_INLINE void indexed_loop(char *mem, const int64_t *offsets, char *packed,
                                uint64_t n, size_t len, size_t part,
                                enum direction dir)
{
    for (uint64_t i = 0; i < n; i++) {
        if (part != 0)
            move_pair(at(mem, offsets[i]), packed, len, part, dir);
        else
            move(at(mem, offsets[i]), packed, len, dir);
        packed += len;
    }
}

CHEMPI_INLINE void indexed_fixed(char *mem, const int64_t *offsets,
                                 char *packed, uint64_t n, size_t len,
                                 enum direction dir)
{
    uint64_t i = 0;

    for (; i + 4 <= n; i += 4) {
        move(at(mem, offsets[i]), packed, len, dir);
        move(at(mem, offsets[i + 1]), packed + len, len, dir);
        move(at(mem, offsets[i + 2]), packed + 2 * len, len, dir);
        move(at(mem, offsets[i + 3]), packed + 3 * len, len, dir);
        packed += 4 * len;
    }
    indexed_loop(mem, offsets + i, packed, n - i, len, 0, dir);
}

CHEMPI_INLINE void indexed(char *mem, const int64_t *offsets, char *packed,
                           uint64_t n, size_t len, enum direction dir)
{
    switch (len) {
    case 1:
        indexed_fixed(mem, offsets, packed, n, 1, dir);
        return;
    case 2:
        indexed_fixed(mem, offsets, packed, n, 2, dir);
        return;
    case 4:
        indexed_fixed(mem, offsets, packed, n, 4, dir);
        return;
    case 8:
        indexed_fixed(mem, offsets, packed, n, 8, dir);
        return;
    case 16:
        indexed_fixed(mem, offsets, packed, n, 16, dir);
        return;
    case 24:
        indexed_fixed(mem, offsets, packed, n, 24, dir);
        return;
    case 32:
        indexed_fixed(mem, offsets, packed, n, 32, dir);
        return;
    case 64:
        indexed_loop(mem, offsets, packed, n, 64, 0, dir);
        return;
    default:
        break;
    }
    if (len < 4)
        indexed_loop(mem, offsets, packed, n, len, 2, dir);
    else if (len < 8)
        indexed_loop(mem, offsets, packed, n, len, 4, dir);
    else if (len < 16)
        indexed_loop(mem, offsets, packed, n, len, 8, dir);
    else if (len < 32)
        indexed_loop(mem, offsets, packed, n, len, 16, dir);
    else if (len < 64)
        indexed_loop(mem, offsets, packed, n, len, 32, dir);
    else
        indexed_loop(mem, offsets, packed, n, len, 0, dir);
}

/* 16 to STEPS_MAX bytes in steps of 16, the last one aligned with the end: one
 * branch that depends on len instead of one for each power of two. */
CHEMPI_INLINE void move_steps(char *mem, char *packed, size_t len,
                              enum direction dir)
{
    char *to = dir == PACK ? packed : mem;
    const char *from = dir == PACK ? mem : packed;
    size_t last = len - 16;
    char tail[16];

    memcpy(tail, from + last, 16);
    for (size_t done = 0; done < last; done += 16)
        memcpy(to + done, from + done, 16);
    memcpy(to + last, tail, 16);
}

/* One block of any length, mostly small. */
CHEMPI_INLINE void move_any(char *mem, char *packed, size_t len,
                            enum direction dir)
{
    if (len > STEPS_MAX)
        move(mem, packed, len, dir);
    else if (len >= 16)
        move_steps(mem, packed, len, dir);
    else if (len >= 8)
        move_pair(mem, packed, len, 8, dir);
    else if (len >= 4)
        move_pair(mem, packed, len, 4, dir);
    else if (len >= 2)
        move_pair(mem, packed, len, 2, dir);
    else
        move(mem, packed, 1, dir);
}

/* ---- trees ---- */

/* The kernels, once per direction and out of line. */
#define KERNELS(suffix, dir)                                                   \
    static CHEMPI_NOINLINE void strided_##suffix(                              \
        char *mem, int64_t stride, char *packed, int64_t packed_stride,        \
        uint64_t n, size_t len)                                                \
    {                                                                          \
        strided(mem, stride, packed, packed_stride, n, len, dir);              \
    }                                                                          \
    static CHEMPI_NOINLINE void streams_##suffix(                              \
        char *mem, int64_t stride, char *packed, int64_t packed_stride,        \
        uint64_t n, size_t len)                                                \
    {                                                                          \
        streams(mem, stride, packed, packed_stride, n, len, dir);              \
    }                                                                          \
    static CHEMPI_NOINLINE void indexed_##suffix(                              \
        char *mem, const int64_t *offsets, char *packed, uint64_t n,           \
        size_t len)                                                            \
    {                                                                          \
        indexed(mem, offsets, packed, n, len, dir);                            \
    }                                                                          \
    static CHEMPI_NOINLINE void runs_##suffix(                                 \
        char *mem, const int64_t *offsets, const uint64_t *starts,             \
        char *packed, uint64_t n)                                              \
    {                                                                          \
        for (uint64_t i = 0; i < n; i++)                                       \
            move_any(at(mem, offsets[i]), packed + (starts[i] - starts[0]),    \
                     starts[i + 1] - starts[i], dir);                          \
    }

KERNELS(pack, PACK)
KERNELS(unpack, UNPACK)

/* How many sets of the first-level cache the lines of blocks so far apart use;
 * for at most SETS_STORES this is right. */
CHEMPI_INLINE uint64_t sets_of(uint64_t apart)
{
    uint64_t power = apart & (~apart + 1); /* the highest that divides it */

    return power < SETS_BYTES ? SETS_BYTES / power : 1;
}

/* Do blocks of a length that unpack_in_sets() knows, n of a list of `count`,
 * throw out each other's lines? */
static bool meet_in_sets(uint64_t apart, uint64_t n, size_t len, uint64_t count)
{
    bool is_short = len == 4 || len == 8 || len == 12 || len == 16 ||
                    len == 24 || len == 32 || len == 64;

    if (!is_short || apart < SETS_BYTES / SETS_STORES)
        return false;
    uint64_t sets = sets_of(apart);
    uint64_t stores = (len + STORE_BYTES - 1) / STORE_BYTES;

    return sets * stores <= SETS_STORES && n > sets * SETS_WAYS &&
           count <= SETS_LIST_MAX;
}

/* n blocks of a list of `count`, or a few of no list. */
static void do_strided(char *mem, int64_t stride, char *packed,
                       int64_t packed_stride, uint64_t n, size_t len,
                       uint64_t count, enum direction dir)
{
    uint64_t apart = (uint64_t)(stride < 0 ? -stride : stride);
    bool is_apart = is_sparse(stride, len);
    bool is_far = count * apart >= FAR_SPAN_MIN;
    bool is_streamed = is_apart && n >= STREAMS_BLOCKS_MIN;

    if (dir == PACK && is_streamed && is_far)
        streams_pack(mem, stride, packed, packed_stride, n, len);
    else if (dir == PACK)
        strided_pack(mem, stride, packed, packed_stride, n, len);
    else if (meet_in_sets(apart, n, len, count))
        unpack_in_sets(mem, stride, packed, packed_stride, n, len);
    else if (is_streamed && len >= AHEAD_LEN_MIN && count >= STREAMS_LIST_MIN)
        streams_unpack(mem, stride, packed, packed_stride, n, len);
    else if (is_apart && (is_far || len >= AHEAD_LEN_MIN))
        unpack_ahead(mem, stride, packed, packed_stride, n, len);
    else
        strided_unpack(mem, stride, packed, packed_stride, n, len);
}

static void do_indexed(char *mem, const int64_t *offsets, char *packed,
                       uint64_t n, size_t len, enum direction dir)
{
    if (dir == PACK)
        indexed_pack(mem, offsets, packed, n, len);
    else
        indexed_unpack(mem, offsets, packed, n, len);
}

static void do_runs(char *mem, const int64_t *offsets, const uint64_t *starts,
                    char *packed, uint64_t n, enum direction dir)
{
    if (dir == PACK)
        runs_pack(mem, offsets, starts, packed, n);
    else
        runs_unpack(mem, offsets, starts, packed, n);
}

static void move_whole(const struct chempi_layout_node *node, char *mem,
                       char *packed, enum direction dir);

/* n elements with a few irregular blocks each, column by column. */
static void move_columns(const struct chempi_layout_node *node, char *mem,
                         int64_t stride, char *packed, uint64_t n,
                         enum direction dir)
{
    uint64_t batch = BATCH_BYTES / node->size + 1;

    while (n > 0) {
        uint64_t rows = n < batch ? n : batch;

        for (uint64_t i = 0; i < node->count; i++) {
            bool is_runs = node->kind == CHEMPI_LAYOUT_RUNS;
            int64_t offset =
                node->offsets ? node->offsets[i] : (int64_t)i * node->stride;
            uint64_t start = is_runs ? node->starts[i] : i * node->child->size;
            uint64_t len =
                is_runs ? node->starts[i + 1] - start : node->child->size;

            if (!is_runs)
                offset += node->child->offset;
            do_strided(at(mem, offset), stride, packed + start,
                       (int64_t)node->size, rows, len, 0, dir);
        }
        mem = at(mem, (int64_t)rows * stride);
        packed += rows * node->size;
        n -= rows;
    }
}

/* Is every child a plain block, and are they few? */
static bool has_columns(const struct chempi_layout_node *node)
{
    return node->count <= COLUMNS_MAX &&
           (node->kind == CHEMPI_LAYOUT_RUNS ||
            ((node->kind == CHEMPI_LAYOUT_STRIDED ||
              node->kind == CHEMPI_LAYOUT_INDEXED) &&
             node->child->kind == CHEMPI_LAYOUT_BLOCK));
}

/* n whole children of a strided list, the first one at mem. */
static void move_repeated(const struct chempi_layout_node *list, char *mem,
                          char *packed, uint64_t n, enum direction dir)
{
    const struct chempi_layout_node *node = list->child;
    int64_t stride = list->stride;

    if (node->kind == CHEMPI_LAYOUT_BLOCK) {
        do_strided(at(mem, node->offset), stride, packed, (int64_t)node->size,
                   n, node->size, list->count, dir);
        return;
    }
    if (n >= 4 && has_columns(node)) {
        move_columns(node, at(mem, node->offset), stride, packed, n, dir);
        return;
    }
    for (; n > 0; n--) {
        move_whole(node, mem, packed, dir);
        mem = at(mem, stride);
        packed += node->size;
    }
}

/* Children [first, first + n) of a node, whole. */
static void move_children(const struct chempi_layout_node *node, char *mem,
                          uint64_t first, uint64_t n, char *packed,
                          enum direction dir)
{
    switch ((enum chempi_layout_kind)node->kind) {
    case CHEMPI_LAYOUT_BLOCK:
        break; /* has no children */
    case CHEMPI_LAYOUT_STRIDED:
        move_repeated(node, at(mem, (int64_t)first * node->stride), packed, n,
                      dir);
        break;
    case CHEMPI_LAYOUT_INDEXED:
        if (node->child->kind == CHEMPI_LAYOUT_BLOCK) {
            do_indexed(at(mem, node->child->offset), node->offsets + first,
                       packed, n, node->child->size, dir);
            break;
        }
        for (uint64_t i = first; i < first + n; i++) {
            move_whole(node->child, at(mem, node->offsets[i]), packed, dir);
            packed += node->child->size;
        }
        break;
    case CHEMPI_LAYOUT_RUNS:
        do_runs(mem, node->offsets + first, node->starts + first, packed, n,
                dir);
        break;
    case CHEMPI_LAYOUT_PARTS:
        for (uint64_t i = first; i < first + n; i++) {
            move_whole(node->children[i], at(mem, node->offsets[i]), packed,
                       dir);
            packed += node->children[i]->size;
        }
        break;
    }
}

static void move_whole(const struct chempi_layout_node *node, char *mem,
                       char *packed, enum direction dir)
{
    mem = at(mem, node->offset);
    if (node->kind == CHEMPI_LAYOUT_BLOCK)
        move(mem, packed, node->size, dir);
    else
        move_children(node, mem, 0, node->count, packed, dir);
}

static uint64_t child_size(const struct chempi_layout_node *node, uint64_t i)
{
    return node->starts ? node->starts[i + 1] - node->starts[i]
                        : node->child->size;
}

static char *child_base(const struct chempi_layout_node *node, char *mem,
                        uint64_t i)
{
    return at(mem,
              node->offsets ? node->offsets[i] : (int64_t)i * node->stride);
}

static void move_range(const struct chempi_layout_node *node, char *mem,
                       uint64_t from, uint64_t to, char *packed,
                       enum direction dir);

/* A part of child i. */
static void move_in_child(const struct chempi_layout_node *node, char *mem,
                          uint64_t i, uint64_t from, uint64_t to, char *packed,
                          enum direction dir)
{
    char *base = child_base(node, mem, i);

    if (node->kind == CHEMPI_LAYOUT_RUNS)
        move(base + from, packed, to - from, dir);
    else
        move_range(node->children ? node->children[i] : node->child, base, from,
                   to, packed, dir);
}

/* The whole children from i on that end at or before `to`. */
static uint64_t whole_children(const struct chempi_layout_node *node,
                               uint64_t i, uint64_t to)
{
    uint64_t start;
    uint64_t last;

    if (to == node->size)
        return node->count - i;
    last = chempi_layout_child(node, to, &start);
    return last > i ? last - i : 0;
}

/* Packed bytes [from, to) of one node; from < to. */
static void move_range(const struct chempi_layout_node *node, char *mem,
                       uint64_t from, uint64_t to, char *packed,
                       enum direction dir)
{
    uint64_t start;
    uint64_t i;
    uint64_t n;

    mem = at(mem, node->offset);
    if (node->kind == CHEMPI_LAYOUT_BLOCK) {
        move(at(mem, (int64_t)from), packed, to - from, dir);
        return;
    }
    i = chempi_layout_child(node, from, &start);
    if (from > start) {
        uint64_t end = start + child_size(node, i);
        uint64_t stop = to < end ? to : end;

        move_in_child(node, mem, i, from - start, stop - start, packed, dir);
        packed += stop - from;
        from = stop;
        start = end;
        i++;
    }
    if (from == to)
        return;
    n = whole_children(node, i, to);
    if (n > 0) {
        uint64_t end =
            node->starts ? node->starts[i + n] : (i + n) * node->child->size;

        move_children(node, mem, i, n, packed, dir);
        packed += end - from;
        from = end;
        i += n;
    }
    if (from < to)
        move_in_child(node, mem, i, 0, to - from, packed, dir);
}

/* ---- the iterator ---- */

/*
 * The node that stands for all elements: a loop over the layout's root, which
 * is merged with it where the elements continue each other. Lives on the
 * caller's stack.
 */
static const struct chempi_layout_node *whole(const struct chempi_segment *iter,
                                              struct chempi_layout_node *top)
{
    const struct chempi_layout_node *root = iter->layout->root;
    uint64_t count = iter->state[0];
    int64_t extent = iter->layout->extent;

    if (count == 1)
        return root;
    top->kind = CHEMPI_LAYOUT_STRIDED;
    top->size = iter->size;
    top->offset = 0;
    top->count = count;
    top->stride = extent;
    top->child = root;
    top->offsets = NULL;
    top->starts = NULL;
    top->children = NULL;
    if (root->kind == CHEMPI_LAYOUT_BLOCK && extent == (int64_t)root->size) {
        top->kind = CHEMPI_LAYOUT_BLOCK;
        top->offset = root->offset;
    } else if (root->kind == CHEMPI_LAYOUT_STRIDED &&
               extent == (int64_t)root->count * root->stride) {
        top->offset = root->offset;
        top->count = count * root->count;
        top->stride = root->stride;
        top->child = root->child;
    }
    return top;
}

void chempi_segment_init(struct chempi_segment *iter, const void *base,
                         uint64_t count, const struct chempi_layout *layout)
{
    iter->layout = layout;
    iter->base = (char *)(uintptr_t)base;
    iter->size = count * layout->size;
    iter->position = 0;
    iter->state[0] = count;
}

static size_t advance(struct chempi_segment *iter, char *packed, size_t max,
                      enum direction dir)
{
    uint64_t left = iter->size - iter->position;
    size_t len = max < left ? max : (size_t)left;
    struct chempi_layout_node top;

    if (len == 0)
        return 0;
    move_range(whole(iter, &top), iter->base, iter->position,
               iter->position + len, packed, dir);
    iter->position += len;
    return len;
}

size_t chempi_segment_pack(struct chempi_segment *iter, void *dst, size_t max)
{
    return advance(iter, dst, max, PACK);
}

size_t chempi_segment_unpack(struct chempi_segment *iter, const void *src,
                             size_t len)
{
    return advance(iter, (char *)(uintptr_t)src, len, UNPACK);
}

uint64_t chempi_segment_mean_run(const struct chempi_segment *iter)
{
    const struct chempi_layout *layout = iter->layout;
    uint64_t blocks = layout->root->blocks;

    if (blocks == 1 && layout->extent == (int64_t)layout->size)
        return iter->size ? iter->size : 1;
    return layout->size > blocks ? layout->size / blocks : 1;
}

const struct chempi_layout_node *
chempi_segment_layout(const struct chempi_segment *iter)
{
    return chempi_layout_repeat(chempi_layout_hold(iter->layout->root),
                                iter->state[0], iter->layout->extent);
}

void chempi_segment_seek(struct chempi_segment *iter, uint64_t position)
{
    iter->position = position < iter->size ? position : iter->size;
}

/* ---- lists of runs ---- */

struct run_list {
    struct iovec *runs;
    size_t count;
    size_t max;
    uint64_t bytes;     /* taken so far */
    uint64_t max_bytes; /* to take at most */
};

/* Append a run, joined to the last one where they touch; false when the list
 * is full (part of the run may have been taken). */
static bool add_run(struct run_list *list, char *mem, uint64_t len)
{
    uint64_t left = list->max_bytes - list->bytes;
    uint64_t take = len < left ? len : left;
    struct iovec *last = list->count ? &list->runs[list->count - 1] : NULL;

    if (take == 0)
        return false;
    if (last && (char *)last->iov_base + last->iov_len == mem) {
        last->iov_len += take;
    } else {
        if (list->count == list->max)
            return false;
        list->runs[list->count++] = (struct iovec){mem, take};
    }
    list->bytes += take;
    return take == len;
}

/* The runs of bytes [from, to) of a list of blocks; false when full. */
static bool list_blocks(const struct chempi_layout_node *node, char *mem,
                        uint64_t from, uint64_t to, struct run_list *list)
{
    uint64_t start;
    uint64_t i = chempi_layout_child(node, from, &start);

    if (node->kind != CHEMPI_LAYOUT_RUNS)
        mem = at(mem, node->child->offset);
    for (; from < to; i++) {
        uint64_t end = start + child_size(node, i);
        uint64_t stop = to < end ? to : end;

        if (!add_run(list,
                     at(child_base(node, mem, i), (int64_t)(from - start)),
                     stop - from))
            return false;
        from = stop;
        start = end;
    }
    return true;
}

/* The runs of bytes [from, to) of one node; false when the list is full. */
static bool list_range(const struct chempi_layout_node *node, char *mem,
                       uint64_t from, uint64_t to, struct run_list *list)
{
    uint64_t start;
    uint64_t i;

    mem = at(mem, node->offset);
    if (node->kind == CHEMPI_LAYOUT_BLOCK)
        return add_run(list, at(mem, (int64_t)from), to - from);
    if (node->kind == CHEMPI_LAYOUT_RUNS ||
        (node->child && node->child->kind == CHEMPI_LAYOUT_BLOCK))
        return list_blocks(node, mem, from, to, list);
    for (i = chempi_layout_child(node, from, &start); from < to; i++) {
        uint64_t end = start + child_size(node, i);
        uint64_t stop = to < end ? to : end;

        if (!list_range(node->children ? node->children[i] : node->child,
                        child_base(node, mem, i), from - start, stop - start,
                        list))
            return false;
        from = stop;
        start = end;
    }
    return true;
}

size_t chempi_segment_runs(struct chempi_segment *iter, struct iovec *runs,
                           size_t max_runs, uint64_t max_bytes)
{
    struct run_list list = {
        .runs = runs, .max = max_runs, .max_bytes = max_bytes};
    struct chempi_layout_node top;

    if (iter->position == iter->size)
        return 0;
    (void)list_range(whole(iter, &top), iter->base, iter->position, iter->size,
                     &list);
    iter->position += list.bytes;
    return list.count;
}
