/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Alltoall, in all forms, of three and more members in a node's shared memory
 * (of two: node_pair.c). What fits a slot goes through it. Otherwise everyone
 * says in a row what it has for whom and where that lies, all meet, copy what
 * they need from each other's memory, and meet again before anybody leaves.
 * Data that others cannot copy goes by messages. Large blocks go through rings
 * if all members can use them.
 */
#include "common/base/clock.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/coll/node/copy/block_copy.h"
#include "libchempi/didl/coll/node/copy/nt_copy.h"
#include "libchempi/didl/coll/node/copy/way_choice.h"
#include "libchempi/didl/coll/node/cores/distance.h"
#include "libchempi/didl/coll/node/exchange_row.h"
#include "libchempi/didl/coll/node/later/node_parts.h"
#include "libchempi/didl/coll/node/later/node_task.h"
#include "libchempi/didl/coll/node/ring/pairwise_rings.h"
#include "libchempi/didl/error/error.h"

/* How a member shows a block in its row. */
enum mark { BLOCK_HERE, BLOCK_BY_MESSAGE, BLOCK_DIRECT };

static int copy_block(const struct chempi_coll_place *from,
                      const struct chempi_coll_place *to)
{
    if (block_len(from) == 0)
        return MPI_SUCCESS;
    return chempi_datatype_copy(from->buf, from->count, from->type, to->buf,
                                to->count, to->type);
}

enum { COPIES_MAX = 64 }; /* members; of more, a message carries many blocks */

/* How much of all members' rings together blocks may take up, in bytes: with
 * more, rings fall out of the caches. */
#define RINGS_CACHED_MAX (UINT64_C(32) << 20)

/* What a member has for others. */
struct amounts {
    uint64_t large;  /* bytes of blocks that are not HERE */
    uint64_t direct; /* .. of these, what others can copy themselves */
    uint64_t taken;  /* of its rings, by what is large */
};

/* An exchange as this member sees it. */
static struct chempi_way_exchange way_of(const struct cell *cell,
                                         uint64_t large)
{
    return (struct chempi_way_exchange){
        .block_len = large / ((uint64_t)cell->st->size - 1),
        .members = cell->st->size,
        .is_later = cell->is_later};
}

/* Is this the first member, who has blocks that may go either way? */
static bool chooses_way(const struct cell *cell, const struct amounts *sum)
{
    const struct chempi_way_exchange way = way_of(cell, sum->large);

    return cell->st->rank == 0 && sum->large > 0 && sum->large == sum->direct &&
           chempi_way_is_open(&way);
}

/* What this member says of rings for its large blocks. As if all had as much;
 * an exchange reads as much as it writes. */
static uint32_t rings_mark(const struct cell *cell, const struct amounts *sum)
{
    struct chempi_coll_state *st = cell->st;
    const struct chempi_way_exchange way = way_of(cell, sum->large);
    uint64_t size = (uint64_t)st->size;
    uint64_t all = 2 * sum->large * size;

    if (!chempi_coll_streams_are_on(st))
        return 0;
    if (sum->taken * size > RINGS_CACHED_MAX)
        return 0;
    if (chooses_way(cell, sum) && !chempi_way_is_rings(&way))
        return 0;
    if (!chempi_coll_pairwise_rings_open(st, sum->large > 0))
        return 0;
    if (sum->large == 0)
        return HAS_RINGS;
    return HAS_RINGS | NEEDS_RINGS |
           (chempi_coll_nt_copy_is_long(all) ? IS_LONG : 0);
}

static bool is_any_marked(const struct cell *cell, uint32_t mark)
{
    for (int i = 0; i < cell->st->size; i++)
        if (cell_line(cell, i)->mark & mark)
            return true;
    return false;
}

/* Does what is not HERE go through rings? The same answer everywhere. */
static bool are_rings_used(const struct cell *cell)
{
    for (int i = 0; i < cell->st->size; i++)
        if (!(cell_line(cell, i)->mark & HAS_RINGS))
            return false;
    return is_any_marked(cell, NEEDS_RINGS);
}

/* Fill the row in; false when there is no slot. */
static bool write_row(const struct cell *cell, const struct chempi_coll_call *c,
                      bool can_copy, struct amounts *sum, int *rc)
{
    struct chempi_coll_state *st = cell->st;
    struct chempi_exchange_row row =
        chempi_coll_exchange_row_begin(cell, c, rc);
    struct chempi_exchange_entry *entries = (void *)row.start;
    uint64_t used = (uint64_t)st->size * sizeof(struct chempi_exchange_entry);

    for (int i = 0; row.start && i < st->size; i++) {
        struct chempi_coll_place from = chempi_coll_sent(c, i);
        uint64_t len = block_len(&from);
        struct chempi_exchange_entry entry = {
            .at = used, .what = len << 2 | BLOCK_BY_MESSAGE};

        if (i == st->rank || len == 0) {
            entry.what = 0;
        } else if (len <= CHEMPI_EXCHANGE_HERE_MAX && len <= row.room - used) {
            struct chempi_coll_place to = {row.start + used, (MPI_Count)len,
                                           chempi_coll_byte()};

            entry.what = len << 2 | BLOCK_HERE;
            (void)copy_block(&from, &to);
            used += len;
        } else if (can_copy && from.type->is_contiguous) {
            entry.at = block_address(&from);
            entry.what = len << 2 | BLOCK_DIRECT;
            cell_mine(cell)->mark |= HAS_DIRECT;
            sum->direct += len;
        }
        if (i != st->rank && (entry.what & 3) != BLOCK_HERE) {
            sum->large += len;
            sum->taken += chempi_coll_pairwise_rings_take_up(st->size, len);
        }
        entries[i] = entry;
    }
    if (row.start)
        cell_mine(cell)->mark |= rings_mark(cell, sum);
    return row.start != NULL;
}

/* One member's part in an exchange with rows. */
struct exchange {
    struct chempi_node_task task; /* first */
    bool has_row;
    bool has_rings; /* what is not HERE goes through these */
    bool is_long;   /* results go past the caches */
    uint64_t kept;  /* bytes of its own block that it has copied */
    uint64_t large; /* of blocks whose way this member has chosen, or 0 */
    int others;     /* whose blocks have been taken */
    int rest;       /* with whom the rest has been begun */
    struct chempi_block_copy remote;
};

static struct exchange *exchange_of(struct chempi_node_task *t)
{
    return CHEMPI_CONTAINER_OF(t, struct exchange, task);
}

/* A block of len bytes that its sender puts into its ring, also if it is not
 * what this member expects. */
static int take_from_ring(const struct exchange *x, int i, uint64_t len,
                          const struct chempi_coll_place *to)
{
    bool is_right = len == block_len(to);
    struct chempi_ring_block block = {.buf = to->buf,
                                      .is_unwanted = !is_right,
                                      .count = to->count,
                                      .type = to->type,
                                      .len = len};

    chempi_coll_pairwise_rings_recv(x->task.cell.st, i, &block);
    if (CHEMPI_UNLIKELY(!is_right))
        return chempi_coll_shm_slot_wrong_amount(i, len, block_len(to));
    return MPI_SUCCESS;
}

/* What member i has for this one HERE, or a piece of what is DIRECT; true:
 * there may be more. */
static bool take_entry(struct exchange *x, int i)
{
    struct chempi_node_task *t = &x->task;
    struct chempi_exchange_row row = chempi_coll_exchange_row_of(&t->cell, i);
    struct chempi_coll_place to = chempi_coll_received(t->c, i);
    struct chempi_exchange_entry entry;
    enum mark mark;
    uint64_t len;

    if (CHEMPI_UNLIKELY(cell_line(&t->cell, i)->len == CELL_NO_ROOM)) {
        task_note(t, chempi_coll_shm_slot_mismatch(&t->cell, i));
        return false;
    }
    entry = chempi_coll_exchange_row_entry(&t->cell, i, t->cell.st->rank);
    mark = entry.what & 3;
    len = entry.what >> 2;
    if (mark == BLOCK_BY_MESSAGE || (x->has_rings && mark != BLOCK_HERE))
        return false;
    if (mark == BLOCK_DIRECT)
        return chempi_coll_block_copy_next(t, &x->remote, i, entry.at, len,
                                           &to);
    if (CHEMPI_UNLIKELY(len != block_len(&to)))
        task_note(t, chempi_coll_shm_slot_wrong_amount(i, len, block_len(&to)));
    else if (len > CHEMPI_EXCHANGE_HERE_MAX || entry.at > row.room - len)
        task_note(t, chempi_coll_shm_slot_mismatch(&t->cell, i));
    else if (len > 0)
        task_note(t, chempi_coll_shm_slot_get(i, row.start + entry.at, len,
                                              to.buf, to.count, to.type));
    return false;
}

static chempi_node_step_fn take_blocks;

/* What member i has said would come another way. False: it cannot as yet. */
static bool recv_rest(struct exchange *x, int i)
{
    const struct cell *cell = &x->task.cell;
    struct chempi_coll_place to = chempi_coll_received(x->task.c, i);
    struct chempi_exchange_entry entry;
    enum mark mark;

    if (CHEMPI_UNLIKELY(cell_line(cell, i)->len == CELL_NO_ROOM))
        return true;
    entry = chempi_coll_exchange_row_entry(cell, i, cell->st->rank);
    mark = entry.what & 3;
    if (x->has_rings) {
        if (mark == BLOCK_HERE)
            chempi_coll_pairwise_rings_recv(cell->st, i,
                                            &(struct chempi_ring_block){0});
        else
            task_note(&x->task, take_from_ring(x, i, entry.what >> 2, &to));
        return true;
    }
    if (mark != BLOCK_BY_MESSAGE)
        return true;
    if (task_lacks_messages(&x->task, take_blocks))
        return false;
    chempi_coll_recv(x->task.messages, to.buf, to.count,
                     to.type ? to.type : chempi_coll_byte(), i);
    return true;
}

/* What this member said would come another way than HERE or DIRECT; likewise.
 */
static bool send_rest(struct exchange *x, int i)
{
    const struct cell *cell = &x->task.cell;
    struct chempi_coll_place from = chempi_coll_sent(x->task.c, i);
    enum mark mark =
        chempi_coll_exchange_row_entry(cell, cell->st->rank, i).what & 3;
    struct chempi_ring_block block = {.buf = from.buf,
                                      .count = from.count,
                                      .type = from.type,
                                      .len = block_len(&from)};

    if (x->has_rings) {
        if (mark == BLOCK_HERE)
            block.len = 0;
        block.is_far =
            block.len > 0 && chempi_coll_shm_slot_goes_past(cell->st, i);
        chempi_coll_pairwise_rings_send(cell->st, i, &block);
        return true;
    }
    if (mark != BLOCK_BY_MESSAGE)
        return true;
    if (task_lacks_messages(&x->task, take_blocks))
        return false;
    chempi_coll_send(x->task.messages, from.buf, from.count, from.type, i);
    return true;
}

/* A member that has made a row while this one has not, or the other way round;
 * -1: there is none, at any member. Else all end after the first meeting. */
static int find_odd(const struct cell *cell)
{
    uint32_t own = cell_mine(cell)->mark & NO_ROW;

    for (int i = 0; i < cell->st->size; i++)
        if ((cell_line(cell, i)->mark & NO_ROW) != own)
            return i;
    return -1;
}

static bool are_rings_due(struct chempi_node_task *t)
{
    return chempi_coll_pairwise_rings_are_due(t->cell.st);
}

static bool misses_in_rings(const void *arg, int member)
{
    const struct chempi_node_task *t = arg;

    return chempi_coll_pairwise_rings_misses(t->cell.st, member);
}

static void run_rings(struct chempi_node_task *t)
{
    int rc = MPI_SUCCESS;

    if (chempi_coll_pairwise_rings_step(t->cell.st, &t->copied, &rc)) {
        task_note(t, rc);
        task_end(t);
        return;
    }
    t->whom = TASK_AWAITS_SOME;
    t->word = NULL;
    t->is_due = are_rings_due;
    t->misses = misses_in_rings;
    t->next = run_rings;
}

/* What is HERE or DIRECT has been taken, and messages have come. */
static void end_exchange(struct chempi_node_task *t)
{
    const struct exchange *x = exchange_of(t);

    if (x->has_rings) {
        chempi_coll_pairwise_rings_begin(t->cell.st, x->is_long,
                                         t->cell.is_later);
        run_rings(t);
    } else if (is_any_marked(&t->cell, HAS_DIRECT)) {
        chempi_coll_shm_slot_reply(&t->cell, 1, x->remote.code);
        chempi_coll_node_task_meet_again(t, chempi_coll_block_copy_end);
    } else {
        task_end(t);
    }
}

static void take_blocks(struct chempi_node_task *t)
{
    struct exchange *x = exchange_of(t);
    struct chempi_coll_state *st = t->cell.st;

    for (; x->others + 1 < st->size; x->others++, x->remote.done = 0)
        if (take_entry(x, (st->rank + x->others + 1) % st->size)) {
            task_go_on(t, take_blocks);
            return;
        }
    for (; x->rest + 1 < st->size; x->rest++) {
        const int k = x->rest + 1;

        if (!recv_rest(x, (st->rank + k) % st->size) ||
            (x->has_row && !send_rest(x, (st->rank + st->size - k) % st->size)))
            return;
        if (t->messages)
            chempi_coll_throttle(t->messages);
    }
    if (x->has_rings)
        end_exchange(t);
    else
        task_go_on(t, end_exchange);
}

static void alltoall_keep(struct chempi_node_task *t)
{
    struct exchange *x = exchange_of(t);
    struct chempi_coll_place from = chempi_coll_sent(t->c, t->cell.st->rank);
    struct chempi_coll_place to = chempi_coll_received(t->c, t->cell.st->rank);

    if (chempi_coll_block_copy_own(t, &from, &to, x->is_long, &x->kept))
        task_go_on(t, alltoall_keep);
    else
        take_blocks(t);
}

/* Who came last has just written its row, at which, unlike its line, nobody has
 * looked before. */
static void look_far(const struct cell *cell)
{
    const struct chempi_coll_state *st = cell->st;
    const uint32_t last = cell_common(cell)->place.last;
    const struct chempi_node_line *line;
    struct chempi_exchange_row row;
    uint64_t came_ns;

    if (last >= (uint32_t)st->size || last == (uint32_t)st->rank)
        return;
    line = cell_line(cell, (int)last);
    came_ns = atomic_load_explicit(&line->place.came_ns, memory_order_relaxed);
    if (line->mark & NO_ROW || line->len == CELL_NO_ROOM || came_ns == 0)
        return;
    row = chempi_coll_exchange_row_of(cell, (int)last);
    chempi_distance_look(
        &st->yield_policy, (int)last, came_ns,
        (const void *)(row.start + (size_t)st->rank *
                                       sizeof(struct chempi_exchange_entry)));
}

/* The member that has chosen the way: what the last exchange has taken until
 * this one, which alone tells when all others were through, too. */
static void note_way(const struct exchange *x)
{
    struct chempi_coll_state *st = x->task.cell.st;
    uint64_t now_ns;

    if (x->large == 0)
        return;
    now_ns = chempi_clock_ns();
    if (st->way.met_ns)
        chempi_way_note(&st->way.exchange, st->way.by_rings,
                        now_ns - st->way.met_ns);
    st->way.exchange = way_of(&x->task.cell, x->large);
    st->way.by_rings = x->has_rings;
    st->way.met_ns = now_ns;
}

/* All rows are there. */
static void alltoall_met(struct chempi_node_task *t)
{
    struct exchange *x = exchange_of(t);
    int odd;

    look_far(&t->cell);
    odd = find_odd(&t->cell);
    if (CHEMPI_UNLIKELY(odd >= 0)) {
        task_note(t, chempi_coll_shm_slot_different_amounts(&t->cell, odd));
        task_end(t);
        return;
    }
    x->has_rings = are_rings_used(&t->cell);
    if (x->has_rings) {
        x->is_long |= is_any_marked(&t->cell, IS_LONG);
        chempi_coll_count(CHEMPI_COLL_WAY_RINGS);
    }
    note_way(x);
    alltoall_keep(t);
}

static void alltoall_first(struct chempi_node_task *t)
{
    struct exchange *x = exchange_of(t);
    struct chempi_coll_state *st = t->cell.st;
    struct chempi_coll_place own = chempi_coll_received(t->c, st->rank);
    /* An exchange reads as much as it writes. */
    uint64_t all =
        2 * block_len(&own) * (uint64_t)st->size * (uint64_t)st->size;
    struct amounts sum = {0};
    int rc = MPI_SUCCESS;

    x->is_long = chempi_coll_nt_copy_is_long(all);
    cell_mine(&t->cell)->mark = 0;
    cell_mine(&t->cell)->len = 0;
    cell_mine(&t->cell)->place.reply = 0;
    x->has_row =
        write_row(&t->cell, t->c,
                  !st->is_refused && chempi_coll_cma_copy_is_on(), &sum, &rc);
    x->large = chooses_way(&t->cell, &sum) ? sum.large : 0;
    task_note(t, rc);
    task_spread(t, sum.large);
    atomic_store_explicit(&cell_mine(&t->cell)->place.came_ns,
                          sum.large > 0 ? chempi_clock_ns() : 0,
                          memory_order_relaxed);
    chempi_coll_node_task_meet(t, alltoall_met);
}

const struct chempi_node_steps chempi_node_steps_alltoall =
    CHEMPI_NODE_STEPS(struct exchange, alltoall_first);

/* Regular alltoall whose row (all blocks of a member) fits a slot. */

static uint64_t row_len(const struct cell *cell,
                        const struct chempi_coll_call *c)
{
    return (uint64_t)(c->recv.count * c->recv.type->size) *
           (uint64_t)cell->st->size;
}

static int alltoall_begin(const struct cell *cell,
                          const struct chempi_coll_call *c)
{
    struct chempi_coll_state *st = cell->st;
    bool is_in_place = c->send.buf == MPI_IN_PLACE;
    const void *from = is_in_place ? c->recv.buf : c->send.buf;
    MPI_Count count = is_in_place ? c->recv.count : c->send.count;
    struct chempi_datatype *type = is_in_place ? c->recv.type : c->send.type;
    uint64_t len = (uint64_t)(count * type->size * st->size);
    int rc = MPI_SUCCESS;

    cell_mine(cell)->mark = NO_ROW;
    cell_mine(cell)->len = len;
    if (len <= CHEMPI_NODE_BULK_BYTES) /* else all see it: nobody's row */
        rc = chempi_coll_shm_slot_put(cell, st->rank, from, count * st->size,
                                      type, len);
    chempi_coll_shm_slot_come(cell);
    return rc;
}

static int alltoall_take(const struct cell *cell,
                         const struct chempi_coll_call *c)
{
    struct chempi_coll_state *st = cell->st;
    uint64_t row = row_len(cell, c);
    uint64_t block = row / (uint64_t)st->size;
    int rc = MPI_SUCCESS;

    for (int i = 0; !rc && i < st->size; i++)
        rc = chempi_coll_shm_slot_get(
            i, cell_data(cell, i, row) + (uint64_t)st->rank * block, block,
            chempi_coll_at(c->recv.buf, i * c->recv.count, c->recv.type),
            c->recv.count, c->recv.type);
    return rc;
}

static int alltoall_end(const struct cell *cell,
                        const struct chempi_coll_call *c)
{
    const uint64_t len = row_len(cell, c);
    int rc = chempi_coll_shm_slot_check(cell, len);

    /* The line of a row says 0. */
    if (CHEMPI_UNLIKELY(!rc && len == 0) && find_odd(cell) >= 0)
        rc = chempi_coll_shm_slot_different_amounts(cell, find_odd(cell));
    return rc ? rc : alltoall_take(cell, c);
}

static bool is_in_rows(const struct chempi_coll_call *c)
{
    return c->recv.count * c->recv.type->size <=
           CHEMPI_NODE_BULK_BYTES / (int)c->comm->size;
}

CHEMPI_NODE_PARTS(chempi_node_parts_alltoall, is_in_rows, alltoall_at_once,
                  alltoall_begin, chempi_coll_shm_slot_is_over, alltoall_end);

bool chempi_coll_node_alltoall(struct chempi_coll_state *st,
                               const struct chempi_coll_call *c, int tag,
                               int *rc)
{
    struct exchange x = {.task = {.c = c}};
    struct cell cell;

    if (st->size == 2)
        return chempi_coll_node_pair(st, c, tag, rc);
    *rc = MPI_SUCCESS;
    if (c->kind == CHEMPI_COLL_ALLTOALL) {
        if (is_in_rows(c)) {
            cell_open_sync(st, &cell);
            *rc = parts_run_meeting(&chempi_node_parts_alltoall, &cell, c);
            return true;
        }
        if (st->size > COPIES_MAX &&
            c->recv.count * c->recv.type->size <=
                chempi_setting_signed(CHEMPI_SET_COLL_ALLTOALL_BRUCK))
            return false;
    }
    if (c->send.buf == MPI_IN_PLACE || st->size > CHEMPI_EXCHANGE_ROWS_MAX)
        return false;
    cell_open_sync(st, &x.task.cell);
    return chempi_coll_node_task_run(&x.task, alltoall_first, tag, rc);
}
