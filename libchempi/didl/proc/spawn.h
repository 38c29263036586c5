/* SPDX-License-Identifier: BSD-3-Clause */
/* Worlds that were spawned, and their parents (MPI 5.0, section 11.8). */
#ifndef CHEMPI_LIBCHEMPI_DIDL_SPAWN_H
#define CHEMPI_LIBCHEMPI_DIDL_SPAWN_H

/* In MPI_Init, when all else is up: if this world was spawned, connect to who
 * has done it, which becomes what MPI_Comm_get_parent() gives. Collective in
 * the world. MPI error class. */
int chempi_proc_meet_parents(void);

#endif
