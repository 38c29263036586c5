/* SPDX-License-Identifier: BSD-3-Clause */
/* Start, finish and abort of the library in this process. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_ENV_H
#define CHEMPI_LIBCHEMPI_DIDL_ENV_H

#include <stdbool.h>

#include "common/base/compiler.h"
#include "common/control/client.h"

/* Whoever ends the job from now on is called by rank and node. */
void chempi_env_place(const struct chempi_job *job);

/* Does the supervisor believe that this process may end as it likes, since MPI
 * is finalized here? If it cannot be told better, the process that ends the job
 * must end by a signal. */
void chempi_env_set_free(bool is_free);

/*
 * End the job with this exit code because of an error that no error handler
 * can be asked about; the words say what happened and what to do. Told to the
 * launcher if there is one, else printed. Does not return.
 */
CHEMPI_NORETURN void chempi_env_die(int exit_code, const char *fmt, ...)
    CHEMPI_PRINTF(2, 3);

/* The same with complete words; "" when the program called MPI_Abort with
 * this code. Who and where are added to the words. */
CHEMPI_NORETURN void chempi_env_end(int exit_code, const char *text);

#endif
