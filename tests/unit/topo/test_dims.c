/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Dims_create against an exhaustive search, and on numbers with very many
 * divisors. */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "libchempi/api/api_impl.h"
#include "libchempi/didl/error/error.h"

enum { K_MAX = 40 };

/* The module under test links without the rest of didl. */
int chempi_error_set(int errclass, const char *fmt, ...)
{
    (void)fmt;
    return errclass;
}

struct best {
    int k;
    int chosen[K_MAX];
    int dims[K_MAX];
    bool is_set;
};

/* Least spread; then the largest last factor, last but one, ... */
static bool is_better(const struct best *b)
{
    int spread = b->chosen[0] - b->chosen[b->k - 1];
    int known = b->dims[0] - b->dims[b->k - 1];

    if (!b->is_set || spread != known)
        return !b->is_set || spread < known;
    for (int i = b->k; i-- > 0;)
        if (b->chosen[i] != b->dims[i])
            return b->chosen[i] > b->dims[i];
    return false;
}

static void try_all(struct best *b, int at, int rest, int most)
{
    if (at == b->k) {
        if (rest == 1 && is_better(b)) {
            memcpy(b->dims, b->chosen, sizeof(b->dims));
            b->is_set = true;
        }
        return;
    }
    for (int d = 1; d <= most && d <= rest; d++)
        if (rest % d == 0) {
            b->chosen[at] = d;
            try_all(b, at + 1, rest / d, d);
        }
}

Test(dims, are_as_balanced_as_any)
{
    for (int n = 1; n <= 400; n++)
        for (int k = 1; k <= 5; k++) {
            struct best best = {.k = k};
            int dims[K_MAX] = {0};

            try_all(&best, 0, n, n);
            cr_assert_eq(chempi_topology_dims_create(n, k, dims), MPI_SUCCESS);
            cr_assert_arr_eq(dims, best.dims, sizeof(int) * (size_t)k,
                             "%d in %d dimensions: %d %d %d", n, k, dims[0],
                             dims[1], dims[2]);
        }
}

/* It would not end within the time limit if it tried all products. */
Test(dims, of_numbers_with_many_divisors_are_found_soon, .timeout = 60)
{
    static const int many[] = {2095133040, 1396755360, 735134400, 698377680,
                               1 << 30,    2147483647, 362797056, 223092870,
                               1000000000, 2147483646};

    for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++)
        for (int k = 1; k <= 33; k++) {
            int dims[K_MAX] = {0};
            long product = 1;

            cr_assert_eq(chempi_topology_dims_create(many[i], k, dims),
                         MPI_SUCCESS);
            for (int d = 0; d < k; d++) {
                product *= dims[d];
                cr_assert(d == 0 || dims[d] <= dims[d - 1],
                          "%d in %d dimensions ascends", many[i], k);
            }
            cr_assert_eq(product, many[i], "%d in %d dimensions", many[i], k);
        }
}
