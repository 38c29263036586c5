/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The root of a process that no launcher of ours has started: one that it
 * starts itself when it asks for the first time (doc/dynamic.md, "A root of
 * one's own"). A process has one at a time. Under the lane lock, but for
 * begin(), end() and close(), which are called by who has the library alone.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_OWN_LAUNCHER_H
#define CHEMPI_LIBCHEMPI_DIDL_OWN_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/control/client.h"
#include "common/control/dynamic.h"

/* Start one, if there is none. 0; -EOPNOTSUPP with words: none can be started;
 * another -errno. */
int chempi_own_launcher_start(struct chempi_err *err);

/* It is there: as chempi_client_ask_root(). */
int chempi_own_launcher_ask(enum chempi_root_request what, const void *blob,
                            size_t len, uint32_t *serial);

/* To be waited on for reading, -1: there is none. */
int chempi_own_launcher_fd(void);
/* Milliseconds until progress() has something to do that nothing announces, -1:
 * never. */
int chempi_own_launcher_due_ms(void);
/* It is there: deliver its answers. False: it has ended, with words; close()
 * follows. */
bool chempi_own_launcher_progress(const struct chempi_client_events *events,
                                  struct chempi_err *err);

/* The library is in use, or not any more. In turns. */
void chempi_own_launcher_begin(void);
void chempi_own_launcher_end(void);
void chempi_own_launcher_close(void);

#endif
