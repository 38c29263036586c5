/* SPDX-License-Identifier: BSD-3-Clause */
/* Layouts from displacement to position, and as words; see the header. */
#include "libchempi/services/layout/layout_order.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"

typedef const struct chempi_layout_node node_t;

static node_t *first_child(node_t *node)
{
    return node->children ? node->children[0] : node->child;
}

static int64_t offset_at(node_t *node, uint64_t i)
{
    return node->offsets ? node->offsets[i] : (int64_t)i * node->stride;
}

int64_t chempi_layout_first(const struct chempi_layout_node *node)
{
    int64_t at = 0;

    for (;;) {
        at += node->offset;
        if (node->kind == CHEMPI_LAYOUT_BLOCK)
            return at;
        at += offset_at(node, 0);
        if (node->kind == CHEMPI_LAYOUT_RUNS)
            return at;
        node = first_child(node);
    }
}

int64_t chempi_layout_end(const struct chempi_layout_node *node)
{
    int64_t at = 0;

    for (;;) {
        uint64_t last = node->count - 1;

        at += node->offset;
        if (node->kind == CHEMPI_LAYOUT_BLOCK)
            return at + (int64_t)node->size;
        at += offset_at(node, last);
        if (node->kind == CHEMPI_LAYOUT_RUNS)
            return at + (int64_t)(node->starts[last + 1] - node->starts[last]);
        node = node->children ? node->children[last] : node->child;
    }
}

/* Do the children of a list follow one another: each begins where the one
 * before it ends or later (has_overlaps: where it begins)? */
static bool do_follow(node_t *node, bool has_overlaps)
{
    node_t *child = node->child;
    int64_t least = INT64_MIN;

    if (node->kind == CHEMPI_LAYOUT_STRIDED)
        return has_overlaps ? node->stride >= 0
                            : node->stride >= chempi_layout_end(child) -
                                                  chempi_layout_first(child);
    for (uint64_t i = 0; i < node->count; i++) {
        int64_t first = node->offsets[i];
        int64_t after = first;

        if (node->kind == CHEMPI_LAYOUT_RUNS) {
            after += (int64_t)(node->starts[i + 1] - node->starts[i]);
        } else {
            child = node->children ? node->children[i] : node->child;
            after += chempi_layout_end(child);
            first += chempi_layout_first(child);
        }
        if (first < least)
            return false;
        least = has_overlaps ? first : after;
    }
    return true;
}

static bool check(node_t *node, bool has_overlaps)
{
    if (node->kind == CHEMPI_LAYOUT_BLOCK)
        return true;
    if (node->child && !check(node->child, has_overlaps))
        return false;
    for (uint64_t i = 0; node->children && i < node->count; i++)
        if (!check(node->children[i], has_overlaps))
            return false;
    return do_follow(node, has_overlaps);
}

bool chempi_layout_is_ordered(const struct chempi_layout_node *node)
{
    return check(node, false);
}

bool chempi_layout_is_ascending(const struct chempi_layout_node *node)
{
    return check(node, true);
}

static uint64_t clamp(int64_t x, uint64_t max)
{
    if (x <= 0)
        return 0;
    return (uint64_t)x < max ? (uint64_t)x : max;
}

/* The last child of a list that begins before x, or 0. */
static uint64_t child_before(node_t *node, int64_t x)
{
    uint64_t low = 0;
    uint64_t high = node->count;

    if (node->kind == CHEMPI_LAYOUT_STRIDED) {
        int64_t from = x - chempi_layout_first(node->child);

        return from <= 0 ? 0
                         : clamp((from - 1) / node->stride, node->count - 1);
    }
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        int64_t at = node->offsets[middle];

        if (node->kind != CHEMPI_LAYOUT_RUNS)
            at += chempi_layout_first(node->children ? node->children[middle]
                                                     : node->child);
        if (at < x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint64_t chempi_layout_below(const struct chempi_layout_node *node, int64_t x)
{
    uint64_t sum = 0;

    for (;;) {
        uint64_t i;

        x -= node->offset;
        if (node->kind == CHEMPI_LAYOUT_BLOCK)
            return sum + clamp(x, node->size);
        i = child_before(node, x);
        x -= offset_at(node, i);
        if (node->kind == CHEMPI_LAYOUT_RUNS)
            return sum + node->starts[i] +
                   clamp(x, node->starts[i + 1] - node->starts[i]);
        sum += node->starts ? node->starts[i] : i * node->child->size;
        node = node->children ? node->children[i] : node->child;
    }
}

int64_t chempi_layout_at(const struct chempi_layout_node *node,
                         uint64_t position)
{
    int64_t at = 0;

    for (;;) {
        uint64_t start;
        uint64_t i;

        at += node->offset;
        if (node->kind == CHEMPI_LAYOUT_BLOCK)
            return at + (int64_t)position;
        i = chempi_layout_child(node, position, &start);
        at += offset_at(node, i);
        position -= start;
        if (node->kind == CHEMPI_LAYOUT_RUNS)
            return at + (int64_t)position;
        node = node->children ? node->children[i] : node->child;
    }
}

/* ---- as words ----
 *
 *   BLOCK    kind, offset, size
 *   STRIDED  kind, offset, count, stride, child
 *   INDEXED  kind, offset, count, offsets..., child
 *   RUNS     kind, offset, count, offsets..., lengths...
 *   PARTS    kind, offset, count, offsets..., children...
 */

struct writer {
    uint64_t *words;
    uint64_t room;
    uint64_t used;
};

static void put(struct writer *w, uint64_t word)
{
    if (w->used < w->room)
        w->words[w->used] = word;
    w->used++;
}

static void put_node(struct writer *w, node_t *node)
{
    put(w, node->kind);
    put(w, (uint64_t)node->offset);
    if (node->kind == CHEMPI_LAYOUT_BLOCK) {
        put(w, node->size);
        return;
    }
    put(w, node->count);
    if (node->kind == CHEMPI_LAYOUT_STRIDED)
        put(w, (uint64_t)node->stride);
    for (uint64_t i = 0; node->offsets && i < node->count; i++)
        put(w, (uint64_t)node->offsets[i]);
    for (uint64_t i = 0; node->kind == CHEMPI_LAYOUT_RUNS && i < node->count;
         i++)
        put(w, node->starts[i + 1] - node->starts[i]);
    for (uint64_t i = 0; node->children && i < node->count; i++)
        put_node(w, node->children[i]);
    if (node->child)
        put_node(w, node->child);
}

uint64_t chempi_layout_encode(const struct chempi_layout_node *node,
                              uint64_t *words, uint64_t room)
{
    struct writer w = {words, room, 0};

    put_node(&w, node);
    return w.used;
}

struct reader {
    const uint64_t *words;
    uint64_t left;
};

static bool take(struct reader *r, uint64_t *word)
{
    if (r->left == 0)
        return false;
    *word = *r->words++;
    r->left--;
    return true;
}

/* A list of `count` words, where they lie. */
static const uint64_t *take_list(struct reader *r, uint64_t count)
{
    const uint64_t *list = r->words;

    if (count > r->left)
        return NULL;
    r->words += count;
    r->left -= count;
    return list;
}

static node_t *get_node(struct reader *r, int depth);

static node_t *get_parts(struct reader *r, uint64_t count,
                         const int64_t *offsets, int depth)
{
    node_t **children = chempi_sys->calloc((size_t)count, sizeof(*children));
    node_t *node = NULL;
    uint64_t got = 0;

    if (!children)
        return NULL;
    while (got < count && (children[got] = get_node(r, depth)) != NULL)
        got++;
    if (got == count)
        node = chempi_layout_join(count, offsets, children);
    for (uint64_t i = 0; got < count && i < got; i++)
        chempi_layout_release(children[i]);
    free(children);
    return node;
}

static node_t *get_list(struct reader *r, uint64_t kind, uint64_t count,
                        int depth)
{
    const uint64_t *lens = NULL;
    const int64_t *offsets;
    node_t *child;

    if (kind == CHEMPI_LAYOUT_STRIDED) {
        uint64_t stride;

        child = take(r, &stride) ? get_node(r, depth) : NULL;
        return child ? chempi_layout_repeat(child, count, (int64_t)stride)
                     : NULL;
    }
    offsets = (const int64_t *)take_list(r, count);
    if (!offsets)
        return NULL;
    if (kind == CHEMPI_LAYOUT_RUNS) {
        lens = take_list(r, count);
        return lens ? chempi_layout_blocks(count, offsets, lens) : NULL;
    }
    if (kind == CHEMPI_LAYOUT_PARTS)
        return get_parts(r, count, offsets, depth);
    child = kind == CHEMPI_LAYOUT_INDEXED ? get_node(r, depth) : NULL;
    return child ? chempi_layout_indexed(child, count, offsets) : NULL;
}

static node_t *get_node(struct reader *r, int depth)
{
    uint64_t kind;
    uint64_t offset;
    uint64_t count;
    node_t *node;

    if (depth == 0 || !take(r, &kind) || !take(r, &offset) ||
        !take(r, &count) || count == 0 || count > INT64_MAX)
        return NULL;
    if (kind == CHEMPI_LAYOUT_BLOCK)
        return chempi_layout_block((int64_t)offset, count);
    node = get_list(r, kind, count, depth - 1);
    return node ? chempi_layout_shift(node, (int64_t)offset) : NULL;
}

const struct chempi_layout_node *chempi_layout_decode(const uint64_t *words,
                                                      uint64_t count)
{
    struct reader r = {words, count};
    node_t *node = get_node(&r, CHEMPI_LAYOUT_DEPTH_MAX + 1);

    if (node && (r.left > 0 || node->size == 0)) {
        chempi_layout_release(node);
        return NULL;
    }
    return node;
}
