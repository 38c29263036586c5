/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lower envelope; see lower_envelope.h. Between two sizes at which a line
 * begins or ends the set of valid lines does not change, so the envelope there
 * is walked from line to line: the next one is the flatter line that gets ahead
 * first.
 */
#include "common/table/lower_envelope.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "common/containers/array.h"

struct walk {
    const struct chempi_line *lines;
    size_t line_count;
    size_t *valid; /* lines valid in the present interval */
    size_t valid_count;
    struct chempi_piece *pieces;
    size_t piece_count;
    size_t piece_room;
};

double chempi_line_at(const struct chempi_line *line, uint64_t len)
{
    return line->base_us + (double)len * line->slope_us;
}

/* Is a ahead of b by more than rounding? */
static bool is_ahead(const struct chempi_line *a, const struct chempi_line *b,
                     uint64_t len)
{
    double at_b = chempi_line_at(b, len);

    return chempi_line_at(a, len) < at_b - at_b * 1e-12;
}

/* The lowest line; of those that it is not ahead of, the one that wins by
 * rank, then by index. Never a line that another one is ahead of, so a line
 * that was overtaken does not come back. */
static size_t best_at(const struct walk *w, uint64_t len)
{
    const struct chempi_line *lowest = &w->lines[w->valid[0]];
    size_t best = CHEMPI_LOWER_ENVELOPE_NONE;

    for (size_t i = 1; i < w->valid_count; i++) {
        const struct chempi_line *a = &w->lines[w->valid[i]];

        if (chempi_line_at(a, len) < chempi_line_at(lowest, len))
            lowest = a;
    }
    for (size_t i = 0; i < w->valid_count; i++) {
        const struct chempi_line *a = &w->lines[w->valid[i]];

        if (!is_ahead(lowest, a, len) && (best == CHEMPI_LOWER_ENVELOPE_NONE ||
                                          a->rank < w->lines[best].rank))
            best = w->valid[i];
    }
    return best;
}

/* First size in (from, to] at which a is ahead of b, or to + 1 when there is
 * none; a is flatter and not ahead at `from`. to < UINT64_MAX or the answer
 * exists: the caller asks only then. */
static uint64_t first_ahead(const struct chempi_line *a,
                            const struct chempi_line *b, uint64_t from,
                            uint64_t to)
{
    uint64_t low = from; /* not ahead */
    uint64_t high = to;  /* ahead */

    while (high - low > 1) {
        uint64_t mid = low + (high - low) / 2;

        if (is_ahead(a, b, mid))
            high = mid;
        else
            low = mid;
    }
    return high;
}

static int add_piece(struct walk *w, uint64_t max_len, size_t line)
{
    if (w->piece_count > 0 && w->pieces[w->piece_count - 1].line == line) {
        w->pieces[w->piece_count - 1].max_len = max_len;
        return 0;
    }
    if (!CHEMPI_ARRAY_FIT(w->pieces, w->piece_room, w->piece_count + 1))
        return -ENOMEM;
    w->pieces[w->piece_count++] =
        (struct chempi_piece){.max_len = max_len, .line = line};
    return 0;
}

/* Where `best` is overtaken after `at`; false when nowhere up to `to`. */
static bool find_overtaker(const struct walk *w, size_t best, uint64_t at,
                           uint64_t to, uint64_t *where)
{
    bool found = false;
    uint64_t first = to;

    for (size_t i = 0; i < w->valid_count; i++) {
        const struct chempi_line *a = &w->lines[w->valid[i]];
        const struct chempi_line *b = &w->lines[best];

        if (a->slope_us >= b->slope_us || !is_ahead(a, b, first))
            continue;
        first = first_ahead(a, b, at, first);
        found = true;
        if (first == at + 1)
            break;
    }
    *where = first;
    return found;
}

/* The envelope over [from, to], inside which the valid lines stay the same. */
static int walk_interval(struct walk *w, uint64_t from, uint64_t to)
{
    uint64_t at = from;
    uint64_t next;
    size_t best;
    int rc;

    w->valid_count = 0;
    for (size_t i = 0; i < w->line_count; i++) {
        if (w->lines[i].min_len <= from && w->lines[i].max_len >= to)
            w->valid[w->valid_count++] = i;
    }
    if (w->valid_count == 0)
        return add_piece(w, to, CHEMPI_LOWER_ENVELOPE_NONE);
    best = best_at(w, at);
    while (at < to && find_overtaker(w, best, at, to, &next)) {
        rc = add_piece(w, next - 1, best);
        if (rc)
            return rc;
        at = next;
        best = best_at(w, at);
    }
    return add_piece(w, to, best);
}

static int order_len(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Sizes at which an interval ends, ascending, with duplicates. */
static size_t find_ends(const struct chempi_line *lines, size_t count,
                        uint64_t *ends)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        if (lines[i].min_len > 0)
            ends[n++] = lines[i].min_len - 1;
        ends[n++] = lines[i].max_len;
    }
    ends[n++] = UINT64_MAX;
    qsort(ends, n, sizeof(*ends), order_len);
    return n;
}

static int walk_all(struct walk *w, const uint64_t *ends, size_t n)
{
    uint64_t from = 0;
    int rc;

    for (size_t i = 0; i < n; i++) {
        if (i > 0 && ends[i] == ends[i - 1])
            continue;
        rc = walk_interval(w, from, ends[i]);
        if (rc)
            return rc;
        from = ends[i] + 1; /* wraps after the last one */
    }
    return 0;
}

int chempi_lower_envelope(const struct chempi_line *lines, size_t count,
                          struct chempi_piece **out, size_t *out_count)
{
    struct walk w = {.lines = lines, .line_count = count};
    uint64_t *ends;
    int rc = -ENOMEM;

    ends = chempi_sys->calloc(2 * count + 1, sizeof(*ends));
    w.valid = chempi_sys->calloc(count + 1, sizeof(*w.valid));
    if (ends && w.valid)
        rc = walk_all(&w, ends, find_ends(lines, count, ends));
    free(ends);
    free(w.valid);
    if (rc) {
        free(w.pieces);
        return rc;
    }
    *out = w.pieces;
    *out_count = w.piece_count;
    return 0;
}
