/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations with a root in a node's shared memory: broadcast, gather,
 * scatter. Blocks that fit a slot go through it. For larger ones the root says
 * where they lie in its memory, the others copy from or to there, all at the
 * same time, and say so; who is not allowed to gets a message.
 */
#include <string.h>

#include "libchempi/didl/base/error.h"
#include "libchempi/didl/coll/node/cma_copy.h"
#include "libchempi/didl/coll/node/node_task.h"
#include "libchempi/didl/coll/node/shm_slot.h"
#include "libchempi/didl/coll/sched.h"

enum mark {
    BLOCK_HERE,
    BLOCK_BY_MESSAGE,
    BLOCK_DIRECT,
    BLOCK_PIECES,
    /* In the common line of a scatter, with all blocks in it: */
    ROW_EVEN, /* .. of the line's len bytes each */
    ROW_TABLE /* .. of different lengths, and a table before them */
};

/* What a member says of its copy. */
enum reply {
    REPLY_COPIED,
    REPLY_REFUSED, /* and will be the next time */
    REPLY_PASSED   /* the root has not offered a place for it */
};

/* ---- copies from and to the root's memory ---- */

/* May others be told to copy a block of the root's? */
static bool is_open(const struct chempi_coll_state *st,
                    const struct chempi_datatype *type)
{
    return type->is_contiguous && !st->is_refused && !st->is_refused_root &&
           chempi_coll_cma_copy_is_on();
}

static uint64_t address(const void *buf, const struct chempi_datatype *type)
{
    return (uint64_t)(uintptr_t)chempi_coll_plus(buf, type->true_lb);
}

/* Root: before it publishes where its memory is. */
static void expect_copies(const struct cell *cell)
{
    struct chempi_node_count *count = cell_count(cell);

    atomic_store_explicit(&count->finished, 0, memory_order_relaxed);
    atomic_store_explicit(&count->goal, UINT32_MAX, memory_order_relaxed);
}

/* Root: wait until so many have copied. */
static int await_copies(const struct cell *cell, uint32_t goal)
{
    struct chempi_node_count *count = cell_count(cell);

    /* Sequentially consistent, as in say_copied(): either the last to finish
     * sees the goal or the root sees that it is reached. */
    atomic_store(&count->goal, goal);
    return chempi_coll_shm_slot_wait(cell->st, &count->finished, goal);
}

static void say_copied(const struct cell *cell, int root, enum reply reply)
{
    struct chempi_node_count *count = cell_count(cell);

    cell_mine(cell)->place.reply = (uint32_t)reply;
    if (reply == REPLY_REFUSED)
        cell->st->is_refused_root = true;
    if (atomic_fetch_add(&count->finished, 1) + 1 == atomic_load(&count->goal))
        cell_rouse(cell, root);
}

/* Root, after await_copies(): must member i get a message after all? */
static bool has_refused(const struct cell *cell, int i)
{
    uint32_t reply = cell_line(cell, i)->place.reply;

    if (reply == REPLY_REFUSED)
        cell->st->is_refused_root = true;
    return reply != REPLY_COPIED;
}

/* Root, at the end: does member i's block go by a message, as was said before
 * or after all? */
static bool is_by_message(const struct cell *cell, int i)
{
    uint32_t mark = cell_line(cell, i)->mark;

    return mark == BLOCK_BY_MESSAGE ||
           (mark == BLOCK_DIRECT && has_refused(cell, i));
}

/* A root's own block. */
static int copy_own(const void *from, MPI_Count from_count,
                    struct chempi_datatype *from_type, void *to,
                    MPI_Count to_count, struct chempi_datatype *to_type)
{
    uint64_t len = (uint64_t)(from_count * from_type->size);

    if (len == 0)
        return MPI_SUCCESS;
    if (CHEMPI_UNLIKELY(!from_type->is_contiguous || !to_type->is_contiguous ||
                        len != (uint64_t)(to_count * to_type->size)))
        return chempi_datatype_copy(from, from_count, from_type, to, to_count,
                                    to_type);
    cell_copy(chempi_coll_plus(to, to_type->true_lb),
              chempi_coll_plus(from, from_type->true_lb), len);
    return MPI_SUCCESS;
}

/* ---- broadcast ---- */

static int bcast_copied(const struct cell *cell,
                        const struct chempi_coll_call *c, int tag)
{
    struct chempi_coll_state *st = cell->st;
    struct chempi_coll_sched s;
    int rc = await_copies(cell, (uint32_t)st->size - 1);

    chempi_coll_sched_init(&s, c->comm, tag);
    for (int i = 0; i < st->size; i++)
        if (i != st->rank && has_refused(cell, i)) {
            chempi_coll_send(&s, c->rbuf, c->rcount, c->rtype, i);
            chempi_coll_throttle(&s);
        }
    rc = cell_first_error(rc, chempi_coll_run(&s));
    chempi_coll_sched_fini(&s);
    return rc;
}

/* A blocking call, whose line says that it goes so. */
static int through_pipe(const struct cell *cell,
                        const struct chempi_coll_call *c, uint64_t len)
{
    struct chempi_node_piping p = {.task = {.cell = *cell, .c = c}, .len = len};
    int rc;

    (void)chempi_coll_node_task_run(
        &p.task,
        cell_is_root(cell, c) ? chempi_coll_pipe_send : chempi_coll_pipe_recv,
        0, &rc);
    return rc;
}

/* Returns whether it is done; otherwise all go by messages. */
static bool bcast_root(const struct cell *cell,
                       const struct chempi_coll_call *c, int tag, int *rc)
{
    struct chempi_coll_state *st = cell->st;
    struct chempi_node_line *line = cell_common(cell);
    uint64_t len = (uint64_t)(c->rcount * c->rtype->size);
    uint32_t mark = BLOCK_BY_MESSAGE;

    line->len = len;
    if (len <= CHEMPI_NODE_BULK_BYTES) {
        mark = BLOCK_HERE;
        *rc = cell_first_error(*rc, chempi_coll_shm_slot_put(cell, st->size,
                                                             c->rbuf, c->rcount,
                                                             c->rtype, len));
    } else if (chempi_coll_node_task_turn(st) == MPI_SUCCESS &&
               chempi_coll_pipe_is_open(st)) {
        mark = BLOCK_PIECES;
    } else if (st->size > 2 && is_open(st, c->rtype)) {
        /* Of two members the device lets both copy. */
        mark = BLOCK_DIRECT;
        line->place.in = address(c->rbuf, c->rtype);
        expect_copies(cell);
    }
    line->mark = mark;
    cell_publish(line, cell->seq);
    chempi_coll_shm_slot_rouse_all(cell);
    if (mark == BLOCK_DIRECT)
        *rc = cell_first_error(*rc, bcast_copied(cell, c, tag));
    else if (mark == BLOCK_PIECES)
        *rc = cell_first_error(*rc, through_pipe(cell, c, len));
    return mark != BLOCK_BY_MESSAGE;
}

static int recv_block(const struct chempi_coll_call *c, int tag)
{
    struct chempi_coll_sched s;
    int rc;

    chempi_coll_sched_init(&s, c->comm, tag);
    chempi_coll_recv(&s, c->rbuf, c->rcount, c->rtype, c->root);
    rc = chempi_coll_run(&s);
    chempi_coll_sched_fini(&s);
    return rc;
}

/* Fetch the len bytes that the line offers; bcast and scatter. */
static int fetch(const struct cell *cell, const struct chempi_coll_call *c,
                 uint64_t from, uint64_t len, int tag)
{
    uint64_t room = (uint64_t)(c->rcount * c->rtype->size);
    int code;

    if (CHEMPI_UNLIKELY(len != room)) {
        say_copied(cell, c->root, REPLY_COPIED);
        return chempi_coll_shm_slot_wrong_amount(c->root, len, room);
    }
    code = chempi_coll_cma_copy_get(cell->st->local_ranks[c->root], from, len,
                                    c->rbuf, c->rcount, c->rtype);
    say_copied(cell, c->root, code ? REPLY_REFUSED : REPLY_COPIED);
    return CHEMPI_UNLIKELY(code) ? recv_block(c, tag) : MPI_SUCCESS;
}

static int bcast_begin(const struct cell *cell,
                       const struct chempi_coll_call *c, uint64_t unused)
{
    int rc = MPI_SUCCESS;

    (void)unused;
    if (cell_is_root(cell, c))
        (void)bcast_root(cell, c, 0, &rc);
    return rc;
}

static bool is_bcast_ready(const struct cell *cell,
                           const struct chempi_coll_call *c)
{
    return cell_is_root(cell, c) || cell_is_there(cell, cell->st->size);
}

/* What the common line has, or says that it has. */
static int bcast_here(const struct cell *cell, const struct chempi_coll_call *c)
{
    int size = cell->st->size;
    uint64_t len = cell_common(cell)->len;
    int rc;

    if (CHEMPI_UNLIKELY(len > CHEMPI_NODE_BULK_BYTES))
        return chempi_coll_shm_slot_mismatch(cell, size);
    rc = chempi_coll_shm_slot_get(c->root, cell_data(cell, size, len), len,
                                  c->rbuf, c->rcount, c->rtype);
    if (!rc && len < (uint64_t)(c->rcount * c->rtype->size))
        return chempi_coll_shm_slot_mismatch(cell, size);
    return rc;
}

bool chempi_coll_node_bcast_is_long(const struct cell *cell)
{
    return cell_common(cell)->mark != BLOCK_HERE;
}

static int bcast_end(const struct cell *cell, const struct chempi_coll_call *c,
                     uint64_t unused)
{
    (void)unused;
    return cell_is_root(cell, c) ? MPI_SUCCESS : bcast_here(cell, c);
}

const struct chempi_node_parts chempi_node_parts_bcast = {
    bcast_begin, is_bcast_ready, bcast_end};

bool chempi_coll_node_bcast(struct chempi_coll_state *st,
                            const struct chempi_coll_call *c, int tag, int *rc)
{
    struct chempi_node_line *line;
    struct cell cell;
    uint64_t len;
    uint32_t mark;

    *rc = chempi_coll_shm_slot_open(st, &cell);
    if (c->root == st->rank)
        return bcast_root(&cell, c, tag, rc);
    line = cell_common(&cell);
    *rc = cell_first_error(*rc, chempi_coll_shm_slot_wait_member(
                                    st, c->root, &line->seq, cell.seq));
    mark = line->mark;
    len = line->len;
    if (mark == BLOCK_BY_MESSAGE)
        return false;
    if (mark == BLOCK_DIRECT) {
        *rc = cell_first_error(fetch(&cell, c, line->place.in, len, tag), *rc);
    } else if (mark == BLOCK_PIECES) {
        *rc = cell_first_error(through_pipe(&cell, c, len), *rc);
    } else {
        *rc = cell_first_error(*rc, bcast_here(&cell, c));
    }
    if (!*rc && len < (uint64_t)(c->rcount * c->rtype->size))
        *rc = chempi_coll_shm_slot_mismatch(&cell, st->size);
    return true;
}

/* The root has said how it goes on. */
static void bcast_told(struct chempi_node_task *t)
{
    const struct chempi_node_line *line = cell_common(&t->cell);
    struct chempi_node_piping *p =
        CHEMPI_CONTAINER_OF(t, struct chempi_node_piping, task);

    p->len = line->len;
    if (CHEMPI_LIKELY(line->mark == BLOCK_PIECES)) {
        chempi_coll_pipe_recv(t);
        return;
    }
    t->is_void = line->mark == BLOCK_BY_MESSAGE;
    if (!t->is_void)
        task_note(t, bcast_here(&t->cell, t->c));
    task_end(t);
}

static void bcast_first(struct chempi_node_task *t)
{
    struct chempi_node_line *line = cell_common(&t->cell);
    struct chempi_node_piping *p =
        CHEMPI_CONTAINER_OF(t, struct chempi_node_piping, task);
    bool has_pipe;

    if (!cell_is_root(&t->cell, t->c)) {
        task_await(t, t->c->root, &line->seq, t->cell.seq, bcast_told);
        return;
    }
    has_pipe = chempi_coll_pipe_is_open(t->cell.st);
    p->len = (uint64_t)(t->c->rcount * t->c->rtype->size);
    line->len = p->len;
    line->mark = has_pipe ? BLOCK_PIECES : BLOCK_BY_MESSAGE;
    cell_publish(line, t->cell.seq);
    chempi_coll_shm_slot_rouse_all(&t->cell);
    if (has_pipe) {
        chempi_coll_pipe_send(t);
    } else {
        t->is_void = true;
        task_end(t);
    }
}

const struct chempi_node_steps chempi_node_steps_bcast =
    CHEMPI_NODE_STEPS(struct chempi_node_piping, bcast_first);

/* ---- gather ---- */

/* Where the root keeps member i's block. */
static void *gather_place(const struct chempi_coll_call *c, int i,
                          MPI_Count *count)
{
    bool is_v = c->kind == CHEMPI_COLL_GATHERV;

    *count = is_v ? chempi_count_array_get(c->rcounts, (size_t)i) : c->rcount;
    return chempi_coll_at(c->rbuf,
                          is_v ? chempi_count_array_get(c->rdispls, (size_t)i)
                               : i * c->rcount,
                          c->rtype);
}

/* Tells an offer from what was in its place before, also in a program whose
 * ranks do not agree on which blocks are large. */
static uint64_t seal(const struct cell *cell, uint64_t in, uint64_t len)
{
    return (in ^ UINT64_C(0x9e3779b97f4a7c15) * (len + cell->seq)) *
           UINT64_C(0xd6e8feb86659fd93);
}

static void end_offer(const struct cell *cell, enum mark mark)
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

    expect_copies(cell);
    for (int i = 0; i < st->size; i++) {
        MPI_Count count;
        const void *place = gather_place(c, i, &count);
        uint64_t len = (uint64_t)(count * c->rtype->size);

        if (i == st->rank || len <= CHEMPI_NODE_BULK_BYTES)
            continue;
        cell_line(cell, i)->place.in = address(place, c->rtype);
        cell_line(cell, i)->place.out = len;
        cell_line(cell, i)->place.seal =
            seal(cell, address(place, c->rtype), len);
    }
    end_offer(cell, BLOCK_DIRECT);
}

static bool has_large(const struct chempi_coll_call *c, int size)
{
    MPI_Count count;

    if (c->kind == CHEMPI_COLL_GATHER)
        return c->rcount * c->rtype->size > CHEMPI_NODE_BULK_BYTES;
    for (int i = 0; i < size; i++) {
        (void)gather_place(c, i, &count);
        if (count * c->rtype->size > CHEMPI_NODE_BULK_BYTES)
            return true;
    }
    return false;
}

static int copy_own_block(const struct chempi_coll_call *c, int rank)
{
    MPI_Count count;
    void *place = gather_place(c, rank, &count);

    if (c->sbuf == MPI_IN_PLACE)
        return MPI_SUCCESS;
    return copy_own(c->sbuf, c->scount, c->stype, place, count, c->rtype);
}

/* Members' blocks, taken in the order of ranks as they come. */
struct intake {
    const struct cell *cell;
    const struct chempi_coll_call *c;
    int next;     /* those before it are there */
    bool is_rest; /* not all could be taken at once */
};

/* Take a block that has come as it should; false: it needs more attention.
 * May be called more than once, and, for short ones, by any thread. */
static inline bool take_plain(const struct cell *cell,
                              const struct chempi_coll_call *c, int i)
{
    const struct chempi_node_line *line = cell_line(cell, i);
    MPI_Count count;
    void *place = gather_place(c, i, &count);
    uint64_t len = (uint64_t)(count * c->rtype->size);

    if (line->mark != BLOCK_HERE || line->len != len ||
        len > CHEMPI_NODE_BULK_BYTES || !c->rtype->is_contiguous)
        return false;
    cell_copy(chempi_coll_plus(place, c->rtype->true_lb),
              cell_data(cell, i, len), len);
    return true;
}

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

/* What is left of member i's block, if it is here. */
static int get_block(const struct cell *cell, const struct chempi_coll_call *c,
                     int i)
{
    MPI_Count count;
    void *place = gather_place(c, i, &count);
    uint64_t len = cell_line(cell, i)->len;

    if (take_plain(cell, c, i))
        return MPI_SUCCESS;
    if (CHEMPI_UNLIKELY(len > CHEMPI_NODE_BULK_BYTES))
        return chempi_coll_shm_slot_mismatch(cell, i);
    return chempi_coll_shm_slot_get(i, cell_data(cell, i, len), len, place,
                                    count, c->rtype);
}

/* The blocks that are not here: wait for the members that copy theirs
 * themselves, and receive those of the others, and of whom could not. */
static int end_gather(const struct cell *cell, const struct chempi_coll_call *c,
                      int tag, uint32_t copies, bool is_offered)
{
    struct chempi_coll_sched s;
    int rc = MPI_SUCCESS;

    if (CHEMPI_UNLIKELY(copies > 0 && !is_offered)) {
        expect_copies(cell);
        end_offer(cell, BLOCK_BY_MESSAGE);
    }
    if (copies > 0)
        rc = await_copies(cell, copies);
    chempi_coll_sched_init(&s, c->comm, tag);
    for (int i = 0; i < cell->st->size; i++) {
        MPI_Count count;
        void *place = gather_place(c, i, &count);

        if (i == cell->st->rank || !is_by_message(cell, i))
            continue;
        chempi_coll_recv(&s, place, count, c->rtype, i);
        chempi_coll_throttle(&s);
    }
    rc = cell_first_error(chempi_coll_run(&s), rc);
    chempi_coll_sched_fini(&s);
    return rc;
}

/* All have come, some in another way than through their lines and slots. */
static int take_rest(const struct cell *cell, const struct chempi_coll_call *c,
                     int tag, bool is_offered)
{
    uint32_t copies = 0;
    uint32_t messages = 0;
    int rc = MPI_SUCCESS;

    for (int i = 0; i < cell->st->size; i++) {
        uint32_t mark = cell_line(cell, i)->mark;

        if (i == cell->st->rank)
            continue;
        if (mark == BLOCK_DIRECT)
            copies++;
        else if (mark == BLOCK_BY_MESSAGE)
            messages++;
        else
            rc = cell_first_error(rc, get_block(cell, c, i));
    }
    if (copies + messages > 0)
        rc = cell_first_error(end_gather(cell, c, tag, copies, is_offered), rc);
    return rc;
}

static int collect_blocks(const struct cell *cell,
                          const struct chempi_coll_call *c, int tag)
{
    struct chempi_coll_state *st = cell->st;
    struct intake in = {.cell = cell, .c = c};
    bool is_offered = has_large(c, st->size) && is_open(st, c->rtype);
    int rc;

    if (is_offered)
        offer(cell, c);
    rc = copy_own_block(c, st->rank);
    rc = cell_first_error(rc, take_lines(&in));
    if (in.is_rest)
        rc = cell_first_error(take_rest(cell, c, tag, is_offered), rc);
    return rc;
}

static int send_block(const struct chempi_coll_call *c, int tag)
{
    struct chempi_coll_sched s;
    int rc;

    chempi_coll_sched_init(&s, c->comm, tag);
    chempi_coll_send(&s, c->sbuf, c->scount, c->stype, c->root);
    rc = chempi_coll_run(&s);
    chempi_coll_sched_fini(&s);
    return rc;
}

/* A large block: to where the root says, or by a message. */
static int deliver(const struct cell *cell, const struct chempi_coll_call *c,
                   int tag, uint64_t len)
{
    int rc = chempi_coll_shm_slot_wait_member(
        cell->st, c->root, &cell_common(cell)->seq, cell->seq);
    struct chempi_node_place place = cell_mine(cell)->place;
    enum reply reply = REPLY_PASSED;

    if (cell_common(cell)->mark == BLOCK_DIRECT && len == place.out &&
        place.seal == seal(cell, place.in, place.out))
        reply =
            chempi_coll_cma_copy_put(cell->st->local_ranks[c->root], place.in,
                                     len, c->sbuf, c->scount, c->stype)
                ? REPLY_REFUSED
                : REPLY_COPIED;
    say_copied(cell, c->root, reply);
    return cell_first_error(rc, reply == REPLY_COPIED ? MPI_SUCCESS
                                                      : send_block(c, tag));
}

/* A member's side. */
static int hand_in(const struct cell *cell, const struct chempi_coll_call *c,
                   int tag)
{
    struct chempi_coll_state *st = cell->st;
    struct chempi_node_line *line = cell_mine(cell);
    uint64_t len = (uint64_t)(c->scount * c->stype->size);
    uint32_t mark = BLOCK_HERE;
    int rc = MPI_SUCCESS;

    line->len = len;
    if (CHEMPI_LIKELY(len <= CHEMPI_NODE_BULK_BYTES))
        rc = chempi_coll_shm_slot_put(cell, st->rank, c->sbuf, c->scount,
                                      c->stype, len);
    else if (!cell->is_later && chempi_coll_cma_copy_is_on() &&
             !st->is_refused && !st->is_refused_root)
        mark = BLOCK_DIRECT;
    else
        mark = BLOCK_BY_MESSAGE;
    line->mark = mark;
    cell_hand_in(cell, c->root);
    if (mark == BLOCK_DIRECT)
        return deliver(cell, c, tag, len);
    return mark == BLOCK_BY_MESSAGE && !cell->is_later ? send_block(c, tag)
                                                       : rc;
}

static int gather_begin(const struct cell *cell,
                        const struct chempi_coll_call *c, uint64_t unused)
{
    (void)unused;
    return cell_is_root(cell, c) ? copy_own_block(c, c->root)
                                 : hand_in(cell, c, 0);
}

static bool is_gather_ready(const struct cell *cell,
                            const struct chempi_coll_call *c)
{
    return !cell_is_root(cell, c) || chempi_coll_shm_slot_is_collected(cell);
}

/* Of a non-blocking one the root has posted receives for what it knows to be
 * long. */
static int gather_end(const struct cell *cell, const struct chempi_coll_call *c,
                      uint64_t unused)
{
    int rc = MPI_SUCCESS;
    MPI_Count count;

    (void)unused;
    for (int i = 0; cell_is_root(cell, c) && i < cell->st->size; i++) {
        (void)gather_place(c, i, &count);
        if (i != c->root && count * c->rtype->size <= CHEMPI_NODE_BULK_BYTES)
            rc = cell_first_error(rc, get_block(cell, c, i));
    }
    return rc;
}

const struct chempi_node_parts chempi_node_parts_gather = {
    gather_begin, is_gather_ready, gather_end};

bool chempi_coll_node_gather(struct chempi_coll_state *st,
                             const struct chempi_coll_call *c, int tag, int *rc)
{
    struct cell cell;

    *rc = chempi_coll_shm_slot_open(st, &cell);
    *rc = cell_first_error(st->rank == c->root ? collect_blocks(&cell, c, tag)
                                               : hand_in(&cell, c, tag),
                           *rc);
    return true;
}

/* ---- scatter ---- */

static const void *scatter_place(const struct chempi_coll_call *c, int i,
                                 MPI_Count *count)
{
    bool is_v = c->kind == CHEMPI_COLL_SCATTERV;

    *count = is_v ? chempi_count_array_get(c->scounts, (size_t)i) : c->scount;
    return chempi_coll_at(c->sbuf,
                          is_v ? chempi_count_array_get(c->sdispls, (size_t)i)
                               : i * c->scount,
                          c->stype);
}

/* Member i's block, into its line or slot, or from where it lies, or by a
 * message later on; returns how. */
static enum mark deal_block(const struct cell *cell,
                            const struct chempi_coll_call *c, int i,
                            bool is_first_copy, int *rc)
{
    struct chempi_node_line *line = cell_line(cell, i);
    enum mark mark = BLOCK_HERE;
    MPI_Count count;
    const void *place = scatter_place(c, i, &count);
    uint64_t len = (uint64_t)(count * c->stype->size);

    line->len = len;
    if (CHEMPI_LIKELY(len <= CHEMPI_NODE_BULK_BYTES)) {
        *rc = cell_first_error(*rc, chempi_coll_shm_slot_put(
                                        cell, i, place, count, c->stype, len));
    } else if (!cell->is_later && is_open(cell->st, c->stype)) {
        mark = BLOCK_DIRECT;
        line->place.in = address(place, c->stype);
        if (is_first_copy)
            expect_copies(cell);
    } else {
        mark = BLOCK_BY_MESSAGE;
    }
    line->mark = mark;
    cell_publish(line, cell->seq);
    return mark;
}

static int deal_own(const struct chempi_coll_call *c, int rank)
{
    MPI_Count count;
    const void *place = scatter_place(c, rank, &count);

    if (c->rbuf == MPI_IN_PLACE)
        return MPI_SUCCESS;
    return copy_own(place, count, c->stype, c->rbuf, c->rcount, c->rtype);
}

/* Very short blocks all go into the common line: it takes one store and one
 * line on its way to other cores, not one for each member. Of two members one
 * block is for the other, which that gets in its own line. */
static bool is_row_even(const struct chempi_coll_state *st,
                        const struct chempi_coll_call *c)
{
    return st->size > 2 && c->kind == CHEMPI_COLL_SCATTER &&
           c->scount <= CHEMPI_NODE_LINE_BYTES && c->stype->is_contiguous &&
           (uint64_t)(c->scount * c->stype->size) * (uint64_t)st->size <=
               CHEMPI_NODE_LINE_BYTES;
}

/* The same with blocks of any lengths: before them is a table, a byte for where
 * each begins and one for where the last ends. False: there is no room. */
static bool fill_table(const struct chempi_coll_state *st,
                       const struct chempi_coll_call *c, unsigned char *row)
{
    uint64_t at = (uint64_t)st->size + 1;

    if (st->size == 2 || c->kind != CHEMPI_COLL_SCATTERV ||
        at > CHEMPI_NODE_LINE_BYTES || !c->stype->is_contiguous)
        return false;
    for (int i = 0; i < st->size; i++) {
        MPI_Count count = chempi_count_array_get(c->scounts, (size_t)i);
        uint64_t len = (uint64_t)(count * c->stype->size);
        MPI_Count first = chempi_count_array_get(c->sdispls, (size_t)i);

        if (count > CHEMPI_NODE_LINE_BYTES || len > CHEMPI_NODE_LINE_BYTES - at)
            return false;
        row[i] = (unsigned char)at;
        cell_copy(row + at,
                  chempi_coll_plus(chempi_coll_at(c->sbuf, first, c->stype),
                                   c->stype->true_lb),
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
        len = (uint64_t)(c->scount * c->stype->size);
        line->mark = ROW_EVEN;
        line->len = len;
        cell_copy(line->data, chempi_coll_plus(c->sbuf, c->stype->true_lb),
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

/* The blocks that go by message, and those that have to after all, once the
 * members that copy theirs have said so. */
static int end_deal(const struct cell *cell, const struct chempi_coll_call *c,
                    int tag, uint32_t copies)
{
    struct chempi_coll_sched s;
    int rc = copies > 0 ? await_copies(cell, copies) : MPI_SUCCESS;

    chempi_coll_sched_init(&s, c->comm, tag);
    for (int i = 0; i < cell->st->size; i++) {
        MPI_Count count;
        const void *place = scatter_place(c, i, &count);

        if (i == cell->st->rank || !is_by_message(cell, i))
            continue;
        chempi_coll_send(&s, place, count, c->stype, i);
        chempi_coll_throttle(&s);
    }
    rc = cell_first_error(chempi_coll_run(&s), rc);
    chempi_coll_sched_fini(&s);
    return rc;
}

/* The root writes into the members' lines and slots, which they do not use
 * in this operation but for their reply. */
static int deal_blocks(const struct cell *cell,
                       const struct chempi_coll_call *c, int tag)
{
    struct chempi_coll_state *st = cell->st;
    uint32_t copies = 0;
    uint32_t messages = 0;
    int rc = MPI_SUCCESS;

    if (deal_row(cell, c))
        return deal_own(c, st->rank);
    for (int i = 0; i < st->size; i++) {
        enum mark mark;

        if (i == st->rank)
            continue;
        mark = deal_block(cell, c, i, copies == 0, &rc);
        copies += mark == BLOCK_DIRECT;
        messages += mark == BLOCK_BY_MESSAGE;
    }
    chempi_coll_shm_slot_rouse_all(cell);
    rc = cell_first_error(rc, deal_own(c, st->rank));
    if (copies + messages > 0 && !cell->is_later)
        rc = cell_first_error(end_deal(cell, c, tag, copies), rc);
    return rc;
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
                                    c->rbuf, c->rcount, c->rtype);
}

/* What has been dealt to this member. */
static int take_dealt(const struct cell *cell, const struct chempi_coll_call *c,
                      int tag)
{
    const struct chempi_node_line *line = cell_mine(cell);
    uint32_t mark;
    uint64_t len;

    if (CHEMPI_LIKELY(is_row_there(cell)))
        return take_of_row(cell, c);
    mark = line->mark;
    len = line->len;
    if (mark == BLOCK_BY_MESSAGE && !cell->is_later)
        return recv_block(c, tag);
    if (mark == BLOCK_DIRECT && !cell->is_later)
        return fetch(cell, c, line->place.in, len, tag);
    if (CHEMPI_UNLIKELY(len > CHEMPI_NODE_BULK_BYTES))
        return chempi_coll_shm_slot_mismatch(cell, cell->st->rank);
    return chempi_coll_shm_slot_get(c->root,
                                    cell_data(cell, cell->st->rank, len), len,
                                    c->rbuf, c->rcount, c->rtype);
}

static int take_block(const struct cell *cell, const struct chempi_coll_call *c,
                      int tag)
{
    int rc = chempi_coll_shm_slot_await_member(cell->st, c->root, is_dealt,
                                               (void *)(uintptr_t)cell);

    return cell_first_error(take_dealt(cell, c, tag), rc);
}

static int scatter_begin(const struct cell *cell,
                         const struct chempi_coll_call *c, uint64_t unused)
{
    (void)unused;
    return cell_is_root(cell, c) ? deal_blocks(cell, c, 0) : MPI_SUCCESS;
}

/* A long block of a non-blocking one, which this member knows to be long, has
 * a receive of its own. */
static bool is_received(const struct cell *cell,
                        const struct chempi_coll_call *c)
{
    return cell_is_root(cell, c) ||
           c->rcount * c->rtype->size > CHEMPI_NODE_BULK_BYTES;
}

static bool is_scatter_ready(const struct cell *cell,
                             const struct chempi_coll_call *c)
{
    return is_received(cell, c) || is_dealt((void *)(uintptr_t)cell);
}

static int scatter_end(const struct cell *cell,
                       const struct chempi_coll_call *c, uint64_t unused)
{
    (void)unused;
    return is_received(cell, c) ? MPI_SUCCESS : take_dealt(cell, c, 0);
}

const struct chempi_node_parts chempi_node_parts_scatter = {
    scatter_begin, is_scatter_ready, scatter_end};

bool chempi_coll_node_scatter(struct chempi_coll_state *st,
                              const struct chempi_coll_call *c, int tag,
                              int *rc)
{
    struct cell cell;

    *rc = chempi_coll_shm_slot_open(st, &cell);
    *rc = cell_first_error(st->rank == c->root ? deal_blocks(&cell, c, tag)
                                               : take_block(&cell, c, tag),
                           *rc);
    return true;
}
