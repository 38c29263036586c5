/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allgather and alltoall, in all forms, of two members in a node's shared
 * memory. Each has one block for the other and gets one, and both know both
 * lengths. Blocks that fit slots go through these, and longer ones through
 * stream boards; while the other one is about to come, a member copies its own
 * block to where it belongs. Else the two meet and exchange messages, which go
 * in pieces, and so stay in the caches (32 and 64 KiB took 1.7 and 3.0 us in a
 * message and 1.4 and 2.7 through a board, with the cores below one cache).
 */
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/coll/node/copy/block_copy.h"
#include "libchempi/didl/coll/node/copy/nt_copy.h"
#include "libchempi/didl/coll/node/later/node_parts.h"
#include "libchempi/didl/coll/node/later/node_task.h"
#include "libchempi/didl/coll/sched.h"

/* In the mark of a line. */
enum { IN_SLOT, ON_BOARD, BY_MESSAGE };

static bool is_allgather(const struct chempi_coll_call *c)
{
    return c->kind == CHEMPI_COLL_ALLGATHER ||
           c->kind == CHEMPI_COLL_ALLGATHERV;
}

static int other(const struct chempi_coll_call *c)
{
    return 1 - (int)c->comm->rank;
}

/* For the other one. */
static struct chempi_coll_place block_out(const struct chempi_coll_call *c)
{
    const bool is_in_place = c->send.buf == MPI_IN_PLACE;

    if (!is_allgather(c))
        return is_in_place ? chempi_coll_received(c, other(c))
                           : chempi_coll_sent(c, other(c));
    return is_in_place ? chempi_coll_received(c, (int)c->comm->rank)
                       : chempi_coll_whole(&c->send);
}

static struct chempi_coll_place block_in(const struct chempi_coll_call *c)
{
    return chempi_coll_received(c, other(c));
}

static bool are_within(const struct chempi_coll_call *c, uint64_t most)
{
    const struct chempi_coll_place out = block_out(c);
    const struct chempi_coll_place in = block_in(c);

    return block_len(&out) <= most && block_len(&in) <= most;
}

static bool is_short(const struct chempi_coll_call *c)
{
    return are_within(c, CHEMPI_NODE_BULK_BYTES);
}

bool chempi_coll_node_pair_is_for_boards(const struct chempi_coll_call *c)
{
    return are_within(c, CHEMPI_NODE_PAIR_MAX);
}

static int keep_own(const struct chempi_coll_call *c)
{
    const int rank = (int)c->comm->rank;
    struct chempi_coll_place from;
    struct chempi_coll_place to;
    uint64_t len;

    if (c->send.buf == MPI_IN_PLACE)
        return MPI_SUCCESS;
    from = is_allgather(c) ? chempi_coll_whole(&c->send)
                           : chempi_coll_sent(c, rank);
    to = chempi_coll_received(c, rank);
    len = block_len(&from);
    if (CHEMPI_UNLIKELY(len != block_len(&to)))
        return chempi_coll_shm_slot_wrong_amount(rank, len, block_len(&to));
    return block_keep(&from, &to);
}

static int pair_begin(const struct cell *cell, const struct chempi_coll_call *c)
{
    const struct chempi_coll_place out = block_out(c);
    struct chempi_node_line *line = cell_mine(cell);
    int rc = MPI_SUCCESS;

    line->mark = IN_SLOT;
    line->len = block_len(&out);
    if (line->len > 0)
        rc = chempi_coll_shm_slot_put(cell, cell->st->rank, out.buf, out.count,
                                      out.type, line->len);
    chempi_coll_shm_slot_come(cell);
    return cell_first_error(rc, keep_own(c));
}

static int pair_end(const struct cell *cell, const struct chempi_coll_call *c)
{
    const struct chempi_node_line *line = cell_line(cell, other(c));
    const struct chempi_coll_place in = block_in(c);
    const uint64_t len = line->len;

    if (CHEMPI_UNLIKELY(line->mark != IN_SLOT || len > CHEMPI_NODE_BULK_BYTES))
        return chempi_coll_shm_slot_mismatch(cell, other(c));
    if (CHEMPI_UNLIKELY(len != block_len(&in)))
        return chempi_coll_shm_slot_wrong_amount(other(c), len, block_len(&in));
    if (len == 0)
        return MPI_SUCCESS;
    return chempi_coll_shm_slot_get(other(c), cell_data(cell, other(c), len),
                                    len, in.buf, in.count, in.type);
}

static bool fits(const struct chempi_coll_call *c)
{
    return is_short(c);
}

CHEMPI_NODE_PARTS(chempi_node_parts_pair, fits, pair_at_once, pair_begin,
                  chempi_coll_shm_slot_is_over, pair_end);

/* ---- longer blocks ---- */

static int take_board(const struct cell *cell, const struct chempi_coll_call *c)
{
    const struct chempi_coll_state *st = cell->st;
    const uint64_t len = cell_line(cell, other(c))->len;
    const struct chempi_coll_place in = block_in(c);

    if (CHEMPI_UNLIKELY(len != block_len(&in)))
        return chempi_coll_shm_slot_wrong_amount(other(c), len, block_len(&in));
    if (len > 0)
        chempi_coll_nt_copy_unpack(in.buf, in.count, in.type, 0,
                                   chempi_coll_stream_of(st, other(c)), len,
                                   false);
    return MPI_SUCCESS;
}

/* Both marks are there, so that both count alike rounds of boards; who has put
 * its block into a slot counts none. */
static void pair_met(struct chempi_node_task *t)
{
    const uint32_t own = cell_mine(&t->cell)->mark;
    const uint32_t others = cell_line(&t->cell, other(t->c))->mark;

    if (CHEMPI_LIKELY(own == ON_BOARD && others == ON_BOARD))
        task_note(t, take_board(&t->cell, t->c));
    else if (others == IN_SLOT)
        task_note(
            t, chempi_coll_shm_slot_different_amounts(&t->cell, other(t->c)));
    else
        t->is_void = true;
    if (others != IN_SLOT && (own == ON_BOARD || others == ON_BOARD))
        t->cell.st->streamed++;
    task_end(t);
}

/* What this member has for the other one is on its board if that can be. */
static void pair_first(struct chempi_node_task *t)
{
    struct chempi_coll_state *st = t->cell.st;
    const struct chempi_coll_place out = block_out(t->c);
    const uint64_t len = block_len(&out);
    struct chempi_node_line *line = cell_mine(&t->cell);

    line->len = len;
    line->mark = chempi_coll_node_pair_is_for_boards(t->c) &&
                         chempi_coll_stream_is_there(st, len)
                     ? ON_BOARD
                     : BY_MESSAGE;
    if (line->mark == ON_BOARD && len > 0)
        chempi_coll_nt_copy_pack(out.buf, out.count, out.type, 0,
                                 chempi_coll_stream_of(st, st->rank), len,
                                 false);
    chempi_coll_node_task_meet(t, pair_met);
    if (line->mark == ON_BOARD)
        task_note(t, keep_own(t->c));
}

const struct chempi_node_steps chempi_node_steps_pair =
    CHEMPI_NODE_STEPS(struct chempi_node_task, pair_first);

bool chempi_coll_node_pair(struct chempi_coll_state *st,
                           const struct chempi_coll_call *c, int tag, int *rc)
{
    struct chempi_node_task t = {.c = c};
    struct cell cell;

    if (!is_short(c)) {
        cell_open_sync(st, &t.cell);
        return chempi_coll_node_task_run(&t, pair_first, tag, rc);
    }
    cell_open_sync(st, &cell);
    *rc = parts_run_meeting(&chempi_node_parts_pair, &cell, c);
    return true;
}
