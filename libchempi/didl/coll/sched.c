/* SPDX-License-Identifier: BSD-3-Clause */
/* Building schedules and running them on the caller's thread. */
#include "libchempi/didl/coll/sched.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/coll/hier/hier_ops.h"
#include "libchempi/didl/comm/message.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/loss.h"

struct chempi_coll_block {
    struct chempi_coll_block *next;
    size_t len;                        /* bytes of data */
    _Alignas(16) unsigned char data[]; /* as malloc() aligns */
};

/* ---- temporary memory ---- */

enum {
    KEPT_LEAST = 32 << 10, /* bytes of a block */
    KEPT_MOST = 1 << 20,
    KEPT_BLOCKS = 2 /* as many as most algorithms use */
};

/*
 * Blocks that schedules leave to later ones, of any thread: who has exchanged
 * one for NULL owns it. An allocator gives memory of these lengths back to the
 * system in each call, and gets it anew in the next one (256 KiB reduced to one
 * of two members took 22 us on one node and 49 over tcp, and take 16 and 34).
 */
static struct chempi_coll_block *_Atomic kept_blocks[KEPT_BLOCKS];

/* NULL: there is none. Those that are too short give way to one that is not. */
static struct chempi_coll_block *take_kept(size_t len)
{
    struct chempi_coll_block *block = NULL;

    for (int i = 0; i < KEPT_BLOCKS && !block; i++) {
        block = atomic_exchange(&kept_blocks[i], NULL);
        if (block && block->len < len) {
            free(block);
            block = NULL;
        }
    }
    return block;
}

static struct chempi_coll_block *new_block(size_t len)
{
    struct chempi_coll_block *block = NULL;

    if (len >= KEPT_LEAST && len <= KEPT_MOST)
        block = take_kept(len);
    if (block)
        return block;
    block = chempi_sys->malloc(sizeof(*block) + len);
    if (block)
        block->len = len;
    return block;
}

static void give_block(struct chempi_coll_block *block)
{
    struct chempi_coll_block *none;

    for (int i = 0;
         block->len >= KEPT_LEAST && block->len <= KEPT_MOST && i < KEPT_BLOCKS;
         i++) {
        none = NULL;
        if (atomic_compare_exchange_strong(&kept_blocks[i], &none, block))
            return;
    }
    free(block);
}

static void give_blocks(struct chempi_coll_block *block)
{
    while (block) {
        struct chempi_coll_block *next = block->next;

        give_block(block);
        block = next;
    }
}

void chempi_coll_sched_forget(void)
{
    for (int i = 0; i < KEPT_BLOCKS; i++)
        free(atomic_exchange(&kept_blocks[i], NULL));
}

/* ---- beginning and end ---- */

void chempi_coll_sched_init(struct chempi_coll_sched *s,
                            struct chempi_comm *comm, int tag)
{
    s->comm = comm;
    s->op = NULL;
    s->map = NULL;
    s->map_arg = NULL;
    s->rank = comm->rank;
    s->size = (int)comm->size;
    s->tag = tag;
    s->error = MPI_SUCCESS;
    s->failed = MPI_SUCCESS;
    s->is_silent = false;
    s->is_locked = false;
    s->done = 0;
    s->open = 0;
    s->widest = 0;
    s->count = 0;
    s->room = CHEMPI_COLL_INLINE_STEPS;
    s->inline_used = 0;
    s->steps = s->inline_steps;
    s->blocks = NULL;
    s->spare = NULL;
}

void chempi_coll_sched_fini(struct chempi_coll_sched *s)
{
    give_blocks(s->blocks);
    give_blocks(s->spare);
    s->blocks = NULL;
    s->spare = NULL;
    if (s->steps != s->inline_steps)
        free(s->steps);
    s->steps = s->inline_steps;
    s->count = 0;
}

/* ---- without data (S4) ---- */

static bool is_message(const struct chempi_coll_step *step)
{
    return step->kind <= CHEMPI_COLL_RECV;
}

static void go_empty(const struct chempi_coll_sched *s,
                     enum chempi_coll_step_kind kind, int peer)
{
    if (!s->is_silent)
        chempi_message_pass(kind == CHEMPI_COLL_SEND, peer, s->tag, s->comm,
                            CHEMPI_CONTEXT_COLL, s->is_locked);
}

void chempi_coll_sched_fail(struct chempi_coll_sched *s, int rc)
{
    if (s->error)
        return;
    s->error = rc;
    if (s->is_silent)
        return;
    for (uint32_t i = s->done; i < s->count; i++)
        if (is_message(&s->steps[i]))
            go_empty(s, s->steps[i].kind, s->steps[i].peer);
    s->count = s->done;
}

static CHEMPI_COLD void fail(struct chempi_coll_sched *s, const char *what)
{
    chempi_coll_sched_fail(
        s, chempi_error_set(MPI_ERR_NO_MEM,
                            "no memory for the %s of a collective operation",
                            what));
}

/* ---- building ---- */

static bool grow(struct chempi_coll_sched *s)
{
    uint32_t room = s->room * 2;
    struct chempi_coll_step *steps;

    if (s->steps == s->inline_steps)
        steps = chempi_sys->malloc(room * sizeof(*steps));
    else
        steps = chempi_sys->realloc(s->steps, room * sizeof(*steps));
    if (!steps) {
        fail(s, "steps");
        return false;
    }
    if (s->steps == s->inline_steps)
        memcpy(steps, s->inline_steps, sizeof(s->inline_steps));
    s->steps = steps;
    s->room = room;
    return true;
}

static struct chempi_coll_step *push(struct chempi_coll_sched *s,
                                     enum chempi_coll_step_kind kind)
{
    struct chempi_coll_step *step = &s->steps[s->count++];

    step->kind = (uint8_t)kind;
    step->has_fence = false;
    step->spared = 0;
    return step;
}

static struct chempi_coll_step *append(struct chempi_coll_sched *s,
                                       enum chempi_coll_step_kind kind)
{
    if (CHEMPI_UNLIKELY(s->error) || (s->count == s->room && !grow(s)))
        return NULL;
    return push(s, kind);
}

static void append_message(struct chempi_coll_sched *s,
                           enum chempi_coll_step_kind kind, const void *buf,
                           MPI_Count count, struct chempi_datatype *type,
                           int peer)
{
    struct chempi_coll_step *step = append(s, kind);
    int32_t rank = s->map ? s->map(s->map_arg, peer) : peer;

    if (CHEMPI_UNLIKELY(!step)) {
        go_empty(s, kind, rank);
        return;
    }
    step->peer = rank;
    step->src = buf;
    step->dst = (void *)(uintptr_t)buf; /* which of both: by kind */
    step->count = count;
    step->type = type;
    step->dst_type = NULL;
    if (++s->open > s->widest)
        s->widest = s->open;
}

void chempi_coll_send(struct chempi_coll_sched *s, const void *buf,
                      MPI_Count count, struct chempi_datatype *type, int peer)
{
    append_message(s, CHEMPI_COLL_SEND, buf, count, type, peer);
}

void chempi_coll_recv(struct chempi_coll_sched *s, void *buf, MPI_Count count,
                      struct chempi_datatype *type, int peer)
{
    append_message(s, CHEMPI_COLL_RECV, buf, count, type, peer);
}

void chempi_coll_copy(struct chempi_coll_sched *s, const void *src,
                      MPI_Count scount, struct chempi_datatype *stype,
                      void *dst, MPI_Count dcount,
                      struct chempi_datatype *dtype)
{
    struct chempi_coll_step *step;

    if (scount == 0 || stype->size == 0)
        return;
    step = append(s, CHEMPI_COLL_COPY);
    if (!step)
        return;
    step->src = src;
    step->count = scount;
    step->type = stype;
    step->dst = dst;
    step->dst_count = dcount;
    step->dst_type = dtype;
}

void chempi_coll_combine(struct chempi_coll_sched *s, const void *src,
                         void *dst, MPI_Count count,
                         struct chempi_datatype *type)
{
    struct chempi_coll_step *step;

    if (count == 0)
        return;
    step = append(s, CHEMPI_COLL_COMBINE);
    if (!step)
        return;
    step->src = src;
    step->dst = dst;
    step->count = count;
    step->type = type;
    step->dst_type = NULL;
}

void chempi_coll_append_node(struct chempi_coll_sched *s, void *op)
{
    struct chempi_coll_step *step = append(s, CHEMPI_COLL_NODE);

    if (CHEMPI_UNLIKELY(!step && (s->is_silent || s->is_locked)))
        return;
    if (CHEMPI_UNLIKELY(!step)) /* the only step, with data: it needs no memory
                                   but its op */
        step = push(s, CHEMPI_COLL_NODE);
    step->dst = op;
}

void chempi_coll_fence_but(struct chempi_coll_sched *s, int spared)
{
    struct chempi_coll_step *step;

    if (s->error || s->count == 0)
        return;
    step = &s->steps[s->count - 1];
    step->has_fence = true;
    if (s->open > spared)
        s->open = spared;
    step->spared = (uint8_t)s->open;
}

void chempi_coll_fence(struct chempi_coll_sched *s)
{
    chempi_coll_fence_but(s, 0);
}

void chempi_coll_throttle(struct chempi_coll_sched *s)
{
    if (s->open >= CHEMPI_COLL_WINDOW)
        chempi_coll_fence(s);
}

/* One that may be used again, or a new one, or NULL. */
static struct chempi_coll_block *get_block(struct chempi_coll_sched *s,
                                           size_t len)
{
    struct chempi_coll_block **at = &s->spare;
    struct chempi_coll_block *block;

    while (*at && (*at)->len < len)
        at = &(*at)->next;
    block = *at;
    if (!block)
        return new_block(len);
    *at = block->next;
    return block;
}

void *chempi_coll_bytes(struct chempi_coll_sched *s, MPI_Count len)
{
    struct chempi_coll_block *block;
    size_t need = ((size_t)len + 15u) & ~(size_t)15u;

    if (need <= CHEMPI_COLL_INLINE_BYTES - s->inline_used) {
        unsigned char *p = s->inline_bytes + s->inline_used;

        s->inline_used += (uint32_t)need;
        return p;
    }
    if (CHEMPI_UNLIKELY(s->error))
        return s->inline_bytes;
    block = get_block(s, need);
    if (!block) {
        fail(s, "temporary data");
        return s->inline_bytes;
    }
    block->next = s->blocks;
    s->blocks = block;
    return block->data;
}

void chempi_coll_reuse(struct chempi_coll_sched *s,
                       const struct chempi_coll_block *kept)
{
    while (s->blocks && s->blocks != kept) {
        struct chempi_coll_block *block = s->blocks;

        s->blocks = block->next;
        block->next = s->spare;
        s->spare = block;
    }
}

void *chempi_coll_temp(struct chempi_coll_sched *s, MPI_Count count,
                       struct chempi_datatype *type)
{
    MPI_Count walk = count > 0 ? (count - 1) * type->extent : 0;
    MPI_Count span = (walk < 0 ? -walk : walk) + type->true_extent;
    MPI_Count first = type->true_lb + (walk < 0 ? walk : 0);

    return chempi_coll_plus(chempi_coll_bytes(s, span), -first);
}

bool chempi_coll_is_on_one_node(const struct chempi_coll_sched *s)
{
    for (int i = 0; i < s->size; i++) {
        uint32_t rank = (uint32_t)(s->map ? s->map(s->map_arg, i) : i);

        if (!chempi_ctx_is_here(chempi_comm_proc(s->comm, rank)))
            return false;
    }
    return true;
}

/* ---- running ---- */

struct run {
    struct chempi_coll_sched *s;
    struct chempi_request **reqs;
    int open;
    int error;
};

/* A member is missing, and each of the others finds out by itself: nobody goes
 * on. */
static bool is_hopeless(const struct run *run)
{
    return CHEMPI_UNLIKELY(run->error == MPI_ERR_PROC_ABORTED) &&
           chempi_loss_is_for_all(run->s->comm);
}

static void note(struct run *run, int rc)
{
    if (CHEMPI_UNLIKELY(rc) && (!run->error || rc == MPI_ERR_PROC_ABORTED))
        run->error = rc;
}

/* After an error nobody goes on with what is spared. */
static void wait_open(struct run *run, int spared)
{
    const int n = run->open - (run->error ? 0 : spared);

    if (n <= 0)
        return;
    note(run, chempi_message_wait_all(run->reqs, n));
    run->open -= n;
    if (CHEMPI_UNLIKELY(run->open > 0))
        memmove(run->reqs, run->reqs + n,
                (size_t)run->open * sizeof(run->reqs[0]));
}

static void do_local(struct run *run, const struct chempi_coll_step *step)
{
    if (step->kind == CHEMPI_COLL_COPY)
        note(run,
             chempi_datatype_copy(step->src, step->count, step->type, step->dst,
                                  step->dst_count, step->dst_type));
    else
        chempi_op_apply(run->s->op, step->src, step->dst, step->count,
                        step->type);
}

/* After an error empty messages are sent: nobody waits for ever, and those who
 * expected data learn that something is wrong. */
static MPI_Count send_count(const struct run *run,
                            const struct chempi_coll_step *step)
{
    return CHEMPI_LIKELY(!run->error) ? step->count : 0;
}

static int start(const struct run *run, const struct chempi_coll_step *step,
                 struct chempi_request **out)
{
    const struct chempi_coll_sched *s = run->s;

    if (step->kind == CHEMPI_COLL_SEND)
        return chempi_message_isend_on(step->src, send_count(run, step),
                                       step->type, step->peer, s->tag, s->comm,
                                       CHEMPI_CONTEXT_COLL, out);
    return chempi_message_irecv_on(step->dst, step->count, step->type,
                                   step->peer, s->tag, s->comm,
                                   CHEMPI_CONTEXT_COLL, out);
}

/* One message between two fences: without a request. */
static int do_alone(const struct run *run, const struct chempi_coll_step *step)
{
    const struct chempi_coll_sched *s = run->s;

    if (step->kind == CHEMPI_COLL_SEND)
        return chempi_message_send_on(step->src, send_count(run, step),
                                      step->type, step->peer, s->tag, s->comm,
                                      CHEMPI_CONTEXT_COLL);
    return chempi_message_recv_on(step->dst, step->count, step->type,
                                  step->peer, s->tag, s->comm,
                                  CHEMPI_CONTEXT_COLL, MPI_STATUS_IGNORE);
}

static int do_pair(const struct run *run, const struct chempi_coll_step *a,
                   const struct chempi_coll_step *b)
{
    const struct chempi_coll_sched *s = run->s;
    const struct chempi_coll_step *send = a->kind == CHEMPI_COLL_SEND ? a : b;
    const struct chempi_coll_step *recv = send == a ? b : a;

    return chempi_message_sendrecv_on(
        send->src, send_count(run, send), send->type, send->peer, s->tag,
        recv->dst, recv->count, recv->type, recv->peer, s->tag, s->comm,
        CHEMPI_CONTEXT_COLL, MPI_STATUS_IGNORE);
}

/* Nothing is begun before all messages are finished. */
static bool is_closed(const struct chempi_coll_sched *s, uint32_t i)
{
    return i + 1 == s->count ||
           (s->steps[i].has_fence && s->steps[i].spared == 0);
}

/* Begin the step at i; returns the number of steps taken care of. */
static uint32_t do_message(struct run *run, uint32_t i)
{
    const struct chempi_coll_sched *s = run->s;
    const struct chempi_coll_step *step = &s->steps[i];
    const struct chempi_coll_step *next = step + 1;
    int rc;

    if (run->open == 0 && is_closed(s, i)) {
        note(run, do_alone(run, step));
        return 1;
    }
    if (run->open == 0 && !step->has_fence && is_message(next) &&
        next->kind != step->kind && is_closed(s, i + 1)) {
        note(run, do_pair(run, step, next));
        return 2;
    }
    rc = start(run, step, &run->reqs[run->open]);
    if (CHEMPI_LIKELY(!rc)) {
        run->open++;
        return 1;
    }
    note(run, rc);
    if (rc == MPI_ERR_NO_MEM) /* of a request; those under way need none */
        note(run, do_alone(run, step));
    return 1;
}

int chempi_coll_run(struct chempi_coll_sched *s)
{
    struct chempi_request *few[CHEMPI_COLL_WINDOW];
    struct run run = {.s = s, .reqs = few, .error = s->failed};

    if (s->error)
        return s->error;
    if (s->widest > CHEMPI_COLL_WINDOW) {
        run.reqs = chempi_sys->malloc((size_t)s->widest * sizeof(few[0]));
        if (!run.reqs) {
            fail(s, "requests");
            return s->error;
        }
    }
    for (uint32_t i = 0; i < s->count && !is_hopeless(&run);) {
        uint32_t done = 1;

        if (is_message(&s->steps[i]))
            done = do_message(&run, i);
        else
            do_local(&run, &s->steps[i]);
        i += done;
        if (s->steps[i - 1].has_fence)
            wait_open(&run, s->steps[i - 1].spared);
    }
    wait_open(&run, 0);
    if (run.reqs != few)
        free(run.reqs);
    return run.error;
}
