/* SPDX-License-Identifier: BSD-3-Clause */
/* What the one-sided operations of this process have done: over all windows
 * and by window, for performance variables and for --stats. Everything under
 * the lane lock. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_RMA_COUNT_H
#define CHEMPI_LIBCHEMPI_DIDL_RMA_COUNT_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "libchempi/didl/base/counter_words.h"

/* Operations and their bytes by reach, in the order of enum chempi_rma_reach,
 * two each; then locks. */
enum chempi_rma_counter {
    CHEMPI_RMA_COUNT_SELF,
    CHEMPI_RMA_COUNT_SELF_BYTES,
    CHEMPI_RMA_COUNT_NODE,
    CHEMPI_RMA_COUNT_NODE_BYTES,
    CHEMPI_RMA_COUNT_ATTACH,
    CHEMPI_RMA_COUNT_ATTACH_BYTES,
    CHEMPI_RMA_COUNT_MESSAGE,
    CHEMPI_RMA_COUNT_MESSAGE_BYTES,
    CHEMPI_RMA_COUNT_SERVED,
    CHEMPI_RMA_COUNT_LOCKS,
    CHEMPI_RMA_COUNT_LOCK_WAITS,
    CHEMPI_RMA_COUNTERS
};

/* A performance variable is chempi_rma_<name>; that of a window
 * chempi_rma_window_<name>. */
extern const struct chempi_counter_words
    chempi_rma_counter_words[CHEMPI_RMA_COUNTERS];

/* Since the process began. */
extern uint64_t chempi_rma_counts[CHEMPI_RMA_COUNTERS];

struct chempi_win;
struct chempi_writer;

/* The number by which the counts of a window are asked for; it is never used
 * again. 0: no window has this handle. */
uint64_t chempi_rma_count_bind(MPI_Win handle);
/* What that window has counted since it was made; false: it is gone. */
bool chempi_rma_count_of(uint64_t bound, enum chempi_rma_counter which,
                         uint64_t *out);

/* The window goes: what it has counted stands under its name. */
void chempi_rma_count_retire(struct chempi_win *win);

/* What windows have counted since the last report, as lines of
 * chempid/stats/windows.h. */
void chempi_rma_count_report(struct chempi_writer *out);

/* Count from 0 again. */
void chempi_rma_count_init(void);

#endif
