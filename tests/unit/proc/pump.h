/* SPDX-License-Identifier: BSD-3-Clause */
/* A process without a job that dispatches its descriptors, and waits for what
 * comes of it. */
#ifndef CHEMPI_TESTS_UNIT_PROC_PUMP_H
#define CHEMPI_TESTS_UNIT_PROC_PUMP_H

#include <stdbool.h>
#include <stddef.h>

#include "libchempi/didl/proc/exchange.h"

void pump_open(void);
/* Nothing is left in the set. */
void pump_close(void);
/* Look once, waiting so long at most. */
void pump(int wait_ms);

typedef bool pump_done_fn(void *arg);
/* False: that has not come to be. */
bool pump_until(pump_done_fn *done, void *arg);
/* Until its state is not 0; that. */
int pump_state(struct chempi_exchange *x, struct chempi_err *err);
/* Until a message has come: its bytes, to be freed, or NULL: it is lost. */
void *pump_take(struct chempi_exchange *x, size_t *len);
/* CHEMPI_MEET_PATIENCE_MS. */
void pump_set_patience(unsigned ms);
/* Descriptors of this process. */
size_t pump_count_fds(void);

#endif
