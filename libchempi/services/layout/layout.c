/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Building layouts in normal form (see layout.h). Everything here runs when a
 * datatype is committed; walking is segment.c's.
 */
#include "libchempi/services/layout/layout.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/base/sys.h"
#include "common/containers/array.h"

/* A list of parts is written out as blocks when it has few blocks in all, or
 * few per part: walking a list is cheaper than entering many small trees. */
#define FLAT_BLOCKS 64
#define FLAT_BLOCKS_PER_PART 8
#define FLAT_BLOCKS_MAX (1u << 16)

static struct chempi_layout_node *make(enum chempi_layout_kind kind)
{
    struct chempi_layout_node *node = chempi_sys->calloc(1, sizeof(*node));

    if (!node)
        return NULL;
    atomic_init(&node->refs, 1);
    node->kind = (uint16_t)kind;
    node->depth = 1;
    node->count = 1;
    node->blocks = 1;
    return node;
}

/* Nodes are written by this file only, before anybody else sees them. */
static struct chempi_layout_node *writable(const struct chempi_layout_node *n)
{
    return (struct chempi_layout_node *)(uintptr_t)n;
}

const struct chempi_layout_node *
chempi_layout_hold(const struct chempi_layout_node *node)
{
    atomic_fetch_add_explicit(&writable(node)->refs, 1, memory_order_relaxed);
    return node;
}

void chempi_layout_release(const struct chempi_layout_node *node)
{
    struct chempi_layout_node *old = writable(node);

    if (!old ||
        atomic_fetch_sub_explicit(&old->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (old->children)
        for (uint64_t i = 0; i < old->count; i++)
            chempi_layout_release(old->children[i]);
    chempi_layout_release(old->child);
    free((void *)(uintptr_t)old->offsets);
    free((void *)(uintptr_t)old->starts);
    free((void *)(uintptr_t)old->children);
    free(old);
}

static bool mul(uint64_t a, uint64_t b, uint64_t *out)
{
    if (a != 0 && b > (uint64_t)INT64_MAX / a)
        return false;
    *out = a * b;
    return true;
}

static bool add(int64_t a, int64_t b, int64_t *out)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
        return false;
    *out = a + b;
    return true;
}

/* A product of displacements. */
static bool scale(int64_t stride, uint64_t count, int64_t *out)
{
    uint64_t size = stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
    uint64_t product;

    if (!mul(size, count, &product))
        return false;
    *out = stride < 0 ? -(int64_t)product : (int64_t)product;
    return true;
}

static uint64_t saturated(uint64_t a, uint64_t b)
{
    uint64_t out;

    return mul(a, b, &out) ? out : INT64_MAX;
}

static void *copy_array(const void *from, uint64_t count, size_t each)
{
    void *copy =
        count <= SIZE_MAX / each ? chempi_sys->malloc(count * each) : NULL;

    if (copy)
        memcpy(copy, from, count * each);
    return copy;
}

const struct chempi_layout_node *chempi_layout_block(int64_t offset,
                                                     uint64_t len)
{
    struct chempi_layout_node *node =
        len <= INT64_MAX ? make(CHEMPI_LAYOUT_BLOCK) : NULL;

    if (!node)
        return NULL;
    node->offset = offset;
    node->size = len;
    return node;
}

/* A node of our own with the same contents; takes over the reference. */
static struct chempi_layout_node *own(const struct chempi_layout_node *node)
{
    struct chempi_layout_node *copy;
    bool is_good = true;

    if (atomic_load_explicit(&node->refs, memory_order_acquire) == 1)
        return writable(node);
    copy = make((enum chempi_layout_kind)node->kind);
    if (copy) {
        copy->depth = node->depth;
        copy->size = node->size;
        copy->offset = node->offset;
        copy->count = node->count;
        copy->stride = node->stride;
        copy->blocks = node->blocks;
        if (node->offsets)
            is_good = (copy->offsets = copy_array(node->offsets, node->count,
                                                  sizeof(int64_t))) != NULL;
        if (is_good && node->starts)
            is_good = (copy->starts = copy_array(node->starts, node->count + 1,
                                                 sizeof(uint64_t))) != NULL;
        if (is_good && node->child)
            copy->child = chempi_layout_hold(node->child);
        if (is_good && node->children) {
            copy->children = copy_array(node->children, node->count,
                                        sizeof(*node->children));
            is_good = copy->children != NULL;
            for (uint64_t i = 0; is_good && i < node->count; i++)
                (void)chempi_layout_hold(node->children[i]);
        }
    }
    chempi_layout_release(node);
    if (copy && is_good)
        return copy;
    chempi_layout_release(copy);
    return NULL;
}

const struct chempi_layout_node *
chempi_layout_shift(const struct chempi_layout_node *child, int64_t offset)
{
    struct chempi_layout_node *node;

    if (!child || offset == 0)
        return child;
    node = own(child);
    if (node && !add(node->offset, offset, &node->offset)) {
        chempi_layout_release(node);
        node = NULL;
    }
    return node;
}

/* ---- lists of blocks ---- */

struct block {
    int64_t offset;
    uint64_t len;
};

/* A growing list in which neighbours are merged as they come. */
struct blocks {
    struct block *list;
    uint64_t count;
    uint64_t room;
    uint64_t size; /* bytes in all */
};

static bool push(struct blocks *blocks, int64_t offset, uint64_t len)
{
    struct block *last = NULL;

    if (len == 0)
        return true;
    if (len > INT64_MAX - blocks->size || offset > INT64_MAX - (int64_t)len)
        return false;
    blocks->size += len;
    if (blocks->count > 0)
        last = &blocks->list[blocks->count - 1];
    if (last && last->offset + (int64_t)last->len == offset) {
        last->len += len;
        return true;
    }
    if (!CHEMPI_ARRAY_FIT(blocks->list, blocks->room, blocks->count + 1))
        return false;
    blocks->list[blocks->count++] = (struct block){offset, len};
    return true;
}

/* Append all blocks of a tree, moved by offset. */
static bool push_tree(struct blocks *blocks,
                      const struct chempi_layout_node *node, int64_t offset)
{
    bool is_good = add(offset, node->offset, &offset);

    if (!is_good || node->kind == CHEMPI_LAYOUT_BLOCK)
        return is_good && push(blocks, offset, node->size);
    for (uint64_t i = 0; i < node->count && is_good; i++) {
        int64_t at = 0;

        if (node->offsets)
            is_good = add(offset, node->offsets[i], &at);
        else
            is_good = scale(node->stride, i, &at) && add(offset, at, &at);
        if (!is_good)
            break;
        if (node->kind == CHEMPI_LAYOUT_RUNS)
            is_good = push(blocks, at, node->starts[i + 1] - node->starts[i]);
        else
            is_good = push_tree(
                blocks, node->children ? node->children[i] : node->child, at);
    }
    return is_good;
}

static bool is_even(const struct blocks *blocks)
{
    for (uint64_t i = 1; i < blocks->count; i++)
        if (blocks->list[i].len != blocks->list[0].len)
            return false;
    return true;
}

static bool is_spaced(uint64_t count, const int64_t *offsets)
{
    int64_t stride;

    if (offsets[0] == INT64_MIN || !add(offsets[1], -offsets[0], &stride))
        return false;
    for (uint64_t i = 2; i < count; i++) {
        int64_t next;

        if (!add(offsets[i - 1], stride, &next) || next != offsets[i])
            return false;
    }
    return true;
}

/* STRIDED or INDEXED over child, which is taken over; count >= 2. The array
 * becomes the node's, or is freed. */
static const struct chempi_layout_node *
make_indexed(const struct chempi_layout_node *child, uint64_t count,
             int64_t *offsets, uint64_t size)
{
    struct chempi_layout_node *node;

    if (is_spaced(count, offsets)) {
        int64_t first = offsets[0];
        int64_t stride = offsets[1] - offsets[0];

        free(offsets);
        return chempi_layout_shift(chempi_layout_repeat(child, count, stride),
                                   first);
    }
    node = make(CHEMPI_LAYOUT_INDEXED);
    if (!node) {
        chempi_layout_release(child);
        free(offsets);
        return NULL;
    }
    node->size = size;
    node->count = count;
    node->offsets = offsets;
    node->child = child;
    node->depth = (uint16_t)(child->depth + 1);
    node->blocks = saturated(count, child->blocks);
    return node;
}

static const struct chempi_layout_node *make_runs(const struct blocks *blocks,
                                                  int64_t *offsets)
{
    struct chempi_layout_node *node = make(CHEMPI_LAYOUT_RUNS);
    uint64_t *starts =
        chempi_sys->malloc((blocks->count + 1) * sizeof(*starts));

    if (!node || !starts) {
        chempi_layout_release(node);
        free(starts);
        free(offsets);
        return NULL;
    }
    starts[0] = 0;
    for (uint64_t i = 0; i < blocks->count; i++)
        starts[i + 1] = starts[i] + blocks->list[i].len;
    node->size = blocks->size;
    node->count = blocks->count;
    node->blocks = blocks->count;
    node->offsets = offsets;
    node->starts = starts;
    return node;
}

/* The normal form of a list; frees the list. */
static const struct chempi_layout_node *from_blocks(struct blocks *blocks,
                                                    bool is_good)
{
    const struct chempi_layout_node *node = NULL;
    const struct chempi_layout_node *child;
    int64_t *offsets = NULL;

    if (is_good && blocks->count <= 1) {
        node = blocks->count == 0 ? chempi_layout_block(0, 0)
                                  : chempi_layout_block(blocks->list[0].offset,
                                                        blocks->list[0].len);
    } else if (is_good) {
        offsets = chempi_sys->malloc(blocks->count * sizeof(*offsets));
        for (uint64_t i = 0; offsets && i < blocks->count; i++)
            offsets[i] = blocks->list[i].offset;
        if (offsets && is_even(blocks)) {
            child = chempi_layout_block(0, blocks->list[0].len);
            if (child)
                node =
                    make_indexed(child, blocks->count, offsets, blocks->size);
            else
                free(offsets);
        } else if (offsets) {
            node = make_runs(blocks, offsets);
        }
    }
    free(blocks->list);
    return node;
}

const struct chempi_layout_node *chempi_layout_blocks(uint64_t count,
                                                      const int64_t *offsets,
                                                      const uint64_t *lens)
{
    struct blocks blocks = {0};
    bool is_good = true;

    for (uint64_t i = 0; i < count && is_good; i++)
        is_good = push(&blocks, offsets[i], lens[i]);
    return from_blocks(&blocks, is_good);
}

/* ---- trees ---- */

/* Write a tree out when it has become too deep (L6). */
static const struct chempi_layout_node *
limit_depth(const struct chempi_layout_node *node)
{
    struct blocks blocks = {0};
    bool is_good;

    if (!node || node->depth <= CHEMPI_LAYOUT_DEPTH_MAX)
        return node;
    is_good = push_tree(&blocks, node, 0);
    chempi_layout_release(node);
    return from_blocks(&blocks, is_good);
}

/* STRIDED; the child's own offset moves up, so that equal shapes are equal. */
static const struct chempi_layout_node *
make_strided(const struct chempi_layout_node *child, uint64_t count,
             int64_t stride, uint64_t size)
{
    struct chempi_layout_node *node = make(CHEMPI_LAYOUT_STRIDED);
    int64_t offset = child->offset;

    if (offset == INT64_MIN) { /* there is none to move it back by */
        chempi_layout_release(child);
        child = NULL;
    } else {
        child = chempi_layout_shift(child, -offset);
    }
    if (!node || !child) {
        chempi_layout_release(node);
        chempi_layout_release(child);
        return NULL;
    }
    node->size = size;
    node->offset = offset;
    node->count = count;
    node->stride = stride;
    node->child = child;
    node->depth = (uint16_t)(child->depth + 1);
    node->blocks = saturated(count, child->blocks);
    return limit_depth(node);
}

const struct chempi_layout_node *
chempi_layout_repeat(const struct chempi_layout_node *child, uint64_t count,
                     int64_t stride)
{
    struct chempi_layout_node *node;
    uint64_t size;
    int64_t reach;

    if (!child || (count == 1 || child->size == 0))
        return child;
    if (count == 0) {
        chempi_layout_release(child);
        return chempi_layout_block(0, 0);
    }
    if (!mul(child->size, count, &size) || !scale(stride, count, &reach)) {
        chempi_layout_release(child);
        return NULL;
    }
    if (child->kind == CHEMPI_LAYOUT_BLOCK && stride >= 0 &&
        (uint64_t)stride == child->size) {
        node = own(child);
        if (node)
            node->size = size;
        return node;
    }
    if (child->kind == CHEMPI_LAYOUT_STRIDED &&
        scale(child->stride, child->count, &reach) && reach == stride) {
        node = own(child);
        if (node) {
            node->count *= count; /* fits: count * child size does */
            node->size = size;
            node->blocks = saturated(node->blocks, count);
        }
        return node;
    }
    return make_strided(child, count, stride, size);
}

const struct chempi_layout_node *
chempi_layout_indexed(const struct chempi_layout_node *child, uint64_t count,
                      const int64_t *offsets)
{
    struct blocks blocks = {0};
    bool is_good = true;
    uint64_t size;
    int64_t *copy;

    if (!child)
        return NULL;
    if (count == 0 || child->size == 0) {
        chempi_layout_release(child);
        return chempi_layout_block(0, 0);
    }
    if (count == 1)
        return chempi_layout_shift(child, offsets[0]);
    if (child->kind == CHEMPI_LAYOUT_BLOCK ||
        saturated(child->blocks, count) <= FLAT_BLOCKS) {
        for (uint64_t i = 0; i < count && is_good; i++)
            is_good = push_tree(&blocks, child, offsets[i]);
        chempi_layout_release(child);
        return from_blocks(&blocks, is_good);
    }
    copy = mul(child->size, count, &size)
               ? copy_array(offsets, count, sizeof(*offsets))
               : NULL;
    if (copy)
        return limit_depth(make_indexed(child, count, copy, size));
    chempi_layout_release(child);
    return NULL;
}

static void release_all(uint64_t count,
                        const struct chempi_layout_node *const *children)
{
    for (uint64_t i = 0; i < count; i++)
        chempi_layout_release(children[i]);
}

/* PARTS, in arrays of its own; no child is empty. */
static const struct chempi_layout_node *
make_parts(uint64_t count, const int64_t *offsets,
           const struct chempi_layout_node *const *children)
{
    struct chempi_layout_node *node = make(CHEMPI_LAYOUT_PARTS);
    uint64_t *starts = chempi_sys->malloc((count + 1) * sizeof(*starts));
    bool is_good = node && starts;

    if (starts)
        starts[0] = 0;
    if (node) {
        node->blocks = 0;
        node->starts = starts;
        node->offsets = copy_array(offsets, count, sizeof(*offsets));
        node->children = copy_array(children, count, sizeof(*children));
        node->count = node->children ? count : 0;
        is_good = is_good && node->offsets && node->children;
    } else {
        free(starts);
    }
    for (uint64_t i = 0; i < count && is_good; i++) {
        is_good = children[i]->size <= (uint64_t)INT64_MAX - starts[i];
        starts[i + 1] = starts[i] + children[i]->size;
        node->size = starts[i + 1];
        node->blocks += children[i]->blocks;
        if (node->blocks > INT64_MAX)
            node->blocks = INT64_MAX;
        if (node->depth <= children[i]->depth)
            node->depth = (uint16_t)(children[i]->depth + 1);
    }
    if (is_good)
        return limit_depth(node);
    if (!node || !node->children)
        release_all(count, children);
    chempi_layout_release(node);
    return NULL;
}

static bool is_one_child(uint64_t count,
                         const struct chempi_layout_node *const *children)
{
    for (uint64_t i = 1; i < count; i++)
        if (children[i] != children[0])
            return false;
    return true;
}

static bool
is_worth_writing_out(uint64_t count,
                     const struct chempi_layout_node *const *children)
{
    uint64_t total = 0;
    bool is_all_blocks = true;

    for (uint64_t i = 0; i < count; i++) {
        total += children[i]->blocks;
        is_all_blocks &= children[i]->kind == CHEMPI_LAYOUT_BLOCK;
        if (total > INT64_MAX)
            return false;
    }
    return is_all_blocks || total <= FLAT_BLOCKS ||
           (total <= FLAT_BLOCKS_MAX && total / count <= FLAT_BLOCKS_PER_PART);
}

/* join() once there are neither missing nor empty children. */
static const struct chempi_layout_node *
join(uint64_t count, const int64_t *offsets,
     const struct chempi_layout_node *const *children)
{
    const struct chempi_layout_node *first;
    struct blocks blocks = {0};
    bool is_good = true;

    if (count == 0)
        return chempi_layout_block(0, 0);
    if (is_worth_writing_out(count, children)) {
        for (uint64_t i = 0; i < count && is_good; i++)
            is_good = push_tree(&blocks, children[i], offsets[i]);
        release_all(count, children);
        return from_blocks(&blocks, is_good);
    }
    if (is_one_child(count, children)) {
        first = children[0];
        release_all(count - 1, children + 1);
        return chempi_layout_indexed(first, count, offsets);
    }
    return make_parts(count, offsets, children);
}

const struct chempi_layout_node *
chempi_layout_join(uint64_t count, const int64_t *offsets,
                   const struct chempi_layout_node *const *children)
{
    const struct chempi_layout_node **kept_children;
    const struct chempi_layout_node *node = NULL;
    int64_t *kept_offsets;
    uint64_t kept = 0;
    bool is_good = true;

    for (uint64_t i = 0; i < count; i++)
        is_good &= children[i] != NULL;
    if (count == 0)
        return chempi_layout_block(0, 0);
    kept_children = copy_array(children, count, sizeof(*children));
    kept_offsets = copy_array(offsets, count, sizeof(*offsets));
    if (!is_good || !kept_children || !kept_offsets) {
        release_all(count, children);
    } else {
        for (uint64_t i = 0; i < count; i++) {
            if (children[i]->size == 0) {
                chempi_layout_release(children[i]);
                continue;
            }
            kept_children[kept] = children[i];
            kept_offsets[kept++] = offsets[i];
        }
        node = join(kept, kept_offsets, kept_children);
    }
    free((void *)kept_children);
    free(kept_offsets);
    return node;
}

/* --- invariants --- */

/* RUNS and PARTS: packed positions ascend, and neighbours are apart (L2). */
static const char *check_list(const struct chempi_layout_node *node)
{
    bool is_blocks = node->kind == CHEMPI_LAYOUT_RUNS;
    bool is_even = is_blocks;

    if (node->starts[0] != 0 || node->starts[node->count] != node->size)
        return "layout L5: a list of another size";
    for (uint64_t i = 0; i < node->count; i++) {
        if (node->starts[i] >= node->starts[i + 1])
            return "layout L1: an empty block in a list";
        if (is_blocks && i + 1 < node->count &&
            node->offsets[i] +
                    (int64_t)(node->starts[i + 1] - node->starts[i]) ==
                node->offsets[i + 1])
            return "layout L2: neighbours that are not merged";
        is_even =
            is_even && node->starts[i + 1] - node->starts[i] == node->starts[1];
    }
    return is_even ? "layout L3: blocks of one length as RUNS" : NULL;
}

static const char *check_child(const struct chempi_layout_node *node,
                               const struct chempi_layout_node *child,
                               uint64_t size)
{
    if (child->size == 0 || child->size != size)
        return "layout L5: a node of another size than its children";
    return child->depth < node->depth
               ? NULL
               : "layout L6: a child as deep as its node";
}

static const char *check_children(const struct chempi_layout_node *node)
{
    const char *why = NULL;

    if (node->kind != CHEMPI_LAYOUT_PARTS)
        return check_child(node, node->child, node->size / node->count);
    for (uint64_t i = 0; i < node->count && !why; i++)
        why = check_child(node, node->children[i],
                          node->starts[i + 1] - node->starts[i]);
    return why;
}

const char *chempi_layout_check(const struct chempi_layout_node *node)
{
    const char *why = NULL;

    if (node->kind == CHEMPI_LAYOUT_BLOCK && node->size == 0)
        return NULL; /* the empty one */
    if (node->size == 0 || node->size > INT64_MAX)
        return "layout L1, L5: a size that cannot be";
    if (node->depth > CHEMPI_LAYOUT_DEPTH_MAX)
        return "layout L6: a tree that is too deep";
    if (node->kind == CHEMPI_LAYOUT_BLOCK)
        return NULL;
    if (node->count < 2)
        return "layout L1: a list of one";
    if (node->kind == CHEMPI_LAYOUT_RUNS || node->kind == CHEMPI_LAYOUT_PARTS)
        why = check_list(node);
    return why || node->kind == CHEMPI_LAYOUT_RUNS ? why : check_children(node);
}
