/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffered sends (MPI 5.0, section 3.6): memory that the user attached to the
 * process, a communicator or a session, or that the library allocates
 * (MPI_BUFFER_AUTOMATIC).
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_BUFFER_H
#define CHEMPI_LIBCHEMPI_DIDL_BUFFER_H

struct chempi_comm;
struct chempi_request;
struct chempi_session;

/* Make the send that was just initialized a buffered one. */
void chempi_buffer_adopt(struct chempi_request *req);

/* Wait for what is still buffered and forget the buffers: all; those of the
 * process and of communicators of the world model (MPI_Finalize); that of one
 * session, and of its communicators. */
void chempi_buffer_fini(void);
void chempi_buffer_fini_world(void);
void chempi_buffer_fini_session(const struct chempi_session *session);

#endif
