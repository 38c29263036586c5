/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Dims_create (MPI 5.0, section 8.5.2): the factors of a grid as close to
 * each other as there are any.
 *
 * Of all ways to write n as a product of k factors, in descending order, the
 * one with the least difference between the first and the last wins; of equal
 * ones the one with the largest last factor, then with the largest last but
 * one, and so on. The search tries pairs of a first and a last factor from
 * the k-th root outwards, and stops where no pair can be closer any more.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "libchempi/api/api_impl.h"
#include "libchempi/didl/error/error.h"

enum {
    DIVISORS_MAX = 1600, /* no number below 2^31 has more */
    FACTORS_MAX = 31     /* nor more prime factors; further ones are 1 */
};

struct search {
    int divisors[DIVISORS_MAX]; /* ascending */
    int divisor_count;
    int k;
    int chosen[FACTORS_MAX];
    int best[FACTORS_MAX];
};

static void find_divisors(struct search *s, int n)
{
    int small = 0;
    int large = 0;

    for (int64_t d = 1; d * d <= n; d++)
        if (n % d == 0)
            s->divisors[small++] = (int)d;
    for (int i = small; i-- > 0;) {
        int other = n / s->divisors[i];

        if (other != s->divisors[i])
            s->divisors[small + large++] = other;
    }
    s->divisor_count = small + large;
}

/* Is r to the k at most n? */
static bool is_power_within(int64_t r, int k, int64_t n)
{
    int64_t product = 1;

    for (int i = 0; i < k; i++) {
        if (product > n / r)
            return false;
        product *= r;
    }
    return true;
}

static bool is_power(int64_t r, int k, int64_t n)
{
    return is_power_within(r, k, n) &&
           (n == 1 || !is_power_within(r, k, n - 1));
}

/* The largest r with r to the k <= n. */
static int root_of(int n, int k)
{
    int64_t low = 1;
    int64_t high = (int64_t)n + 1;

    if (k == 1)
        return n;
    while (high - low > 1) {
        int64_t mid = (low + high) / 2;

        if (is_power_within(mid, k, n))
            low = mid;
        else
            high = mid;
    }
    return (int)low;
}

/* Index of the least divisor >= d. */
static int divisor_from(const struct search *s, int d)
{
    int low = 0;
    int high = s->divisor_count;

    while (low < high) {
        int mid = (low + high) / 2;

        if (s->divisors[mid] < d)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Fill the `left` places before chosen[end] with factors of rest, ascending
 * towards the front, from low..most; the last of them as large as can be. */
static bool fill(struct search *s, int end, int left, int rest, int low,
                 int most)
{
    if (left == 0)
        return rest == 1;
    if (!is_power_within(low, left, rest) ||
        (rest > 1 && is_power_within(most, left, rest - 1)))
        return false;
    for (int i = divisor_from(s, root_of(rest, left) + 1); i-- > 0;) {
        int d = s->divisors[i];

        if (d < low)
            return false;
        if (rest % d)
            continue;
        s->chosen[end - 1] = d;
        if (fill(s, end - 1, left - 1, rest / d, d, most))
            return true;
    }
    return false;
}

/* Is there a way with these first and last factors? Then it is in chosen. */
static bool is_possible(struct search *s, int n, int first, int last)
{
    s->chosen[0] = first;
    s->chosen[s->k - 1] = last;
    return n % first == 0 && n / first % last == 0 &&
           fill(s, s->k - 1, s->k - 2, n / first / last, last, first);
}

/* n as a product of k factors in descending order, 2 <= k <= FACTORS_MAX. */
static void factorize(struct search *s, int n, int k)
{
    int root = root_of(n, k);
    int spread = INT_MAX;
    int from;

    s->k = k;
    find_divisors(s, n);
    from = divisor_from(s, root);
    if (!is_power(root, k, n))
        from = divisor_from(s, root + 1);
    for (int f = from; f < s->divisor_count; f++) {
        int first = s->divisors[f];

        if (first - root > spread)
            return;
        for (int l = divisor_from(s, root + 1); l-- > 0;) {
            int last = s->divisors[l];

            if (first - last > spread)
                break;
            if (is_possible(s, n, first, last)) {
                spread = first - last;
                memcpy(s->best, s->chosen, (size_t)k * sizeof(s->best[0]));
                break;
            }
        }
    }
}

/* Name the dimensions, of very many the first. */
static int unfit(int nnodes, int ndims, const int *dims, bool has_open)
{
    char text[96] = "none";
    size_t len = 0;
    int d = 0;

    while (d < ndims && len + sizeof(" x 2147483647 x ...") < sizeof(text)) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%d",
                                d ? " x " : "", dims[d]);
        d++;
    }
    return chempi_error_set(MPI_ERR_DIMS,
                            "%d processes cannot fill a grid with the "
                            "dimensions %s%s%s",
                            nnodes, text, d < ndims ? " x ..." : "",
                            has_open ? "; those that are 0 are free" : "");
}

static int check(int nnodes, int ndims, const int *dims, int *rest, int *open)
{
    int64_t fixed = 1;

    *open = 0;
    if (nnodes <= 0)
        return chempi_error_set(MPI_ERR_ARG, "nnodes is %d", nnodes);
    if (ndims < 0)
        return chempi_error_set(MPI_ERR_DIMS, "%d dimensions", ndims);
    if (ndims > 0 && !dims)
        return chempi_error_set(MPI_ERR_ARG, "dims is null");
    for (int d = 0; d < ndims; d++) {
        if (dims[d] < 0)
            return chempi_error_set(MPI_ERR_DIMS, "dims[%d] is %d", d, dims[d]);
        if (dims[d] == 0)
            ++*open;
        else if (fixed <= nnodes)
            fixed *= dims[d];
    }
    *rest = (int)(nnodes / fixed);
    if (fixed > nnodes || nnodes % fixed || (*open == 0 && *rest != 1))
        return unfit(nnodes, ndims, dims, *open > 0);
    return MPI_SUCCESS;
}

int chempi_topology_dims_create(int nnodes, int ndims, int dims[])
{
    struct search s;
    int rest = 1;
    int open;
    int next = 0;
    int rc = check(nnodes, ndims, dims, &rest, &open);

    if (rc || open == 0)
        return rc;
    if (open == 1)
        s.best[0] = rest;
    else
        factorize(&s, rest, open < FACTORS_MAX ? open : FACTORS_MAX);
    for (int d = 0; d < ndims; d++)
        if (dims[d] == 0) {
            dims[d] = next < FACTORS_MAX ? s.best[next] : 1;
            next++;
        }
    return MPI_SUCCESS;
}
