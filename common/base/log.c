/* SPDX-License-Identifier: BSD-3-Clause */
/* Log records; see log.h. */
#include "common/base/log.h"

#include <stdarg.h>
#include <stdio.h>

static struct {
    chempi_log_fn *fn;
    void *arg;
    enum chempi_log_level max;
} sink;

void chempi_log_set(chempi_log_fn *fn, void *arg, enum chempi_log_level max)
{
    sink.fn = fn;
    sink.arg = arg;
    sink.max = max;
}

void chempi_log(enum chempi_log_level level, const char *module,
                const char *fmt, ...)
{
    char text[1024];
    va_list args;

    if (!sink.fn || level > sink.max)
        return;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    sink.fn(sink.arg, level, module, text);
}
