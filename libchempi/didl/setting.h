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
    CHEMPI_SET_LOG,
    CHEMPI_SET_BUFFER_PATIENCE,
    CHEMPI_SET_CONN_EAGER_QUOTA,
    CHEMPI_SET_DAEMON_SUSPECT,
    CHEMPI_SET_MATCH_POOL,
    CHEMPI_SET_PROGRESS_SPINS_MAX,
    CHEMPI_SET_PROGRESS_SPINS_ROOMY,
    CHEMPI_SET_PROGRESS_YIELD_WANTED,
    CHEMPI_SET_PROGRESS_YIELD_ALONE,
    CHEMPI_SET_PROGRESS_FDS_IDLE,
    CHEMPI_SET_PROGRESS_FDS_BUSY,
    CHEMPI_SET_PROGRESS_DAEMON_EVERY,
    CHEMPI_SET_REQUEST_POOL,
    CHEMPI_SET_COUNT
};

extern _Atomic uint64_t chempi_setting_values[CHEMPI_SET_COUNT];

/* The value at the moment. */
static inline uint64_t chempi_setting(enum chempi_setting_id id)
{
    return atomic_load_explicit(&chempi_setting_values[id],
                                memory_order_relaxed);
}

/* didl's table with its values. */
struct chempi_settings chempi_setting_table(void);

#endif
