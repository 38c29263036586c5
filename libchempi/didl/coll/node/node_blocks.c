/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gather and scatter in a node's shared memory. Blocks that fit a slot go
 * through it. Longer ones are tasks: where each member has a core, those that
 * fit what a device has between two processes go by messages, which their
 * senders need not wait for; for the others the root says where they lie in its
 * memory, and their owners copy from or to there (root_copies.h).
 *
 *   -   whether a member has a task follows from the length that it knows: of
 *       a gatherv or scatterv some members have one and others not. These tasks
 *       use no boards, pipe or rings
 *   -   each side looks at what the other says of a block, and waits for
 *       nothing that the other does not know of
 */
#include "libchempi/didl/coll/node/copy/block_copy.h"
#include "libchempi/didl/coll/node/later/node_parts.h"
#include "libchempi/didl/coll/node/later/node_task.h"
#include "libchempi/didl/coll/node/root_copies.h"
#include "libchempi/didl/coll/sched.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/locality/affinity.h"

/* Bytes of a block. */
enum { DIRECT_ABOVE = 64 << 10 /* where each member has a core */ };

/* One member's part in an operation of blocks that do not fit slots. */
struct blocks {
    struct chempi_node_task task; /* first */
    bool has_said; /* root: it has said where blocks lie, or that it does not */
    bool is_kept;  /* root: its own block is where it belongs */
    uint64_t kept; /* bytes of that, as yet */
    int next;      /* root: lines before it are there */
    uint32_t copies;               /* root: members that copy their blocks */
    uint64_t at;                   /* this member's, in the root's memory */
    struct chempi_block_copy copy; /* .. as far as it is copied */
    chempi_node_step_fn *then;     /* when the own block is kept */
};

static struct blocks *of_task(struct chempi_node_task *t)
{
    return CHEMPI_CONTAINER_OF(t, struct blocks, task);
}

static bool is_gather(const struct chempi_coll_call *c)
{
    return c->kind == CHEMPI_COLL_GATHER || c->kind == CHEMPI_COLL_GATHERV;
}

/* Where the root keeps member i's block. */
static struct chempi_coll_place place_of(const struct chempi_coll_call *c,
                                         int i)
{
    return is_gather(c) ? chempi_coll_received(c, i) : chempi_coll_sent(c, i);
}

/* What a member sends or receives. */
static struct chempi_coll_place own_block(const struct chempi_coll_call *c)
{
    return is_gather(c) ? chempi_coll_whole(&c->send)
                        : chempi_coll_whole(&c->recv);
}

uint64_t chempi_coll_node_longest_block(const struct chempi_coll_call *c)
{
    bool is_v =
        c->kind == CHEMPI_COLL_GATHERV || c->kind == CHEMPI_COLL_SCATTERV;
    uint64_t most = 0;

    if (c->comm->rank != c->root) {
        const struct chempi_coll_place own = own_block(c);

        return block_len(&own);
    }
    for (int i = 0; i < (is_v ? (int)c->comm->size : 1); i++) {
        const struct chempi_coll_place b = place_of(c, i);

        if (block_len(&b) > most)
            most = block_len(&b);
    }
    return most;
}

static bool has_long(const struct chempi_coll_call *c)
{
    return chempi_coll_node_longest_block(c) > CHEMPI_NODE_BULK_BYTES;
}

static bool fits(const struct chempi_coll_call *c)
{
    return !has_long(c);
}

/* Of two members both copy in a message. Where members share cores, a message
 * takes as long as it takes the root to copy it, and whoever else runs on the
 * root's core waits meanwhile. */
static bool is_for_copy(const struct chempi_coll_state *st, uint64_t len)
{
    const uint64_t above =
        chempi_affinity_is_roomy() ? DIRECT_ABOVE : CHEMPI_NODE_BULK_BYTES;

    return len > above && st->size > 2;
}

/* ---- the root's own block ---- */

static bool is_in_place(const struct chempi_coll_call *c)
{
    return (is_gather(c) ? c->send.buf : c->recv.buf) == MPI_IN_PLACE;
}

static void find_own(const struct chempi_coll_call *c,
                     struct chempi_coll_place *from,
                     struct chempi_coll_place *to)
{
    const struct chempi_coll_place place = place_of(c, c->root);

    *from = is_gather(c) ? own_block(c) : place;
    *to = is_gather(c) ? place : own_block(c);
}

static int copy_own(const struct chempi_coll_call *c)
{
    struct chempi_coll_place from;
    struct chempi_coll_place to;

    if (is_in_place(c))
        return MPI_SUCCESS;
    find_own(c, &from, &to);
    return block_keep(&from, &to);
}

/* The same in pieces, a step for each. */
static void keep_own(struct chempi_node_task *t)
{
    struct blocks *b = of_task(t);
    struct chempi_coll_place from;
    struct chempi_coll_place to;
    uint64_t n = 0;

    b->is_kept = true;
    if (is_in_place(t->c)) {
        b->then(t);
        return;
    }
    find_own(t->c, &from, &to);
    if (block_len(&from) <= CHEMPI_COLL_CMA_PIECE_MAX ||
        block_len(&from) != block_len(&to)) {
        task_note(t, copy_own(t->c));
    } else {
        n = block_len(&from) - b->kept;
        if (n > CHEMPI_COLL_CMA_PIECE_MAX)
            n = CHEMPI_COLL_CMA_PIECE_MAX;
        chempi_datatype_copy_piece(from.buf, from.count, from.type, to.buf,
                                   to.count, to.type, b->kept, n);
        b->kept += n;
        t->copied += n;
    }
    if (n > 0 && b->kept < block_len(&from))
        task_go_on(t, keep_own);
    else
        b->then(t);
}

static void keep(struct chempi_node_task *t, chempi_node_step_fn *then)
{
    of_task(t)->then = then;
    keep_own(t);
}

/* ---- copies and messages ---- */

/* Root: does it wait for member m's line, or copy? */
static bool misses_line(const void *arg, int m)
{
    const struct blocks *b = arg; /* its task is first */

    return m != b->task.cell.st->rank && !cell_is_there(&b->task.cell, m);
}

static bool misses_copy(const void *arg, int m)
{
    const struct blocks *b = arg;
    const struct chempi_node_line *line = cell_line(&b->task.cell, m);

    return m != b->task.cell.st->rank && line->mark == BLOCK_DIRECT &&
           atomic_load_explicit(&line->place.met, memory_order_relaxed) == 0;
}

/* Root: until all that copy have said so. */
static void await_copies(struct chempi_node_task *t, chempi_node_step_fn *next)
{
    const struct blocks *b = of_task(t);

    chempi_coll_root_copies_set_goal(&t->cell, b->copies);
    t->misses = misses_copy;
    task_await(t, TASK_AWAITS_SOME, &cell_count(&t->cell)->finished, b->copies,
               next);
}

/* Root: does member i's block go by a message, as was said before or after
 * all? */
static bool is_by_message(const struct cell *cell, int i)
{
    uint32_t mark = cell_line(cell, i)->mark;

    return mark == BLOCK_BY_MESSAGE ||
           (mark == BLOCK_DIRECT &&
            chempi_coll_root_copies_has_refused(cell, i));
}

/* Root, at the end: the blocks that go by messages; then its own, if nobody
 * has copied meanwhile: who waits for a message does not wait for that. */
static void exchange_messages(struct chempi_node_task *t)
{
    struct chempi_coll_state *st = t->cell.st;

    for (int i = 0; i < st->size; i++) {
        struct chempi_coll_place b;

        if (i == st->rank || !is_by_message(&t->cell, i))
            continue;
        if (task_lacks_messages(t, exchange_messages))
            return; /* none is there yet */
        b = place_of(t->c, i);
        if (is_gather(t->c))
            chempi_coll_recv(t->messages, b.buf, b.count, b.type, i);
        else
            chempi_coll_send(t->messages, b.buf, b.count, b.type, i);
        chempi_coll_throttle(t->messages);
    }
    if (of_task(t)->is_kept) {
        task_end(t);
    } else {
        of_task(t)->then = task_end;
        task_go_on(t, keep_own);
    }
}

/* A member's block by a message, which is all that is left to do. */
static void end_by_message(struct chempi_node_task *t)
{
    const struct chempi_coll_place own = own_block(t->c);

    if (task_lacks_messages(t, end_by_message))
        return;
    if (is_gather(t->c))
        chempi_coll_send(t->messages, own.buf, own.count, own.type, t->c->root);
    else
        chempi_coll_recv(t->messages, own.buf, own.count, own.type, t->c->root);
    task_end(t);
}

/* Piece by piece. */
static void copy_block(struct chempi_node_task *t)
{
    struct blocks *b = of_task(t);
    const struct chempi_coll_place own = own_block(t->c);
    const uint32_t root = t->cell.st->local_ranks[t->c->root];
    uint64_t n = block_len(&own) - b->copy.done;

    if (n > CHEMPI_COLL_CMA_PIECE_MAX)
        n = CHEMPI_COLL_CMA_PIECE_MAX;
    if (CHEMPI_UNLIKELY(chempi_coll_block_copy_piece(
            &b->copy, root, b->at, &own, n, is_gather(t->c)))) {
        chempi_coll_root_copies_say(&t->cell, t->c->root, REPLY_REFUSED);
        end_by_message(t);
        return;
    }
    t->copied += n;
    if (b->copy.done < block_len(&own)) {
        task_go_on(t, copy_block);
        return;
    }
    chempi_coll_root_copies_say(&t->cell, t->c->root, REPLY_COPIED);
    task_end(t);
}

/* A blocking task, from this step on. */
static int run(struct blocks *b, chempi_node_step_fn *first, int tag)
{
    int rc;

    (void)chempi_coll_node_task_run(&b->task, first, tag, &rc);
    return rc;
}

/* ---- gather ---- */

/* Tells an offer from what was in its place before, also in a program whose
 * ranks do not agree on which blocks are large. */
static uint64_t seal(const struct cell *cell, uint64_t in, uint64_t len)
{
    return (in ^ UINT64_C(0x9e3779b97f4a7c15) * (len + cell->seq)) *
           UINT64_C(0xd6e8feb86659fd93);
}

static void end_offer(const struct cell *cell, enum chempi_root_mark mark)
{
    cell_common(cell)->mark = mark;
    cell_publish(cell_common(cell), cell->seq);
    chempi_coll_shm_slot_rouse_all(cell);
}

/* Root: tell the members with large blocks where to put them. They write
 * other words of their lines. */
static void offer(const struct cell *cell, const struct chempi_coll_call *c)
{
    struct chempi_coll_state *st = cell->st;

    chempi_coll_root_copies_expect(cell);
    for (int i = 0; i < st->size; i++) {
        const struct chempi_coll_place b = chempi_coll_received(c, i);
        const uint64_t at = chempi_coll_root_copies_address(b.buf, b.type);
        const uint64_t len = block_len(&b);

        if (i == st->rank || !is_for_copy(st, len))
            continue;
        cell_line(cell, i)->place.in = at;
        cell_line(cell, i)->place.out = len;
        cell_line(cell, i)->place.seal = seal(cell, at, len);
    }
    end_offer(cell, BLOCK_DIRECT);
}

/* Take a block that has come as it should; false: it needs more attention.
 * May be called more than once, and, for short ones, by any thread. */
static inline bool take_plain(const struct cell *cell,
                              const struct chempi_coll_call *c, int i)
{
    const struct chempi_node_line *line = cell_line(cell, i);
    const struct chempi_coll_place place = chempi_coll_received(c, i);
    const uint64_t len = block_len(&place);

    if (line->mark != BLOCK_HERE || line->len != len ||
        len > CHEMPI_NODE_BULK_BYTES || !c->recv.type->is_contiguous)
        return false;
    cell_copy(chempi_coll_plus(place.buf, c->recv.type->true_lb),
              cell_data(cell, i, len), len);
    return true;
}

/* What is left of member i's block, if it is here. */
static int get_block(const struct cell *cell, const struct chempi_coll_call *c,
                     int i)
{
    const struct chempi_coll_place place = chempi_coll_received(c, i);
    const uint64_t len = cell_line(cell, i)->len;

    if (take_plain(cell, c, i))
        return MPI_SUCCESS;
    if (CHEMPI_UNLIKELY(len > CHEMPI_NODE_BULK_BYTES))
        return chempi_coll_shm_slot_mismatch(cell, i);
    return chempi_coll_shm_slot_get(i, cell_data(cell, i, len), len, place.buf,
                                    place.count, c->recv.type);
}

/* Root: whoever would have its block copied sends it. */
static void decline(struct blocks *b, const struct cell *cell)
{
    b->has_said = true;
    chempi_coll_root_copies_expect(cell);
    end_offer(cell, BLOCK_BY_MESSAGE);
}

/* All have come: take what is here, and see to it that the rest comes. */
static void gather_rest(struct chempi_node_task *t)
{
    struct blocks *b = of_task(t);
    const struct cell *cell = &t->cell;

    for (int i = 0; i < cell->st->size; i++) {
        const uint32_t mark = cell_line(cell, i)->mark;

        if (i == cell->st->rank)
            continue;
        if (mark == BLOCK_DIRECT)
            b->copies++;
        else if (mark != BLOCK_BY_MESSAGE)
            task_note(t, get_block(cell, t->c, i));
    }
    if (b->copies == 0) {
        exchange_messages(t);
        return;
    }
    if (CHEMPI_UNLIKELY(!b->has_said))
        decline(b, cell);
    await_copies(t, exchange_messages);
}

static bool are_lines_there(struct chempi_node_task *t)
{
    struct blocks *b = of_task(t);
    const struct cell *cell = &t->cell;

    for (; b->next < cell->st->size; b->next++)
        if (b->next != cell->st->rank && !cell_is_there(cell, b->next))
            return false;
    return true;
}

static void await_lines(struct chempi_node_task *t)
{
    t->misses = misses_line;
    t->is_due = are_lines_there;
    task_await(t, TASK_AWAITS_SOME, NULL, 0, gather_rest);
}

/* The root has said where this member's block goes, or that it has not. */
static void gather_told(struct chempi_node_task *t)
{
    const struct cell *cell = &t->cell;
    const struct chempi_node_place place = cell_mine(cell)->place;

    if (CHEMPI_LIKELY(cell_common(cell)->mark == BLOCK_DIRECT &&
                      place.out == cell_mine(cell)->len &&
                      place.seal == seal(cell, place.in, place.out))) {
        of_task(t)->at = place.in;
        copy_block(t);
        return;
    }
    chempi_coll_root_copies_say(cell, t->c->root, REPLY_PASSED);
    end_by_message(t);
}

/* A member whose block is long. */
static void gather_hand_in(struct chempi_node_task *t)
{
    const struct cell *cell = &t->cell;
    const struct chempi_coll_place own = own_block(t->c);
    struct chempi_node_line *line = cell_mine(cell);
    bool is_direct = is_for_copy(cell->st, block_len(&own)) &&
                     chempi_coll_root_copies_are_on(cell->st);

    line->len = block_len(&own);
    line->mark = is_direct ? BLOCK_DIRECT : BLOCK_BY_MESSAGE;
    atomic_store_explicit(&line->place.met, 0, memory_order_relaxed);
    cell_hand_in(cell, t->c->root);
    if (is_direct)
        task_await(t, t->c->root, &cell_common(cell)->seq, cell->seq,
                   gather_told);
    else
        end_by_message(t);
}

static void gather_first(struct chempi_node_task *t)
{
    struct chempi_coll_state *st = t->cell.st;
    struct blocks *b = of_task(t);

    if (!cell_is_root(&t->cell, t->c)) {
        gather_hand_in(t);
        return;
    }
    if (!is_for_copy(st, chempi_coll_node_longest_block(t->c)) ||
        !chempi_coll_root_copies_are_on(st)) {
        await_lines(t);
    } else if (!chempi_coll_root_copies_are_open(st, t->c->recv.type)) {
        decline(b, &t->cell); /* before they wait for it */
        await_lines(t);
    } else {
        b->has_said = true;
        offer(&t->cell, t->c);
        keep(t, await_lines);
    }
}

const struct chempi_node_steps chempi_node_steps_gather =
    CHEMPI_NODE_STEPS(struct blocks, gather_first);

/* ---- gather of short blocks ---- */

/* Members' blocks, taken in the order of ranks as they come. */
struct intake {
    const struct cell *cell;
    const struct chempi_coll_call *c;
    int next;     /* those before it are there */
    bool is_rest; /* not all could be taken at once */
};

/* Up to a block that takes some time to copy: waits call this under the lane
 * lock. */
static bool take_short(void *arg)
{
    struct intake *in = arg;
    const struct cell *cell = in->cell;

    for (; in->next < cell->st->size; in->next++) {
        if (in->next == cell->st->rank)
            continue;
        if (!cell_is_there(cell, in->next))
            return false;
        if (cell_line(cell, in->next)->len > CHEMPI_NODE_LINE_BYTES)
            return true;
        in->is_rest |= !take_plain(cell, in->c, in->next);
    }
    return true;
}

/* All of them; long ones between two waits. */
static int take_lines(struct intake *in)
{
    int rc =
        chempi_coll_shm_slot_await_lines(in->cell, &in->next, take_short, in);

    while (!rc && in->next < in->cell->st->size) {
        in->is_rest |= !take_plain(in->cell, in->c, in->next);
        in->next++;
        rc = chempi_coll_shm_slot_await_lines(in->cell, &in->next, take_short,
                                              in);
    }
    return rc;
}

static int collect_blocks(const struct cell *cell,
                          const struct chempi_coll_call *c, int tag)
{
    struct intake in = {.cell = cell, .c = c};
    int rc = copy_own(c);

    rc = cell_first_error(rc, take_lines(&in));
    if (in.is_rest) {
        struct blocks b = {.task = {.cell = *cell, .c = c}, .is_kept = true};

        rc = cell_first_error(run(&b, await_lines, tag), rc);
    }
    return rc;
}

/* A member's side. */
static int hand_in(const struct cell *cell, const struct chempi_coll_call *c)
{
    struct chempi_node_line *line = cell_mine(cell);
    uint64_t len = (uint64_t)(c->send.count * c->send.type->size);
    int rc;

    line->len = len;
    rc = chempi_coll_shm_slot_put(cell, cell->st->rank, c->send.buf,
                                  c->send.count, c->send.type, len);
    line->mark = BLOCK_HERE;
    cell_hand_in(cell, c->root);
    return rc;
}

static int gather_begin(const struct cell *cell,
                        const struct chempi_coll_call *c)
{
    return cell_is_root(cell, c) ? copy_own(c) : hand_in(cell, c);
}

static bool is_gather_ready(const struct cell *cell,
                            const struct chempi_coll_call *c)
{
    return !cell_is_root(cell, c) || chempi_coll_shm_slot_is_collected(cell);
}

static CHEMPI_NOINLINE int get_blocks(const struct cell *cell,
                                      const struct chempi_coll_call *c)
{
    int rc = MPI_SUCCESS;

    for (int i = 0; i < cell->st->size; i++)
        if (i != c->root)
            rc = cell_first_error(rc, get_block(cell, c, i));
    return rc;
}

static int gather_end(const struct cell *cell, const struct chempi_coll_call *c)
{
    return cell_is_root(cell, c) ? get_blocks(cell, c) : MPI_SUCCESS;
}

CHEMPI_NODE_PARTS(chempi_node_parts_gather, fits, gather_at_once, gather_begin,
                  is_gather_ready, gather_end);

bool chempi_coll_node_gather(struct chempi_coll_state *st,
                             const struct chempi_coll_call *c, int tag, int *rc)
{
    const uint64_t longest = chempi_coll_node_longest_block(c);
    struct cell cell;
    int code;

    *rc = chempi_coll_shm_slot_open_hand_in(st, &cell, c->root);
    if (longest > CHEMPI_NODE_BULK_BYTES) {
        struct blocks b = {.task = {.cell = cell, .c = c}};

        code = run(&b, gather_first, tag);
    } else {
        code = cell_is_root(&cell, c) ? collect_blocks(&cell, c, tag)
                                      : hand_in(&cell, c);
    }
    if (cell_is_root(&cell, c) && (longest > CHEMPI_NODE_LINE_BYTES || code))
        chempi_coll_shm_slot_say_taken(&cell);
    *rc = cell_first_error(code, *rc);
    return true;
}

/* ---- scatter ---- */

/* Member i's block, into its line or slot, or from where it lies, or by a
 * message later on; returns how. */
static enum chempi_root_mark deal_block(const struct cell *cell,
                                        const struct chempi_coll_call *c, int i,
                                        bool is_first_copy, int *rc)
{
    struct chempi_node_line *line = cell_line(cell, i);
    enum chempi_root_mark mark = BLOCK_HERE;
    const struct chempi_coll_place b = chempi_coll_sent(c, i);
    const uint64_t len = block_len(&b);

    line->len = len;
    if (CHEMPI_LIKELY(len <= CHEMPI_NODE_BULK_BYTES)) {
        *rc = cell_first_error(*rc,
                               chempi_coll_shm_slot_put(cell, i, b.buf, b.count,
                                                        c->send.type, len));
    } else if (is_for_copy(cell->st, len) &&
               chempi_coll_root_copies_are_open(cell->st, c->send.type)) {
        mark = BLOCK_DIRECT;
        line->place.in = chempi_coll_root_copies_address(b.buf, c->send.type);
        atomic_store_explicit(&line->place.met, 0, memory_order_relaxed);
        if (is_first_copy)
            chempi_coll_root_copies_expect(cell);
    } else {
        mark = BLOCK_BY_MESSAGE;
    }
    line->mark = mark;
    cell_publish(line, cell->seq);
    return mark;
}

/* The root writes into the members' lines and slots, which they do not use
 * in this operation but for their reply. Returns how many are to copy. */
static uint32_t deal_blocks(const struct cell *cell,
                            const struct chempi_coll_call *c, int *rc)
{
    uint32_t copies = 0;

    for (int i = 0; i < cell->st->size; i++)
        if (i != cell->st->rank)
            copies += deal_block(cell, c, i, copies == 0, rc) == BLOCK_DIRECT;
    chempi_coll_shm_slot_rouse_all(cell);
    return copies;
}

/* Two members have no rows: what their common line has from an operation long
 * ago says nothing, even if its number has come up again. */
static inline bool is_row_there(const struct cell *cell)
{
    return cell->st->size > 2 && cell_is_there(cell, cell->st->size);
}

/* A member's side: its line is there, or a row with all blocks. */
static bool is_dealt(void *arg)
{
    const struct cell *cell = arg;

    return is_row_there(cell) || cell_is_there(cell, cell->st->rank);
}

static int take_of_row(const struct cell *cell,
                       const struct chempi_coll_call *c)
{
    const struct chempi_node_line *line = cell_common(cell);
    size_t me = (size_t)cell->st->rank;
    uint64_t begin;
    uint64_t end;

    if (line->mark == ROW_EVEN) {
        end = line->len; /* of one, as yet */
        begin = me * end;
        end += begin;
    } else {
        begin = me + 1 < CHEMPI_NODE_LINE_BYTES ? line->data[me] : 0;
        end = me + 1 < CHEMPI_NODE_LINE_BYTES ? line->data[me + 1] : 0;
    }
    if (CHEMPI_UNLIKELY(begin > end || end > CHEMPI_NODE_LINE_BYTES))
        return chempi_coll_shm_slot_mismatch(cell, cell->st->size);
    return chempi_coll_shm_slot_get(c->root, line->data + begin, end - begin,
                                    c->recv.buf, c->recv.count, c->recv.type);
}

/* What has been dealt to this member, who expects no block to copy. */
static int take_dealt(const struct cell *cell, const struct chempi_coll_call *c)
{
    const struct chempi_node_line *line = cell_mine(cell);
    const uint64_t room = (uint64_t)(c->recv.count * c->recv.type->size);
    uint64_t len;

    if (CHEMPI_LIKELY(is_row_there(cell)))
        return take_of_row(cell, c);
    len = line->len;
    if (CHEMPI_UNLIKELY(line->mark == BLOCK_DIRECT)) {
        chempi_coll_root_copies_say(cell, c->root, REPLY_COPIED);
        return chempi_coll_shm_slot_wrong_amount(c->root, len, room);
    }
    if (CHEMPI_UNLIKELY(len > CHEMPI_NODE_BULK_BYTES))
        return chempi_coll_shm_slot_mismatch(cell, cell->st->rank);
    return chempi_coll_shm_slot_get(c->root,
                                    cell_data(cell, cell->st->rank, len), len,
                                    c->recv.buf, c->recv.count, c->recv.type);
}

static void scatter_told(struct chempi_node_task *t)
{
    const struct cell *cell = &t->cell;
    const struct chempi_node_line *line = cell_mine(cell);
    const struct chempi_coll_place own = own_block(t->c);
    const bool is_row = is_row_there(cell);

    if (!is_row && line->mark == BLOCK_BY_MESSAGE) {
        end_by_message(t);
    } else if (!is_row && line->mark == BLOCK_DIRECT &&
               line->len == block_len(&own)) {
        of_task(t)->at = line->place.in;
        copy_block(t);
    } else {
        task_note(t, take_dealt(cell, t->c));
        task_end(t);
    }
}

static bool is_task_dealt(struct chempi_node_task *t)
{
    return is_dealt(&t->cell);
}

static void scatter_copied(struct chempi_node_task *t)
{
    await_copies(t, exchange_messages);
}

static void scatter_first(struct chempi_node_task *t)
{
    struct blocks *b = of_task(t);
    const uint64_t longest = chempi_coll_node_longest_block(t->c);

    if (is_for_copy(t->cell.st, longest) &&
        chempi_coll_root_copies_are_on(t->cell.st))
        task_spread(t, longest);
    if (!cell_is_root(&t->cell, t->c)) {
        t->is_due = is_task_dealt;
        task_await(t, t->c->root, NULL, 0, scatter_told);
        return;
    }
    b->copies = deal_blocks(&t->cell, t->c, &t->rc);
    if (b->copies > 0)
        keep(t, scatter_copied);
    else
        exchange_messages(t);
}

const struct chempi_node_steps chempi_node_steps_scatter =
    CHEMPI_NODE_STEPS(struct blocks, scatter_first);

/* ---- scatter of short blocks ---- */

/* Very short blocks all go into the common line: it takes one store and one
 * line on its way to other cores, not one for each member. Of two members one
 * block is for the other, which that gets in its own line. */
static bool is_row_even(const struct chempi_coll_state *st,
                        const struct chempi_coll_call *c)
{
    return st->size > 2 && c->kind == CHEMPI_COLL_SCATTER &&
           c->send.count <= CHEMPI_NODE_LINE_BYTES &&
           c->send.type->is_contiguous &&
           (uint64_t)(c->send.count * c->send.type->size) *
                   (uint64_t)st->size <=
               CHEMPI_NODE_LINE_BYTES;
}

/* The same with blocks of any lengths: before them is a table, a byte for where
 * each begins and one for where the last ends. False: there is no room. */
static bool fill_table(const struct chempi_coll_state *st,
                       const struct chempi_coll_call *c, unsigned char *row)
{
    uint64_t at = (uint64_t)st->size + 1;

    if (st->size == 2 || c->kind != CHEMPI_COLL_SCATTERV ||
        at > CHEMPI_NODE_LINE_BYTES || !c->send.type->is_contiguous)
        return false;
    for (int i = 0; i < st->size; i++) {
        MPI_Count count = chempi_count_array_get(c->send.counts, (size_t)i);
        uint64_t len = (uint64_t)(count * c->send.type->size);
        MPI_Count first = chempi_count_array_get(c->send.displs, (size_t)i);

        if (count > CHEMPI_NODE_LINE_BYTES || len > CHEMPI_NODE_LINE_BYTES - at)
            return false;
        row[i] = (unsigned char)at;
        cell_copy(
            row + at,
            chempi_coll_plus(chempi_coll_at(c->send.buf, first, c->send.type),
                             c->send.type->true_lb),
            len);
        at += len;
    }
    row[st->size] = (unsigned char)at;
    return true;
}

/* Deal out by the common line alone; false: that is not the way. */
static bool deal_row(const struct cell *cell, const struct chempi_coll_call *c)
{
    struct chempi_node_line *line = cell_common(cell);
    uint64_t len;

    if (is_row_even(cell->st, c)) {
        len = (uint64_t)(c->send.count * c->send.type->size);
        line->mark = ROW_EVEN;
        line->len = len;
        cell_copy(line->data,
                  chempi_coll_plus(c->send.buf, c->send.type->true_lb),
                  len * (uint64_t)cell->st->size);
    } else if (fill_table(cell->st, c, line->data)) {
        line->mark = ROW_TABLE;
    } else {
        return false;
    }
    cell_publish(line, cell->seq);
    chempi_coll_shm_slot_rouse_all(cell);
    return true;
}

static int deal_short(const struct cell *cell, const struct chempi_coll_call *c)
{
    int rc = MPI_SUCCESS;

    if (!deal_row(cell, c))
        (void)deal_blocks(cell, c, &rc);
    return cell_first_error(rc, copy_own(c));
}

static int take_short_block(const struct cell *cell,
                            const struct chempi_coll_call *c, int tag)
{
    int rc = chempi_coll_shm_slot_await_member(cell->st, c->root, is_dealt,
                                               (void *)(uintptr_t)cell);
    int code;

    if (CHEMPI_UNLIKELY(!rc && !is_row_there(cell) &&
                        cell_mine(cell)->mark == BLOCK_BY_MESSAGE)) {
        struct blocks b = {.task = {.cell = *cell, .c = c}};

        code = run(&b, scatter_told, tag); /* the root waits for that */
    } else {
        code = take_dealt(cell, c);
    }
    return cell_first_error(code, rc);
}

static int scatter_begin(const struct cell *cell,
                         const struct chempi_coll_call *c)
{
    return cell_is_root(cell, c) ? deal_short(cell, c) : MPI_SUCCESS;
}

static bool is_scatter_ready(const struct cell *cell,
                             const struct chempi_coll_call *c)
{
    return cell_is_root(cell, c) || is_dealt((void *)(uintptr_t)cell);
}

static int scatter_end(const struct cell *cell,
                       const struct chempi_coll_call *c)
{
    return cell_is_root(cell, c) ? MPI_SUCCESS : take_dealt(cell, c);
}

CHEMPI_NODE_PARTS(chempi_node_parts_scatter, fits, scatter_at_once,
                  scatter_begin, is_scatter_ready, scatter_end);

bool chempi_coll_node_scatter(struct chempi_coll_state *st,
                              const struct chempi_coll_call *c, int tag,
                              int *rc)
{
    struct cell cell;
    int code;

    *rc = chempi_coll_shm_slot_open(st, &cell);
    if (has_long(c)) {
        struct blocks b = {.task = {.cell = cell, .c = c}};

        code = run(&b, scatter_first, tag);
    } else {
        code = cell_is_root(&cell, c) ? deal_short(&cell, c)
                                      : take_short_block(&cell, c, tag);
    }
    *rc = cell_first_error(code, *rc);
    return true;
}
