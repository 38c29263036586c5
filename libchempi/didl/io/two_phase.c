/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two-phase access: the file is cut into domains, one for each aggregator,
 * and data is exchanged so that only aggregators touch the file, in large
 * pieces. An aggregator works through its domain in rounds of a window each.
 *
 * Everybody knows the window of every round, and from its own view which of
 * its bytes lie there: they are one range of its packed data, so one message,
 * straight from or to consecutive memory. The aggregator knows all views and
 * finds the same numbers. The messages of a round are under way while the
 * round before accesses the file.
 *
 *   T1  a slot belongs to one round at a time; messages of round k + 1 are
 *       posted before round k accesses the file
 *   T2  a member that has failed goes on: it sends and receives the same
 *       number of bytes, whatever they hold
 *   T3  memory: two windows, the packed data of two rounds, and a mask
 *   T4  what copies or touches the file is work (task.h); stages only post
 *       what work has planned, and wait for it
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/compiler.h"
#include "common/base/sys.h"
#include "libchempi/didl/base/error.h"
#include "libchempi/didl/base/fatal.h"
#include "libchempi/didl/io/cast.h"
#include "libchempi/didl/io/collective.h"
#include "libchempi/didl/io/count.h"
#include "libchempi/didl/io/memory.h"

/* Runs from here on are accessed by their owner. */
#define RUN_ALONE_MIN (64u << 10)
/* Smaller domains are not worth a message. */
#define DOMAIN_MIN (32u << 10)
/* Longer runs are written by calls of the system. */
#define RUN_MAP_MAX 2048
/* Runs from here on are followed one by one quicker than their bytes are
 * marked, of so many members at most. */
#define RUN_CHAIN_MIN 128
#define STREAMS_MAX 32

/* A range of somebody's packed data. */
struct share {
    uint64_t position; /* in its view */
    uint64_t len;
};

/* One that work has planned and a stage posts (T4). */
struct message {
    char *data;
    uint64_t len;
    int rank;
    bool is_send;
};

struct slot {
    char *window; /* of the file, at aggregators */
    char *packed; /* data of others at aggregators */
    char *own;    /* this member's, where memory is scattered */
    uint64_t packed_room;
    char *overlap;        /* packed, where that needs more than a window */
    struct share *shares; /* [members] in this aggregator's window */
    int64_t from;         /* offsets of the window that are used */
    int64_t to;
    struct message *plan; /* [members + aggregators] */
    int planned;
    struct chempi_io_messages messages; /* as many */
};

struct chempi_io_exchange {
    struct chempi_io_op *op;
    struct chempi_file *file;
    struct chempi_io_cast *cast;
    int64_t base;   /* offset of the first domain */
    int64_t end;    /* of all data */
    int64_t domain; /* bytes */
    int64_t window; /* bytes */
    int tag;
    char *mask;     /* of a window: bytes that somebody writes */
    uint64_t asked; /* bytes, before what is behind the end was cut off */
    int64_t rounds;
    int64_t begun; /* rounds whose messages are posted */
    int64_t ended;
    char *memory; /* of windows, packed and own data, and the mask */
    struct slot slots[2];
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- shares ---- */

/* The part of [position, position + bytes) of a view in the offsets
 * [from, to). */
static struct share share_of(const struct chempi_io_view *view,
                             uint64_t position, uint64_t bytes, int64_t from,
                             int64_t to)
{
    uint64_t low = most(chempi_io_view_below(view, from), position);
    uint64_t high = least(chempi_io_view_below(view, to), position + bytes);

    return (struct share){low, high > low ? high - low : 0};
}

static bool is_one_run(const struct chempi_io_view *view, const struct share *s,
                       int64_t *at)
{
    *at = chempi_io_view_offset(view, s->position);
    return view->is_contiguous ||
           chempi_io_view_offset(view, s->position + s->len - 1) + 1 - *at ==
               (int64_t)s->len;
}

/* The window of aggregator a in a round; false: none is left. */
static bool window_of(const struct chempi_io_exchange *x, int a, int64_t round,
                      int64_t *from, int64_t *to)
{
    int64_t start = x->base + a * x->domain;
    int64_t stop = start + x->domain < x->end ? start + x->domain : x->end;

    *from = start + round * x->window;
    *to = *from + x->window < stop ? *from + x->window : stop;
    return *from < *to;
}

static const int64_t *told_by(const struct chempi_io_exchange *x, uint32_t rank)
{
    return chempi_io_told_by(x->cast, rank);
}

/* ---- messages ---- */

/* Overlapping shares need more room than a window. The others wait for these
 * messages, and would for ever (T2). */
static void need_packed(const struct chempi_io_exchange *x, struct slot *s,
                        uint64_t len)
{
    if (len <= s->packed_room)
        return;
    free(s->overlap);
    s->overlap = chempi_sys->malloc(len);
    s->packed = s->overlap;
    s->packed_room = len;
    if (!s->packed)
        chempi_fatal_die(1,
                         "out of memory for %" PRIu64 " bytes of data that "
                         "overlap in a window of %.160s; a smaller hint "
                         "cb_buffer_size helps",
                         len, x->file->path);
}

static void plan(struct slot *s, char *data, uint64_t len, int rank,
                 bool is_send)
{
    s->plan[s->planned++] = (struct message){data, len, rank, is_send};
}

/* This member's data for, or from, all aggregators but itself. */
static void plan_own(struct chempi_io_exchange *x, struct slot *s,
                     int64_t round)
{
    struct chempi_io_op *op = x->op;
    uint64_t used = 0;
    int64_t from;
    int64_t to;

    for (int a = 0; a < x->cast->count; a++) {
        struct share share;
        char *data;

        if (a == x->cast->mine || !window_of(x, a, round, &from, &to))
            continue;
        share = share_of(op->view, op->position, op->bytes, from, to);
        if (share.len == 0)
            continue;
        data =
            op->mem ? op->mem + (share.position - op->position) : s->own + used;
        if (!op->mem && op->is_write)
            chempi_io_op_pack(op, share.position - op->position, data,
                              share.len);
        used += share.len;
        plan(s, data, share.len, x->cast->ranks[a], op->is_write);
    }
}

/* After a round of reading: where data came into a stage. */
static void unpack_own(struct chempi_io_exchange *x, struct slot *s,
                       int64_t round)
{
    struct chempi_io_op *op = x->op;
    uint64_t used = 0;
    int64_t from;
    int64_t to;

    for (int a = 0; !op->mem && a < x->cast->count; a++) {
        struct share share;

        if (a == x->cast->mine || !window_of(x, a, round, &from, &to))
            continue;
        share = share_of(op->view, op->position, op->bytes, from, to);
        if (share.len == 0)
            continue;
        chempi_io_op_unpack(op, share.position - op->position, s->own + used,
                            share.len);
        used += share.len;
    }
}

/* What the others have in this aggregator's window; how many bytes in all. */
static uint64_t find_shares(struct chempi_io_exchange *x, struct slot *s,
                            int64_t round)
{
    uint64_t sum = 0;
    int64_t from;
    int64_t to;

    s->from = INT64_MAX;
    s->to = 0;
    if (x->cast->mine < 0 || !window_of(x, x->cast->mine, round, &from, &to)) {
        if (s->shares)
            memset(s->shares, 0, x->file->comm->size * sizeof(*s->shares));
        return 0;
    }
    for (uint32_t r = 0; r < x->file->comm->size; r++) {
        const struct chempi_io_view *view = &x->cast->views[r];
        const int64_t *told = told_by(x, r);
        struct share *share = &s->shares[r];
        int64_t at;

        *share = share_of(view, (uint64_t)told[CHEMPI_IO_TOLD_POSITION],
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
static void plan_receives(struct chempi_io_exchange *x, struct slot *s)
{
    uint64_t used = 0;

    for (uint32_t r = 0; r < x->file->comm->size; r++) {
        const struct share *share = &s->shares[r];
        int64_t at;

        if (share->len == 0 || (int)r == x->file->comm->rank)
            continue;
        if (is_one_run(&x->cast->views[r], share, &at)) {
            plan(s, s->window + (at - s->from), share->len, (int)r, false);
            continue;
        }
        plan(s, s->packed + used, share->len, (int)r, false);
        used += share->len;
    }
}

static void scatter(const struct chempi_io_exchange *x, const struct slot *s,
                    uint32_t rank, char *window, const char *data)
{
    struct chempi_iter iter;

    chempi_io_view_iter(&x->cast->views[rank], &iter, window, s->from,
                        s->shares[rank].position);
    (void)chempi_iter_unpack(&iter, data, s->shares[rank].len);
}

static void scatter_own(struct chempi_io_exchange *x, struct slot *s)
{
    struct chempi_io_op *op = x->op;
    uint32_t me = (uint32_t)x->file->comm->rank;
    const struct share *share = &s->shares[me];
    uint64_t start = share->position - op->position;
    uint64_t done = 0;
    struct chempi_iter iter;
    char stage[16384];

    if (share->len == 0)
        return;
    if (op->mem) {
        scatter(x, s, me, s->window, op->mem + start);
        return;
    }
    chempi_io_view_iter(&x->cast->views[me], &iter, s->window, s->from,
                        share->position);
    while (done < share->len) {
        uint64_t n = least(sizeof(stage), share->len - done);

        chempi_io_op_pack(op, start + done, stage, n);
        (void)chempi_iter_unpack(&iter, stage, n);
        done += n;
    }
}

/* Messages have come: everything to its place. */
static void assemble(struct chempi_io_exchange *x, struct slot *s)
{
    uint64_t used = 0;

    for (uint32_t r = 0; r < x->file->comm->size; r++) {
        const struct share *share = &s->shares[r];
        int64_t at;

        if (share->len == 0 || (int)r == x->file->comm->rank ||
            is_one_run(&x->cast->views[r], share, &at))
            continue;
        scatter(x, s, r, s->window, s->packed + used);
        used += share->len;
    }
    scatter_own(x, s);
}

static void mark(const struct chempi_io_exchange *x, const struct slot *s,
                 uint32_t rank)
{
    uint64_t left = s->shares[rank].len;
    struct chempi_iter iter;
    char ones[4096];

    memset(ones, 0xff, least(left, sizeof(ones)));
    chempi_io_view_iter(&x->cast->views[rank], &iter, x->mask, s->from,
                        s->shares[rank].position);
    while (left > 0)
        left -= chempi_iter_unpack(&iter, ones, least(left, sizeof(ones)));
}

/* Which bytes of the window somebody has brought. */
static void make_mask(struct chempi_io_exchange *x, const struct slot *s)
{
    memset(x->mask, 0, (size_t)(s->to - s->from));
    for (uint32_t r = 0; r < x->file->comm->size; r++)
        if (s->shares[r].len > 0)
            mark(x, s, r);
}

/* The runs of a member in a window, a few at a time. */
struct stream {
    struct chempi_iter iter;
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
                       ? chempi_iter_runs(&m->iter, m->runs,
                                          CHEMPI_ARRAY_LEN(m->runs), m->left)
                       : 0;
        m->left -= m->iter.position - before;
        m->next = 0;
    }
    return m->count ? (int64_t)(uintptr_t)m->runs[m->next].iov_base : -1;
}

/* The members whose runs can be followed; 0: too many. */
static int open_streams(const struct chempi_io_exchange *x,
                        const struct slot *s, struct stream *streams)
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
        chempi_io_view_iter(&x->cast->views[r], &streams[count++].iter, NULL,
                            s->from, s->shares[r].position);
    }
    return count;
}

/* Does a run begin wherever one ends, so that no byte is missing? Where runs
 * overlap, the answer may be no. */
static bool is_chain(const struct chempi_io_exchange *x, const struct slot *s)
{
    struct stream streams[STREAMS_MAX];
    int count = open_streams(x, s, streams);
    int64_t at = 0;
    int here = 0;
    int misses = 0;

    while (count > 0 && at < s->to - s->from && misses < count) {
        struct stream *m = &streams[here];

        if (next_run(m) == at) {
            at += (int64_t)m->runs[m->next++].iov_len;
            misses = 0;
        } else {
            here = here + 1 < count ? here + 1 : 0;
            misses++;
        }
    }
    return at == s->to - s->from;
}

static int write_piece(struct chempi_io_exchange *x, const struct slot *s,
                       int64_t from, int64_t to, int64_t *at)
{
    const struct chempi_io_view *plain = x->file->plain;
    uint64_t done = 0;

    return chempi_io_view_write(x->file, plain, (uint64_t)from,
                                s->window + (from - s->from),
                                (uint64_t)(to - from), false, &done, at);
}

/* Holes stay as they are. */
static int write_runs(struct chempi_io_exchange *x, const struct slot *s,
                      int64_t *at)
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
static int write_covered(struct chempi_io_exchange *x, const struct slot *s,
                         int64_t run, int64_t *at)
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

static void write_window(struct chempi_io_exchange *x, struct slot *s)
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

/* ---- the aggregator's side of reading ---- */

static void read_window(struct chempi_io_exchange *x, struct slot *s)
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

static void plan_sends(struct chempi_io_exchange *x, struct slot *s)
{
    uint64_t used = 0;

    for (uint32_t r = 0; r < x->file->comm->size; r++) {
        const struct share *share = &s->shares[r];
        struct chempi_iter iter;
        int64_t at;

        if (share->len == 0 || (int)r == x->file->comm->rank)
            continue;
        if (is_one_run(&x->cast->views[r], share, &at)) {
            plan(s, s->window + (at - s->from), share->len, (int)r, true);
            continue;
        }
        chempi_io_view_iter(&x->cast->views[r], &iter, s->window, s->from,
                            share->position);
        (void)chempi_iter_pack(&iter, s->packed + used, share->len);
        plan(s, s->packed + used, share->len, (int)r, true);
        used += share->len;
    }
}

static void gather_own(struct chempi_io_exchange *x, struct slot *s)
{
    struct chempi_io_op *op = x->op;
    uint32_t me = (uint32_t)x->file->comm->rank;
    const struct share *share = &s->shares[me];
    uint64_t start = share->position - op->position;
    uint64_t done = 0;
    struct chempi_iter iter;
    char stage[16384];

    if (share->len == 0)
        return;
    chempi_io_view_iter(&x->cast->views[me], &iter, s->window, s->from,
                        share->position);
    if (op->mem)
        done = chempi_iter_pack(&iter, op->mem + start, share->len);
    while (done < share->len) {
        uint64_t n = least(sizeof(stage), share->len - done);

        (void)chempi_iter_pack(&iter, stage, n);
        chempi_io_op_unpack(op, start + done, stage, n);
        done += n;
    }
}

/* ---- rounds ---- */

static struct chempi_io_exchange *exchange_of(struct chempi_io_task *t)
{
    return chempi_io_coll_of(t)->exchange;
}

/* Work: what this round needs; a read has it from the file. */
static void prepare_round(struct chempi_io_task *t)
{
    struct chempi_io_exchange *x = exchange_of(t);
    struct slot *s = &x->slots[x->begun % 2];
    uint64_t sum = find_shares(x, s, x->begun);

    s->planned = 0;
    need_packed(x, s, sum);
    plan_own(x, s, x->begun);
    if (x->cast->mine < 0)
        return;
    if (x->op->is_write) {
        plan_receives(x, s);
    } else {
        read_window(x, s);
        plan_sends(x, s);
        gather_own(x, s);
    }
}

/* Work: the messages of the oldest round are there. */
static void finish_round(struct chempi_io_task *t)
{
    struct chempi_io_exchange *x = exchange_of(t);
    struct slot *s = &x->slots[x->ended % 2];

    if (!x->op->is_write) {
        unpack_own(x, s, x->ended);
    } else if (x->cast->mine >= 0) {
        assemble(x, s);
        write_window(x, s);
    }
}

static void begin_round(struct chempi_io_task *t);
static void await_round(struct chempi_io_task *t);
static void end_exchange(struct chempi_io_task *t);

/* One round is under way while the next one is prepared. */
static void choose_step(struct chempi_io_task *t)
{
    const struct chempi_io_exchange *x = exchange_of(t);

    if (x->begun < x->rounds && x->begun - x->ended < 2)
        t->next = begin_round;
    else
        t->next = x->ended < x->rounds ? await_round : end_exchange;
}

static void post_round(struct chempi_io_task *t)
{
    struct chempi_io_exchange *x = exchange_of(t);
    struct slot *s = &x->slots[x->begun % 2];

    for (int i = 0; i < s->planned; i++) {
        const struct message *m = &s->plan[i];

        chempi_io_op_note(x->op,
                          chempi_io_task_post(t, &s->messages, m->data, m->len,
                                              m->rank, x->tag, m->is_send));
        if (m->is_send)
            chempi_io_count(CHEMPI_IO_COUNT_EXCHANGED, m->len);
    }
    x->begun++;
    choose_step(t);
}

static void begin_round(struct chempi_io_task *t)
{
    t->next = post_round;
    chempi_io_task_work(t, prepare_round);
}

static void end_round(struct chempi_io_task *t)
{
    exchange_of(t)->ended++;
    choose_step(t);
}

static void round_has_come(struct chempi_io_task *t)
{
    chempi_io_count(CHEMPI_IO_COUNT_EXCHANGE_NS,
                    chempi_clock_ns() - chempi_io_coll_of(t)->began_ns);
    chempi_io_op_note(exchange_of(t)->op, t->rc);
    t->next = end_round;
    chempi_io_task_work(t, finish_round);
}

static void await_round(struct chempi_io_task *t)
{
    struct chempi_io_exchange *x = exchange_of(t);

    chempi_io_coll_of(t)->began_ns = chempi_clock_ns();
    t->next = round_has_come;
    chempi_io_task_await(t, &x->slots[x->ended % 2].messages);
}

/* ---- beginning and end ---- */

static uint64_t round_line(uint64_t len)
{
    return (len + 63) / 64 * 64;
}

/* One round at a time needs one slot only. */
static int slots_of(const struct chempi_io_exchange *x)
{
    return x->rounds > 1 ? 2 : 1;
}

static bool get_lists(struct slot *s, const struct chempi_io_exchange *x)
{
    uint32_t size = x->file->comm->size;
    size_t most_messages = size + (size_t)x->cast->count;

    s->plan = chempi_sys->calloc(most_messages, sizeof(*s->plan));
    s->messages.reqs =
        chempi_sys->calloc(most_messages, sizeof(struct chempi_request *));
    if (x->cast->mine >= 0)
        s->shares = chempi_sys->calloc(size, sizeof(*s->shares));
    return s->plan && s->messages.reqs && (x->cast->mine < 0 || s->shares);
}

static bool get_slots(struct chempi_io_exchange *x)
{
    bool is_agg = x->cast->mine >= 0;
    uint64_t window = is_agg ? round_line((uint64_t)x->window) : 0;
    uint64_t mask = x->op->is_write ? window : 0;
    uint64_t own =
        x->op->mem
            ? 0
            : round_line(least((uint64_t)x->window * (uint64_t)x->cast->count,
                               x->op->bytes));
    int count = slots_of(x);
    char *at;

    x->memory =
        chempi_io_memory_take(mask + (uint64_t)count * (2 * window + own));
    if (!x->memory)
        return false;
    at = x->memory;
    x->mask = at;
    at += mask;
    for (int i = 0; i < count; i++) {
        struct slot *s = &x->slots[i];

        if (!get_lists(s, x))
            return false;
        s->window = at;
        s->packed = at + window;
        s->packed_room = window;
        s->own = at + 2 * window;
        at += 2 * window + own;
    }
    return true;
}

static void drop_slots(struct chempi_io_exchange *x)
{
    for (int i = 0; i < slots_of(x); i++) {
        struct slot *s = &x->slots[i];

        free(s->overlap);
        free(s->shares);
        free(s->plan);
        free(s->messages.reqs);
    }
    chempi_io_memory_give(x->memory);
}

static int64_t round_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* Domains and windows are whole stripes. */
static void cut_domains(struct chempi_io_exchange *x, int64_t from, int64_t to)
{
    int64_t stripe = (int64_t)x->file->hints.stripe;
    int64_t least_domain = DOMAIN_MIN;

    x->base = from / stripe * stripe;
    x->end = to;
    x->domain = (to - x->base + x->cast->count - 1) / x->cast->count;
    x->domain =
        round_up(x->domain > least_domain ? x->domain : least_domain, stripe);
    x->window = (int64_t)x->file->hints.cb_buffer / stripe * stripe;
    if (x->window == 0)
        x->window = stripe;
    if (x->window > x->domain)
        x->window = x->domain;
}

static void drop_exchange(struct chempi_io_coll *coll)
{
    struct chempi_io_exchange *x = coll->exchange;

    if (!x)
        return;
    coll->op.bytes = x->asked;
    drop_slots(x);
    free(x);
    coll->exchange = NULL;
}

static void end_exchange(struct chempi_io_task *t)
{
    struct chempi_io_coll *coll = chempi_io_coll_of(t);

    if (!coll->op.error)
        coll->op.done = coll->op.bytes;
    drop_exchange(coll);
    t->next = chempi_io_coll_of(t)->after_access;
}

/* rc: has every member the memory that it needs? */
static void begin_rounds(struct chempi_io_task *t)
{
    struct chempi_io_coll *coll = chempi_io_coll_of(t);

    if (t->rc == MPI_SUCCESS) {
        coll->op.file->cast->is_known = true;
        choose_step(t);
        return;
    }
    chempi_io_op_note(&coll->op, t->rc);
    chempi_io_cast_forget(coll->op.file);
    drop_exchange(coll);
    t->next = chempi_io_coll_of(t)->after_access;
}

static int make_exchange(struct chempi_io_coll *coll, int tag)
{
    struct chempi_io_op *op = &coll->op;
    struct chempi_io_exchange *x = chempi_sys->calloc(1, sizeof(*x));

    if (!x)
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory for an exchange");
    coll->exchange = x;
    x->op = op;
    x->file = op->file;
    x->cast = op->file->cast;
    x->tag = tag;
    x->asked = op->bytes;
    op->bytes = coll->bytes;
    cut_domains(x, coll->from, coll->to);
    x->rounds = (x->domain + x->window - 1) / x->window;
    chempi_io_count(CHEMPI_IO_COUNT_AGGREGATIONS, x->cast->mine >= 0);
    if (get_slots(x))
        return MPI_SUCCESS;
    return chempi_error_set(MPI_ERR_NO_MEM,
                            "no memory for two windows of %" PRId64
                            " bytes; a smaller hint cb_buffer_size helps",
                            x->window);
}

/* All members draw the tag, whether they go on or not. */
static void have_learned(struct chempi_io_task *t)
{
    struct chempi_io_coll *coll = chempi_io_coll_of(t);
    int tag = chempi_io_next_tag(coll->op.file);

    chempi_io_task_agree(t, t->rc ? t->rc : make_exchange(coll, tag), NULL,
                         begin_rounds);
}

/* ---- deciding ---- */

/* What of a read lies before the end of the file. */
static void clip(struct chempi_io_coll *coll)
{
    struct chempi_io_op *op = &coll->op;
    struct chempi_io_stat st = {0};
    int rc = op->file->fd.ops->stat(&op->file->fd, &st);
    uint64_t below;

    chempi_io_op_fail(op, rc, "asking for the size of", -1);
    below = chempi_io_view_below(op->view, rc ? 0 : st.size);
    coll->bytes =
        below > op->position ? least(below - op->position, op->bytes) : 0;
}

/* Work. */
static void measure(struct chempi_io_task *t)
{
    struct chempi_io_coll *coll = chempi_io_coll_of(t);
    const struct chempi_io_op *op = &coll->op;
    int64_t *words = coll->mine;
    bool is_ordered = op->view->is_ordered && op->view->tile.size > 0;

    coll->bytes = is_ordered ? op->bytes : 0;
    if (is_ordered && !op->is_write)
        clip(coll);
    chempi_io_cast_tell(coll);
    words[CHEMPI_IO_TOLD_POSITION] = (int64_t)op->position;
    words[CHEMPI_IO_TOLD_BYTES] = (int64_t)coll->bytes;
    words[CHEMPI_IO_TOLD_FROM] = 0;
    words[CHEMPI_IO_TOLD_TO] = 0;
    words[CHEMPI_IO_TOLD_RUN] = INT64_MAX;
    if (coll->bytes == 0)
        return;
    words[CHEMPI_IO_TOLD_FROM] = chempi_io_view_offset(op->view, op->position);
    words[CHEMPI_IO_TOLD_TO] =
        chempi_io_view_offset(op->view, op->position + coll->bytes - 1) + 1;
    words[CHEMPI_IO_TOLD_RUN] = (int64_t)least(op->view->run, coll->bytes);
}

/* From what all have told: does an exchange pay? The same answer for all. */
static bool does_pay(struct chempi_io_coll *coll)
{
    const struct chempi_io_op *op = &coll->op;
    enum chempi_io_choice choice =
        op->is_write ? op->file->hints.cb_write : op->file->hints.cb_read;
    bool is_mixed = false;
    int64_t run = INT64_MAX;

    coll->from = INT64_MAX;
    coll->to = 0;
    for (uint32_t r = 0; r < op->file->comm->size; r++) {
        const int64_t *t = chempi_io_told_by(op->file->cast, r);

        if (t[CHEMPI_IO_TOLD_BYTES] == 0)
            continue;
        if (t[CHEMPI_IO_TOLD_FROM] < coll->to)
            is_mixed = true;
        if (t[CHEMPI_IO_TOLD_FROM] < coll->from)
            coll->from = t[CHEMPI_IO_TOLD_FROM];
        if (t[CHEMPI_IO_TOLD_TO] > coll->to)
            coll->to = t[CHEMPI_IO_TOLD_TO];
        if (t[CHEMPI_IO_TOLD_RUN] < run)
            run = t[CHEMPI_IO_TOLD_RUN];
    }
    if (coll->to == 0)
        return false;
    return choice == CHEMPI_IO_ENABLE || (is_mixed && run < RUN_ALONE_MIN);
}

static bool is_wanted(const struct chempi_io_op *op)
{
    const struct chempi_file *file = op->file;

    return file->comm->size > 1 && !op->is_atomic &&
           (op->is_write ? file->hints.cb_write : file->hints.cb_read) !=
               CHEMPI_IO_DISABLE;
}

/* Work. */
static void access_alone(struct chempi_io_task *t)
{
    chempi_io_op_run(&chempi_io_coll_of(t)->op);
}

static void go_alone(struct chempi_io_task *t)
{
    t->next = chempi_io_coll_of(t)->after_access;
    chempi_io_task_work(t, access_alone);
}

static void decide(struct chempi_io_task *t)
{
    struct chempi_io_coll *coll = chempi_io_coll_of(t);

    chempi_io_count(CHEMPI_IO_COUNT_AGREE_NS,
                    chempi_clock_ns() - coll->began_ns);
    chempi_io_op_note(&coll->op, t->rc);
    if (t->rc)
        t->next = chempi_io_coll_of(t)->after_access;
    else if (does_pay(coll) && chempi_io_cast_can_travel(coll->op.file))
        chempi_io_cast_learn(coll, have_learned);
    else
        go_alone(t);
}

static void tell(struct chempi_io_task *t)
{
    struct chempi_io_coll *coll = chempi_io_coll_of(t);
    const struct chempi_io_cast *cast = coll->op.file->cast;

    coll->began_ns = chempi_clock_ns();
    t->next = decide;
    chempi_io_task_gather(t, coll->mine, cast->stride, cast->told);
}

void chempi_io_two_phase(struct chempi_io_task *t)
{
    if (!is_wanted(&chempi_io_coll_of(t)->op)) {
        go_alone(t);
        return;
    }
    t->next = tell;
    chempi_io_task_work(t, measure);
}
