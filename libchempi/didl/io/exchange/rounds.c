/* SPDX-License-Identifier: BSD-3-Clause */
/* How the rounds of an exchange follow each other; see rounds.h, window.h. */
#include "libchempi/didl/io/exchange/rounds.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/error/fatal.h"
#include "libchempi/didl/io/count.h"
#include "libchempi/didl/io/exchange/memory.h"
#include "libchempi/didl/io/exchange/window.h"

/* Smaller domains are not worth a message. */
#define DOMAIN_MIN (16u << 10)
/* ---- what a round needs ---- */

/* Overlapping shares need more room than a window. The others wait for these
 * messages, and would for ever (T2). */
static void need_packed(const struct chempi_io_exchange *x,
                        struct chempi_io_slot *s, uint64_t len)
{
    if (len <= s->packed_room)
        return;
    free(s->overlap);
    s->overlap = chempi_sys->malloc(len);
    s->packed = s->overlap;
    s->packed_room = len;
    if (!s->packed)
        chempi_fatal_die("out of memory for %" PRIu64 " bytes of data that "
                         "overlap in a window of %.160s; a smaller hint "
                         "cb_buffer_size helps",
                         len, x->file->path);
}

/* This member's data for, or from, all aggregators but itself. */
static void plan_own(struct chempi_io_exchange *x, struct chempi_io_slot *s,
                     int64_t round)
{
    struct chempi_io_op *op = x->op;
    uint64_t used = 0;
    int64_t from;
    int64_t to;

    for (int a = 0; a < x->agg->count; a++) {
        struct chempi_io_share share;
        char *data;

        if (a == x->agg->mine || !chempi_io_window_of(x, a, round, &from, &to))
            continue;
        share =
            chempi_io_window_share(op->view, op->position, op->bytes, from, to);
        if (share.len == 0)
            continue;
        data =
            op->mem ? op->mem + (share.position - op->position) : s->own + used;
        if (!op->mem && op->is_write)
            chempi_io_op_pack(op, share.position - op->position, data,
                              share.len);
        used += share.len;
        chempi_io_window_plan(s, data, share.len, x->agg->ranks[a],
                              op->is_write);
    }
}

/* After a round of reading: where data came into a stage. */
static void unpack_own(struct chempi_io_exchange *x, struct chempi_io_slot *s,
                       int64_t round)
{
    struct chempi_io_op *op = x->op;
    uint64_t used = 0;
    int64_t from;
    int64_t to;

    for (int a = 0; !op->mem && a < x->agg->count; a++) {
        struct chempi_io_share share;

        if (a == x->agg->mine || !chempi_io_window_of(x, a, round, &from, &to))
            continue;
        share =
            chempi_io_window_share(op->view, op->position, op->bytes, from, to);
        if (share.len == 0)
            continue;
        chempi_io_op_unpack(op, share.position - op->position, s->own + used,
                            share.len);
        used += share.len;
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
    struct chempi_io_slot *s = &x->slots[x->begun % 2];
    uint64_t sum = chempi_io_window_find(x, s, x->begun);

    s->planned = 0;
    need_packed(x, s, sum);
    plan_own(x, s, x->begun);
    if (x->agg->mine < 0)
        return;
    if (x->op->is_write) {
        chempi_io_window_expect(x, s);
    } else {
        chempi_io_window_read(x, s);
    }
}

/* Work: the messages of the oldest round are there. An error of this member
 * alone keeps nobody's data from the file; a window in which some are missing
 * does not get there, nor into the user's memory. */
static void finish_round(struct chempi_io_task *t)
{
    struct chempi_io_exchange *x = exchange_of(t);
    struct chempi_io_slot *s = &x->slots[x->ended % 2];

    if (x->is_torn)
        return;
    if (!x->op->is_write) {
        unpack_own(x, s, x->ended);
    } else if (x->agg->mine >= 0) {
        chempi_io_window_write(x, s);
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

static void note_message(struct chempi_io_exchange *x, int rc)
{
    chempi_io_op_note(x->op, rc);
    x->is_torn = x->is_torn || rc;
}

static void post_round(struct chempi_io_task *t)
{
    struct chempi_io_exchange *x = exchange_of(t);
    struct chempi_io_slot *s = &x->slots[x->begun % 2];

    for (int i = 0; i < s->planned; i++) {
        const struct chempi_io_message *m = &s->plan[i];

        note_message(x, chempi_io_task_post(t, &s->messages, m->data, m->len,
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
    note_message(exchange_of(t), t->rc);
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

static bool get_lists(struct chempi_io_slot *s,
                      const struct chempi_io_exchange *x)
{
    uint32_t size = x->file->comm->size;
    size_t most_messages = size + (size_t)x->agg->count;

    s->plan = chempi_sys->calloc(most_messages, sizeof(*s->plan));
    s->messages.reqs =
        chempi_sys->calloc(most_messages, sizeof(struct chempi_request *));
    if (x->agg->mine >= 0)
        s->shares = chempi_sys->calloc(size, sizeof(*s->shares));
    return s->plan && s->messages.reqs && (x->agg->mine < 0 || s->shares);
}

/* span: bytes from the first to the end of all data, which windows that hints
 * make larger do not fill. */
static bool get_slots(struct chempi_io_exchange *x, uint64_t span)
{
    bool is_agg = x->agg->mine >= 0;
    uint64_t window =
        is_agg ? round_line(chempi_io_least((uint64_t)x->window, span)) : 0;
    uint64_t mask = x->op->is_write ? window : 0;
    uint64_t own =
        x->op->mem
            ? 0
            : round_line(chempi_io_least(
                  (uint64_t)x->window * (uint64_t)x->agg->count, x->op->bytes));
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
        struct chempi_io_slot *s = &x->slots[i];

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
        struct chempi_io_slot *s = &x->slots[i];

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

/* Domains are whole stripes, and so are windows, where the buffer has room. */
static void cut_domains(struct chempi_io_exchange *x, int64_t from, int64_t to)
{
    int64_t stripe = (int64_t)x->file->hints.stripe;
    int64_t buffer = (int64_t)x->file->hints.cb_buffer;
    int64_t unit = stripe < buffer ? stripe : buffer;
    int64_t least_domain = DOMAIN_MIN;
    int64_t longest;

    x->base = from / stripe * stripe;
    x->start = from / unit * unit;
    if (x->start < x->base)
        x->start = x->base;
    x->end = to;
    x->domain = (to - x->base + x->agg->count - 1) / x->agg->count;
    x->domain =
        round_up(x->domain > least_domain ? x->domain : least_domain, stripe);
    x->window = buffer / unit * unit;
    if (x->window > x->domain)
        x->window = x->domain;
    longest = x->domain < to - x->start ? x->domain : to - x->start;
    x->rounds = (longest + x->window - 1) / x->window;
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

void chempi_io_rounds_begin(struct chempi_io_task *t)
{
    struct chempi_io_coll *coll = chempi_io_coll_of(t);

    if (t->rc == MPI_SUCCESS) {
        coll->op.file->aggregators->is_known = true;
        choose_step(t);
        return;
    }
    chempi_io_op_note(&coll->op, t->rc);
    chempi_io_aggregators_forget(coll->op.file);
    drop_exchange(coll);
    t->next = chempi_io_coll_of(t)->after_access;
}

int chempi_io_rounds_make(struct chempi_io_coll *coll, int tag)
{
    struct chempi_io_op *op = &coll->op;
    struct chempi_io_exchange *x = chempi_sys->calloc(1, sizeof(*x));

    if (!x)
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory for an exchange");
    coll->exchange = x;
    x->op = op;
    x->file = op->file;
    x->agg = op->file->aggregators;
    x->tag = tag;
    x->asked = op->bytes;
    op->bytes = coll->bytes;
    cut_domains(x, coll->from, coll->to);
    chempi_io_count(CHEMPI_IO_COUNT_AGGREGATIONS, x->agg->mine >= 0);
    if (get_slots(x, (uint64_t)(coll->to - coll->from)))
        return MPI_SUCCESS;
    return chempi_error_set(MPI_ERR_NO_MEM,
                            "no memory for two windows of %" PRId64
                            " bytes; a smaller hint cb_buffer_size helps",
                            x->window);
}
