/* SPDX-License-Identifier: BSD-3-Clause */
/* What an aggregator does with a window of the file; see window.h. */
#include "libchempi/didl/io/exchange/window.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/compiler.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/io/count.h"

/* Longer runs are written by calls of the system. */
#define RUN_MAP_MAX 2048
/* Runs from here on are followed one by one quicker than their bytes are
 * marked, of so many members at most. */
#define RUN_CHAIN_MIN 128
#define STREAMS_MAX 32

static const int64_t *told_by(const struct chempi_io_exchange *x, uint32_t rank)
{
    return chempi_io_told_by(x->agg, rank);
}

/* ---- shares ---- */

struct chempi_io_share chempi_io_window_share(const struct chempi_io_view *view,
                                              uint64_t position, uint64_t bytes,
                                              int64_t from, int64_t to)
{
    uint64_t low;
    uint64_t high;

    if (bytes == 0) /* perhaps nobody knows the view */
        return (struct chempi_io_share){position, 0};
    low = chempi_io_view_below(view, from);
    high = chempi_io_least(chempi_io_view_below(view, to), position + bytes);
    if (low < position)
        low = position;
    return (struct chempi_io_share){low, high > low ? high - low : 0};
}

bool chempi_io_window_of(const struct chempi_io_exchange *x, int a,
                         int64_t round, int64_t *from, int64_t *to)
{
    int64_t start = a == 0 ? x->start : x->base + a * x->domain;
    int64_t stop = x->base + (a + 1) * x->domain;

    if (stop > x->end)
        stop = x->end;
    *from = start + round * x->window;
    *to = *from + x->window < stop ? *from + x->window : stop;
    return *from < *to;
}

static bool is_one_run(const struct chempi_io_view *view,
                       const struct chempi_io_share *s, int64_t *at)
{
    *at = chempi_io_view_offset(view, s->position);
    return view->is_contiguous ||
           chempi_io_view_offset(view, s->position + s->len - 1) + 1 - *at ==
               (int64_t)s->len;
}

void chempi_io_window_plan(struct chempi_io_slot *s, char *data, uint64_t len,
                           int rank, bool is_send)
{
    s->plan[s->planned++] =
        (struct chempi_io_message){data, len, rank, is_send};
}

uint64_t chempi_io_window_find(struct chempi_io_exchange *x,
                               struct chempi_io_slot *s, int64_t round)
{
    uint64_t sum = 0;
    int64_t from;
    int64_t to;

    s->from = INT64_MAX;
    s->to = 0;
    if (x->agg->mine < 0 ||
        !chempi_io_window_of(x, x->agg->mine, round, &from, &to)) {
        if (s->shares)
            memset(s->shares, 0, x->file->comm->size * sizeof(*s->shares));
        return 0;
    }
    for (uint32_t r = 0; r < x->file->comm->size; r++) {
        const struct chempi_io_view *view = &x->agg->views[r];
        const int64_t *told = told_by(x, r);
        struct chempi_io_share *share = &s->shares[r];
        int64_t at;

        *share = chempi_io_window_share(
            view, (uint64_t)told[CHEMPI_IO_TOLD_POSITION],
            (uint64_t)told[CHEMPI_IO_TOLD_BYTES], from, to);
        if (share->len == 0)
            continue;
        sum += share->len;
        at = chempi_io_view_offset(view, share->position);
        if (at < s->from)
            s->from = at;
        at = chempi_io_view_offset(view, share->position + share->len - 1) + 1;
        if (at > s->to)
            s->to = at;
    }
    return sum;
}

/* ---- the aggregator's side of writing ---- */

/* One run goes to its place in the window at once. */
void chempi_io_window_expect(struct chempi_io_exchange *x,
                             struct chempi_io_slot *s)
{
    uint64_t used = 0;

    for (uint32_t r = 0; r < x->file->comm->size; r++) {
        const struct chempi_io_share *share = &s->shares[r];
        int64_t at;

        if (share->len == 0 || (int)r == x->file->comm->rank)
            continue;
        if (is_one_run(&x->agg->views[r], share, &at)) {
            chempi_io_window_plan(s, s->window + (at - s->from), share->len,
                                  (int)r, false);
            continue;
        }
        chempi_io_window_plan(s, s->packed + used, share->len, (int)r, false);
        used += share->len;
    }
}

static void scatter(const struct chempi_io_exchange *x,
                    const struct chempi_io_slot *s, uint32_t rank, char *window,
                    const char *data)
{
    struct chempi_segment iter;

    chempi_io_view_iter(&x->agg->views[rank], &iter, window, s->from,
                        s->shares[rank].position);
    (void)chempi_segment_unpack(&iter, data, s->shares[rank].len);
}

/* This member's own share, between its buffer and the window. */
static void move_own(struct chempi_io_exchange *x, struct chempi_io_slot *s,
                     bool is_write)
{
    struct chempi_io_op *op = x->op;
    uint32_t me = (uint32_t)x->file->comm->rank;
    const struct chempi_io_share *share = &s->shares[me];
    uint64_t start = share->position - op->position;
    uint64_t done = 0;
    struct chempi_segment iter;
    char stage[16384];

    if (share->len == 0)
        return;
    chempi_io_view_iter(&x->agg->views[me], &iter, s->window, s->from,
                        share->position);
    if (op->mem)
        done = is_write
                   ? chempi_segment_unpack(&iter, op->mem + start, share->len)
                   : chempi_segment_pack(&iter, op->mem + start, share->len);
    while (done < share->len) {
        uint64_t n = chempi_io_least(sizeof(stage), share->len - done);

        if (is_write) {
            chempi_io_op_pack(op, start + done, stage, n);
            (void)chempi_segment_unpack(&iter, stage, n);
        } else {
            (void)chempi_segment_pack(&iter, stage, n);
            chempi_io_op_unpack(op, start + done, stage, n);
        }
        done += n;
    }
}

/* Messages have come: everything to its place. */
static void assemble(struct chempi_io_exchange *x, struct chempi_io_slot *s)
{
    uint64_t used = 0;

    for (uint32_t r = 0; r < x->file->comm->size; r++) {
        const struct chempi_io_share *share = &s->shares[r];
        int64_t at;

        if (share->len == 0 || (int)r == x->file->comm->rank ||
            is_one_run(&x->agg->views[r], share, &at))
            continue;
        scatter(x, s, r, s->window, s->packed + used);
        used += share->len;
    }
    move_own(x, s, true);
}

static void mark(const struct chempi_io_exchange *x,
                 const struct chempi_io_slot *s, uint32_t rank)
{
    uint64_t left = s->shares[rank].len;
    struct chempi_segment iter;
    char ones[4096];

    memset(ones, 0xff, chempi_io_least(left, sizeof(ones)));
    chempi_io_view_iter(&x->agg->views[rank], &iter, x->mask, s->from,
                        s->shares[rank].position);
    while (left > 0)
        left -= chempi_segment_unpack(&iter, ones,
                                      chempi_io_least(left, sizeof(ones)));
}

/* Which bytes of the window somebody has brought. */
static void make_mask(struct chempi_io_exchange *x,
                      const struct chempi_io_slot *s)
{
    memset(x->mask, 0, (size_t)(s->to - s->from));
    for (uint32_t r = 0; r < x->file->comm->size; r++)
        if (s->shares[r].len > 0)
            mark(x, s, r);
}

/* The runs of a member in a window, a few at a time. */
struct stream {
    struct chempi_segment iter;
    uint64_t left; /* bytes behind those in runs */
    struct iovec runs[8];
    size_t count;
    size_t next;
};

/* Offset of the next run in the window; -1: there is none. */
static int64_t next_run(struct stream *m)
{
    if (m->next == m->count) {
        uint64_t before = m->iter.position;

        m->count = m->left > 0
                       ? chempi_segment_runs(&m->iter, m->runs,
                                             CHEMPI_ARRAY_LEN(m->runs), m->left)
                       : 0;
        m->left -= m->iter.position - before;
        m->next = 0;
    }
    return m->count ? (int64_t)(uintptr_t)m->runs[m->next].iov_base : -1;
}

/* The members whose runs can be followed; 0: too many. */
static int open_streams(const struct chempi_io_exchange *x,
                        const struct chempi_io_slot *s, struct stream *streams)
{
    int count = 0;

    for (uint32_t r = 0; r < x->file->comm->size; r++) {
        if (s->shares[r].len == 0)
            continue;
        if (count == STREAMS_MAX)
            return 0;
        streams[count].left = s->shares[r].len;
        streams[count].count = 0;
        streams[count].next = 0;
        chempi_io_view_iter(&x->agg->views[r], &streams[count++].iter, NULL,
                            s->from, s->shares[r].position);
    }
    return count;
}

/* Does a run begin wherever one ends, so that no byte is missing? The next one
 * is another member's, but where a list of runs ends. Where runs overlap, the
 * answer may be no. */
static bool is_chain(const struct chempi_io_exchange *x,
                     const struct chempi_io_slot *s)
{
    struct stream streams[STREAMS_MAX];
    int count = open_streams(x, s, streams);
    int64_t at = 0;
    int here = 0;
    int misses = 0;

    while (count > 0 && at < s->to - s->from && misses < count) {
        struct stream *m = &streams[here];

        misses++;
        if (next_run(m) == at) {
            at += (int64_t)m->runs[m->next++].iov_len;
            misses = 0;
        }
        here = here + 1 < count ? here + 1 : 0;
    }
    return at == s->to - s->from;
}

static int write_piece(struct chempi_io_exchange *x,
                       const struct chempi_io_slot *s, int64_t from, int64_t to,
                       int64_t *at)
{
    const struct chempi_io_view *plain = x->file->plain;
    uint64_t done = 0;

    return chempi_io_view_write(x->file, plain, (uint64_t)from,
                                s->window + (from - s->from),
                                (uint64_t)(to - from), false, &done, at);
}

/* Holes stay as they are. */
static int write_runs(struct chempi_io_exchange *x,
                      const struct chempi_io_slot *s, int64_t *at)
{
    int64_t len = s->to - s->from;
    int64_t i = 0;
    int rc = 0;

    while (!rc && i < len) {
        const char *hole = memchr(x->mask + i, 0, (size_t)(len - i));
        int64_t stop = hole ? hole - x->mask : len;

        if (stop > i)
            rc = write_piece(x, s, s->from + i, s->from + stop, at);
        for (i = stop; i < len && !x->mask[i]; i++)
            ;
    }
    return rc;
}

/* Many small runs are stored through a mapping. */
static int write_covered(struct chempi_io_exchange *x,
                         const struct chempi_io_slot *s, int64_t run,
                         int64_t *at)
{
    struct chempi_file *file = x->file;
    size_t len = (size_t)(s->to - s->from);
    int rc;

    if (run >= RUN_MAP_MAX || !file->is_mappable ||
        file->hints.ds_write != CHEMPI_IO_AUTO || !memchr(x->mask, 0, len))
        return write_runs(x, s, at);
    rc = chempi_io_map_store(file, s->window, x->mask, s->from, s->to);
    if (rc != -EOPNOTSUPP)
        return rc;
    file->is_mappable = false;
    return write_runs(x, s, at);
}

static void write_whole(struct chempi_io_exchange *x, struct chempi_io_slot *s)
{
    int64_t at = s->from;
    uint64_t begin = chempi_clock_ns();
    int64_t run = INT64_MAX;
    bool is_empty = true;
    int rc;

    for (uint32_t r = 0; r < x->file->comm->size; r++) {
        if (s->shares[r].len == 0)
            continue;
        is_empty = false;
        if (told_by(x, r)[CHEMPI_IO_TOLD_RUN] < run)
            run = told_by(x, r)[CHEMPI_IO_TOLD_RUN];
    }
    if (is_empty)
        return;
    if (run >= RUN_CHAIN_MIN && is_chain(x, s)) {
        rc = write_piece(x, s, s->from, s->to, &at);
    } else {
        make_mask(x, s);
        rc = write_covered(x, s, run, &at);
    }
    chempi_io_op_fail(x->op, rc, "writing", at);
    chempi_io_count(CHEMPI_IO_COUNT_ACCESS_NS, chempi_clock_ns() - begin);
    chempi_io_count(CHEMPI_IO_COUNT_ROUNDS, 1);
}

void chempi_io_window_write(struct chempi_io_exchange *x,
                            struct chempi_io_slot *s)
{
    assemble(x, s);
    write_whole(x, s);
}

/* ---- the aggregator's side of reading ---- */

static void read_whole(struct chempi_io_exchange *x, struct chempi_io_slot *s)
{
    struct iovec run;
    uint64_t begin = chempi_clock_ns();
    uint64_t want = s->to > s->from ? (uint64_t)(s->to - s->from) : 0;
    uint64_t done = 0;
    int rc;

    if (want == 0)
        return;
    run = (struct iovec){s->window, want};
    rc = chempi_io_read_runs(x->file, &run, 1, s->from, &done);
    if (rc)
        chempi_io_op_fail(x->op, rc, "reading", s->from + (int64_t)done);
    else if (done < want)
        chempi_io_op_note(x->op,
                          chempi_error_set(MPI_ERR_IO,
                                           "%.160s ends at offset %" PRId64
                                           " now, and not behind %" PRId64
                                           " as it did when reading began",
                                           x->file->path,
                                           s->from + (int64_t)done, s->to));
    memset(s->window + done, 0, want - done);
    chempi_io_count(CHEMPI_IO_COUNT_ACCESS_NS, chempi_clock_ns() - begin);
    chempi_io_count(CHEMPI_IO_COUNT_ROUNDS, 1);
}

static void plan_sends(struct chempi_io_exchange *x, struct chempi_io_slot *s)
{
    uint64_t used = 0;

    for (uint32_t r = 0; r < x->file->comm->size; r++) {
        const struct chempi_io_share *share = &s->shares[r];
        struct chempi_segment iter;
        int64_t at;

        if (share->len == 0 || (int)r == x->file->comm->rank)
            continue;
        if (is_one_run(&x->agg->views[r], share, &at)) {
            chempi_io_window_plan(s, s->window + (at - s->from), share->len,
                                  (int)r, true);
            continue;
        }
        chempi_io_view_iter(&x->agg->views[r], &iter, s->window, s->from,
                            share->position);
        (void)chempi_segment_pack(&iter, s->packed + used, share->len);
        chempi_io_window_plan(s, s->packed + used, share->len, (int)r, true);
        used += share->len;
    }
}

void chempi_io_window_read(struct chempi_io_exchange *x,
                           struct chempi_io_slot *s)
{
    read_whole(x, s);
    plan_sends(x, s);
    move_own(x, s, false);
}
