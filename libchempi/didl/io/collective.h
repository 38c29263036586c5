/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective access; doc/files.md has the phases. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_COLLECTIVE_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_COLLECTIVE_H

#include "libchempi/didl/io/op.h"

/* A blocking collective call, to its end. */
int chempi_io_collective(const struct chempi_io_call *c, MPI_Status *status);

/* Before other collective calls on a file: no split collective is under way.
 * MPI error class with words. */
int chempi_io_quiet(struct chempi_file *file);

/* All members have come here. */
int chempi_io_meet(struct chempi_comm *comm);

/* all[r * n ...] become member r's n words. */
int chempi_io_gather_all(struct chempi_comm *comm, const int64_t *mine, int n,
                         int64_t *all);

/* A tag for messages on the file's communicator: all members draw them in the
 * same order. */
static inline int chempi_io_next_tag(struct chempi_file *file)
{
    return file->tags++ & 0x3fffffff;
}

/* The views of the others have changed, or the hints. */
void chempi_io_cast_forget(struct chempi_file *file);

/*
 * Two-phase access of an operation, whose members all call this in the same
 * order; the operation keeps the error, which is everybody's at the end.
 */
void chempi_io_two_phase(struct chempi_io_op *op);

#endif
