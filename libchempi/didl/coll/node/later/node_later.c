/* SPDX-License-Identifier: BSD-3-Clause */
/* Non-blocking collectives in a node's shared memory; see node_later.h. */
#include "libchempi/didl/coll/node/later/node_later.h"

#include "common/base/invariant.h"
#include "libchempi/didl/coll/node/chain_calls.h"
#include "libchempi/didl/coll/node/later/node_own.h"
#include "libchempi/didl/coll/node/later/node_parts.h"
#include "libchempi/didl/coll/node/later/node_task.h"
#include "libchempi/didl/transport/loss.h"
#include "libchempi/didl/transport/where/wait_report.h"

enum { LONG = 64 << 10 /* bytes */ };

struct chempi_node_later_op {
    _Alignas(16) struct cell cell; /* first (node_parts.h) */
    const struct chempi_node_parts *parts;
    const struct chempi_node_steps *steps; /* of a task; else NULL */
    bool is_lengthened;                    /* L6 */
    struct chempi_coll_state *own;         /* of a persistent one */
    struct chempi_node_task *task;         /* room for it */
    struct chempi_coll_call call;
    bool has_begun;
    bool has_types; /* some are not predefined */
    int rc;         /* of its beginning */
};
/* L3 */
static_assert(CHEMPI_NODE_LATER_GROUP % CHEMPI_NODE_LATER_SAID == 0,
              "members say in time which operations they have ended");
/* Who has no memory takes part with these. */
static_assert(sizeof(struct chempi_node_later_op) + CHEMPI_NODE_TASK_MAX + 15 <=
                  CHEMPI_COLL_INLINE_BYTES,
              "an operation and its task fit into a schedule");

/* ---- which ---- */

static int barrier_begin(const struct cell *cell,
                         const struct chempi_coll_call *c)
{
    (void)c;
    chempi_coll_shm_slot_come(cell);
    return MPI_SUCCESS;
}

static int barrier_end(const struct cell *cell,
                       const struct chempi_coll_call *c)
{
    (void)cell;
    (void)c;
    return MPI_SUCCESS;
}

static bool barrier_fits(const struct chempi_coll_call *c)
{
    (void)c;
    return true;
}

CHEMPI_NODE_PARTS(chempi_node_parts_barrier, barrier_fits, barrier_at_once,
                  barrier_begin, chempi_coll_shm_slot_is_over, barrier_end);

const struct chempi_node_parts *const chempi_node_parts_by_kind[] = {
    [CHEMPI_COLL_BARRIER] = &chempi_node_parts_barrier,
    [CHEMPI_COLL_BCAST] = &chempi_node_parts_bcast,
    [CHEMPI_COLL_REDUCE] = &chempi_node_parts_reduce,
    [CHEMPI_COLL_ALLREDUCE] = &chempi_node_parts_allreduce,
    [CHEMPI_COLL_GATHER] = &chempi_node_parts_gather,
    [CHEMPI_COLL_GATHERV] = &chempi_node_parts_gather,
    [CHEMPI_COLL_SCATTER] = &chempi_node_parts_scatter,
    [CHEMPI_COLL_SCATTERV] = &chempi_node_parts_scatter,
    [CHEMPI_COLL_ALLGATHER] = &chempi_node_parts_allgather,
    [CHEMPI_COLL_ALLGATHERV] = &chempi_node_parts_allgather,
    [CHEMPI_COLL_ALLTOALL] = &chempi_node_parts_alltoall,
    [CHEMPI_COLL_REDUCE_SCATTER] = &chempi_node_parts_reduce_scatter,
    [CHEMPI_COLL_REDUCE_SCATTER_BLOCK] = &chempi_node_parts_reduce_scatter,
};

static bool is_root(const struct chempi_coll_call *c)
{
    return c->comm->rank == c->root;
}

static bool is_reduction(const struct chempi_coll_call *c)
{
    return c->op != NULL && c->kind != CHEMPI_COLL_BARRIER;
}

static bool is_scan(const struct chempi_coll_call *c)
{
    return c->kind == CHEMPI_COLL_SCAN || c->kind == CHEMPI_COLL_EXSCAN;
}

/* And scans. */
static const struct chempi_node_steps *
steps_of_reduction(const struct chempi_coll_call *c)
{
    if (!c->op->is_predefined)
        return NULL;
    if (chain_is_for(c))
        return &chempi_node_steps_chain;
    return !is_scan(c) && chempi_coll_node_is_for_workers(c)
               ? &chempi_node_steps_fold
               : NULL;
}

/* Of what does not fit slots: what goes in steps. L1; of a gatherv or scatterv
 * only the root knows all lengths. Of two members each copies half of a
 * message. */
static const struct chempi_node_steps *
steps_for(const struct chempi_coll_call *c)
{
    if (is_scan(c))
        return steps_of_reduction(c);
    if (c->kind == CHEMPI_COLL_GATHERV)
        return &chempi_node_steps_gather;
    if (c->kind == CHEMPI_COLL_SCATTERV)
        return &chempi_node_steps_scatter;
    if (parts_are_of_pair(c))
        return chempi_coll_node_pair_is_for_boards(c) ? &chempi_node_steps_pair
                                                      : NULL;
    if (c->comm->size <= 2)
        return NULL;
    switch (c->kind) {
    case CHEMPI_COLL_GATHER:
        return &chempi_node_steps_gather;
    case CHEMPI_COLL_SCATTER:
        return &chempi_node_steps_scatter;
    case CHEMPI_COLL_BCAST:
        return &chempi_node_steps_bcast;
    case CHEMPI_COLL_ALLGATHER:
    case CHEMPI_COLL_ALLGATHERV:
        return &chempi_node_steps_allgather;
    case CHEMPI_COLL_ALLTOALL:
    case CHEMPI_COLL_ALLTOALLV:
    case CHEMPI_COLL_ALLTOALLW:
        return c->send.buf == MPI_IN_PLACE ? NULL : &chempi_node_steps_alltoall;
    default:
        return steps_of_reduction(c);
    }
}

/* ---- building ---- */

/* Are there such operations, or may there be some (L8)? */
static bool may_serve(const struct chempi_coll_state *st)
{
    if (!st)
        return false;
    return chempi_coll_node_stage(st) == CHEMPI_NODE_NEWS ||
           st->later_cells > 0;
}

static bool is_first(const struct chempi_coll_state *st)
{
    return st->later.started == 0 &&
           chempi_coll_node_stage(st) == CHEMPI_NODE_NEWS;
}

/* Does it go this way? Then all but the rest of the cell is set. */
static bool find_way(const struct chempi_coll_call *c,
                     struct chempi_coll_state *st,
                     struct chempi_node_later_op *op)
{
    *op = (struct chempi_node_later_op){.call = *c, .cell = {.st = st}};
    if (!may_serve(st))
        return false;
    op->parts = parts_for(c);
    if (!op->parts)
        op->steps = steps_for(c);
    return op->parts || op->steps;
}

int chempi_node_later_expect(const struct chempi_coll_call *c)
{
    /* First what takes no look at a call's counts. */
    if (c->comm->coll || !chempi_coll_node_may_get_area(c->comm) ||
        !(parts_for(c) || steps_for(c)))
        return MPI_SUCCESS;
    return chempi_coll_node_expect(c->comm);
}

/* L8 */
static void become_first(struct chempi_node_later_op *op)
{
    op->parts = NULL;
    op->steps = &chempi_node_steps_first;
}

static bool is_predefined(const struct chempi_datatype *type)
{
    return !type || type->is_predefined;
}

/* Of its arguments; one that is not significant may be gone later. */
static bool has_types(const struct chempi_coll_call *c)
{
    return c->kind == CHEMPI_COLL_ALLTOALLW || !is_predefined(c->send.type) ||
           !is_predefined(c->recv.type);
}

/* Its only step, and room for its task, or one that it may become. */
static void append(struct chempi_coll_sched *s, struct chempi_node_later_op *op)
{
    size_t size = op->steps ? op->steps->size : CHEMPI_NODE_TASK_MAX;

    if (size < chempi_node_steps_first.size) /* L8 */
        size = chempi_node_steps_first.size;
    op->task = chempi_coll_bytes(s, (MPI_Count)size);
    s->op = op->call.op;
    chempi_coll_append_node(s, op);
    if (op->steps && s->widest < CHEMPI_COLL_WINDOW + 2)
        s->widest = CHEMPI_COLL_WINDOW + 2; /* what its steps may append */
}

static bool build(struct chempi_coll_sched *s, const struct chempi_coll_call *c,
                  struct chempi_coll_state *st)
{
    const uint32_t used = s->inline_used;
    /* The first ones, in the schedule itself: they are always there. */
    struct chempi_node_later_op *op = chempi_coll_bytes(s, sizeof(*op));

    if (!find_way(c, st, op)) {
        s->inline_used = used;
        return false;
    }
    if (CHEMPI_UNLIKELY(is_first(st)))
        become_first(op);
    op->has_types = has_types(c);
    append(s, op);
    return true;
}

bool chempi_node_later_build(struct chempi_coll_sched *s,
                             const struct chempi_coll_call *c)
{
    return build(s, c, c->comm->coll);
}

void chempi_node_later_build_begun(struct chempi_coll_sched *s,
                                   struct chempi_node_later_op *op)
{
    (void)chempi_coll_bytes(s, sizeof(*op)); /* where it is */
    append(s, op);
}

/* ---- types ---- */

/* Where nothing is counted there may be no type. */
static void hold_each(const struct chempi_count_array *counts,
                      const MPI_Datatype *types, uint32_t size, bool is_held)
{
    for (uint32_t i = 0; i < size; i++)
        if (chempi_count_array_get(*counts, i) > 0)
            chempi_coll_hold_type(chempi_datatype_lookup(types[i]), is_held);
}

static CHEMPI_NOINLINE void hold_types(const struct chempi_coll_call *c,
                                       bool is_held)
{
    bool is_gather =
        c->kind == CHEMPI_COLL_GATHER || c->kind == CHEMPI_COLL_GATHERV;
    bool is_scatter =
        c->kind == CHEMPI_COLL_SCATTER || c->kind == CHEMPI_COLL_SCATTERV;
    bool has_two =
        is_gather || is_scatter ||
        (c->kind >= CHEMPI_COLL_ALLGATHER && c->kind <= CHEMPI_COLL_ALLTOALLV);

    if (c->kind == CHEMPI_COLL_ALLTOALLW) {
        if (c->send.buf !=
            MPI_IN_PLACE) /* else the arrays are not significant */
            hold_each(&c->send.counts, c->send.types, c->comm->size, is_held);
        hold_each(&c->recv.counts, c->recv.types, c->comm->size, is_held);
        return;
    }
    if (has_two && c->send.buf != MPI_IN_PLACE && (!is_scatter || is_root(c)))
        chempi_coll_hold_type(c->send.type, is_held);
    if (c->kind != CHEMPI_COLL_BARRIER && c->recv.buf != MPI_IN_PLACE &&
        (!is_gather || is_root(c)))
        chempi_coll_hold_type(c->recv.type, is_held);
}

/* Those that this process's buffers have. */
void chempi_node_later_hold_types(const struct chempi_node_later_op *op,
                                  bool is_held)
{
    if (CHEMPI_UNLIKELY(op->has_types))
        hold_types(&op->call, is_held);
}

/* ---- persistent operations ---- */

/* Like what is started once, it goes by what its communicator has now. */
int chempi_node_later_prepare(const struct chempi_coll_call *c)
{
    struct chempi_coll_state *own;
    struct chempi_node_later_op op;
    int rc = MPI_SUCCESS;

    if (!find_way(c, c->comm->coll, &op))
        return MPI_SUCCESS;
    own = chempi_coll_node_make_own(c->comm);
    if (chempi_node_own_share(c->comm, own, &rc)) {
        c->comm->coll->next_own = own;
        return MPI_SUCCESS;
    }
    chempi_coll_node_release(own);
    return rc;
}

bool chempi_node_later_build_prepared(struct chempi_coll_sched *s,
                                      const struct chempi_coll_call *c)
{
    const struct chempi_coll_state *st = c->comm->coll;

    return st && st->next_own && build(s, c, st->next_own);
}

void chempi_node_later_keep(struct chempi_comm *comm,
                            struct chempi_node_later_op *op)
{
    struct chempi_coll_state *own = comm->coll ? comm->coll->next_own : NULL;

    if (!own)
        return;
    comm->coll->next_own = NULL;
    if (op)
        op->own = own;
    else
        chempi_coll_node_release(own);
}

void chempi_node_later_release(struct chempi_node_later_op *op)
{
    chempi_coll_node_release(op->own);
    op->own = NULL;
}

/* ---- running ---- */

static struct chempi_coll_state *state_of(const struct chempi_node_later_op *op)
{
    return op->cell.st;
}

/* The same of an exchange in which each block has a type. */
static uint64_t len_of_each(const struct chempi_coll_call *c)
{
    MPI_Count len = 0;

    for (uint32_t i = 0; i < c->comm->size; i++) {
        MPI_Count count = chempi_count_array_get(c->recv.counts, i);

        if (count > 0)
            len += count * chempi_datatype_lookup(c->recv.types[i])->size;
    }
    return (uint64_t)len;
}

/* Bytes that a member gets and gives, roughly: whether others' waiting is worth
 * an agent. */
static uint64_t len_of(const struct chempi_coll_call *c)
{
    bool is_v =
        c->kind == CHEMPI_COLL_ALLGATHERV || c->kind == CHEMPI_COLL_ALLTOALLV;
    MPI_Count count = c->recv.count;

    if (c->kind == CHEMPI_COLL_ALLTOALLW)
        return len_of_each(c);
    if (c->kind >= CHEMPI_COLL_GATHER && c->kind <= CHEMPI_COLL_SCATTERV)
        return chempi_coll_node_longest_block(c);
    if (c->kind == CHEMPI_COLL_ALLGATHER || c->kind == CHEMPI_COLL_ALLTOALL)
        count *= c->comm->size;
    for (uint32_t i = 0; is_v && i < c->comm->size; i++)
        count += chempi_count_array_get(c->recv.counts, i);
    if (is_reduction(c))
        count = chempi_coll_node_whole_count(c, (int)c->comm->size);
    return (uint64_t)(count * c->recv.type->size);
}

static uint32_t count_own_finished(const struct chempi_coll_state *st)
{
    return atomic_load_explicit(&st->later.finished, memory_order_relaxed);
}

/* L6 */
static bool may_be_long(const struct chempi_node_later_op *op)
{
    return op->parts == &chempi_node_parts_bcast && !op->steps &&
           op->cell.st->size > 2;
}

/* Short operations are no blocking task's business. */
static void take_number(struct chempi_coll_state *st, bool is_task)
{
    st->later.started++;
    if (is_task)
        st->later.last_task = st->later.started;
    else if (chempi_coll_node_has_turn(st)) /* numbers wrap: keep it near */
        st->later.last_task = count_own_finished(st);
}

uint64_t chempi_node_later_len(const struct chempi_node_later_op *op)
{
    return op->steps && op->steps != &chempi_node_steps_first
               ? len_of(&op->call)
               : 0;
}

static bool is_first_left(const struct chempi_node_later_op *op)
{
    return op->cell.seq == 1 + count_own_finished(state_of(op));
}

static bool spares_cell(const struct chempi_node_later_op *op)
{
    return op->steps == &chempi_node_steps_chain &&
           chempi_coll_node_has_chain(state_of(op));
}

/* L3, L8 */
static bool has_room(const struct chempi_node_later_op *op)
{
    struct chempi_coll_state *st = state_of(op);
    const enum chempi_node_stage stage = chempi_coll_node_stage(st);

    if (CHEMPI_UNLIKELY(stage != CHEMPI_NODE_MEMORY))
        return stage == CHEMPI_NODE_MESSAGES ||
               op->steps == &chempi_node_steps_first;
    return spares_cell(op) || later_is_cell_free(st, op->cell.seq);
}

/* L2, L3, L5, L8 */
static bool can_begin(const struct chempi_node_later_op *op)
{
    return !op->has_begun && op->cell.seq == state_of(op)->later.begun + 1 &&
           (!op->steps || is_first_left(op)) && has_room(op);
}

/* Once it has begun and is the first that is left. */
static bool is_due(void *arg)
{
    struct chempi_node_later_op *op = arg;

    return op->steps ? chempi_coll_node_task_is_due(op->task)
                     : op->parts->is_ready(&op->cell, &op->call);
}

static bool can_go_on(struct chempi_node_later_op *op)
{
    return op->has_begun && is_first_left(op) && is_due(op);
}

bool chempi_node_later_is_ready(struct chempi_node_later_op *op)
{
    return can_begin(op) || can_go_on(op) || chempi_loss_is_in(op->call.comm);
}

static void begin_task(struct chempi_node_later_op *op)
{
    struct chempi_node_task *t = op->task;

    memset(t, 0, op->steps->cleared);
    t->cell = op->cell;
    t->c = &op->call;
    task_go_on(t, op->steps->first);
}

static void begin(struct chempi_node_later_op *op)
{
    if (CHEMPI_LIKELY(chempi_coll_node_stage(state_of(op)) ==
                      CHEMPI_NODE_MEMORY))
        later_open_cell(state_of(op), op->cell.seq, &op->call, &op->cell);
    else
        become_first(op);
    op->has_begun = true;
    state_of(op)->later.begun = op->cell.seq;
    if (!op->steps) {
        op->rc = op->parts->begin(&op->cell, &op->call);
        return;
    }
    begin_task(op);
}

/* L6 */
static CHEMPI_COLD void make_long(struct chempi_node_later_op *op)
{
    op->is_lengthened = true;
    op->steps = &chempi_node_steps_bcast;
    begin_task(op);
}

/* Messages that a step has appended come next, and behind them the task again.
 * False: there is no memory for that, and they have gone empty (S4). */
static bool put_messages(struct chempi_node_later_op *op,
                         struct chempi_coll_sched *s)
{
    chempi_coll_fence(s);
    chempi_coll_append_node(s, op);
    return !s->error;
}

/* One step, with a schedule, or as long as it needs none, without. */
static enum chempi_node_later_state
do_step(struct chempi_node_later_op *op, struct chempi_coll_sched *s, int *rc)
{
    struct chempi_node_task *t = op->task;

    t->messages = s;
    if (s)
        s->done = s->count;
    if (CHEMPI_LIKELY(t->next != NULL))
        t->next(t);
    if (!t->next && t->is_void)
        task_go_on(t, NULL);
    if (!s && (t->next ? t->lacks_messages : t->is_void))
        return CHEMPI_NODE_LATER_NEEDS_SCHEDULE;
    if (t->next)
        return s && s->count > s->done && put_messages(op, s)
                   ? CHEMPI_NODE_LATER_IS_OVER
                   : CHEMPI_NODE_LATER_MOVES;
    if (t->is_void)
        chempi_coll_build_flat(s, &op->call);
    *rc = s ? cell_first_error(t->rc, s->error) : t->rc;
    later_finish(op->cell.st, op->cell.seq);
    return CHEMPI_NODE_LATER_IS_OVER;
}

/* L6 */
static bool is_now_long(const struct chempi_node_later_op *op)
{
    return CHEMPI_UNLIKELY(may_be_long(op) &&
                           chempi_coll_node_bcast_is_long(&op->cell));
}

/* It has begun, is the first that is left, and due. */
static inline enum chempi_node_later_state
go_on(struct chempi_node_later_op *op, struct chempi_coll_sched *s, int *rc)
{
    CHEMPI_CHECK(op->has_begun && is_first_left(op)
                     ? NULL
                     : "node_later L2: an operation goes on before its turn");
    if (op->steps)
        return do_step(op, s, rc);
    if (is_now_long(op)) {
        if (!s)
            return CHEMPI_NODE_LATER_NEEDS_SCHEDULE;
        make_long(op);
        return CHEMPI_NODE_LATER_MOVES;
    }
    *rc = op->parts->end(&op->cell, &op->call);
    *rc = cell_first_error(op->rc, *rc);
    later_finish(op->cell.st, op->cell.seq);
    return CHEMPI_NODE_LATER_IS_OVER;
}

enum chempi_node_later_state
chempi_node_later_advance(struct chempi_node_later_op *op,
                          struct chempi_coll_sched *s, int *rc)
{
    enum chempi_node_later_state state = CHEMPI_NODE_LATER_WAITS;

    if (can_begin(op)) {
        begin(op);
        state = CHEMPI_NODE_LATER_MOVES;
    }
    if (can_go_on(op))
        return go_on(op, s, rc);
    if (CHEMPI_UNLIKELY(chempi_loss_is_in(op->call.comm))) {
        *rc = MPI_ERR_PROC_ABORTED;
        return CHEMPI_NODE_LATER_IS_OVER;
    }
    return state;
}

/* ---- beginning in the call ---- */

/* It has begun, in the next cell, and is not over. */
static void go_on_later(struct chempi_node_later_op *op)
{
    struct chempi_coll_state *st = state_of(op);

    st->later.begun = op->cell.seq;
    op->has_begun = true;
    take_number(st, op->steps || may_be_long(op));
}

/* A task along SPSC rings, which was made with its cell. */
static void chain_has_begun(struct chempi_node_later_op *op)
{
    op->cell = op->task->cell;
    go_on_later(op);
}

/* The next one along SPSC rings, if there are any; c is its call, perhaps not
 * copied as yet. */
static enum chempi_node_later_begun
begin_chain(struct chempi_node_later_op *op, struct chempi_coll_state *st,
            const struct chempi_coll_call *c, int *rc)
{
    const enum chempi_node_later_begun begun =
        chempi_coll_node_chain_at_once(op->task, st, c, rc);

    if (CHEMPI_UNLIKELY(begun == CHEMPI_NODE_LATER_HAS_BEGUN))
        chain_has_begun(op);
    return begun;
}

/* The same of any in steps; of a task that needs a cell nothing but its
 * beginning. */
static enum chempi_node_later_begun
begin_steps(struct chempi_node_later_op *op, struct chempi_coll_state *st,
            const struct chempi_coll_call *c, int *rc)
{
    const uint32_t number = st->later.started + 1;

    if (spares_cell(op))
        return begin_chain(op, st, c, rc);
    if (!later_is_alone(st) || !later_is_cell_free(st, number))
        return CHEMPI_NODE_LATER_HAS_NOT_BEGUN;
    later_open_cell(st, number, c, &op->cell);
    begin_task(op);
    go_on_later(op);
    return CHEMPI_NODE_LATER_HAS_BEGUN;
}

/* As parts_are_soon(). */
static bool is_soon(struct chempi_node_later_op *op)
{
    const int looks = chempi_progress_spins() > 0 ? CELL_LOOKS : 0;
    bool is = is_due(op);

    for (int i = 0; i < looks && !is; i++) {
        CHEMPI_CPU_RELAX();
        is = is_due(op);
    }
    return is;
}

/* The steps that are due in its call; of long data one, and the others beside
 * what is computed. */
static enum chempi_node_later_state do_steps(struct chempi_node_later_op *op,
                                             int *rc)
{
    enum chempi_node_later_state state = CHEMPI_NODE_LATER_MOVES;
    const int most =
        chempi_node_later_len(op) > LONG ? 1 : CHEMPI_NODE_LATER_STEPS;

    for (int i = 0; i < most && state == CHEMPI_NODE_LATER_MOVES; i++)
        state = is_soon(op) ? go_on(op, NULL, rc) : CHEMPI_NODE_LATER_WAITS;
    return state;
}

/* It has begun in its call, which goes on with it. */
static enum chempi_node_later_begun
go_on_in_call(struct chempi_node_later_op *op, int *rc)
{
    switch (do_steps(op, rc)) {
    case CHEMPI_NODE_LATER_IS_OVER:
        return CHEMPI_NODE_LATER_HAS_ENDED;
    case CHEMPI_NODE_LATER_WAITS:
        return CHEMPI_NODE_LATER_HAS_BEGUN;
    default:
        return CHEMPI_NODE_LATER_HAS_MOVED;
    }
}

/* What does not begin in its start begins later. */
static CHEMPI_NOINLINE void put_off(struct chempi_node_later_op *op)
{
    struct chempi_coll_state *st = state_of(op);

    take_number(st, op->steps || may_be_long(op));
    op->cell.seq = st->later.started;
}

static CHEMPI_NOINLINE enum chempi_node_later_begun
start_steps(struct chempi_node_later_op *op, int *rc)
{
    enum chempi_node_later_begun begun =
        begin_steps(op, state_of(op), &op->call, rc);

    if (begun == CHEMPI_NODE_LATER_HAS_NOT_BEGUN)
        put_off(op);
    return begun == CHEMPI_NODE_LATER_HAS_BEGUN ? go_on_in_call(op, rc) : begun;
}

/* By parts it has begun, which came to *rc, and was not due. */
static inline enum chempi_node_later_begun
wait_in_parts(struct chempi_node_later_op *op, int *rc)
{
    op->rc = *rc;
    *rc = MPI_SUCCESS;
    go_on_later(op);
    return may_be_long(op) && is_due(op) ? CHEMPI_NODE_LATER_HAS_MOVED
                                         : CHEMPI_NODE_LATER_HAS_BEGUN;
}

enum chempi_node_later_begun
chempi_node_later_start(struct chempi_node_later_op *op, int *rc)
{
    enum chempi_node_later_begun begun;

    op->has_begun = false;
    if (CHEMPI_UNLIKELY(chempi_coll_node_stage(state_of(op)) !=
                        CHEMPI_NODE_MEMORY)) { /* L8 */
        put_off(op);
        return CHEMPI_NODE_LATER_HAS_NOT_BEGUN;
    }
    if (!op->parts)
        return start_steps(op, rc);
    op->steps = NULL; /* L6 */
    op->is_lengthened = false;
    begun = op->parts->at_once(&op->cell, state_of(op), &op->call, rc);
    if (CHEMPI_LIKELY(begun == CHEMPI_NODE_LATER_HAS_ENDED))
        return begun;
    if (begun == CHEMPI_NODE_LATER_HAS_NOT_BEGUN) {
        put_off(op);
        return begun;
    }
    return wait_in_parts(op, rc);
}

/* Behind an operation that its call has begun there is room for it. */
static struct chempi_node_task *task_of(struct chempi_node_later_op *op)
{
    return (void *)(op + 1);
}

/* What an operation has of its call, which has begun it. */
static void keep_call(struct chempi_node_later_op *op,
                      const struct chempi_coll_call *c)
{
    op->call = *c;
    op->is_lengthened = false;
    op->own = NULL;
    op->has_types = has_types(c);
}

enum chempi_node_later_begun
chempi_node_later_stay(void *room, const struct chempi_coll_call *c,
                       enum chempi_node_later_begun begun, int *rc)
{
    struct chempi_node_later_op *op = room;
    const struct chempi_node_parts *parts = parts_for(c);

    if (begun != CHEMPI_NODE_LATER_HAS_BEGUN || !parts)
        return begun; /* in steps it is kept as it begins */
    op->parts = parts;
    op->steps = NULL;
    op->task = task_of(op);
    keep_call(op, c);
    return wait_in_parts(op, rc);
}

static CHEMPI_NOINLINE enum chempi_node_later_begun
keep_steps(struct chempi_node_later_op *op, const struct chempi_coll_call *c,
           int *rc)
{
    keep_call(op, c);
    op->task->c = &op->call;
    return go_on_in_call(op, rc);
}

/* A scan that has begun along SPSC rings. */
static CHEMPI_NOINLINE enum chempi_node_later_begun
keep_scan(struct chempi_node_later_op *op, const struct chempi_coll_call *c,
          int *rc)
{
    op->parts = NULL;
    op->steps = &chempi_node_steps_chain;
    op->task = task_of(op);
    chain_has_begun(op);
    return keep_steps(op, c, rc);
}

static CHEMPI_NOINLINE enum chempi_node_later_begun
try_others(struct chempi_node_later_op *op, struct chempi_coll_state *st,
           const struct chempi_coll_call *c, int *rc)
{
    enum chempi_node_later_begun begun;

    op->parts = NULL;
    op->cell.st = st;
    op->task = task_of(op);
    op->steps = steps_for(c);
    if (!op->steps)
        return CHEMPI_NODE_LATER_HAS_NOT_BEGUN;
    begun = begin_steps(op, st, c, rc);
    return begun == CHEMPI_NODE_LATER_HAS_BEGUN ? keep_steps(op, c, rc) : begun;
}

enum chempi_node_later_begun
chempi_node_later_try_steps(void *room, struct chempi_coll_state *st,
                            const struct chempi_coll_call *c, int *rc)
{
    enum chempi_node_later_begun begun;

    if (!is_scan(c))
        return try_others(room, st, c, rc);
    begun = chempi_coll_node_chain_at_once(task_of(room), st, c, rc);
    return CHEMPI_LIKELY(begun != CHEMPI_NODE_LATER_HAS_BEGUN)
               ? begun
               : keep_scan(room, c, rc);
}

/* ---- waiting ---- */

static bool is_awaited(const struct chempi_node_later_op *op, int member)
{
    const struct cell *cell = &op->cell;

    if (op->steps)
        return chempi_coll_node_task_misses(op->task, member);
    if (member == cell->st->rank)
        return false;
    switch (op->call.kind) {
    case CHEMPI_COLL_BCAST:
    case CHEMPI_COLL_SCATTER:
    case CHEMPI_COLL_SCATTERV:
        return member == op->call.root;
    default:
        return !cell_is_there(cell, member);
    }
}

static bool misses(const void *arg, int member)
{
    return is_awaited(arg, member);
}

static bool is_ready(void *arg)
{
    return chempi_node_later_is_ready(arg);
}

/* Does it wait until all have come? */
static bool is_meeting(const struct chempi_node_later_op *op)
{
    if (!op->has_begun || op->cell.st->size <= 2)
        return false;
    return op->steps ? op->task->word && op->task->whom == TASK_AWAITS_ALL
                     : op->parts->is_ready == chempi_coll_shm_slot_is_over;
}

/* The first that is left: is it due, or ready to begin? */
static bool tarry(struct chempi_node_later_op *op)
{
    chempi_progress_done_fn *done = op->has_begun ? is_due : is_ready;

    return done(op) ||
           chempi_coll_shm_slot_tarry(
               op->cell.st, is_meeting(op) ? misses : NULL, op, done, op);
}

bool chempi_node_later_tarry(struct chempi_node_later_op *op)
{
    return is_first_left(op) ? tarry(op) : chempi_node_later_is_ready(op);
}

enum chempi_node_later_state
chempi_node_later_await(struct chempi_node_later_op *op, int *rc)
{
    if (!op->has_begun || !is_first_left(op))
        return chempi_node_later_tarry(op)
                   ? chempi_node_later_advance(op, NULL, rc)
                   : CHEMPI_NODE_LATER_WAITS;
    return tarry(op) ? go_on(op, NULL, rc) : CHEMPI_NODE_LATER_WAITS;
}

int chempi_node_later_put(const struct chempi_node_later_op *op,
                          struct chempi_wait_report *w, int count)
{
    for (int m = 0; op->has_begun && m < op->cell.st->size; m++)
        if (is_awaited(op, m))
            chempi_wait_report_put_helper(w, op->call.comm, m, count++);
    return count;
}
