/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective access: does an exchange pay, so that only aggregators touch the
 * file, in large pieces (exchange/window.h), or does each member access its
 * part of it alone?
 */
#include "common/base/clock.h"
#include "libchempi/didl/io/collective.h"
#include "libchempi/didl/io/count.h"
#include "libchempi/didl/io/exchange/aggregators.h"
#include "libchempi/didl/io/exchange/rounds.h"

/* Runs from here on are accessed by their owner, and so are shorter ones that
 * lie so far apart: windows would hold little else than holes. */
#define RUN_ALONE_MIN (64u << 10)
#define STEP_ALONE_MIN (64u << 10)
/* Bytes of file for which nobody asks whether all have the memory that an
 * exchange takes: whoever has none ends, as the others wait for it. */
#define SPAN_UNASKED_MAX (INT64_C(256) << 10)

/* What of a read lies before the end of the file. */
static void clip(struct chempi_io_coll *coll)
{
    struct chempi_io_op *op = &coll->op;
    struct chempi_io_stat st = {0};
    int rc = op->file->fd.ops->stat(&op->file->fd, &st);
    uint64_t below;

    chempi_io_op_fail(op, rc, "asking for the size of", -1);
    below = chempi_io_view_below(op->view, rc ? 0 : st.size);
    coll->bytes = below > op->position
                      ? chempi_io_least(below - op->position, op->bytes)
                      : 0;
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
    chempi_io_aggregators_tell(coll);
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
    words[CHEMPI_IO_TOLD_RUN] =
        (int64_t)chempi_io_least(op->view->run, coll->bytes);
}

static enum chempi_io_choice choice_of(const struct chempi_io_op *op)
{
    return op->is_write ? op->file->hints.cb_write : op->file->hints.cb_read;
}

/* From what all have told: does an aggregator lack the views? The same answer
 * for all. */
static bool is_anybody_blind(const struct chempi_file *file)
{
    for (uint32_t r = 0; r < file->comm->size; r++)
        if (chempi_io_told_by(file->aggregators, r)[CHEMPI_IO_TOLD_BLIND])
            return true;
    return false;
}

/* From what all have told: does an exchange pay? The same answer for all. */
static bool does_pay(struct chempi_io_coll *coll)
{
    const struct chempi_io_op *op = &coll->op;
    bool is_mixed = false;
    int64_t run = INT64_MAX;
    int64_t runs = 0;

    coll->from = INT64_MAX;
    coll->to = 0;
    for (uint32_t r = 0; r < op->file->comm->size; r++) {
        const int64_t *t = chempi_io_told_by(op->file->aggregators, r);

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
        runs += t[CHEMPI_IO_TOLD_BYTES] / t[CHEMPI_IO_TOLD_RUN];
    }
    if (coll->to == 0)
        return false;
    return choice_of(op) == CHEMPI_IO_ENABLE ||
           (is_mixed && run < RUN_ALONE_MIN &&
            (coll->to - coll->from) / runs < STEP_ALONE_MIN);
}

/* May an exchange pay? The same answer for all, from what they know alike. */
static bool is_wanted(const struct chempi_io_op *op)
{
    const struct chempi_file *file = op->file;
    enum chempi_io_choice choice = choice_of(op);

    return file->aggregators && !op->is_atomic &&
           (choice == CHEMPI_IO_ENABLE ||
            (choice == CHEMPI_IO_AUTO && file->has_short_runs));
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

/* All members draw the tag, whether they go on or not. Whether everybody has
 * the memory is asked only where that may be much, and where views have come,
 * which may have failed for other reasons. */
static void have_learned(struct chempi_io_task *t)
{
    struct chempi_io_coll *coll = chempi_io_coll_of(t);
    int tag = chempi_io_next_tag(coll->op.file);
    int rc = t->rc ? t->rc : chempi_io_rounds_make(coll, tag);

    if (coll->has_learned || coll->to - coll->from > SPAN_UNASKED_MAX) {
        chempi_io_task_agree(t, rc, NULL, chempi_io_rounds_begin);
        return;
    }
    if (rc)
        chempi_io_task_starve();
    t->next = chempi_io_rounds_begin;
}

static void decide(struct chempi_io_task *t)
{
    struct chempi_io_coll *coll = chempi_io_coll_of(t);

    chempi_io_count(CHEMPI_IO_COUNT_AGREE_NS,
                    chempi_clock_ns() - coll->began_ns);
    chempi_io_op_note(&coll->op, t->rc);
    if (t->rc) {
        t->next = chempi_io_coll_of(t)->after_access;
        return;
    }
    if (is_anybody_blind(coll->op.file)) {
        chempi_io_aggregators_forget(
            coll->op.file); /* they come the next time */
        go_alone(t);
        return;
    }
    if (does_pay(coll) && chempi_io_aggregators_can_travel(coll->op.file))
        chempi_io_aggregators_learn(coll, have_learned);
    else
        go_alone(t);
}

static void tell(struct chempi_io_task *t)
{
    struct chempi_io_coll *coll = chempi_io_coll_of(t);
    const struct chempi_io_aggregators *agg = coll->op.file->aggregators;

    coll->began_ns = chempi_clock_ns();
    t->next = decide;
    chempi_io_task_gather(t, coll->mine, agg->stride, agg->told);
}

/* Where all know beforehand that there is nothing to exchange, nobody waits for
 * anybody: an error is the member's own. */
void chempi_io_two_phase(struct chempi_io_task *t)
{
    if (!is_wanted(&chempi_io_coll_of(t)->op)) {
        t->next = NULL;
        chempi_io_task_work(t, access_alone);
        return;
    }
    t->next = tell;
    chempi_io_task_work(t, measure);
}
