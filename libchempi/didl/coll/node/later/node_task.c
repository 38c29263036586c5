/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations in steps, and blocking calls of them; see node_task.h. */
#include "libchempi/didl/coll/node/later/node_task.h"

#include "libchempi/didl/coll/sched.h"

/* Bytes that are copied before others' progress is looked after. */
#define BUSY_BYTES (UINT64_C(4) << 20)

void chempi_coll_node_task_meet(struct chempi_node_task *t,
                                chempi_node_step_fn *next)
{
    if (t->cell.is_later)
        atomic_store_explicit(&cell_mine(&t->cell)->place.met, 0,
                              memory_order_relaxed);
    chempi_coll_shm_slot_come(&t->cell);
    task_await(t, TASK_AWAITS_ALL, chempi_coll_shm_slot_meeting(&t->cell),
               t->cell.seq, next);
}

void chempi_coll_node_task_meet_again(struct chempi_node_task *t,
                                      chempi_node_step_fn *next)
{
    chempi_coll_shm_slot_come_again(&t->cell);
    task_await(t, TASK_AWAITS_ALL, &cell_count(&t->cell)->met,
               *cell_expected(&t->cell), next);
}

/* Has member m not come to the meeting to which this one has? */
static bool is_absent(const struct cell *cell, int m)
{
    const _Atomic uint32_t *met = &cell_line(cell, m)->place.met;
    const _Atomic uint32_t *own = &cell_mine(cell)->place.met;

    if (!cell->is_later)
        return chempi_yield_policy_is_missed(&cell->st->yield_policy, m);
    return !cell_is_there(cell, m) ||
           atomic_load_explicit(met, memory_order_relaxed) <
               atomic_load_explicit(own, memory_order_relaxed);
}

bool chempi_coll_node_task_misses(const struct chempi_node_task *t, int member)
{
    if (member == t->cell.st->rank || !t->next || (!t->word && !t->is_due))
        return false;
    if (t->whom == TASK_AWAITS_ALL)
        return is_absent(&t->cell, member);
    return t->whom == TASK_AWAITS_SOME ? t->misses(t, member)
                                       : t->whom == member;
}

/* ---- blocking calls ---- */

static bool is_due(void *arg)
{
    return chempi_coll_node_task_is_due(arg);
}

static bool misses(const void *arg, int member)
{
    return chempi_coll_node_task_misses(arg, member);
}

static int wait_for_step(struct chempi_node_task *t)
{
    struct chempi_coll_state *st = t->cell.st;

    if (is_due(t))
        return MPI_SUCCESS;
    if (t->word && t->whom == TASK_AWAITS_ALL && st->size > 2)
        return chempi_coll_shm_slot_wait_for_all(st, t->word, t->value);
    if (t->whom == TASK_AWAITS_SOME)
        return chempi_coll_shm_slot_await_some(st, misses, is_due, t);
    return chempi_coll_shm_slot_await_member(
        st, t->whom == TASK_AWAITS_ALL ? 1 - st->rank : t->whom, is_due, t);
}

static bool has_turn(void *arg)
{
    const struct chempi_coll_state *st = arg;

    return chempi_coll_node_has_turn(st);
}

int chempi_coll_node_task_turn(const struct chempi_coll_state *st)
{
    if (CHEMPI_LIKELY(chempi_coll_node_has_turn(st)))
        return MPI_SUCCESS;
    return chempi_coll_shm_slot_await(st, has_turn, (void *)(uintptr_t)st);
}

static void send_messages(struct chempi_node_task *t)
{
    struct chempi_coll_sched *s = t->messages;
    int tag = s->tag;

    task_note(t, chempi_coll_run(s));
    chempi_coll_sched_fini(s);
    chempi_coll_sched_init(s, t->c->comm, tag);
}

bool chempi_coll_node_task_run(struct chempi_node_task *t,
                               chempi_node_step_fn *first, int tag, int *rc)
{
    struct chempi_coll_sched messages;

    chempi_coll_sched_init(&messages, t->c->comm, tag);
    t->messages = &messages;
    t->rc = chempi_coll_node_task_turn(t->cell.st);
    for (t->next = t->rc ? NULL : first; t->next;) {
        t->next(t);
        if (CHEMPI_UNLIKELY(messages.count > 0 || messages.error) &&
            !t->holds_messages)
            send_messages(t);
        if (t->copied >= BUSY_BYTES) {
            t->copied = 0;
            (void)chempi_progress_poll();
        }
        if (t->next)
            task_note(t, wait_for_step(t));
        if (CHEMPI_UNLIKELY(t->rc == MPI_ERR_PROC_ABORTED))
            break; /* K5 */
    }
    chempi_coll_sched_fini(&messages);
    *rc = t->rc;
    return !t->is_void;
}
