/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Point-to-point inside the library: what collectives and communicator
 * management build on. Same rules as the MPI calls; these take the lane lock
 * themselves and never raise an error handler. Return an MPI error class.
 *
 * `kind` keeps the traffic apart from the user's (CHEMPI_CONTEXT_COLL, ...).
 * Ranks may be MPI_PROC_NULL.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_PT2PT_H
#define CHEMPI_LIBCHEMPI_DIDL_PT2PT_H

#include <mpi.h>

#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/datatype/datatype.h"

struct chempi_request;

int chempi_pt2pt_isend_on(const void *buf, MPI_Count count,
                          struct chempi_datatype *type, int dest, int tag,
                          struct chempi_comm *comm,
                          enum chempi_context_kind kind,
                          struct chempi_request **out);
int chempi_pt2pt_irecv_on(void *buf, MPI_Count count,
                          struct chempi_datatype *type, int source, int tag,
                          struct chempi_comm *comm,
                          enum chempi_context_kind kind,
                          struct chempi_request **out);

/* Blocking; small messages take the fast path without a request. */
int chempi_pt2pt_send_on(const void *buf, MPI_Count count,
                         struct chempi_datatype *type, int dest, int tag,
                         struct chempi_comm *comm,
                         enum chempi_context_kind kind);
int chempi_pt2pt_recv_on(void *buf, MPI_Count count,
                         struct chempi_datatype *type, int source, int tag,
                         struct chempi_comm *comm,
                         enum chempi_context_kind kind, MPI_Status *status);
int chempi_pt2pt_sendrecv_on(const void *sbuf, MPI_Count scount,
                             struct chempi_datatype *stype, int dest, int stag,
                             void *rbuf, MPI_Count rcount,
                             struct chempi_datatype *rtype, int source,
                             int rtag, struct chempi_comm *comm,
                             enum chempi_context_kind kind, MPI_Status *status);

/* Wait for all of reqs[0..n) and free them (NULL entries are skipped).
 * Returns the first error class. */
int chempi_pt2pt_wait_all(struct chempi_request **reqs, int n);

#endif
