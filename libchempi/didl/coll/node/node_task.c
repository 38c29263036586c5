/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations in steps, and blocking calls of them; see node_task.h. */
#include "libchempi/didl/coll/node/node_task.h"

#include "libchempi/didl/coll/sched.h"

/* Bytes that are copied before others' progress is looked after. */
#define BUSY_BYTES (UINT64_C(4) << 20)

void chempi_coll_node_task_meet(struct chempi_node_task *t,
                                chempi_node_step_fn *next)
{
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

/* ---- blocking calls ---- */

static bool is_due(void *arg)
{
    return chempi_coll_node_task_is_due(arg);
}

static int wait_for_step(struct chempi_node_task *t)
{
    struct chempi_coll_state *st = t->cell.st;

    if (is_due(t))
        return MPI_SUCCESS;
    if (t->word && t->whom == TASK_AWAITS_ALL && st->size > 2)
        return chempi_coll_shm_slot_wait_for_all(st, t->word, t->value);
    if (t->whom == TASK_AWAITS_SOME)
        return chempi_coll_shm_slot_await(st, is_due, t);
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
