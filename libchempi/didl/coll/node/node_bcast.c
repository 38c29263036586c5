/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broadcasts in a node's shared memory. What fits a slot goes through the
 * common one, more through the pipe (node_pipe.c); without memory for that the
 * root says where it lies, and the others copy from there.
 */
#include "libchempi/didl/base/error.h"
#include "libchempi/didl/coll/node/node_task.h"
#include "libchempi/didl/coll/node/root_copies.h"
#include "libchempi/didl/coll/sched.h"

static int bcast_copied(const struct cell *cell,
                        const struct chempi_coll_call *c, int tag)
{
    struct chempi_coll_state *st = cell->st;
    struct chempi_coll_sched s;
    int rc;

    chempi_coll_root_copies_set_goal(cell, (uint32_t)st->size - 1);
    rc = chempi_coll_shm_slot_wait(st, &cell_count(cell)->finished,
                                   (uint32_t)st->size - 1);
    chempi_coll_sched_init(&s, c->comm, tag);
    for (int i = 0; i < st->size; i++)
        if (i != st->rank && chempi_coll_root_copies_has_refused(cell, i)) {
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
    } else if (st->size > 2 && chempi_coll_root_copies_are_open(st, c->rtype)) {
        /* Of two members the device lets both copy. */
        mark = BLOCK_DIRECT;
        line->place.in = chempi_coll_root_copies_address(c->rbuf, c->rtype);
        chempi_coll_root_copies_expect(cell);
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

/* Fetch the len bytes that the line offers. */
static int fetch(const struct cell *cell, const struct chempi_coll_call *c,
                 uint64_t from, uint64_t len, int tag)
{
    uint64_t room = (uint64_t)(c->rcount * c->rtype->size);
    int code;

    if (CHEMPI_UNLIKELY(len != room)) {
        chempi_coll_root_copies_say(cell, c->root, REPLY_COPIED);
        return chempi_coll_shm_slot_wrong_amount(c->root, len, room);
    }
    code = chempi_coll_cma_copy_get(cell->st->local_ranks[c->root], from, len,
                                    c->rbuf, c->rcount, c->rtype);
    chempi_coll_root_copies_say(cell, c->root,
                                code ? REPLY_REFUSED : REPLY_COPIED);
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
