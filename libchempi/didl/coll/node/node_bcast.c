/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broadcasts in a node's shared memory. What fits a slot goes through the
 * common one, more through the pipe (node_pipe.c); without memory for that the
 * root says where it lies, and the others copy from there.
 */
#include "libchempi/didl/coll/node/later/node_parts.h"
#include "libchempi/didl/coll/node/later/node_task.h"
#include "libchempi/didl/coll/node/root_copies.h"
#include "libchempi/didl/coll/sched.h"
#include "libchempi/didl/error/error.h"

/* The common line's mark: enum chempi_root_mark, and above it who has written
 * it. */
enum { ROOT_SHIFT = 8 };

static uint32_t way_of(const struct cell *cell)
{
    return cell_common(cell)->mark & ((1u << ROOT_SHIFT) - 1);
}

static int root_of(const struct cell *cell)
{
    return (int)(cell_common(cell)->mark >> ROOT_SHIFT);
}

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
            chempi_coll_send(&s, c->recv.buf, c->recv.count, c->recv.type, i);
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
    uint64_t len = (uint64_t)(c->recv.count * c->recv.type->size);
    uint32_t mark = BLOCK_BY_MESSAGE;

    line->len = len;
    if (len <= CHEMPI_NODE_BULK_BYTES) {
        mark = BLOCK_HERE;
        *rc = cell_first_error(
            *rc, chempi_coll_shm_slot_put(cell, st->size, c->recv.buf,
                                          c->recv.count, c->recv.type, len));
    } else if (chempi_coll_node_task_turn(st) == MPI_SUCCESS &&
               chempi_coll_pipe_is_open(st)) {
        mark = BLOCK_PIECES;
        chempi_coll_shm_slot_say_came(cell);
    } else if (st->size > 2 &&
               chempi_coll_root_copies_are_open(st, c->recv.type)) {
        /* Of two members the device lets both copy. */
        mark = BLOCK_DIRECT;
        line->place.in =
            chempi_coll_root_copies_address(c->recv.buf, c->recv.type);
        chempi_coll_root_copies_expect(cell);
    }
    line->mark = mark | (uint32_t)st->rank << ROOT_SHIFT;
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
    chempi_coll_recv(&s, c->recv.buf, c->recv.count, c->recv.type, c->root);
    rc = chempi_coll_run(&s);
    chempi_coll_sched_fini(&s);
    return rc;
}

/* Fetch the len bytes that the line offers. */
static int fetch(const struct cell *cell, const struct chempi_coll_call *c,
                 uint64_t from, uint64_t len, int tag)
{
    uint64_t room = (uint64_t)(c->recv.count * c->recv.type->size);
    int code;

    if (CHEMPI_UNLIKELY(len != room)) {
        chempi_coll_root_copies_say(cell, c->root, REPLY_COPIED);
        return chempi_coll_shm_slot_wrong_amount(c->root, len, room);
    }
    code = chempi_coll_cma_copy_get(cell->st->local_ranks[c->root], from, len,
                                    c->recv.buf, c->recv.count, c->recv.type);
    chempi_coll_root_copies_say(cell, c->root,
                                code ? REPLY_REFUSED : REPLY_COPIED);
    return CHEMPI_UNLIKELY(code) ? recv_block(c, tag) : MPI_SUCCESS;
}

static int bcast_begin(const struct cell *cell,
                       const struct chempi_coll_call *c)
{
    int rc = MPI_SUCCESS;

    if (cell_is_root(cell, c) && CHEMPI_LIKELY(cell_claim(cell)))
        (void)bcast_root(cell, c, 0, &rc);
    return rc;
}

/* A root need not wait, but for another one. */
static bool is_bcast_ready(const struct cell *cell,
                           const struct chempi_coll_call *c)
{
    if (cell_is_root(cell, c))
        return CHEMPI_LIKELY(atomic_load_explicit(&cell_common(cell)->seq,
                                                  memory_order_acquire) !=
                             cell_claim_of(cell->seq));
    return cell_is_there(cell, cell->st->size);
}

/* ---- different roots ---- */

/*
 * Who has taken the common line is the root for all; whoever has named another
 * one, perhaps itself, does what there is to do for others and has an error. A
 * message is received where its own data are, all other data are dropped.
 */

static CHEMPI_COLD int bad_root(const struct cell *cell,
                                const struct chempi_coll_call *c)
{
    return chempi_error_set(MPI_ERR_ROOT,
                            "rank %d is the root for itself, rank %d is for "
                            "this rank, %d: all members must name the same "
                            "root",
                            root_of(cell), c->root, cell->st->rank);
}

static inline int check_root(const struct cell *cell,
                             const struct chempi_coll_call *c)
{
    return CHEMPI_LIKELY(root_of(cell) == c->root) ? MPI_SUCCESS
                                                   : bad_root(cell, c);
}

/* The same from that root; without data, if the amount makes no difference to
 * others. */
static struct chempi_coll_call follow(const struct cell *cell,
                                      const struct chempi_coll_call *c)
{
    struct chempi_coll_call other = *c;

    if (way_of(cell) != BLOCK_BY_MESSAGE)
        other.recv.count = 0;
    other.root = root_of(cell);
    return other;
}

/* Members that call another operation may have written anything. */
static bool is_root_known(const struct cell *cell)
{
    return root_of(cell) < cell->st->size && root_of(cell) != cell->st->rank;
}

static int bcast_astray(const struct cell *cell,
                        const struct chempi_coll_call *c, int tag)
{
    const struct chempi_coll_call other = follow(cell, c);
    struct chempi_coll_sched s;
    int code = MPI_SUCCESS;

    switch (is_root_known(cell) ? way_of(cell) : BLOCK_HERE) {
    case BLOCK_BY_MESSAGE:
        chempi_coll_sched_init(&s, c->comm, tag);
        chempi_coll_build_bcast(&s, &other);
        code = chempi_coll_run(&s);
        chempi_coll_sched_fini(&s);
        break;
    case BLOCK_DIRECT:
        chempi_coll_root_copies_say(cell, other.root, REPLY_COPIED);
        break;
    case BLOCK_PIECES:
        code = through_pipe(cell, &other, cell_common(cell)->len);
        break;
    default:
        break;
    }
    return cell_first_error(check_root(cell, c), code); /* the last words */
}

/* ---- the others ---- */

/* What the common line has, or says that it has. */
static int bcast_here(const struct cell *cell, const struct chempi_coll_call *c)
{
    int size = cell->st->size;
    uint64_t len = cell_common(cell)->len;
    int rc;

    if (CHEMPI_UNLIKELY(len > CHEMPI_NODE_BULK_BYTES))
        return chempi_coll_shm_slot_mismatch(cell, size);
    rc = chempi_coll_shm_slot_get(c->root, cell_data(cell, size, len), len,
                                  c->recv.buf, c->recv.count, c->recv.type);
    if (!rc && len < (uint64_t)(c->recv.count * c->recv.type->size))
        return chempi_coll_shm_slot_mismatch(cell, size);
    return rc;
}

bool chempi_coll_node_bcast_is_long(const struct cell *cell)
{
    return way_of(cell) != BLOCK_HERE;
}

static int bcast_end(const struct cell *cell, const struct chempi_coll_call *c)
{
    const int rc = check_root(cell, c);

    return rc || cell_is_root(cell, c) ? rc : bcast_here(cell, c);
}

/* What turns out to be long goes on some other way (node_later.h, L6). */
static inline bool do_bcast(const struct cell *cell,
                            const struct chempi_coll_call *c, int *rc)
{
    *rc = MPI_SUCCESS;
    if (cell_is_root(cell, c) && CHEMPI_LIKELY(cell_claim(cell)))
        return bcast_root(cell, c, 0, rc);
    if (!parts_are_soon(is_bcast_ready, cell, c) ||
        CHEMPI_UNLIKELY(chempi_coll_node_bcast_is_long(cell)))
        return false;
    *rc = bcast_end(cell, c);
    return true;
}

static enum chempi_node_later_begun
bcast_at_once(struct cell *cell, struct chempi_coll_state *st,
              const struct chempi_coll_call *c, int *rc)
{
    return parts_open(cell, st, c) ? parts_close(cell, do_bcast(cell, c, rc))
                                   : CHEMPI_NODE_LATER_HAS_NOT_BEGUN;
}

static bool fits(const struct chempi_coll_call *c)
{
    return c->recv.count * c->recv.type->size <= CHEMPI_NODE_BULK_BYTES;
}

const struct chempi_node_parts chempi_node_parts_bcast = {
    bcast_begin, is_bcast_ready, bcast_end, fits, bcast_at_once};

bool chempi_coll_node_bcast(struct chempi_coll_state *st,
                            const struct chempi_coll_call *c, int tag, int *rc)
{
    struct chempi_node_line *line;
    struct cell cell;
    uint64_t len;
    uint32_t mark;

    *rc = chempi_coll_shm_slot_open(st, &cell);
    if (c->root == st->rank && CHEMPI_LIKELY(cell_claim(&cell)))
        return bcast_root(&cell, c, tag, rc);
    line = cell_common(&cell);
    *rc = cell_first_error(*rc, chempi_coll_shm_slot_wait_member(
                                    st, c->root, &line->seq, cell.seq));
    if (CHEMPI_UNLIKELY(*rc == MPI_ERR_PROC_ABORTED))
        return true; /* the root has said nothing */
    if (CHEMPI_UNLIKELY(root_of(&cell) != c->root)) {
        *rc = cell_first_error(*rc, bcast_astray(&cell, c, tag));
        return true;
    }
    mark = way_of(&cell);
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
    if (!*rc && len < (uint64_t)(c->recv.count * c->recv.type->size))
        *rc = chempi_coll_shm_slot_mismatch(&cell, st->size);
    return true;
}

/* Its messages are over. */
static void end_astray(struct chempi_node_task *t)
{
    task_end(t);
}

static void pass_astray(struct chempi_node_task *t)
{
    if (task_lacks_messages(t, pass_astray))
        return;
    chempi_coll_build_bcast(t->messages, t->c);
    task_go_on(t, end_astray);
}

/* The root has said how it goes on. */
static void bcast_told(struct chempi_node_task *t)
{
    const struct chempi_node_line *line = cell_common(&t->cell);
    struct chempi_node_piping *p =
        CHEMPI_CONTAINER_OF(t, struct chempi_node_piping, task);
    const int rc = check_root(&t->cell, t->c);

    p->len = line->len;
    if (CHEMPI_UNLIKELY(rc)) {
        task_note(t, rc);
        if (!is_root_known(&t->cell)) {
            task_end(t);
            return;
        }
        p->astray = follow(&t->cell, t->c);
        t->c = &p->astray;
    }
    if (CHEMPI_LIKELY(way_of(&t->cell) == BLOCK_PIECES)) {
        chempi_coll_pipe_recv(t);
        return;
    }
    if (CHEMPI_UNLIKELY(rc)) {
        if (way_of(&t->cell) == BLOCK_BY_MESSAGE)
            pass_astray(t);
        else
            task_end(t);
        return;
    }
    t->is_void = way_of(&t->cell) == BLOCK_BY_MESSAGE;
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

    if (!cell_is_root(&t->cell, t->c) ||
        CHEMPI_UNLIKELY(!cell_claim(&t->cell))) {
        task_await(t, t->c->root, &line->seq, t->cell.seq, bcast_told);
        return;
    }
    has_pipe = chempi_coll_pipe_is_open(t->cell.st);
    p->len = (uint64_t)(t->c->recv.count * t->c->recv.type->size);
    line->len = p->len;
    if (has_pipe)
        chempi_coll_shm_slot_say_came(&t->cell);
    line->mark = (has_pipe ? BLOCK_PIECES : BLOCK_BY_MESSAGE) |
                 (uint32_t)t->cell.st->rank << ROOT_SHIFT;
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
