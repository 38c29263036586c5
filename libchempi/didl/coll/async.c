/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine behind non-blocking and persistent collectives: schedules that
 * advance in whatever thread makes progress. The invariants are those of
 * async_memory.h.
 */
#include "libchempi/didl/coll/async.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/status.h"
#include "libchempi/didl/coll/async_memory.h"
#include "libchempi/didl/coll/async_words.h"
#include "libchempi/didl/coll/check.h"
#include "libchempi/didl/coll/node/later/node_parts.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/loss.h"
#include "libchempi/didl/transport/progress/agent.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/request.h"
#include "libchempi/didl/transport/where/wait_report.h"

static int poll_running(struct chempi_progress_hook *hook);
static bool is_any_ready(struct chempi_progress_hook *hook);

static struct engine {
    struct chempi_list running;
    struct chempi_progress_hook hook;
    bool is_hooked;
} engines[2]; /* [runs functions of the user's] */

static struct async *of_request(struct chempi_request *req)
{
    return CHEMPI_CONTAINER_OF(req, struct async, req);
}

static struct engine *of_hook(struct chempi_progress_hook *hook)
{
    return CHEMPI_CONTAINER_OF(hook, struct engine, hook);
}

int chempi_coll_async_init(struct chempi_err *err)
{
    (void)err;
    for (int i = 0; i < 2; i++) {
        chempi_list_init(&engines[i].running);
        engines[i].hook.poll = poll_running;
        engines[i].hook.is_ready = i == 0 ? is_any_ready : NULL;
        engines[i].is_hooked = false;
    }
    return 0;
}

void chempi_coll_async_fini(void)
{
    for (int i = 0; i < 2; i++) {
        if (engines[i].is_hooked)
            chempi_progress_remove_hook(&engines[i].hook);
        engines[i].is_hooked = false;
    }
    chempi_coll_async_memory_fini();
    chempi_coll_sched_forget();
}

/* ---- steps ---- */

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM,
                            "no memory for a collective operation");
}

/* The first error, but for the loss of a member, which is what counts. */
static void note(struct async *a, int rc)
{
    if (CHEMPI_UNLIKELY(rc) && (!a->error || rc == MPI_ERR_PROC_ABORTED))
        a->error = rc;
}

/* E6 */
static CHEMPI_COLD struct chempi_request *take_own(struct async *a, int kind)
{
    if (a->is_own_used[kind])
        return NULL;
    a->is_own_used[kind] = true;
    chempi_request_track(&a->own[kind], &chempi_lane_main);
    return &a->own[kind];
}

static void drop_child(struct async *a, struct chempi_request *child)
{
    bool is_own = child == &a->own[0] || child == &a->own[1];

    if (CHEMPI_LIKELY(!is_own)) {
        chempi_request_drop(child);
        return;
    }
    chempi_request_untrack(child);
    chempi_message_fini(child);
    a->is_own_used[child - a->own] = false;
}

/* False: it has to wait for one before it. */
static bool begin_message(struct async *a, const struct chempi_coll_step *step)
{
    const struct chempi_coll_sched *s = &a->sched;
    struct chempi_request *child = chempi_request_alloc(&chempi_lane_main);
    int rc;

    if (CHEMPI_UNLIKELY(!child))
        child = take_own(a, step->kind);
    if (CHEMPI_UNLIKELY(!child))
        return false;
    if (step->kind == CHEMPI_COLL_SEND)
        /* Empty after an error, as in sched.c. */
        chempi_message_init_send(child, step->src, a->error ? 0 : step->count,
                                 step->type, step->peer, s->tag, s->comm,
                                 CHEMPI_CONTEXT_COLL, CHEMPI_SEND_STANDARD);
    else
        chempi_message_init_recv(child, step->dst, step->count, step->type,
                                 step->peer, s->tag, s->comm,
                                 CHEMPI_CONTEXT_COLL);
    child->is_urgent = a->is_urgent;
    rc = chempi_message_start(child);
    if (rc) {
        note(a, rc);
        drop_child(a, child);
        return true;
    }
    a->children[a->open++] = child;
    return true;
}

/* True: the lock was let go in between (E3). */
static bool do_local(struct async *a, const struct chempi_coll_step *step)
{
    /* Not a->op: a barrier has none, and yet may combine something. */
    struct chempi_op *op = a->sched.op;
    bool is_user = step->kind == CHEMPI_COLL_COMBINE && !op->is_predefined;

    if (step->kind == CHEMPI_COLL_COPY) {
        note(a,
             chempi_datatype_copy(step->src, step->count, step->type, step->dst,
                                  step->dst_count, step->dst_type));
        return false;
    }
    if (is_user) {
        a->is_busy = true;
        chempi_lane_unlock(&chempi_lane_main);
    }
    chempi_op_apply(op, step->src, step->dst, step->count, step->type);
    if (is_user) {
        chempi_lane_lock(&chempi_lane_main);
        a->is_busy = false;
    }
    return is_user;
}

/* The words are for who waits; here nobody may. */
static CHEMPI_COLD void note_child(struct async *a,
                                   const struct chempi_request *child)
{
    if (!a->error && child->kind == CHEMPI_REQUEST_RECV &&
        (child->error == MPI_ERR_TRUNCATE || child->error == MPI_ERR_COUNT)) {
        a->mismatch.rank = child->source;
        a->mismatch.len = (uint64_t)child->bytes;
        a->mismatch.room = (uint64_t)(child->count * child->type->size);
    }
    note(a, child->error);
}

/* Messages that the fence before the next step does not wait for, if there is
 * one; after an error nobody goes on with them. */
static int spared(const struct async *a)
{
    const struct chempi_coll_sched *s = &a->sched;

    if (a->error || a->next == 0 || a->next == s->count)
        return 0;
    return s->steps[a->next - 1].spared;
}

/* The first ones; whether there were any. */
static bool drop_finished(struct async *a)
{
    const int before = a->finished;

    while (a->finished < a->open) {
        struct chempi_request *child = a->children[a->finished];

        if (!chempi_request_is_complete(child))
            break;
        if (CHEMPI_UNLIKELY(child->error))
            note_child(a, child);
        drop_child(a, child);
        a->finished++;
    }
    return a->finished > before;
}

/* True: the messages that the last fence waits for are finished. */
static bool are_finished(struct async *a)
{
    (void)drop_finished(a);
    if (a->finished < a->open - spared(a))
        return false;
    a->open -= a->finished;
    if (CHEMPI_UNLIKELY(a->open > 0))
        memmove(a->children, a->children + a->finished,
                (size_t)a->open * sizeof(a->children[0]));
    a->finished = 0;
    return true;
}

/* Does the next step wait for the messages before it? */
static bool is_fenced(const struct async *a)
{
    const struct chempi_coll_sched *s = &a->sched;

    return a->open > 0 && a->open > spared(a) &&
           (a->next == s->count ||
            (a->next > 0 && s->steps[a->next - 1].has_fence));
}

static void complete(struct async *a)
{
    chempi_list_remove(&a->link);
    chempi_request_progress(&a->req, a->error); /* a may be gone now */
}

enum advance_flags {
    ADVANCED = 1,     /* something was done */
    WAS_UNLOCKED = 2, /* the lock was let go */
    COMPLETED = 4
};

/* Steps from number `first` on were appended. */
static CHEMPI_COLD void take_in(struct async *a, uint32_t first)
{
    a->sched.done = first;
    if (CHEMPI_UNLIKELY(!chempi_coll_async_make_room(a)))
        chempi_coll_sched_fail(&a->sched, no_memory());
    chempi_coll_async_hold_types(a, first, true);
}

/* The step in the node's memory; false: not over. */
static bool advance_node(struct async *a, struct chempi_node_later_op *op,
                         int *flags)
{
    const uint32_t count = a->sched.count;
    int rc = MPI_SUCCESS;
    enum chempi_node_later_state state;

    a->sched.failed = a->error;
    state = chempi_node_later_advance(op, &a->sched, &rc);
    a->has_more = true; /* perhaps: it may append */
    if (state != CHEMPI_NODE_LATER_WAITS) {
        *flags |= ADVANCED;
        a->moves++;
    }
    note(a, rc);
    if (CHEMPI_UNLIKELY(a->sched.count > count))
        take_in(a, count);
    note(a, a->sched.error);
    return state == CHEMPI_NODE_LATER_IS_OVER;
}

static void init_schedule(struct async *a, struct chempi_comm *comm, int tag)
{
    chempi_coll_sched_init(&a->sched, comm, tag);
    a->next = 0;
    a->own_count = 0;
    a->children = a->few;
    a->room = ASYNC_FEW;
    a->is_own_used[0] = a->is_own_used[1] = false;
    a->is_short = false;
}

static void keep_built(struct async *a)
{
    const bool is_one =
        a->sched.count == 1 && a->sched.steps[0].kind == CHEMPI_COLL_NODE;

    a->only = is_one ? a->sched.steps[0].dst : NULL;
    a->has_more = false;
    a->own_count = a->sched.count;
    a->own_inline = a->sched.inline_used;
    a->own_blocks = a->sched.blocks;
}

/* E7 */
static CHEMPI_COLD void make_schedule(struct async *a)
{
    struct chempi_node_later_op *op = a->single;

    a->single = NULL;
    if (!a->is_bare)
        return;
    a->is_bare = false;
    init_schedule(a, a->req.comm, a->sched.tag);
    chempi_node_later_build_begun(&a->sched, op);
    a->sched.is_locked = true;
    keep_built(a);
}

/* What came of a step that has done without a schedule. False: it goes on with
 * one. */
static inline bool take_step(struct async *a,
                             enum chempi_node_later_state state, int rc,
                             int *flags)
{
    switch (state) {
    case CHEMPI_NODE_LATER_WAITS:
        break;
    case CHEMPI_NODE_LATER_NEEDS_SCHEDULE:
        make_schedule(a);
        return false;
    case CHEMPI_NODE_LATER_IS_OVER:
        note(a, rc);
        a->moves++;
        *flags = ADVANCED | COMPLETED;
        complete(a);
        break;
    default:
        a->moves++;
        *flags = ADVANCED;
    }
    return true;
}

static bool advance_single(struct async *a, int *flags)
{
    int rc = MPI_SUCCESS;
    enum chempi_node_later_state state =
        chempi_node_later_advance(a->single, NULL, &rc);

    return take_step(a, state, rc, flags);
}

static int advance(struct async *a)
{
    const struct chempi_coll_sched *s = &a->sched;
    int flags = 0;

    if (a->is_busy || (a->single && advance_single(a, &flags)))
        return flags;
    for (;;) {
        const struct chempi_coll_step *step;
        struct chempi_node_later_op *op = chempi_coll_async_node_step(a);

        if (is_fenced(a) && !are_finished(a))
            return flags;
        if (op && !advance_node(a, op, &flags))
            return flags;
        flags |= ADVANCED;
        if (a->next == s->count)
            break;
        if (CHEMPI_UNLIKELY(a->error == MPI_ERR_PROC_ABORTED) &&
            chempi_loss_is_for_all(s->comm)) {
            a->next = s->count;
            continue;
        }
        step = &s->steps[a->next];
        if (step->kind <= CHEMPI_COLL_RECV) {
            a->is_short = !begin_message(a, step);
            if (CHEMPI_UNLIKELY(a->is_short) && !drop_finished(a))
                return flags;
            a->next += !a->is_short;
            continue;
        }
        a->next++;
        if (!op && do_local(a, step))
            flags |= WAS_UNLOCKED;
    }
    complete(a);
    return flags | COMPLETED;
}

static int poll_running(struct chempi_progress_hook *hook)
{
    struct engine *engine = of_hook(hook);
    struct chempi_list *pos = engine->running.next;
    int events = 0;

    while (pos != &engine->running) {
        struct chempi_list *next = pos->next;
        int flags = advance(chempi_coll_async_of_link(pos));

        if (flags)
            events++;
        if (flags & WAS_UNLOCKED)
            break; /* the list may have changed */
        pos = next;
    }
    return events;
}

static bool is_ready(const struct async *a)
{
    struct chempi_node_later_op *op = chempi_coll_async_node_step(a);
    int i = a->finished;

    if (op && !is_fenced(a))
        return chempi_node_later_is_ready(op);
    if (CHEMPI_UNLIKELY(a->is_short))
        return chempi_request_is_complete(a->children[i]);
    while (i < a->open - spared(a) &&
           chempi_request_is_complete(a->children[i]))
        i++;
    return i >= a->open - spared(a);
}

static bool is_any_ready(struct chempi_progress_hook *hook)
{
    CHEMPI_LIST_FOR (pos, &of_hook(hook)->running)
        if (is_ready(chempi_coll_async_of_link(pos)))
            return true;
    return false;
}

/* ---- requests ---- */

/* Only what was built. */
static CHEMPI_COLD void forget_appended(struct async *a)
{
    struct chempi_coll_sched *s = &a->sched;

    chempi_coll_async_hold_types(a, a->own_count, false);
    s->count = a->own_count;
    s->error = MPI_SUCCESS;
    s->open = 0;
    s->inline_used = a->own_inline;
    chempi_coll_reuse(s, a->own_blocks);
    a->has_more = false;
}

/* E2 */
static void join(struct async *a, struct engine *engine)
{
    if (CHEMPI_UNLIKELY(!engine->is_hooked)) {
        chempi_progress_add_hook(&engine->hook);
        engine->is_hooked = true;
    }
    chempi_list_append(&engine->running, &a->link);
}

/* Others wait for what an operation of so many bytes does later. */
static void owe(struct async *a)
{
    const uint64_t len = chempi_node_later_len(a->single);

    if (CHEMPI_UNLIKELY(len > 0))
        chempi_request_owe(&a->req, len);
}

/* As far as it goes at once; begun: its single step, if it has one. */
static CHEMPI_NOINLINE void start_rest(struct async *a,
                                       enum chempi_node_later_begun begun)
{
    bool is_user = a->op && !a->op->is_predefined;

    chempi_request_set_pending(&a->req, 1);
    a->req.error = MPI_SUCCESS;
    a->next = 0;
    if (a->single)
        owe(a);
    join(a, &engines[is_user]);
    if (begun != CHEMPI_NODE_LATER_HAS_BEGUN)
        (void)advance(a);
    chempi_progress_nudge();
}

/* One whose only step is in the node's memory may be over then. */
static int start(struct chempi_request *req)
{
    enum chempi_node_later_begun begun = CHEMPI_NODE_LATER_HAS_NOT_BEGUN;
    struct async *a = of_request(req);
    int rc = MPI_SUCCESS;

    chempi_agent_note_begun();
    if (CHEMPI_UNLIKELY(a->has_more))
        forget_appended(a);
    a->mismatch.rank = -1;
    a->error = a->failed;
    a->single = a->only;
    if (CHEMPI_LIKELY(a->single != NULL))
        begun = chempi_node_later_start(a->single, &rc);
    if (CHEMPI_UNLIKELY(begun != CHEMPI_NODE_LATER_HAS_ENDED)) {
        start_rest(a, begun);
        return MPI_SUCCESS;
    }
    note(a, rc);
    req->error = a->error;
    chempi_request_set_pending(req, 0);
    return MPI_SUCCESS;
}

static void hold_all(struct async *a)
{
    if (a->op && !a->op->is_predefined)
        chempi_object_hold(&a->op->obj);
    chempi_coll_async_hold_types(a, 0, true);
    a->has_held = true;
}

static void release_all(struct async *a)
{
    if (a->op)
        chempi_op_release(a->op);
    chempi_coll_async_hold_types(a, 0, false);
}

/* All but its own memory. */
static void clean_up(struct async *a)
{
    struct chempi_request *req = &a->req;

    if (CHEMPI_LIKELY(a->is_bare)) {
        chempi_node_later_hold_types(a->single, false);
    } else {
        if (a->has_held && req->is_persistent)
            chempi_coll_async_hold_buffers(a, false);
        if (a->has_held && req->is_persistent && a->only)
            chempi_node_later_release(a->only);
        if (a->has_held)
            release_all(a);
        chempi_coll_sched_fini(&a->sched);
        if (CHEMPI_UNLIKELY(a->children != a->few))
            free(a->children);
    }
    req->obj.magic = 0;
    chempi_request_leave(req);
}

static void destroy(struct chempi_request *req)
{
    struct async *a = of_request(req);

    clean_up(a);
    chempi_coll_async_give(a);
}

static int finish(struct chempi_request *req, MPI_Status *status)
{
    chempi_status_set_empty(status);
    return CHEMPI_LIKELY(!req->error)
               ? MPI_SUCCESS
               : chempi_coll_async_explain(of_request(req), req->error);
}

/* Wait a moment for the next step in the node's memory, and go on with it.
 * False: it is not due. */
static bool tarry_once(struct async *a)
{
    struct chempi_node_later_op *op;
    enum chempi_node_later_state state;
    int rc = MPI_SUCCESS;
    int flags = 0;

    if (CHEMPI_LIKELY(a->single != NULL)) {
        state = chempi_node_later_await(a->single, &rc);
        if (!take_step(a, state, rc, &flags))
            (void)advance(a);
        return state != CHEMPI_NODE_LATER_WAITS;
    }
    op = chempi_coll_async_node_step(a);
    if (!op || is_fenced(a) || !chempi_node_later_tarry(op))
        return false;
    (void)advance(a);
    return true;
}

/* As long as it waits for nothing but a step in the node's memory, and not for
 * longer than others' progress can wait. */
static void tarry(struct async *a)
{
    for (int i = 0; i < CHEMPI_NODE_LATER_STEPS; i++)
        if (chempi_request_is_complete(&a->req) || !tarry_once(a))
            return;
}

struct stay {
    const struct async *a;
    uint32_t moves; /* that it had made */
};

static bool has_moved(void *arg)
{
    const struct stay *stay = arg;

    return stay->a->moves != stay->moves ||
           chempi_request_is_complete(&stay->a->req);
}

/* Step by step, as a blocking call: before each wait in which progress is made
 * for all comes a moment in which it is not. */
static int await(struct chempi_request *req)
{
    struct async *a = of_request(req);
    int rc = MPI_SUCCESS;

    tarry(a);
    while (!rc && !chempi_request_is_complete(req)) {
        struct stay stay = {a, a->moves};

        rc = chempi_progress_wait_locked(has_moved, &stay,
                                         chempi_wait_report_put_request, req);
        tarry(a);
    }
    return rc;
}

#define OPS(name)                                                              \
    {                                                                          \
        .call = (name), .start = start,                                        \
        .cancel = chempi_request_cancel_nothing, .finish = finish,             \
        .destroy = destroy, .awaits = chempi_coll_async_put_awaits,            \
        .await = await                                                         \
    }
#define BOTH(kind, small, large)                                               \
    [kind] = {OPS("MPI_I" small), OPS("MPI_" large "_init")},

/* [is_persistent]: how the calls are named in words */
static const struct chempi_request_ops call_ops[CHEMPI_COLL_KIND_COUNT][2] = {
    CHEMPI_COLL_NAMES(BOTH)};

#define OF_NEIGHBORS(kind, name)                                               \
    [kind] = {OPS("MPI_Ineighbor_" name), OPS("MPI_Neighbor_" name "_init")}

static const struct chempi_request_ops neighbor_ops[CHEMPI_COLL_KIND_COUNT][2] =
    {
        OF_NEIGHBORS(CHEMPI_COLL_ALLGATHER, "allgather"),
        OF_NEIGHBORS(CHEMPI_COLL_ALLGATHERV, "allgatherv"),
        OF_NEIGHBORS(CHEMPI_COLL_ALLTOALL, "alltoall"),
        OF_NEIGHBORS(CHEMPI_COLL_ALLTOALLV, "alltoallv"),
        OF_NEIGHBORS(CHEMPI_COLL_ALLTOALLW, "alltoallw"),
};

/* All but the schedule. */
static void init(struct async *a, const struct chempi_request_ops *ops,
                 struct chempi_comm *comm, struct chempi_op *op)
{
    chempi_request_init(&a->req, &chempi_lane_main, CHEMPI_REQUEST_COLL, ops,
                        NULL, NULL);
    a->req.comm = comm; /* held by the caller */
    chempi_list_init(&a->link);
    a->op = op;
    a->is_busy = false;
    a->is_urgent = false;
    a->has_held = false;
    a->moves = 0;
    a->open = 0;
    a->finished = 0;
    a->error = MPI_SUCCESS;
    a->mismatch.rank = -1;
    a->is_bare = false;
    a->single = NULL;
}

static void init_whole(struct async *a, const struct chempi_request_ops *ops,
                       struct chempi_comm *comm, struct chempi_op *op, int tag)
{
    init(a, ops, comm, op);
    init_schedule(a, comm, tag);
    a->sched.op = op;
}

/* What remains to be done after building. */
static void settle(struct async *a)
{
    struct chempi_coll_sched *s = &a->sched;

    if (!s->error && !chempi_coll_async_make_room(a))
        chempi_coll_sched_fail(s, no_memory());
    a->failed = s->error;
    if (a->failed)
        s->open = s->widest = 0;
    s->error = MPI_SUCCESS; /* of what steps in the node's memory append */
    s->is_locked = true;
    hold_all(a);
    keep_built(a);
}

static void build_call(struct chempi_coll_sched *s, const void *arg)
{
    chempi_coll_build(s, arg);
}

/* What is started once, at once, may use what its members have now. */
static void build_started(struct chempi_coll_sched *s, const void *arg)
{
    if (!chempi_node_later_build(s, arg))
        chempi_coll_build(s, arg);
}

/* What is started more than once, in any order, if all have prepared it. */
static void build_prepared(struct chempi_coll_sched *s, const void *arg)
{
    if (!chempi_node_later_build_prepared(s, arg))
        chempi_coll_build(s, arg);
}

/* A request or nothing: then others may wait for this member. Under the lock,
 * or of an operation that nobody has begun. */
static int make_whole(const struct chempi_request_ops *ops,
                      struct chempi_comm *comm, struct chempi_op *op, int tag,
                      chempi_coll_async_build_fn *build, const void *arg,
                      struct async **out)
{
    struct async *a = chempi_sys->malloc(sizeof(*a));

    if (!a)
        return no_memory();
    init_whole(a, ops, comm, op, tag);
    chempi_object_hold(&comm->obj);
    a->sched.is_silent = true;
    build(&a->sched, arg);
    settle(a);
    *out = a;
    return a->failed;
}

/* Under the lock. rc: of make_whole(). */
static int keep_whole(struct async *a, int rc)
{
    if (!a)
        return rc;
    chempi_request_track(&a->req, &chempi_lane_main);
    if (rc)
        destroy(&a->req);
    return rc;
}

static int prepare(const struct chempi_request_ops *ops,
                   struct chempi_comm *comm, struct chempi_op *op,
                   chempi_coll_async_build_fn *build, const void *arg,
                   MPI_Request *request)
{
    int tag = chempi_coll_next_tag(comm) | CHEMPI_COLL_TAG_PERSISTENT;
    struct async *a = NULL;
    int rc = make_whole(ops, comm, op, tag, build, arg, &a);

    if (!rc) {
        a->req.is_persistent = true;
        a->req.is_active = false;
        chempi_request_set_pending(&a->req, 0);
        a->sched.is_silent = false; /* once it is started */
    }
    chempi_lane_lock(&chempi_lane_main);
    rc = keep_whole(a, rc);
    chempi_node_later_keep(comm, rc ? NULL : a->only);
    if (!rc)
        chempi_coll_async_hold_buffers(a, true);
    chempi_lane_unlock(&chempi_lane_main);
    if (!rc)
        *request = chempi_request_handle(&a->req);
    return rc;
}

/* E5. NULL: it has to do without. The call goes on. */
static struct async *find_room(const struct chempi_request_ops *ops,
                               struct chempi_comm *comm, struct chempi_op *op,
                               int tag)
{
    struct async *a;

    chempi_lane_lock(&chempi_lane_main);
    a = chempi_coll_async_find();
    if (CHEMPI_LIKELY(a != NULL)) {
        chempi_coll_async_take(a);
        init_whole(a, ops, comm, op, tag);
        chempi_request_share(&a->req);
    }
    chempi_lane_pause(&chempi_lane_main);
    return a;
}

/* Not even the spare one: it is done in the call, which waits for the others.
 */
static CHEMPI_COLD int go_without(const struct chempi_request_ops *ops,
                                  struct chempi_comm *comm,
                                  struct chempi_op *op, int tag,
                                  chempi_coll_async_build_fn *build,
                                  const void *arg)
{
    struct async a;
    int rc;

    init_whole(&a, ops, comm, op, tag);
    chempi_object_hold(&comm->obj);
    chempi_coll_sched_fail(&a.sched, no_memory());
    build(&a.sched, arg);
    settle(&a);
    chempi_lane_lock(&chempi_lane_main);
    chempi_request_track(&a.req, &chempi_lane_main);
    (void)start(&a.req);
    rc = chempi_request_await_locked(&a.req);
    chempi_request_untrack(&a.req);
    clean_up(&a);
    chempi_lane_unlock(&chempi_lane_main);
    return rc ? rc : a.req.error;
}

/* A request that runs the schedule that build(s, arg) makes; build is called
 * at once. Started, unless it is persistent, as ops says. */
static int make(const struct chempi_request_ops ops[2],
                struct chempi_comm *comm, struct chempi_op *op,
                chempi_coll_async_build_fn *build, const void *arg,
                bool is_persistent, MPI_Request *request)
{
    struct async *a;
    int tag;

    if (is_persistent)
        return prepare(&ops[1], comm, op, build, arg, request);
    tag = chempi_coll_next_tag(comm);
    a = find_room(&ops[0], comm, op, tag);
    if (CHEMPI_UNLIKELY(!a))
        return go_without(&ops[0], comm, op, tag, build, arg);
    if (CHEMPI_UNLIKELY(chempi_coll_async_is_spare(a)))
        chempi_coll_sched_fail(&a->sched, no_memory());
    build(&a->sched, arg);
    settle(a);
    chempi_lane_lock(&chempi_lane_main);
    (void)start(&a->req);
    chempi_lane_unlock(&chempi_lane_main);
    *request = chempi_request_handle(&a->req);
    return MPI_SUCCESS;
}

int chempi_coll_of_neighbors(const struct chempi_coll_call *c,
                             chempi_coll_async_build_fn *build, const void *arg,
                             bool is_persistent, MPI_Request *request)
{
    return make(neighbor_ops[c->kind], c->comm, NULL, build, arg, is_persistent,
                request);
}

int chempi_coll_launch(const struct chempi_coll_call *c,
                       struct chempi_request **out)
{
    int tag = chempi_coll_next_tag(c->comm);
    struct async *a = NULL;
    int rc = make_whole(&call_ops[c->kind][0], c->comm, c->op, tag, build_call,
                        c, &a);

    rc = keep_whole(a, rc);
    if (!rc) {
        a->is_urgent = true;
        (void)start(&a->req);
    }
    *out = rc ? NULL : &a->req;
    return rc;
}

/* E7: its call has begun it there. */
static CHEMPI_NOINLINE struct chempi_request *
adopt(struct async *a, const struct chempi_coll_call *c, int tag,
      enum chempi_node_later_begun begun)
{
    struct chempi_node_later_op *op = (void *)a->sched.inline_bytes;

    chempi_coll_async_take(a);
    init(a, &call_ops[c->kind][0], c->comm, NULL);
    chempi_request_share(&a->req);
    a->failed = MPI_SUCCESS;
    a->sched.tag = tag;
    a->single = op;
    a->is_bare = true;
    chempi_node_later_hold_types(op, true);
    a->has_held = true;
    join(a, &engines[0]);
    owe(a);
    if (begun == CHEMPI_NODE_LATER_HAS_MOVED)
        (void)advance(a); /* it may need a schedule now */
    chempi_progress_nudge();
    return &a->req;
}

/* All but what is over, and has come to no error. False: the call goes on. */
static CHEMPI_NOINLINE bool go_on(struct async *a,
                                  const struct chempi_coll_call *c,
                                  enum chempi_node_later_begun begun,
                                  MPI_Request *request, int *rc)
{
    struct chempi_request *req;
    int tag;

    if (begun == CHEMPI_NODE_LATER_HAS_NOT_BEGUN) {
        chempi_lane_pause(&chempi_lane_main);
        return false;
    }
    begun = chempi_node_later_stay(a->sched.inline_bytes, c, begun, rc);
    chempi_agent_note_begun();
    tag = chempi_coll_next_tag(c->comm);
    req = begun == CHEMPI_NODE_LATER_HAS_ENDED ? chempi_coll_failed(c, rc)
                                               : adopt(a, c, tag, begun);
    if (CHEMPI_LIKELY(req != NULL))
        *request = chempi_request_handle(req);
    chempi_lane_unlock(&chempi_lane_main);
    return true;
}

/* The same. */
static inline bool begin_at_once(const struct chempi_coll_call *c,
                                 MPI_Request *request, int *rc)
{
    enum chempi_node_later_begun begun = CHEMPI_NODE_LATER_HAS_NOT_BEGUN;
    struct async *a;

    chempi_lane_lock(&chempi_lane_main);
    a = chempi_coll_async_find();
    if (CHEMPI_LIKELY(a != NULL))
        begun = later_try(c, a->sched.inline_bytes, rc);
    if (CHEMPI_UNLIKELY(begun != CHEMPI_NODE_LATER_HAS_ENDED || *rc))
        return go_on(a, c, begun, request, rc);
    chempi_agent_note_begun();
    (void)chempi_coll_next_tag(c->comm);
    *request = chempi_request_handle(chempi_request_over);
    chempi_lane_unlock(&chempi_lane_main);
    return true;
}

/* Does the communicator lack an area that it need not ask for? Then it gets it,
 * or *rc says why not. */
static bool gets_area(struct chempi_comm *comm, int *rc)
{
    return CHEMPI_UNLIKELY(!comm->coll) && chempi_coll_node_is_known(comm) &&
           chempi_coll_node_is_attached(comm, rc);
}

static CHEMPI_NOINLINE int start_schedule(const struct chempi_coll_call *c,
                                          MPI_Request *request)
{
    int rc = MPI_SUCCESS;

    if ((gets_area(c->comm, &rc) && begin_at_once(c, request, &rc)) || rc)
        return rc;
    rc = chempi_node_later_expect(c);
    if (CHEMPI_UNLIKELY(rc))
        return rc;
    return make(call_ops[c->kind], c->comm, c->op, build_started, c, false,
                request);
}

int chempi_coll_start(struct chempi_coll_call *c, MPI_Request *request)
{
    int rc = chempi_coll_check(c);

    if (CHEMPI_UNLIKELY(rc) || CHEMPI_LIKELY(begin_at_once(c, request, &rc)))
        return rc;
    return start_schedule(c, request);
}

int chempi_coll_prepare(struct chempi_coll_call *c, MPI_Request *request)
{
    int rc = chempi_coll_check(c);

    if (rc || !chempi_coll_node_is_attached(c->comm, &rc))
        return rc;
    rc = chempi_node_later_prepare(c);
    if (rc) {
        (void)chempi_coll_next_tag(c->comm); /* others may have made it */
        return rc;
    }
    return make(call_ops[c->kind], c->comm, c->op, build_prepared, c, true,
                request);
}
