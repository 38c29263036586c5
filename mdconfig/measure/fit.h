/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From times that were measured, on a machine that has other things to do, to
 * the figures of a protocol.
 *
 * A probe goes through all sizes again and again, in rounds, so that a
 * disturbance hits all sizes and not one. What disturbs a message only ever
 * adds to its time. So the rounds are cut into groups, early ones, later ones;
 * of each group and size the least undisturbed time counts, and of the groups
 * the second least: a time that was seen twice, at different times of the
 * measurement. A size without any is left out. A line through these points is
 * Theil and Sen's: the median of the slopes of all pairs of points, weighted by
 * the difference in size, which a few wrong points do not move. Its height
 * comes from the sizes where the bytes matter least.
 *
 * The spread of a figure is how far the same figure, computed from each single
 * group, lies from it, at most. Where the groups tell stories too different,
 * nothing was undisturbed for long enough, and the figures are not steady.
 */
#ifndef CHEMPI_MDCONFIG_FIT_H
#define CHEMPI_MDCONFIG_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHEMPI_FIT_SIZES_MAX 32u
#define CHEMPI_FIT_ROUNDS_MAX 64u

/* Times are negative where other processes are known to have disturbed all
 * messages of a round. */
struct chempi_fit_point {
    uint64_t len; /* bytes of a message */
    double us[CHEMPI_FIT_ROUNDS_MAX];
};

struct chempi_fit_samples {
    size_t round_count;
    size_t point_count;
    struct chempi_fit_point points[CHEMPI_FIT_SIZES_MAX]; /* ascending sizes */
    /* Time per message when messages of rate_len follow each other closely. */
    double rate_us[CHEMPI_FIT_ROUNDS_MAX];
    uint64_t rate_len;
};

struct chempi_fit_figure {
    double value;
    double spread; /* a fraction of the value */
    bool is_known; /* false: the measurement does not tell */
};

struct chempi_fit {
    struct chempi_fit_figure latency; /* us */
    struct chempi_fit_figure bw;      /* bytes/us */
    struct chempi_fit_figure cost;    /* us */
    double disagreement; /* of the groups, as a share of what is bearable */
    bool is_disturbed;   /* hardly anything was seen undisturbed */
};

/* Median of values, which are reordered. */
double chempi_fit_median(double *values, size_t count);

/*
 * The figures. Where the sizes do not tell a bandwidth, since they are too
 * few, too close together or make too little of a message's time,
 * `bw_bytes_per_us` is taken to be it. At least one point and one round;
 * latency is always known.
 */
void chempi_fit_figures(const struct chempi_fit_samples *samples,
                        double bw_bytes_per_us, struct chempi_fit *out);

/* Was enough seen undisturbed, and do the groups of rounds agree? */
bool chempi_fit_is_steady(const struct chempi_fit *fit);

#endif
