/* SPDX-License-Identifier: BSD-3-Clause */
/* Point-to-point requests, shared by the files of that module. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_P2P_H
#define CHEMPI_LIBCHEMPI_DIDL_P2P_H

#include "libchempi/didl/transport/request.h"

/* Fill in a request (memory is the caller's); nothing is started. kind: enum
 * chempi_context_kind. dest, source may be MPI_PROC_NULL. */
void chempi_p2p_init_send(struct chempi_request *req, const void *buf,
                          MPI_Count count, struct chempi_datatype *type,
                          int dest, int tag, struct chempi_comm *comm,
                          uint32_t kind, enum chempi_send_mode mode);
void chempi_p2p_init_recv(struct chempi_request *req, void *buf,
                          MPI_Count count, struct chempi_datatype *type,
                          int source, int tag, struct chempi_comm *comm,
                          uint32_t kind);

/* Name the buffer for the device; start does this too. */
void chempi_p2p_aim_recv(struct chempi_request *req);

/* Start it. Under the lock. MPI error class. */
int chempi_p2p_start(struct chempi_request *req);

/* Tell the devices that the buffer of a request is that of a persistent one,
 * or is no longer: they keep its registration. Under the lock. */
void chempi_p2p_hold(const struct chempi_request *req);
void chempi_p2p_unhold(const struct chempi_request *req);
/* The same for a buffer that is in one piece (nothing happens if it is not),
 * for requests that are persistent and consist of others. */
void chempi_p2p_hold_piece(const void *buf, MPI_Count count,
                           const struct chempi_datatype *type);
void chempi_p2p_unhold_piece(const void *buf, MPI_Count count,
                             const struct chempi_datatype *type);

/* Drop what it holds, not the memory. */
void chempi_p2p_fini(struct chempi_request *req);

/* Does a started send still wait for room? Under the lock. */
bool chempi_p2p_is_waiting(const struct chempi_request *req);

/* Register the handlers of its system messages, at start. */
void chempi_p2p_register(void);

/* MPI_Cancel of a send. Under the lock. */
void chempi_p2p_cancel_send(struct chempi_request *req);

/* The words for MPI_ERR_TRUNCATE inside a collective operation, of whatever way
 * the data has come: the rank (-1: more than one) gives len bytes. */
CHEMPI_COLD int chempi_p2p_note_too_much(int rank, uint64_t len, uint64_t room);

/* The same for MPI_ERR_COUNT: fewer bytes than room. */
CHEMPI_COLD int chempi_p2p_note_too_little(int rank, uint64_t len,
                                           uint64_t room);

#endif
