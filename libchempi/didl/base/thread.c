/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the library's own; see thread.h. */
#define _GNU_SOURCE /* pthread_sigmask */
#include "libchempi/didl/base/thread.h"

#include <signal.h>
#include <stddef.h>

#include "libchempi/didl/base/crash/crash.h"

int chempi_thread_start(pthread_t *thread, void *(*run)(void *arg))
{
    sigset_t all;
    sigset_t before;
    int rc;

    (void)sigfillset(&all);
    chempi_crash_let_faults(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(thread, NULL, run, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}
