/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data representations (MPI 5.0, section 14.5): native and internal, which are
 * the same here and convert nothing, external32, and those that the program
 * registers, which last to the end of the process. NULL stands for native.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_DATAREP_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_DATAREP_H

#include <mpi.h>
#include <stdbool.h>

struct chempi_datatype;
struct chempi_io_datarep;

/* MPI_ERR_UNSUPPORTED_DATAREP when nobody has registered the name. */
int chempi_io_datarep_find(const char *name, struct chempi_io_datarep **out);

/* Does converting run functions of the user's? */
bool chempi_io_datarep_is_users(const struct chempi_io_datarep *rep);

/* Bytes of one element of type in a file; its extent there. */
int chempi_io_datarep_size(struct chempi_io_datarep *rep,
                           struct chempi_datatype *type, MPI_Count *size);
int chempi_io_datarep_extent(struct chempi_io_datarep *rep,
                             struct chempi_datatype *type, MPI_Count *extent);

/* count elements in the user's memory to or from consecutive bytes of a file,
 * which are there in full. Runs user functions: without locks. */
int chempi_io_datarep_to_file(struct chempi_io_datarep *rep, const void *buf,
                              MPI_Count count, struct chempi_datatype *type,
                              void *data);
int chempi_io_datarep_from_file(struct chempi_io_datarep *rep, void *buf,
                                MPI_Count count, struct chempi_datatype *type,
                                void *data);

#endif
