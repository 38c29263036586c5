/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said of a collective request that waits or has failed. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_ASYNC_WORDS_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_ASYNC_WORDS_H

#include "libchempi/didl/coll/async_memory.h"
#include "libchempi/didl/transport/where/wait_report.h"

/* The error with which it has ended: notes how long the message was that did
 * not fit, where that is known. MPI error class. */
int chempi_coll_async_explain(const struct async *a, int error);

/* Whose messages of this step are missing. They come without a call of the
 * sender's if it has begun the operation. Under the lane lock; `req` is that of
 * a struct async. */
void chempi_coll_async_put_awaits(struct chempi_wait_report *w,
                                  const struct chempi_request *req);

#endif
