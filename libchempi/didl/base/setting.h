/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The settings of didl's modules; the table in setting.c says what each means.
 * Devices have tables of their own.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_SETTING_H
#define CHEMPI_LIBCHEMPI_DIDL_SETTING_H

#include "libchempi/services/setting.h"

enum chempi_setting_id {
    CHEMPI_SET_CHECK_ARGUMENTS,
    CHEMPI_SET_CRASH_BACKTRACE,
    CHEMPI_SET_ERRORS_OF_NOBODY,
    CHEMPI_SET_LOG,
    CHEMPI_SET_AGENT_BYTES,
    CHEMPI_SET_AGENT_ENABLED,
    CHEMPI_SET_COLL_ALLGATHER_BRUCK,
    CHEMPI_SET_COLL_ALLTOALL_BRUCK,
    CHEMPI_SET_COLL_ALLTOALL_RANKS,
    CHEMPI_SET_COLL_BCAST_PARTS,
    CHEMPI_SET_COLL_BCAST_RANKS,
    CHEMPI_SET_COLL_GATHER_TREE,
    CHEMPI_SET_COLL_GATHER_RANKS,
    CHEMPI_SET_COLL_HIERARCHY,
    CHEMPI_SET_COLL_HIER_SEGMENT,
    CHEMPI_SET_COLL_REDUCE_HALVING,
    CHEMPI_SET_COLL_REDUCE_SCATTER_PAIRWISE,
    CHEMPI_SET_COLL_NODE_COPY,
    CHEMPI_SET_COLL_NODE_PAST,
    CHEMPI_SET_COLL_NODE_SHARE,
    CHEMPI_SET_COLL_NODE_SPINS,
    CHEMPI_SET_COLL_NODE_STREAM,
    CHEMPI_SET_CONN_EAGER_QUOTA,
    CHEMPI_SET_DAEMON_SUSPECT,
    CHEMPI_SET_LANES,
    CHEMPI_SET_MATCH_POOL,
    CHEMPI_SET_MEET_HELD,
    CHEMPI_SET_MEET_PATIENCE,
    CHEMPI_SET_MEET_PROCESSES,
    CHEMPI_SET_PROGRESS_SPINS_MAX,
    CHEMPI_SET_PROGRESS_YIELD_WANTED,
    CHEMPI_SET_PROGRESS_YIELD_ALONE,
    CHEMPI_SET_REQUEST_POOL,
    CHEMPI_SET_SYSMSG_QUOTA,
    CHEMPI_SET_COUNT
};

extern _Atomic uint64_t chempi_setting_values[CHEMPI_SET_COUNT];

/* The value at the moment. */
static inline uint64_t chempi_setting(enum chempi_setting_id id)
{
    return atomic_load_explicit(&chempi_setting_values[id],
                                memory_order_relaxed);
}

/* The same as a signed number, to compare with counts; all fit. */
static inline int64_t chempi_setting_signed(enum chempi_setting_id id)
{
    return (int64_t)chempi_setting(id);
}

/* didl's table with its values. */
struct chempi_settings chempi_setting_table(void);

#endif
