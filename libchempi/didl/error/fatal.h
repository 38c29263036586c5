/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of the job because of an error, from any floor. The launcher hears
 * the sentence when the library has a way to tell it, else it is printed.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_FATAL_H
#define CHEMPI_LIBCHEMPI_DIDL_FATAL_H

#include <stdbool.h>

#include "common/base/compiler.h"
#include "common/control/client.h"

/*
 * Tell whoever started the job: true when it has heard. The text is "" when
 * the program called MPI_Abort. is_inside: the calling thread may be in the
 * middle of anything, and may hold the lane lock; else it is in no operation.
 */
typedef bool chempi_fatal_tell_fn(int exit_code, const char *text,
                                  bool is_inside);

/* Who tells from now on; NULL: nobody can. While no other thread is in MPI. */
void chempi_fatal_set_tell(chempi_fatal_tell_fn *tell);

/* Whoever ends the job from now on is called by rank and node. */
void chempi_fatal_place(const struct chempi_job *job);
/* "rank 3 on node a2"; "" before that. */
const char *chempi_fatal_place_words(void);

/* Does the supervisor believe that this process may end as it likes, since MPI
 * is finalized here? If it cannot be told better, the process that ends the job
 * must end by a signal. */
void chempi_fatal_set_free(bool is_free);

/*
 * End the job with exit code 1 because of an error that no error handler can be
 * asked about; the words say what happened and what to do. Told to the launcher
 * if there is one, else printed. Does not return.
 */
CHEMPI_NORETURN void chempi_fatal_die(const char *fmt, ...) CHEMPI_PRINTF(1, 2);

/* The same with this exit code and complete words; "" when the program called
 * MPI_Abort with this code. Who and where are added to the words. */
CHEMPI_NORETURN void chempi_fatal_end(int exit_code, const char *text,
                                      bool is_inside);

#endif
