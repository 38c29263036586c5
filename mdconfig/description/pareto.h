/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets of points (u, v) of which only those are kept that can be the best for
 * somebody who wants both small: all that no other point beats in both
 * (a Pareto front), or, where only weighted sums of u and v count, the lower
 * left hull.
 */
#ifndef CHEMPI_MDCONFIG_PARETO_H
#define CHEMPI_MDCONFIG_PARETO_H

#include <stdbool.h>
#include <stddef.h>

struct chempi_pareto_point {
    double u;
    double v;
};

/* Points in memory of their owner, by ascending u and so descending v. */
struct chempi_pareto {
    const struct chempi_pareto_point **points;
    size_t count;
    size_t room;
};

/* Add a point if it is an improvement by more than rounding, and drop those
 * that it makes useless; true when it was added. */
bool chempi_pareto_add(struct chempi_pareto *front,
                       const struct chempi_pareto_point *point, bool hull);
/* The same question without the consequences. */
bool chempi_pareto_would_add(const struct chempi_pareto *front,
                             const struct chempi_pareto_point *point,
                             bool hull);
void chempi_pareto_fini(struct chempi_pareto *front);

#endif
