/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors from the first rank of a node to the others, over sockets that
 * have a name in the kernel only: nothing is left if a process dies. The
 * bringer proves the job's secret, and both look at the other's user.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_HANDOVER_H
#define CHEMPI_LIBCHEMPI_DIDL_HANDOVER_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/control/client.h"

#define CHEMPI_HANDOVER_NAME_MAX 32 /* bytes with the terminating zero */

/* Listen under a name of the kernel's choice, in hexadecimal digits. The
 * socket, or -errno with words. */
int chempi_handover_listen(char name[CHEMPI_HANDOVER_NAME_MAX],
                           struct chempi_err *err);

/* Bring `count` descriptors to the process that listens there; it need not
 * look for them yet. They stay the caller's. */
int chempi_handover_bring(const char *name,
                          const uint8_t secret[CHEMPI_JOB_SECRET_BYTES],
                          const int *fds, uint32_t count,
                          struct chempi_err *err);

/* Take so many, close-on-exec, from whoever proves the secret; waits for them
 * at most CHEMPI_STORE_LIMIT_MS. On failure none is left. */
int chempi_handover_take(int listener, const char *name,
                         const uint8_t secret[CHEMPI_JOB_SECRET_BYTES],
                         int *fds, uint32_t count, struct chempi_err *err);

#endif
