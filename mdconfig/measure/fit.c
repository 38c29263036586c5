/* SPDX-License-Identifier: BSD-3-Clause */
/* Robust statistics of measured times; see fit.h. */
#include "mdconfig/measure/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS 4u           /* of rounds */
#define BASE_SPREAD_MAX 0.5 /* of the time of the shortest message */
#define BW_SPREAD_MAX 0.25  /* where the bytes take most of a time */
#define BW_GUESS_MAX 0.5    /* elsewhere: beyond it a slope says nothing */
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

/* ---- lines -------------------------------------------------------------- */

struct slope {
    double us_per_byte;
    double weight;
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

/* ---- groups of rounds ---------------------------------------------------- */

/* The least times that the rounds of a group have. */
struct group {
    double us[CHEMPI_FIT_SIZES_MAX];
    double rate_us;
};

/* The least undisturbed time of each group, 0 where there is none; returns how
 * many have one. */
static size_t least_by_group(const double *us, size_t round_count,
                             double out[GROUPS])
{
    const size_t count = round_count < GROUPS ? round_count : GROUPS;
    size_t seen = 0;

    for (size_t g = 0; g < GROUPS; g++)
        out[g] = 0;
    for (size_t g = 0; g < count; g++) {
        const size_t end = (g + 1) * round_count / count;

        for (size_t r = g * round_count / count; r < end; r++) {
            if (us[r] > 0 && (out[g] <= 0 || us[r] < out[g]))
                out[g] = us[r];
        }
        seen += out[g] > 0;
    }
    return seen;
}

static bool is_seen_twice(const double *us, size_t round_count)
{
    double ignored[GROUPS];

    return least_by_group(us, round_count, ignored) > (round_count > 1);
}

/* The second least time of the groups, which takes the place of what a group
 * has not seen, too. */
static double join(const double *us, size_t round_count, double out[GROUPS])
{
    double sorted[GROUPS];
    size_t seen = least_by_group(us, round_count, out);
    size_t n = 0;

    for (size_t g = 0; g < GROUPS; g++) {
        if (out[g] > 0)
            sorted[n++] = out[g];
    }
    qsort(sorted, n, sizeof(*sorted), order_doubles);
    for (size_t g = 0; g < GROUPS; g++) {
        if (out[g] <= 0)
            out[g] = sorted[seen > 1];
    }
    return sorted[seen > 1];
}

/* All of it was seen twice. */
static void join_groups(const struct chempi_fit_samples *s,
                        struct group groups[GROUPS], struct group *all)
{
    double us[GROUPS];

    for (size_t i = 0; i < s->point_count; i++) {
        all->us[i] = join(s->points[i].us, s->round_count, us);
        for (size_t g = 0; g < GROUPS; g++)
            groups[g].us[i] = us[g];
    }
    all->rate_us = join(s->rate_us, s->round_count, us);
    for (size_t g = 0; g < GROUPS; g++)
        groups[g].rate_us = us[g];
}

/* Leave out sizes that were hardly seen undisturbed. False: it is one that
 * cannot be spared, the least for the latency, the greatest for a bandwidth,
 * which is often less over a while than for the first bytes. */
static bool leave_out_disturbed(const struct chempi_fit_samples *s,
                                struct chempi_fit_samples *out)
{
    *out = *s;
    out->point_count = 0;
    for (size_t i = 0; i < s->point_count; i++) {
        if (is_seen_twice(s->points[i].us, s->round_count))
            out->points[out->point_count++] = s->points[i];
    }
    return is_seen_twice(s->points[0].us, s->round_count) &&
           is_seen_twice(s->points[s->point_count - 1].us, s->round_count) &&
           is_seen_twice(s->rate_us, s->round_count);
}

static void take_all(const struct chempi_fit_samples *s,
                     struct chempi_fit_samples *out)
{
    *out = *s;
    for (size_t r = 0; r < s->round_count; r++) {
        for (size_t i = 0; i < s->point_count; i++)
            out->points[i].us[r] = fabs(s->points[i].us[r]);
        out->rate_us[r] = fabs(s->rate_us[r]);
    }
}

/* ---- figures ------------------------------------------------------------ */

struct figures {
    double base_us; /* latency and cost of a message */
    double cost_us;
    double bw;
};

static struct figures figures_of(const struct chempi_fit_samples *s,
                                 const struct group *group, double bw)
{
    struct figures f = {.bw = bw};

    f.base_us = base_of(s, group->us, 1 / bw);
    f.cost_us = group->rate_us - (double)s->rate_len / bw;
    /* It is part of the time of one message, beside the latency. */
    f.cost_us = fmin(fmax(f.cost_us, 0), f.base_us / 2);
    return f;
}

/* A slope's bandwidth; without any slope, a very high one. */
static double bw_of(const struct chempi_fit_samples *s, const double *us)
{
    return 1 / fmax(slope_of(s, us), 1e-9);
}

static void widen(struct chempi_fit_figure *f, double value)
{
    if (f->value > 0)
        f->spread = fmax(f->spread, fabs(value - f->value) / f->value);
}

/* False: the sizes do not tell a bandwidth. Groups may differ about one that
 * hardly shows, but not where the bytes take most of the time. */
static bool fit_bandwidth(const struct chempi_fit_samples *s,
                          const struct group groups[GROUPS],
                          const struct group *all, struct chempi_fit *out)
{
    double bytes_us;

    if (s->point_count < 3)
        return false;
    out->bw = (struct chempi_fit_figure){.value = bw_of(s, all->us)};
    /* The bytes of the largest message must show in its time. */
    bytes_us = (double)s->points[s->point_count - 1].len / out->bw.value;
    if (bytes_us < 0.1 * all->us[0])
        return false;
    for (size_t g = 0; g < GROUPS; g++)
        widen(&out->bw, bw_of(s, groups[g].us));
    if (bytes_us > all->us[0])
        out->disagreement = out->bw.spread / BW_SPREAD_MAX;
    out->bw.is_known = bytes_us > all->us[0] || out->bw.spread <= BW_GUESS_MAX;
    return out->bw.is_known;
}

void chempi_fit_figures(const struct chempi_fit_samples *samples,
                        double bw_bytes_per_us, struct chempi_fit *out)
{
    struct chempi_fit_figure base = {.value = 0};
    struct chempi_fit_samples kept;
    struct group groups[GROUPS];
    struct group all;
    struct figures f;

    memset(out, 0, sizeof(*out));
    if (!leave_out_disturbed(samples, &kept)) {
        out->is_disturbed = true;
        take_all(samples, &kept);
    }
    join_groups(&kept, groups, &all);
    if (!fit_bandwidth(&kept, groups, &all, out)) {
        out->bw = (struct chempi_fit_figure){.value = bw_bytes_per_us};
        /* Those that were left out might have told. */
        out->is_disturbed |= kept.point_count < samples->point_count;
    }
    f = figures_of(&kept, &all, out->bw.value);
    base.value = f.base_us;
    out->cost = (struct chempi_fit_figure){f.cost_us, 0, true};
    out->latency = (struct chempi_fit_figure){f.base_us - f.cost_us, 0, true};
    for (size_t g = 0; g < GROUPS; g++) {
        struct figures one = figures_of(&kept, &groups[g], out->bw.value);

        widen(&base, one.base_us);
        widen(&out->cost, one.cost_us);
        widen(&out->latency, one.base_us - one.cost_us);
    }
    out->disagreement = fmax(out->disagreement, base.spread / BASE_SPREAD_MAX);
}

bool chempi_fit_is_steady(const struct chempi_fit *fit)
{
    return !fit->is_disturbed && fit->disagreement <= 1;
}
