/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of one-sided operations; see count.h. */
#include "libchempi/didl/rma/count.h"

uint64_t chempi_rma_counts[CHEMPI_RMA_COUNTERS];

const struct chempi_rma_counter_words
    chempi_rma_counter_words[CHEMPI_RMA_COUNTERS] = {
        [CHEMPI_RMA_COUNT_SELF] =
            {"self_operations",
             "One-sided operations of a process on itself, a count.", false},
        [CHEMPI_RMA_COUNT_SELF_BYTES] =
            {"self_bytes",
             "What one-sided operations of a process on itself moved, in "
             "bytes.",
             false},
        [CHEMPI_RMA_COUNT_NODE] =
            {"node_operations",
             "One-sided operations by loads and stores in memory that the node "
             "shares, a count.",
             true},
        [CHEMPI_RMA_COUNT_NODE_BYTES] =
            {"node_bytes",
             "What one-sided operations moved by loads and stores in memory "
             "that the node shares, in bytes.",
             true},
        [CHEMPI_RMA_COUNT_ATTACH] =
            {"attach_operations",
             "One-sided operations by cross-memory attach, a count.", true},
        [CHEMPI_RMA_COUNT_ATTACH_BYTES] =
            {"attach_bytes",
             "What one-sided operations moved by cross-memory attach, in "
             "bytes.",
             true},
        [CHEMPI_RMA_COUNT_MESSAGE] =
            {"message_operations",
             "One-sided operations by messages to the target's process, a "
             "count.",
             true},
        [CHEMPI_RMA_COUNT_MESSAGE_BYTES] =
            {"message_bytes",
             "What one-sided operations moved by messages, in bytes.", true},
        [CHEMPI_RMA_COUNT_SERVED] =
            {"requests_served",
             "Requests of one-sided operations of others that this process has "
             "executed, a count.",
             true},
        [CHEMPI_RMA_COUNT_LOCKS] =
            {"locks", "Locks of windows that were taken, a count.", true},
        [CHEMPI_RMA_COUNT_LOCK_WAITS] =
            {"lock_waits",
             "Locks of windows that were not free when they were asked for, a "
             "count.",
             true},
};
