/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that survive the end of a rank (doc/survivors.md), and those that have
 * met others (doc/dynamic.md): what waits for the lost process ends with
 * MPI_ERR_PROC_ABORTED. In other jobs nothing of this happens. Under the lane
 * lock, unless it says another thing.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_LOSS_H
#define CHEMPI_LIBCHEMPI_DIDL_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/containers/list.h"
#include "libchempi/didl/transport/conn.h"

struct chempi_comm;
struct chempi_group;
struct chempi_held;
struct chempi_request;

/* Can a member be missing, or one of the communicator that this one serves,
 * while others go on? Where the job does not survive its own, only others can.
 * From any thread. */
bool chempi_loss_may_be_in(const struct chempi_comm *comm);

/* A missing process that messages of the communicator go to, none of another
 * world that has finished, or one that is absent: its rank there, or -1. From
 * any thread; a rank that is told a moment late is harmless. */
int32_t chempi_loss_rank(const struct chempi_comm *comm);
static inline bool chempi_loss_is_in(const struct chempi_comm *comm)
{
    return CHEMPI_UNLIKELY(chempi_conn_missing_count()) &&
           chempi_loss_rank(comm) >= 0;
}

/* A process is missing from now on, or messages come for a communicator that
 * others have and this process has not: some may be for nobody. */
void chempi_loss_note_miss(struct chempi_lane *lane);

/* A member that is there, but has no part in the communicator, which others
 * have: they do with it as with one that is missing, here only. `absent` of the
 * communicator is not NULL. What it has sent in it has come. */
void chempi_loss_note_absent(struct chempi_comm *comm, uint32_t rank);
/* From any thread. */
bool chempi_loss_is_absent(const struct chempi_comm *comm, uint32_t rank);
/* Is the rank either of the two? From any thread. */
bool chempi_loss_is_away(const struct chempi_comm *comm, uint32_t rank);

/* Has one of these finished? It has sent all that it had to. From any thread.
 */
bool chempi_loss_has_finished(const struct chempi_comm *comm);

/* An operation of all members misses one: does each of the others find that out
 * by itself? Of one that has finished only those know that wait for it, and the
 * others wait for them. */
bool chempi_loss_is_for_all(const struct chempi_comm *comm);

/* An operation of all members has ended with this class, since what another one
 * has sent is not what this one expects. In a job that survives, and among
 * several worlds, a member that has heard of a loss goes on with empty messages
 * (hier_ops.h, K2), or with its next operation, and the news are on their way
 * to those who have not: MPI_ERR_PROC_ABORTED when they are here, within five
 * seconds. Without a lock.
 */
int chempi_loss_await_news(const struct chempi_comm *comm, int rc);

/* Processes that agree on something among themselves in this context, under
 * this tag: if one is missing, the others may have left. Listed while they do.
 */
struct chempi_loss_circle {
    struct chempi_list link;
    const struct chempi_group *group;
    uint32_t context;
    int32_t tag;
};
void chempi_loss_watch(struct chempi_loss_circle *circle);

/* A receive or probe (context, source and tag as given) for which nothing may
 * come any more: its source is missing, or each process that may be, or it is
 * part of a collective operation or of what a circle does among itself, and a
 * member is. */
bool chempi_loss_judge(const struct chempi_comm *comm, uint32_t context,
                       int32_t source, int32_t tag);
static inline bool chempi_loss_is_vain(const struct chempi_comm *comm,
                                       uint32_t context, int32_t source,
                                       int32_t tag)
{
    return CHEMPI_UNLIKELY(chempi_conn_missing_count()) &&
           chempi_loss_judge(comm, context, source, tag);
}

/* A call in this communicator has ended with this class: if that is
 * MPI_ERR_PROC_ABORTED, and there are no words, note those of the loss that has
 * ended it, as far as it is known: of the rank that it waits for, or
 * sends to, or else (also with rank -1) of the first member that is lost, or
 * else of the first one that has finished. From any thread. */
void chempi_loss_explain(const struct chempi_comm *comm, int32_t rank,
                         int code);

/* The peer is missing since just now: end the receives that wait for it (those
 * of any source that it might have met, too) and the synchronous sends that it
 * has not matched. What devices have under way they end themselves. */
void chempi_loss_end(struct chempi_peer *peer);
/* End the posted receives of a lane for which nothing may come any more. */
void chempi_loss_end_vain(struct chempi_lane *lane);
/* A held message that nobody will receive, though its sender waits for that: of
 * a collective operation of a communicator that misses a member, or of a
 * communicator that did and is gone; or NULL. The caller drops it. */
struct chempi_held *chempi_loss_take_vain(struct chempi_lane *lane);
/* Was any context given to a communicator, or buried, since it was asked last
 * for this lane? */
bool chempi_loss_has_changes(struct chempi_lane *lane);
/* A communicator has its context now, perhaps one that misses a member; from
 * any thread. */
void chempi_loss_note_change(void);
/* Does the communicator of this context (a multiple of CHEMPI_CONTEXT_STEP)
 * miss a member? Set at the start. */
typedef bool chempi_loss_context_fn(uint32_t context);
void chempi_loss_on_context(chempi_loss_context_fn *is_bereft);
/* It did, and is gone, or was not made by all; from any thread. Without memory
 * its messages wait for ever. */
void chempi_loss_bury(uint32_t context);
void chempi_loss_forget(void); /* all that were buried: at the start */
/* Called after each one, with or without the lane lock. Set at the start. */
void chempi_loss_on_burial(void (*is_buried)(void));
/* Was a communicator of this context buried here? Then none has it now. From
 * any thread. */
bool chempi_loss_is_buried(uint32_t context);
/* A posted receive (queued) ends. */
void chempi_loss_end_receive(struct chempi_request *req);

#endif
