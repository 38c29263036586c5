/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log records: a library never prints, it hands a record to the sink that the
 * program installed; with no sink, records are dropped. One line per record.
 */
#ifndef CHEMPI_COMMON_BASE_LOG_H
#define CHEMPI_COMMON_BASE_LOG_H

#include "common/base/compiler.h"

enum chempi_log_level {
    CHEMPI_LOG_ERROR,
    CHEMPI_LOG_WARNING,
    CHEMPI_LOG_INFO,
    CHEMPI_LOG_DEBUG
};

typedef void chempi_log_fn(void *arg, enum chempi_log_level level,
                           const char *module, const char *text);

/* Install the sink and the most talkative level that reaches it. Call before
 * threads start. fn NULL removes the sink. */
void chempi_log_set(chempi_log_fn *fn, void *arg, enum chempi_log_level max);

/* Hand a record to the sink. Thread-safe as far as the sink is. */
void chempi_log(enum chempi_log_level level, const char *module,
                const char *fmt, ...) CHEMPI_PRINTF(3, 4);

#endif
