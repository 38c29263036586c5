/* SPDX-License-Identifier: BSD-3-Clause */
/* Robust statistics of measured times; see fit.h. */
#include "mdconfig/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIGMA_OF_MAD 1.4826 /* standard deviation of normal noise */
#define OUTLIER_SIGMAS 3.0
#define LEAST_SIGMA 0.005   /* of the median: a clock is not better */
#define BW_SPREAD_MAX 0.5   /* beyond it a slope says nothing */
#define LEAST_TIME_US 0.001 /* no latency is less */
#define BYTES_LITTLE 0.25   /* of the time of the shortest message */
#define PAIRS_MAX (CHEMPI_FIT_SIZES_MAX * (CHEMPI_FIT_SIZES_MAX - 1) / 2)

static int order_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

double chempi_fit_median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), order_doubles);
    if (count % 2)
        return values[count / 2];
    return (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Standard deviation as the median of absolute deviations suggests. */
static double sigma_of(const double *values, size_t count, double median)
{
    double away[CHEMPI_FIT_ROUNDS_MAX];

    for (size_t i = 0; i < count; i++)
        away[i] = fabs(values[i] - median);
    return SIGMA_OF_MAD * chempi_fit_median(away, count);
}

double chempi_fit_robust(double *values, size_t count, double *spread)
{
    double median = chempi_fit_median(values, count);
    double limit = OUTLIER_SIGMAS * fmax(sigma_of(values, count, median),
                                         LEAST_SIGMA * fabs(median));
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (fabs(values[i] - median) <= limit)
            values[kept++] = values[i];
    }
    median = chempi_fit_median(values, kept); /* the median itself is kept */
    *spread = median != 0 ? sigma_of(values, kept, median) / fabs(median) : 0;
    return median;
}

/* ---- lines -------------------------------------------------------------- */

struct slope {
    double us_per_byte;
    double weight;
};

struct line {
    double base_us;
    double us_per_byte;
};

static int order_slopes(const void *a, const void *b)
{
    return order_doubles(&((const struct slope *)a)->us_per_byte,
                         &((const struct slope *)b)->us_per_byte);
}

/* The slope at which half of the weight is reached. */
static double weighted_median(struct slope *slopes, size_t count)
{
    double total = 0;
    double sum = 0;

    qsort(slopes, count, sizeof(*slopes), order_slopes);
    for (size_t i = 0; i < count; i++)
        total += slopes[i].weight;
    for (size_t i = 0; i < count; i++) {
        sum += slopes[i].weight;
        if (sum >= total / 2)
            return slopes[i].us_per_byte;
    }
    return 0;
}

static double slope_of(const struct chempi_fit_samples *s, const double *us)
{
    struct slope slopes[PAIRS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < s->point_count; i++) {
        for (size_t k = 0; k < i; k++) {
            double len = (double)(s->points[i].len - s->points[k].len);

            slopes[count++] = (struct slope){
                .us_per_byte = (us[i] - us[k]) / len, .weight = len};
        }
    }
    return weighted_median(slopes, count);
}

/* Where the line meets size 0: the median of what the sizes leave whose bytes
 * take little of the time. */
static double base_of(const struct chempi_fit_samples *s, const double *us,
                      double us_per_byte)
{
    double left[CHEMPI_FIT_SIZES_MAX];
    size_t count = 0;

    for (size_t i = 0; i < s->point_count; i++) {
        double bytes = (double)s->points[i].len * us_per_byte;

        if (i == 0 || bytes <= BYTES_LITTLE * us[0])
            left[count++] = us[i] - bytes;
    }
    return fmax(chempi_fit_median(left, count), LEAST_TIME_US);
}

static void fit_rounds(const struct chempi_fit_samples *s,
                       struct line lines[CHEMPI_FIT_ROUNDS_MAX],
                       const double *us_per_byte)
{
    for (size_t r = 0; r < s->round_count; r++) {
        double us[CHEMPI_FIT_SIZES_MAX];

        for (size_t i = 0; i < s->point_count; i++)
            us[i] = s->points[i].us[r];
        lines[r].us_per_byte = us_per_byte ? *us_per_byte : slope_of(s, us);
        lines[r].base_us = base_of(s, us, lines[r].us_per_byte);
    }
}

/* Spread of one member of the lines about a value. */
static double spread_of(const struct line *lines, size_t count, bool base,
                        double value)
{
    double values[CHEMPI_FIT_ROUNDS_MAX];

    for (size_t r = 0; r < count; r++)
        values[r] = base ? lines[r].base_us : lines[r].us_per_byte;
    return sigma_of(values, count, value) / fabs(value);
}

/* ---- figures ------------------------------------------------------------ */

static bool fit_bandwidth(const struct chempi_fit_samples *s,
                          const double *medians, struct chempi_fit_figure *out)
{
    struct line lines[CHEMPI_FIT_ROUNDS_MAX];
    double slope;

    if (s->point_count < 3)
        return false;
    slope = slope_of(s, medians);
    /* The bytes of the largest message must show in its time. */
    if (slope * (double)s->points[s->point_count - 1].len < 0.1 * medians[0])
        return false;
    fit_rounds(s, lines, NULL);
    *out = (struct chempi_fit_figure){
        .value = 1 / slope,
        .spread = spread_of(lines, s->round_count, false, slope),
        .is_known = true};
    return out->spread <= BW_SPREAD_MAX;
}

void chempi_fit_figures(const struct chempi_fit_samples *samples,
                        double bw_bytes_per_us, struct chempi_fit *out)
{
    struct line lines[CHEMPI_FIT_ROUNDS_MAX];
    double medians[CHEMPI_FIT_SIZES_MAX];
    double rates[CHEMPI_FIT_ROUNDS_MAX];
    double us_per_byte;
    double base;
    double spread;

    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < samples->point_count; i++) {
        double us[CHEMPI_FIT_ROUNDS_MAX];

        memcpy(us, samples->points[i].us, sizeof(us));
        medians[i] = chempi_fit_robust(us, samples->round_count, &spread);
    }
    if (!fit_bandwidth(samples, medians, &out->bw))
        out->bw = (struct chempi_fit_figure){.value = bw_bytes_per_us};
    us_per_byte = 1 / out->bw.value;
    base = base_of(samples, medians, us_per_byte);
    fit_rounds(samples, lines, &us_per_byte);
    out->latency.spread = spread_of(lines, samples->round_count, true, base);
    out->latency.is_known = true;
    memcpy(rates, samples->rate_us, sizeof(rates));
    out->cost.value =
        chempi_fit_robust(rates, samples->round_count, &out->cost.spread) -
        (double)samples->rate_len * us_per_byte;
    /* It is part of the time of one message, beside the latency. */
    out->cost.value = fmin(fmax(out->cost.value, 0), base / 2);
    out->cost.is_known = true;
    out->latency.value = base - out->cost.value;
}
