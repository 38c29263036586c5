/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages over a communicator, for the rest of the library: as the MPI calls
 * in the standard mode, but in the context that `kind` names, and without
 * checks of arguments. MPI error classes.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COMM_MESSAGE_H
#define CHEMPI_LIBCHEMPI_DIDL_COMM_MESSAGE_H

#include <mpi.h>

#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/datatype/datatype.h"

struct chempi_request;

int chempi_message_isend_on(const void *buf, MPI_Count count,
                            struct chempi_datatype *type, int dest, int tag,
                            struct chempi_comm *comm,
                            enum chempi_context_kind kind,
                            struct chempi_request **out);
int chempi_message_irecv_on(void *buf, MPI_Count count,
                            struct chempi_datatype *type, int source, int tag,
                            struct chempi_comm *comm,
                            enum chempi_context_kind kind,
                            struct chempi_request **out);
/* Blocking; small messages take the fast path without a request. */
int chempi_message_send_on(const void *buf, MPI_Count count,
                           struct chempi_datatype *type, int dest, int tag,
                           struct chempi_comm *comm,
                           enum chempi_context_kind kind);
int chempi_message_recv_on(void *buf, MPI_Count count,
                           struct chempi_datatype *type, int source, int tag,
                           struct chempi_comm *comm,
                           enum chempi_context_kind kind, MPI_Status *status);
int chempi_message_sendrecv_on(const void *sbuf, MPI_Count scount,
                               struct chempi_datatype *stype, int dest,
                               int stag, void *rbuf, MPI_Count rcount,
                               struct chempi_datatype *rtype, int source,
                               int rtag, struct chempi_comm *comm,
                               enum chempi_context_kind kind,
                               MPI_Status *status);

/* Take part in a message without data: an empty one is sent; whatever comes is
 * received and dropped. It does not wait for the other side, unless there is no
 * memory for a request; under the lane lock (is_locked) the job ends then. */
void chempi_message_pass(bool is_send, int peer, int tag,
                         struct chempi_comm *comm,
                         enum chempi_context_kind kind, bool is_locked);

/* Wait for all of reqs[0..n) and free them (NULL entries are skipped).
 * Returns the first error class. */
int chempi_message_wait_all(struct chempi_request **reqs, int n);

/* The words for MPI_ERR_TRUNCATE inside a collective operation, of whatever way
 * the data has come: the rank (-1: more than one) gives len bytes. */
CHEMPI_COLD int chempi_message_note_too_much(int rank, uint64_t len,
                                             uint64_t room);

/* The same for MPI_ERR_COUNT: fewer bytes than room. */
CHEMPI_COLD int chempi_message_note_too_little(int rank, uint64_t len,
                                               uint64_t room);

#endif
