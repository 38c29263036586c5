/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's side of a daemon's Unix socket, used by chempirun and chempictl:
 * find it, greet, ask. These calls block, each with a time limit.
 */
#ifndef CHEMPI_CHEMPID_LOCAL_H
#define CHEMPI_CHEMPID_LOCAL_H

#include <stdbool.h>
#include <stddef.h>

#include "chempid/tree/nodes/status.h"
#include "chempid/tree/pool.h"
#include "common/base/err.h"
#include "common/control/channel.h"

#define CHEMPI_DIR_ENV "CHEMPI_DIR"
#define CHEMPI_LOCAL_LIMIT_MS 30000
#define CHEMPI_LOCAL_PATH_MAX 4096u
#define CHEMPI_LOCAL_ROOT_DIR "/run/chempi" /* of root's daemons */

/* Where daemons of this user have their sockets if nothing else is said:
 * $CHEMPI_DIR, /run/chempi (root), $XDG_RUNTIME_DIR/chempi, /tmp/chempi-UID.
 * -ENAMETOOLONG. */
int chempi_local_dir(char *dir, size_t size);

/* Who answers there. */
struct chempi_local_daemon {
    char node[CHEMPI_NODE_NAME_MAX];
    char path[CHEMPI_LOCAL_PATH_MAX]; /* of its socket */
};

/* Connect to the daemon `via` (NULL: any, the host's name preferred) in dir.
 * NULL: in chempi_local_dir(), or, unless $CHEMPI_DIR is set, where root's
 * daemons are. -ENOENT: there is none. The daemon and the directory must be
 * root's or our own. */
int chempi_local_open(struct chempi_channel *ch, const char *dir,
                      const char *via, struct chempi_local_daemon *daemon,
                      struct chempi_err *err);

/* Wait for the next frame of this type; others are dropped. */
int chempi_local_await(struct chempi_channel *ch, uint16_t type,
                       struct chempi_frame *out, struct chempi_err *err);

/* Ask for the state of nodes (names ends with NULL; NULL: all), perhaps with
 * shares of memory. The answers are in the pool. */
int chempi_local_query(struct chempi_channel *ch, char *const *names,
                       bool with_memory, struct chempi_pool *pool,
                       struct chempi_status **out, uint32_t *count,
                       struct chempi_err *err);

#endif
