/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Overlaps; see the header. Elements follow each other by the extent, so two
 * pieces meet only if they meet modulo the extent, and then in elements that
 * are as far apart as their quotients.
 */
#include "libchempi/services/layout/layout_apart.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/services/layout/layout_order.h"
#include "libchempi/services/layout/segment.h"

enum {
    PIECES_MAX = 1 << 18,
    RUNS = 64,
    NEAR = 64 /* pieces behind one that are compared with it */
};

struct piece {
    int64_t at;      /* displacement, or what is left of it */
    int64_t element; /* displacement / extent */
    uint64_t len;
};

struct pieces {
    struct piece *all; /* [2 * count]: each may be cut once */
    size_t count;
};

/* Displacements are those of an element that lies here, so that none of its
 * bytes has a negative one. */
#define BASE (UINT64_C(1) << 62)

static bool list(const struct chempi_layout *layout, struct pieces *p)
{
    struct chempi_segment iter;
    struct iovec runs[RUNS];
    size_t n;

    p->all = chempi_sys->malloc(2 * layout->root->blocks * sizeof(*p->all));
    if (!p->all)
        return false;
    chempi_segment_init(&iter, (const void *)(uintptr_t)BASE, 1, layout);
    while ((n = chempi_segment_runs(&iter, runs, RUNS, UINT64_MAX)) > 0)
        for (size_t i = 0; i < n && p->count < layout->root->blocks; i++)
            p->all[p->count++] = (struct piece){
                .at = (int64_t)((uintptr_t)runs[i].iov_base - BASE),
                .len = runs[i].iov_len};
    return true;
}

static int by_place(const void *a, const void *b)
{
    const struct piece *x = a;
    const struct piece *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->element > y->element) - (x->element < y->element);
}

static bool is_before(const struct piece *a, const struct piece *b)
{
    return (uint64_t)(b->at - a->at) >= a->len;
}

static bool overlaps_itself(struct pieces *p)
{
    qsort(p->all, p->count, sizeof(*p->all), by_place);
    for (size_t i = 0; i + 1 < p->count; i++)
        if (!is_before(&p->all[i], &p->all[i + 1]))
            return true;
    return false;
}

/* Modulo the extent; what crosses its end is cut there. False: a piece meets
 * that of the next element. */
static bool fold(struct pieces *p, int64_t extent)
{
    const size_t count = p->count;

    for (size_t i = 0; i < count; i++) {
        struct piece *one = &p->all[i];
        const int64_t rest = one->at % extent;
        uint64_t room;

        one->element = one->at / extent - (rest < 0);
        one->at = rest < 0 ? rest + extent : rest;
        room = (uint64_t)(extent - one->at);
        if (one->len > (uint64_t)extent)
            return false;
        if (one->len <= room)
            continue;
        p->all[p->count++] =
            (struct piece){.element = one->element + 1, .len = one->len - room};
        one->len = room;
    }
    return true;
}

/* Pieces with the same place stand in the order of their elements, so that the
 * nearest ones are neighbours. */
static uint64_t least_distance(struct pieces *p)
{
    uint64_t least = UINT64_MAX;

    qsort(p->all, p->count, sizeof(*p->all), by_place);
    for (size_t i = 0; i < p->count; i++)
        for (size_t k = i + 1; k < p->count && k <= i + NEAR; k++) {
            const int64_t apart = p->all[k].element - p->all[i].element;
            const uint64_t n = (uint64_t)(apart < 0 ? -apart : apart);

            if (is_before(&p->all[i], &p->all[k]))
                break;
            if (n && n < least)
                least = n;
        }
    return least;
}

uint64_t chempi_layout_apart(const struct chempi_layout *layout)
{
    const int64_t extent =
        layout->extent < 0 ? -layout->extent : layout->extent;
    struct pieces p = {0};
    uint64_t count = 1;
    bool is_ordered;

    if (!layout->root || !layout->size)
        return UINT64_MAX;
    is_ordered = chempi_layout_is_ordered(layout->root);
    if (is_ordered && extent >= chempi_layout_end(layout->root) -
                                    chempi_layout_first(layout->root))
        return UINT64_MAX;
    if (layout->root->blocks > PIECES_MAX || !list(layout, &p))
        return UINT64_MAX;
    if (!is_ordered && overlaps_itself(&p))
        count = 0;
    else if (extent && fold(&p, extent))
        count = least_distance(&p);
    free(p.all);
    return count;
}
