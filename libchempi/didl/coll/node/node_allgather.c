/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allgather of three and more members in a node's shared memory (of two:
 * node_pair.c). What fits a slot goes through it. Large blocks go through
 * boards, a chunk of each in a round, and all meet once a round. Otherwise
 * everyone says where its block lies, all meet, copy what they need from each
 * other's memory, and meet again before anybody leaves. Data that others cannot
 * copy goes by messages.
 */
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/coll/node/copy/block_copy.h"
#include "libchempi/didl/coll/node/copy/nt_copy.h"
#include "libchempi/didl/coll/node/later/node_parts.h"
#include "libchempi/didl/coll/node/later/node_task.h"

/* How a member shows its block. */
enum mark { BLOCK_HERE, BLOCK_BY_MESSAGE, BLOCK_DIRECT, BLOCK_STREAM };

/* ---- rounds of chunks (A9) ---- */

/* Chunks of what is left are at most `most` bytes. */
static uint64_t chunk_len(uint64_t len, uint64_t at, uint64_t most)
{
    uint64_t left = at < len ? len - at : 0;

    return left < most ? left : most;
}

static void put_chunk(const struct chempi_coll_place *from, uint64_t at,
                      uint64_t most, unsigned char *chunk, bool is_far)
{
    uint64_t len = chunk_len(block_len(from), at, most);

    if (len > 0)
        chempi_coll_nt_copy_pack(from->buf, from->count, from->type, at, chunk,
                                 len, is_far);
}

/* len: of the whole block, as its sender says. */
static int get_chunk(const struct chempi_coll_state *st, int i, uint64_t at,
                     uint64_t len, const struct chempi_coll_place *to,
                     bool is_long)
{
    uint64_t n = chunk_len(len, at, st->stream_chunk);

    if (CHEMPI_UNLIKELY(len != block_len(to)))
        return chempi_coll_shm_slot_wrong_amount(i, len, block_len(to));
    if (n > 0)
        chempi_coll_nt_copy_unpack(to->buf, to->count, to->type, at,
                                   chempi_coll_stream_of(st, i), n, is_long);
    return MPI_SUCCESS;
}

/* ---- blocks that fit slots ---- */

/* Does every block of an allgather fit a slot? All know all lengths. */
static bool is_small(const struct chempi_coll_call *c)
{
    int count = c->kind == CHEMPI_COLL_ALLGATHERV ? (int)c->comm->size : 1;

    for (int i = 0; i < count; i++) {
        struct chempi_coll_place b = chempi_coll_received(c, i);

        if (block_len(&b) > CHEMPI_NODE_BULK_BYTES)
            return false;
    }
    return true;
}

static struct chempi_coll_place own_block(const struct cell *cell,
                                          const struct chempi_coll_call *c)
{
    if (c->send.buf == MPI_IN_PLACE)
        return chempi_coll_received(c, cell->st->rank);
    return chempi_coll_whole(&c->send);
}

static int allgather_begin(const struct cell *cell,
                           const struct chempi_coll_call *c)
{
    struct chempi_coll_place own = own_block(cell, c);
    uint64_t len = block_len(&own);
    int rc = MPI_SUCCESS;

    cell_mine(cell)->len = len;
    cell_mine(cell)->mark = BLOCK_HERE; /* for whoever takes another way */
    if (len <= CHEMPI_NODE_BULK_BYTES)
        rc = chempi_coll_shm_slot_put(cell, cell->st->rank, own.buf, own.count,
                                      own.type, len);
    chempi_coll_shm_slot_come(cell);
    return rc;
}

static int allgather_end(const struct cell *cell,
                         const struct chempi_coll_call *c)
{
    struct chempi_coll_state *st = cell->st;
    int rc = MPI_SUCCESS;

    for (int i = 0; i < st->size; i++) {
        struct chempi_coll_place to = chempi_coll_received(c, i);
        uint64_t len = cell_line(cell, i)->len;

        if (i == st->rank && c->send.buf == MPI_IN_PLACE)
            continue;
        if (len > CHEMPI_NODE_BULK_BYTES)
            rc = cell_first_error(rc, chempi_coll_shm_slot_mismatch(cell, i));
        else
            rc = cell_first_error(
                rc, chempi_coll_shm_slot_get(i, cell_data(cell, i, len), len,
                                             to.buf, to.count, to.type));
    }
    return rc;
}

CHEMPI_NODE_PARTS(chempi_node_parts_allgather, is_small, allgather_at_once,
                  allgather_begin, chempi_coll_shm_slot_is_over, allgather_end);

/* What the lines of all say, which is the same for all. */
struct shown {
    uint64_t longest;  /* bytes of a block in chunks */
    uint64_t all;      /* bytes of these blocks together */
    bool is_all_there; /* all blocks go in chunks */
    bool has_direct;   /* some are copied from where they lie */
    int small;         /* a member takes all blocks for small ones, or -1 */
};

/* One member's part in an allgather of blocks that do not fit slots. */
struct gathering {
    struct chempi_node_task task; /* first */
    struct chempi_coll_place own;
    struct shown shown;
    uint64_t kept; /* bytes of its own block that it has copied */
    uint64_t at;   /* bytes of each block, in chunks, that are done */
    bool is_long;
    int others; /* whose blocks have been copied */
    struct chempi_block_copy remote;
};

static struct gathering *of_task(struct chempi_node_task *t)
{
    return CHEMPI_CONTAINER_OF(t, struct gathering, task);
}

static bool has_messages(const struct cell *cell)
{
    for (int i = 0; i < cell->st->size; i++)
        if (cell_line(cell, i)->mark == BLOCK_BY_MESSAGE)
            return true;
    return false;
}

/* Append what goes by messages: from those who say so, and from this member
 * to all if it is one. */
static void allgather_messages(const struct gathering *g)
{
    const struct cell *cell = &g->task.cell;
    struct chempi_coll_sched *s = g->task.messages;
    struct chempi_coll_state *st = cell->st;

    for (int i = 0; i < st->size; i++) {
        struct chempi_coll_place to = chempi_coll_received(g->task.c, i);

        if (i == st->rank)
            continue;
        if (cell_line(cell, i)->mark == BLOCK_BY_MESSAGE)
            chempi_coll_recv(s, to.buf, to.count, to.type, i);
        if (cell_mine(cell)->mark == BLOCK_BY_MESSAGE)
            chempi_coll_send(s, g->own.buf, g->own.count, g->own.type, i);
        chempi_coll_throttle(s);
    }
}

/* How this member shows its block. */
static enum mark allgather_mark(struct chempi_coll_state *st,
                                const struct chempi_coll_place *own)
{
    if (chempi_coll_stream_is_there(st, st->stream_chunk))
        return BLOCK_STREAM;
    return own->type->is_contiguous && !st->is_refused &&
                   chempi_coll_cma_copy_is_on()
               ? BLOCK_DIRECT
               : BLOCK_BY_MESSAGE;
}

static struct shown allgather_shown(const struct cell *cell)
{
    struct shown s = {.is_all_there = true, .small = -1};

    for (int i = 0; i < cell->st->size; i++) {
        const struct chempi_node_line *line = cell_line(cell, i);

        if (line->mark != BLOCK_STREAM) {
            s.is_all_there = false;
            if (line->mark == BLOCK_HERE)
                s.small = i;
            s.has_direct |= line->mark == BLOCK_DIRECT;
            continue;
        }
        s.longest = line->len > s.longest ? line->len : s.longest;
        s.all += line->len;
    }
    return s;
}

/* All have copied what they can. */
static void allgather_copied(struct chempi_node_task *t)
{
    if (!of_task(t)->shown.has_direct) {
        task_end(t); /* nobody has read another's memory */
        return;
    }
    chempi_coll_shm_slot_reply(&t->cell, 1, of_task(t)->remote.code);
    chempi_coll_node_task_meet_again(t, chempi_coll_block_copy_end);
}

/* The blocks of others, a piece in each step, beginning with the neighbour's,
 * so that not all read the same memory at a time; then those that go by
 * messages. */
static void allgather_copy(struct chempi_node_task *t)
{
    struct gathering *g = of_task(t);
    struct chempi_coll_state *st = t->cell.st;

    for (; g->others + 1 < st->size; g->others++, g->remote.done = 0) {
        int i = (st->rank + g->others + 1) % st->size;
        const struct chempi_node_line *line = cell_line(&t->cell, i);
        struct chempi_coll_place to = chempi_coll_received(t->c, i);

        if (line->mark == BLOCK_DIRECT &&
            chempi_coll_block_copy_next(t, &g->remote, i, line->place.in,
                                        line->len, &to)) {
            task_go_on(t, allgather_copy);
            return;
        }
    }
    if (CHEMPI_UNLIKELY(has_messages(&t->cell))) {
        if (task_lacks_messages(t, allgather_copy))
            return;
        allgather_messages(g);
    }
    task_go_on(t, allgather_copied);
}

/* The blocks that go in chunks, of which the next ones lie there since all have
 * met. Those who run at the same time read the same board: it is in a cache
 * then. */
static void allgather_round(struct chempi_node_task *t)
{
    struct gathering *g = of_task(t);
    struct chempi_coll_state *st = t->cell.st;

    for (int k = 1; k < st->size; k++) {
        int i = (st->rank + k) % st->size;
        const struct chempi_node_line *line = cell_line(&t->cell, i);
        struct chempi_coll_place to = chempi_coll_received(t->c, i);

        if (line->mark == BLOCK_STREAM)
            task_note(t, get_chunk(st, i, g->at, line->len, &to, g->is_long));
    }
    st->streamed++;
    t->copied += st->stream_chunk * (uint64_t)st->size;
    g->at += st->stream_chunk;
    if (g->at >= g->shown.longest) {
        if (g->shown.is_all_there)
            task_end(t);
        else
            allgather_copy(t);
        return;
    }
    if (cell_mine(&t->cell)->mark == BLOCK_STREAM)
        put_chunk(&g->own, g->at, st->stream_chunk,
                  chempi_coll_stream_of(st, st->rank),
                  chempi_coll_shm_slot_goes_past(st, -1));
    chempi_coll_node_task_meet_again(t, allgather_round);
}

static void allgather_keep(struct chempi_node_task *t)
{
    struct gathering *g = of_task(t);
    struct chempi_coll_place to = chempi_coll_received(t->c, t->cell.st->rank);

    if (t->c->send.buf != MPI_IN_PLACE &&
        chempi_coll_block_copy_own(t, &g->own, &to, g->is_long, &g->kept))
        task_go_on(t, allgather_keep);
    else if (g->shown.longest > 0)
        allgather_round(t);
    else
        allgather_copy(t);
}

/* All lines are there. */
static void allgather_met(struct chempi_node_task *t)
{
    struct gathering *g = of_task(t);
    struct chempi_coll_state *st = t->cell.st;

    chempi_coll_shm_slot_look_far_at_last(&t->cell);
    g->shown = allgather_shown(&t->cell);
    if (CHEMPI_UNLIKELY(g->shown.small >= 0)) {
        /* Those have met once and left. */
        task_note(t, chempi_coll_shm_slot_different_amounts(&t->cell,
                                                            g->shown.small));
        task_end(t);
        return;
    }
    g->is_long = chempi_coll_nt_copy_is_long(g->shown.all * (uint64_t)st->size);
    allgather_keep(t);
}

/* The same answer everywhere, at this member's turn (node_task.h, K2). */
static bool is_allgather_here(const struct chempi_coll_state *st)
{
    return (!st->is_refused && chempi_coll_cma_copy_is_on()) ||
           chempi_coll_streams_are_on(st);
}

static void allgather_first(struct chempi_node_task *t)
{
    struct gathering *g = of_task(t);
    struct chempi_coll_state *st = t->cell.st;
    struct chempi_node_line *line = cell_mine(&t->cell);

    if (!is_allgather_here(st)) {
        t->is_void = true;
        task_end(t);
        return;
    }
    g->own = own_block(&t->cell, t->c);
    task_spread(t, block_len(&g->own));
    line->len = block_len(&g->own);
    line->mark = allgather_mark(st, &g->own);
    line->place.in = block_address(&g->own);
    line->place.reply = 0;
    if (line->mark == BLOCK_STREAM)
        put_chunk(&g->own, 0, st->stream_chunk,
                  chempi_coll_stream_of(st, st->rank),
                  chempi_coll_shm_slot_goes_past(st, -1));
    chempi_coll_shm_slot_say_came(&t->cell);
    chempi_coll_node_task_meet(t, allgather_met);
}

const struct chempi_node_steps chempi_node_steps_allgather =
    CHEMPI_NODE_STEPS(struct gathering, allgather_first);

bool chempi_coll_node_allgather(struct chempi_coll_state *st,
                                const struct chempi_coll_call *c, int tag,
                                int *rc)
{
    struct gathering g = {.task = {.c = c}};
    struct cell cell;

    if (st->size == 2)
        return chempi_coll_node_pair(st, c, tag, rc);
    if (is_small(c)) {
        cell_open_sync(st, &cell);
        *rc = parts_run_meeting(&chempi_node_parts_allgather, &cell, c);
        return true;
    }
    *rc = chempi_coll_node_task_turn(st);
    if (!is_allgather_here(st))
        return false;
    cell_open_sync(st, &g.task.cell);
    return chempi_coll_node_task_run(&g.task, allgather_first, tag, rc);
}
