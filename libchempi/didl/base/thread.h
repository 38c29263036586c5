/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the library's own. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_BASE_THREAD_H
#define CHEMPI_LIBCHEMPI_DIDL_BASE_THREAD_H

#include <pthread.h>

/* Start one, which gets no signals but those of its own faults. 0 or -errno. */
int chempi_thread_start(pthread_t *thread, void *(*run)(void *arg));

#endif
