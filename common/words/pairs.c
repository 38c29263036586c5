/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of pairs; see pairs.h. */
#include "common/words/pairs.h"

#include <stddef.h>
#include <string.h>

enum { IS_PAIR = 1, IS_TOLD = 2 };

struct pairs {
    uint8_t *marks;
    uint32_t n;
};

static uint8_t *cell(const struct pairs *p, uint32_t from, uint32_t to)
{
    return &p->marks[(size_t)from * p->n + to];
}

/* Do both belong to the same others, and not to each other or themselves? */
static bool is_alike(const struct pairs *p, uint32_t a, uint32_t b)
{
    if ((*cell(p, a, b) | *cell(p, b, a) | *cell(p, a, a) | *cell(p, b, b)) &
        IS_PAIR)
        return false;
    for (uint32_t i = 0; i < p->n; i++)
        if (i != a && i != b &&
            ((*cell(p, a, i) ^ *cell(p, b, i)) |
             (*cell(p, i, a) ^ *cell(p, i, b))) &
                IS_PAIR)
            return false;
    return true;
}

static uint32_t find_alike(const struct pairs *p, uint32_t one, uint32_t *alike)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < p->n; i++)
        if (i == one || is_alike(p, one, i))
            alike[count++] = i;
    return count;
}

/* Not told yet, and of this kind? */
static bool is_of_kind(const struct pairs *p, uint32_t from, uint32_t to,
                       bool is_one_way)
{
    return *cell(p, from, to) == IS_PAIR &&
           ((*cell(p, to, from) & IS_PAIR) == 0) == is_one_way;
}

static void mark_told(const struct pairs *p, const uint32_t *alike,
                      uint32_t count, const uint32_t *others,
                      uint32_t other_count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < other_count; k++) {
            *cell(p, alike[i], others[k]) |= IS_TOLD;
            *cell(p, others[k], alike[i]) |= IS_TOLD;
        }
}

int chempi_pairs_group(uint8_t *marks, uint32_t n, uint32_t *scratch,
                       chempi_pairs_fn *tell, void *arg)
{
    const struct pairs p = {.marks = marks, .n = n};
    uint32_t *alike = scratch;
    uint32_t *others = scratch + n;
    int rc = 0;

    for (uint32_t i = 0; !rc && i < n; i++) {
        uint32_t count;

        if (!memchr(cell(&p, i, 0), IS_PAIR, n))
            continue; /* has none that is not told */
        count = find_alike(&p, i, alike);
        for (int kind = 0; !rc && kind < 2; kind++) {
            uint32_t other_count = 0;

            for (uint32_t to = 0; to < n; to++)
                if (is_of_kind(&p, i, to, kind == 1))
                    others[other_count++] = to;
            mark_told(&p, alike, count, others, other_count);
            if (other_count)
                rc = tell(arg, alike, count, others, other_count, kind == 1);
        }
    }
    return rc;
}
