/* SPDX-License-Identifier: BSD-3-Clause */
/* What progress.c does for who waits in another lane (elsewhere.c). */
#ifndef CHEMPI_LIBCHEMPI_DIDL_PROGRESS_INTERNAL_H
#define CHEMPI_LIBCHEMPI_DIDL_PROGRESS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "libchempi/didl/transport/where/wait_report.h"

/* Without a lock: advance the first lane, unless another thread does, after so
 * many polls of others. Returns the number of events. */
int chempi_progress_visit_first(uint32_t polls);

/* Is there something to tell that may run the user's functions? */
bool chempi_progress_has_news(void);

/* Tell it, without a lock, by who polls no other lane meanwhile. words may be
 * NULL. */
void chempi_progress_take_in_news(chempi_wait_report_fn *words,
                                  const void *object);

/* Holder of the lane: it is polled no more in this wait, which is over, or
 * joins. */
void chempi_progress_stop_polling(struct chempi_lane *lane, bool joins);

#endif
