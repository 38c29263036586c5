/* SPDX-License-Identifier: BSD-3-Clause */
/* What the one-sided operations of this process have done, over all windows,
 * for performance variables. Everything under the lane lock. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_RMA_COUNT_H
#define CHEMPI_LIBCHEMPI_DIDL_RMA_COUNT_H

#include <stdbool.h>
#include <stdint.h>

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

/* A performance variable is chempi_rma_<name>. */
struct chempi_rma_counter_words {
    const char *name;
    const char *text; /* a sentence, with the unit */
    bool is_basic;
};

extern const struct chempi_rma_counter_words
    chempi_rma_counter_words[CHEMPI_RMA_COUNTERS];

/* Since the process began. */
extern uint64_t chempi_rma_counts[CHEMPI_RMA_COUNTERS];

#endif
