/* SPDX-License-Identifier: BSD-3-Clause */
/* Pareto fronts and hulls; see pareto.h. */
#include "mdconfig/description/pareto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mdconfig/description/mem.h"

#define ROUNDING 1e-12 /* relative */

/* Does b lie on or above the straight line from a to c (a.u <= b.u <= c.u)? */
static bool is_above(const struct chempi_pareto_point *a,
                     const struct chempi_pareto_point *b,
                     const struct chempi_pareto_point *c)
{
    double cross =
        (b->u - a->u) * (c->v - a->v) - (b->v - a->v) * (c->u - a->u);
    double scale = fabs(b->v * (c->u - a->u)) + fabs(b->u * (c->v - a->v));

    return cross <= scale * ROUNDING;
}

/* Is a point useless behind `left` and before `right` (either may be NULL)? */
static bool is_useless(const struct chempi_pareto_point *left,
                       const struct chempi_pareto_point *point,
                       const struct chempi_pareto_point *right, bool hull)
{
    if (left && point->v >= left->v * (1 - ROUNDING))
        return true;
    if (right && right->u <= point->u * (1 + ROUNDING) &&
        right->v <= point->v * (1 + ROUNDING))
        return true;
    return hull && left && right && is_above(left, point, right);
}

static void drop(struct chempi_pareto *f, size_t at)
{
    f->count--;
    memmove(f->points + at, f->points + at + 1,
            (f->count - at) * sizeof(*f->points));
}

/* Drop the points around f->points[at] that it makes useless. */
static void tidy(struct chempi_pareto *f, size_t at, bool hull)
{
    while (at + 1 < f->count &&
           is_useless(f->points[at], f->points[at + 1],
                      at + 2 < f->count ? f->points[at + 2] : NULL, hull))
        drop(f, at + 1);
    while (at > 0 && is_useless(at > 1 ? f->points[at - 2] : NULL,
                                f->points[at - 1], f->points[at], hull)) {
        drop(f, at - 1);
        at--;
    }
}

/* The first point with a larger u. */
static size_t find_place(const struct chempi_pareto *f, double u)
{
    size_t at = 0;

    while (at < f->count && f->points[at]->u <= u)
        at++;
    return at;
}

static bool is_useless_at(const struct chempi_pareto *f, size_t at,
                          const struct chempi_pareto_point *point, bool hull)
{
    return is_useless(at > 0 ? f->points[at - 1] : NULL, point,
                      at < f->count ? f->points[at] : NULL, hull);
}

bool chempi_pareto_would_add(const struct chempi_pareto *front,
                             const struct chempi_pareto_point *point, bool hull)
{
    return !is_useless_at(front, find_place(front, point->u), point, hull);
}

bool chempi_pareto_add(struct chempi_pareto *front,
                       const struct chempi_pareto_point *point, bool hull)
{
    size_t at = find_place(front, point->u);

    if (is_useless_at(front, at, point, hull))
        return false;
    front->points = chempi_mem_grow(front->points, front->count, &front->room,
                                    sizeof(*front->points));
    memmove(front->points + at + 1, front->points + at,
            (front->count - at) * sizeof(*front->points));
    front->points[at] = point;
    front->count++;
    tidy(front, at, hull);
    return true;
}

void chempi_pareto_fini(struct chempi_pareto *front)
{
    free(front->points);
    *front = (struct chempi_pareto){.count = 0};
}
