/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-blocking collectives in a node's shared memory: those whose blocks fit
 * slots, and tasks (node_task.h). They are steps of a schedule (sched.h), which
 * messages may stand beside.
 *
 *   L1  all members start the same of them in the same order, so they number
 *       them alike; and which calls are of them all know alike
 *   L2  a member begins and ends its operations in the order of their numbers.
 *       It begins one when its cell is free, perhaps later than its start
 *   L3  a cell is free when all members have ended the operation that had it
 *       before. Cells come free in GROUPS: at the end of each a member's word
 *       says which number it has ended, and whoever lacks cells says so and is
 *       roused then. (Of more than two members it says so more often, for L7,
 *       for which nobody waits: it wakes nobody, and needs no fence.) A task
 *       that needs only rings waits for no cell
 *   -   all of it happens under the lane lock
 *   L5  a task begins when all operations before it have ended here
 *   L6  with three and more members, a broadcast that a member takes for a
 *       short one, and that is a task of the root's, becomes one of the
 *       member's when the root has said so: all count its pieces
 *   L7  operations of three and more members in which all meet use a few slots
 *       in turn, which stay in the caches (as A11, node.h): a member that knows
 *       that all have ended the one before that had its slot takes it, else its
 *       cell's own, and says in the line which. It looks when its data needs a
 *       slot (shm_slot.c)
 *   L8  while a communicator waits for the news of its area (node.h), operation
 *       1 is a task that brings them. All others have numbers, and begin when
 *       the stage is known: of MESSAGES each becomes such a task, too, which
 *       does nothing but go that way. Later ones are not numbered there
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_NODE_LATER_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_NODE_LATER_H

#include <stdbool.h>

#include "libchempi/didl/coll/sched.h"

struct chempi_node_later_op;
struct chempi_wait_report;

/* In a row, of up to a megabyte, without progress for others. */
enum { CHEMPI_NODE_LATER_STEPS = 8 };

/* A call of a communicator that has no state: if it could go through the node's
 * memory it is to bring the news (L8). MPI error class. */
int chempi_node_later_expect(const struct chempi_coll_call *c);

/* Append what this process does in a call, whose arrays stay until it is over;
 * false: all go another way. */
bool chempi_node_later_build(struct chempi_coll_sched *s,
                             const struct chempi_coll_call *c);

enum chempi_node_later_begun {
    CHEMPI_NODE_LATER_HAS_NOT_BEGUN, /* of a call: nor is it started */
    CHEMPI_NODE_LATER_HAS_BEGUN,     /* room has the operation of a call; it
                                        waits for others */
    CHEMPI_NODE_LATER_HAS_MOVED,     /* the same, but it may go on at once */
    CHEMPI_NODE_LATER_HAS_ENDED      /* *rc is what it came to */
};

/* An empty schedule of that room gets it as its only step. */
void chempi_node_later_build_begun(struct chempi_coll_sched *s,
                                   struct chempi_node_later_op *op);

/* The same as the first of a persistent one, after all members have prepared
 * it, for which they wait for each other; MPI error class. Then it has to be
 * kept (op), or was not made (NULL). */
int chempi_node_later_prepare(const struct chempi_coll_call *c);
bool chempi_node_later_build_prepared(struct chempi_coll_sched *s,
                                      const struct chempi_coll_call *c);
void chempi_node_later_keep(struct chempi_comm *comm,
                            struct chempi_node_later_op *op);

/* It will not be started again. */
void chempi_node_later_release(struct chempi_node_later_op *op);

/* Hold the types of its call, or release them: once for each step that stands
 * for it. */
void chempi_node_later_hold_types(const struct chempi_node_later_op *op,
                                  bool is_held);

/* At each start of the schedule: the operation gets its number. Who has not
 * begun it goes on with chempi_node_later_advance(), too. */
enum chempi_node_later_begun
chempi_node_later_start(struct chempi_node_later_op *op, int *rc);

/* How many bytes of others' this process delays while it computes; 0: few. */
uint64_t chempi_node_later_len(const struct chempi_node_later_op *op);

/* Say whom it waits for, count so far; returns how many then. */
int chempi_node_later_put(const struct chempi_node_later_op *op,
                          struct chempi_wait_report *w, int count);

enum chempi_node_later_state {
    CHEMPI_NODE_LATER_WAITS, /* nothing could be done */
    CHEMPI_NODE_LATER_MOVES, /* something was done */
    CHEMPI_NODE_LATER_NEEDS_SCHEDULE /* it was called without one */,
    CHEMPI_NODE_LATER_IS_OVER /* the schedule goes on */
};

/* Go on by a step. What was appended to the schedule comes next, with the rest
 * of the operation behind it; NULL as long as it needs none. Over: *rc is an
 * MPI error class. */
enum chempi_node_later_state
chempi_node_later_advance(struct chempi_node_later_op *op,
                          struct chempi_coll_sched *s, int *rc);

/* Would that do anything? */
bool chempi_node_later_is_ready(struct chempi_node_later_op *op);

/* Wait for that as a blocking call does, for a moment, if nothing else comes
 * first. While the lane does not lock. */
bool chempi_node_later_tarry(struct chempi_node_later_op *op);

/* The same, and then go on by a step, of one that does without a schedule. */
enum chempi_node_later_state
chempi_node_later_await(struct chempi_node_later_op *op, int *rc);

#endif
