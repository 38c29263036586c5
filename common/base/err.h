/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An error with its detail, carried from where it happens to where it is
 * printed, once. Functions return 0 or -errno; those that know more than the
 * number also fill a struct chempi_err, which may be NULL when the caller does
 * not want the words. Text says what, where (file, line, peer, limit) and what
 * to do about it; it carries no trailing newline and no program name.
 */
#ifndef CHEMPI_COMMON_BASE_ERR_H
#define CHEMPI_COMMON_BASE_ERR_H

#include "common/base/compiler.h"

#define CHEMPI_ERR_TEXT_MAX 1024 /* bytes with the terminating zero */

struct chempi_err {
    int code; /* 0 or -errno */
    char text[CHEMPI_ERR_TEXT_MAX];
};

/* Store code and formatted text (cut at the limit); returns code. Never
 * fails; err may be NULL. Thread-safe for distinct err. */
int chempi_err_set(struct chempi_err *err, int code, const char *fmt, ...)
    CHEMPI_PRINTF(3, 4);

/* Put "words: " in front of the text already there; returns err's code. */
int chempi_err_prefix(struct chempi_err *err, const char *fmt, ...)
    CHEMPI_PRINTF(2, 3);

/* Words for an errno value (positive or negative); static storage. */
const char *chempi_err_name(int code);

#endif
