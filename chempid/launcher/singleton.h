/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs of MPICH's library that were started without a launcher run
 * "mpiexec -pmi_args PORT INTERFACE KEY PID" when they need one, say for
 * MPI_UNIVERSE_SIZE or MPI_Comm_spawn(), and wait for as long as it takes until
 * somebody connects to that port of this host. Where our mpiexec is the first
 * in PATH, it is asked; so is Open MPI's elsewhere, and hydra, which do not
 * know the option.
 */
#ifndef CHEMPI_CHEMPID_SINGLETON_H
#define CHEMPI_CHEMPID_SINGLETON_H

#define CHEMPI_SINGLETON_OPTION "-pmi_args"

/* Say on standard error what the program is to be started by, and close the
 * connection that it waits for, so that it goes on with an error. port: as the
 * program has put it, or NULL. The exit status. */
int chempi_singleton_answer(const char *port);

#endif
