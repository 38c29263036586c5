/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping on a word of memory; see futex.h. */
#define _GNU_SOURCE /* syscall */
#include "common/wake/futex.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void chempi_futex_wait(_Atomic uint32_t *word, uint32_t value, int timeout_ms)
{
    const struct timespec limit = {
        .tv_sec = timeout_ms / 1000,
        .tv_nsec = (long)(timeout_ms % 1000) * 1000000L,
    };

    (void)syscall(SYS_futex, word, FUTEX_WAIT, value,
                  timeout_ms < 0 ? NULL : &limit, NULL, 0);
}

void chempi_futex_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}
