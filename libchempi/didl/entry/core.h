/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What runs under the world model and the sessions: the connection to the
 * daemon, devices, progress, communicators. It is opened for the first user,
 * parked when the last one leaves, and taken up again for the next one.
 * Functions return an MPI error class unless they say otherwise; all may be
 * called from any thread.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_CORE_H
#define CHEMPI_LIBCHEMPI_DIDL_CORE_H

#include <stdint.h>

/* One more user, who asks for this level (MPI_THREAD_*). *provided may be
 * less: locking cannot begin while another thread might be inside. */
int chempi_core_enter(int required, int *provided);

/* One user less. The last one waits until what it has sent has left the
 * process; that needs no call of another process's user. */
void chempi_core_leave(void);

uint32_t chempi_core_users(void);

/* Wait until nothing is on the way from this process. */
int chempi_core_drain(void);

#endif
