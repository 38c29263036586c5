/* SPDX-License-Identifier: BSD-3-Clause */
/* How many elements arrays have whose length follows from a communicator. An
 * invalid communicator gives 0, and C refuses it afterwards. */
#ifndef CHEMPI_FORTRAN_TOPOLOGY_H
#define CHEMPI_FORTRAN_TOPOLOGY_H

#include <mpi.h>
#include <stdbool.h>

int chempi_topology_size(MPI_Comm comm); /* of the remote group, if any */
int chempi_topology_local_size(MPI_Comm comm);
int chempi_topology_neighbors_in(MPI_Comm comm);
int chempi_topology_neighbors_out(MPI_Comm comm);
int chempi_topology_dims(MPI_Comm comm); /* of a Cartesian topology */
int chempi_topology_rank(MPI_Comm comm);
bool chempi_topology_is_root(MPI_Comm comm, int root);

#endif
