/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that survive the end of a rank (doc/survivors.md): what waits for the
 * lost one ends with MPI_ERR_PROC_ABORTED. In other jobs nothing of this
 * happens. Under the lane lock, but for chempi_loss_is_in().
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_LOSS_H
#define CHEMPI_LIBCHEMPI_DIDL_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include "libchempi/didl/transport/conn.h"

struct chempi_comm;
struct chempi_held;
struct chempi_request;

/* A missing process that messages of the communicator go to: its rank there,
 * or -1. From any thread; a rank that is told a moment late is harmless. */
int32_t chempi_loss_rank(const struct chempi_comm *comm);
static inline bool chempi_loss_is_in(const struct chempi_comm *comm)
{
    return CHEMPI_UNLIKELY(chempi_conn_missing_count()) &&
           chempi_loss_rank(comm) >= 0;
}

/* A receive or probe (context, source as given) for which nothing may come any
 * more: its source is missing, or it is part of a collective operation and a
 * member is. */
bool chempi_loss_judge(const struct chempi_comm *comm, uint32_t context,
                       int32_t source);
static inline bool chempi_loss_is_vain(const struct chempi_comm *comm,
                                       uint32_t context, int32_t source)
{
    return CHEMPI_UNLIKELY(chempi_conn_missing_count()) &&
           chempi_loss_judge(comm, context, source);
}

/* The peer is missing since just now: end the receives that wait for it (those
 * of any source that it might have met, too) and the synchronous sends that it
 * has not matched. What devices have under way they end themselves. */
void chempi_loss_end(struct chempi_peer *peer);
/* A held message that nobody will receive, though its sender waits for that: of
 * a collective operation of a communicator that misses a member, or of a
 * communicator that did and is gone; or NULL. The caller drops it. */
struct chempi_held *chempi_loss_take_vain(void);
/* Does the communicator of this context (a multiple of CHEMPI_CONTEXT_STEP)
 * miss a member? Set at the start. */
typedef bool chempi_loss_context_fn(uint32_t context);
void chempi_loss_on_context(chempi_loss_context_fn *is_bereft);
/* It did, and is gone. Without memory its messages wait for ever. */
void chempi_loss_bury(uint32_t context);
/* A posted receive (queued) ends. */
void chempi_loss_end_receive(struct chempi_request *req);

#endif
