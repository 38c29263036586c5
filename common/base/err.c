/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors with their detail; see err.h. */
#define _GNU_SOURCE /* strnlen */

#include "common/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int chempi_err_set(struct chempi_err *err, int code, const char *fmt, ...)
{
    va_list args;

    if (!err)
        return code;
    err->code = code;
    va_start(args, fmt);
    (void)vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
    return code;
}

int chempi_err_prefix(struct chempi_err *err, const char *fmt, ...)
{
    char old[CHEMPI_ERR_TEXT_MAX];
    va_list args;
    size_t used;
    size_t room;
    size_t len;
    int n;

    if (!err)
        return 0;
    memcpy(old, err->text, sizeof(old));
    va_start(args, fmt);
    n = vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n + 3 > sizeof(err->text))
        return err->code;
    used = (size_t)n;
    memcpy(err->text + used, ": ", 2);
    room = sizeof(err->text) - used - 3;
    len = strnlen(old, sizeof(old) - 1);
    len = len < room ? len : room;
    memcpy(err->text + used + 2, old, len);
    err->text[used + 2 + len] = '\0';
    return err->code;
}

const char *chempi_err_name(int code)
{
    return strerror(code < 0 ? -code : code);
}
