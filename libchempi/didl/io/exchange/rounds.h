/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of an exchange, one after the other; window.h has what they share. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_EXCHANGE_ROUNDS_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_EXCHANGE_ROUNDS_H

#include "libchempi/didl/io/collective.h"

/* Domains, windows and memory for what all members have told; aggregators know
 * the views. MPI error class with words. */
int chempi_io_rounds_make(struct chempi_io_coll *coll, int tag);

/* A stage; rc: has every member the memory that it needs? At the end comes
 * after_access. */
void chempi_io_rounds_begin(struct chempi_io_task *t);

#endif
