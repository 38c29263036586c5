/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks: what a member does in a scan, or in another operation of the node's
 * memory whose data does not fit slots, in steps. A step does what can be done
 * without waiting, and says what the next one waits for. A blocking call waits
 * for that on its own thread; for a non-blocking one whoever makes progress
 * looks for it (node_later.h).
 *
 *   -   a member has one task at a time under way on a communicator, so boards,
 *       pipe and rings (node.h) belong to that: all members start the same ones
 *       in the same order, and begin each after they have ended the one before.
 *       (Those of gathers and scatters use none of these, and some members may
 *       have none: node_blocks.c)
 *   K2  thus a blocking task waits first for those that were started before
 *       it; its caller's thread makes progress meanwhile
 *   -   steps of a non-blocking task have the lane lock, those of a blocking
 *       one have not. Neither makes progress; who runs them does, at times
 *   K4  messages that a step appends are sent and received before the next one.
 *       A non-blocking task has no schedule for them until a step asks for one
 *   K5  after the loss of a member no step comes any more: others may still
 *       read what the next one would write
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_NODE_TASK_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_NODE_TASK_H

#include "libchempi/didl/coll/node/cores/placement.h"
#include "libchempi/didl/coll/node/later/node_later.h"
#include "libchempi/didl/coll/node/shm_slot.h"

struct chempi_node_task;

typedef void chempi_node_step_fn(struct chempi_node_task *t);

/* Whom a wait is for, but for a member. */
enum { TASK_AWAITS_ALL = -1, TASK_AWAITS_SOME = -2 };

struct chempi_node_task {
    struct cell cell;
    const struct chempi_coll_call *c;
    struct chempi_coll_sched *messages; /* K4; NULL: none yet */
    chempi_node_step_fn *next;          /* NULL: it is over */
    const _Atomic uint32_t *word;       /* has this value: the next step is due;
                                           NULL: is_due() says so */
    uint32_t value;
    int whom;
    bool (*is_due)(struct chempi_node_task *t);
    chempi_yield_policy_misses_fn
        *misses;         /* of TASK_AWAITS_SOME: is this member, not
                    the own, one of them? For words */
    uint64_t copied;     /* bytes, since progress was made */
    int rc;              /* MPI error class so far */
    bool lacks_messages; /* K4: the next step needs a schedule */
    bool holds_messages; /* K4: not yet; of a blocking call only */
    bool is_void; /* at the end: all do the operation again by messages */
};

/* An operation: bytes of the struct that begins with its task, and how many of
 * them, but for cell, c and messages, are zero; its first step. */
struct chempi_node_steps {
    size_t size;
    size_t cleared;
    chempi_node_step_fn *first;
};

#define CHEMPI_NODE_STEPS(type, first_step)                                    \
    {                                                                          \
        .size = sizeof(type) *                                                 \
                sizeof(char[sizeof(type) <= CHEMPI_NODE_TASK_MAX ? 1 : -1]),   \
        .cleared = sizeof(type), .first = (first_step)                         \
    }

extern const struct chempi_node_steps chempi_node_steps_allgather;
extern const struct chempi_node_steps chempi_node_steps_alltoall; /* and _v */
extern const struct chempi_node_steps chempi_node_steps_bcast;
extern const struct chempi_node_steps chempi_node_steps_chain;
extern const struct chempi_node_steps chempi_node_steps_first; /* L8 */
extern const struct chempi_node_steps chempi_node_steps_fold;
extern const struct chempi_node_steps chempi_node_steps_pair;
extern const struct chempi_node_steps chempi_node_steps_gather;  /* and _v */
extern const struct chempi_node_steps chempi_node_steps_scatter; /* and _v */

/* A broadcast through the pipe (node_pipe.c). */
struct chempi_node_piping {
    struct chempi_node_task task; /* first */
    uint64_t len;    /* bytes, those of the root's type or, for others, what it
                        has said */
    uint64_t at;     /* of them that are done */
    uint64_t number; /* of the next piece, of all ever */
    bool is_long;
    bool is_far;                    /* it sends to far cores */
    struct chempi_coll_call astray; /* the call, if another one is the root than
                                       this member has named */
};

/* The next operation of the communicator along SPSC rings, if nothing else is
 * under way here and there are some: it uses no cell. Has it ended, *rc is what
 * it came to; has it begun, t is its task, which has no number yet. */
enum chempi_node_later_begun
chempi_coll_node_chain_at_once(struct chempi_node_task *t,
                               struct chempi_coll_state *st,
                               const struct chempi_coll_call *c, int *rc);

/* Its first steps; task and len are set. */
chempi_node_step_fn chempi_coll_pipe_send;
chempi_node_step_fn chempi_coll_pipe_recv;

/* ---- in a step ---- */

static inline void task_note(struct chempi_node_task *t, int rc)
{
    t->rc = cell_first_error(t->rc, rc);
}

/* Go on with the next step when the word has the value, which whoever stores it
 * rouses this process for. */
static inline void task_await(struct chempi_node_task *t, int whom,
                              const _Atomic uint32_t *word, uint32_t value,
                              chempi_node_step_fn *next)
{
    t->whom = whom;
    t->word = word;
    t->value = value;
    t->next = next;
}

/* .. when all have come here: the first time in the operation, and later. */
void chempi_coll_node_task_meet(struct chempi_node_task *t,
                                chempi_node_step_fn *next);
void chempi_coll_node_task_meet_again(struct chempi_node_task *t,
                                      chempi_node_step_fn *next);

/* .. without waiting: the step was long enough. */
static inline void task_go_on(struct chempi_node_task *t,
                              chempi_node_step_fn *next)
{
    t->word = NULL;
    t->is_due = NULL;
    t->next = next;
}

/* Before a step copies so many bytes, all in all, which is to last longer than
 * to move (placement.h). Not where a member copies what the one before it has
 * just copied: those had better share a core. */
static inline void task_spread(struct chempi_node_task *t, uint64_t bytes)
{
    if (bytes >= CHEMPI_NODE_SPREAD_LEAST)
        chempi_placement_even_out(&t->cell.st->yield_policy);
}

/* Before a step appends messages; true: it comes again as `again` when there is
 * a schedule for them. */
static inline bool task_lacks_messages(struct chempi_node_task *t,
                                       chempi_node_step_fn *again)
{
    t->lacks_messages = !t->messages;
    if (t->lacks_messages)
        task_go_on(t, again);
    return t->lacks_messages;
}

static inline void task_end(struct chempi_node_task *t)
{
    t->next = NULL;
}

/* ---- who runs it ---- */

static inline bool chempi_coll_node_task_is_due(struct chempi_node_task *t)
{
    if (t->word)
        return atomic_load_explicit(t->word, memory_order_acquire) == t->value;
    return !t->is_due || t->is_due(t);
}

/* Does it wait for what this member does? For words. */
bool chempi_coll_node_task_misses(const struct chempi_node_task *t, int member);

/* A blocking call: to its end, from the first step on. cell, c are set. False:
 * all go by messages; else *rc is what it came to. */
bool chempi_coll_node_task_run(struct chempi_node_task *t,
                               chempi_node_step_fn *first, int tag, int *rc);

/* K2; MPI error class. */
int chempi_coll_node_task_turn(const struct chempi_coll_state *st);

#endif
