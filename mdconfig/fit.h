/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From times that were measured, on a machine that has other things to do, to
 * the figures of a protocol.
 *
 * A probe goes through all sizes again and again, in rounds, so that a
 * disturbance hits all sizes and not one. Of each size the outliers among the
 * rounds are dropped (beyond three deviations of the median, the deviation
 * taken from the median of absolute deviations), and the median of the rest
 * stands for it. A line through these points is Theil and Sen's: the median
 * of the slopes of all pairs of points, weighted by the difference in size,
 * which a few wrong points do not move. Its height comes from the sizes where
 * the bytes matter least. The spread of a figure is how far the same figure,
 * computed from single rounds, lies from the median of all rounds.
 */
#ifndef CHEMPI_MDCONFIG_FIT_H
#define CHEMPI_MDCONFIG_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHEMPI_FIT_SIZES_MAX 32u
#define CHEMPI_FIT_ROUNDS_MAX 64u

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
};

/* Median of values, which are reordered. */
double chempi_fit_median(double *values, size_t count);

/* Median after outliers are dropped; *spread is the standard deviation that
 * the rest suggests, as a fraction of the median. Values are reordered. */
double chempi_fit_robust(double *values, size_t count, double *spread);

/*
 * The figures. Where the sizes do not tell a bandwidth, since they are too
 * few, too close together or too uncertain, `bw_bytes_per_us` is taken to
 * be it. At least one point and one round; latency is always known.
 */
void chempi_fit_figures(const struct chempi_fit_samples *samples,
                        double bw_bytes_per_us, struct chempi_fit *out);

#endif
