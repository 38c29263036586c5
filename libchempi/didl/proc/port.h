/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports (MPI_Open_port), by which leaders of two groups find each other; see
 * doc/dynamic.md. A port belongs to this process. All under the first lane's
 * lock; nothing blocks: callers are heard when the pollset is dispatched.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_PORT_H
#define CHEMPI_LIBCHEMPI_DIDL_PORT_H

#include "common/base/err.h"
#include "common/control/dynamic.h"
#include "libchempi/didl/proc/exchange.h"

/* Open one; ip_port and ip_address are the values of these keys, or NULL.
 * `name` is what others call by. 0 or -errno with words. */
int chempi_port_open(const char *ip_port, const char *ip_address,
                     char name[CHEMPI_PORT_NAME_MAX], struct chempi_err *err);

/* Close it: callers that wait are refused. -ENOENT with words: no such port is
 * open here. */
int chempi_port_close(const char *name, struct chempi_err *err);
void chempi_port_close_all(void);

/*
 * Wait for the next caller of an own port, in the order of accepts. The
 * exchange is had at once, and is connected later; to close it is to give up.
 * 0; -ENOENT with words: no such port is open here; -ENOMEM.
 */
int chempi_port_accept(const char *name, struct chempi_exchange **out,
                       struct chempi_err *err);

/* Call a port, likewise. 0; -EINVAL with words: that is no name of a port;
 * other -errno with words. */
int chempi_port_connect(const char *name, struct chempi_exchange **out,
                        struct chempi_err *err);

#endif
