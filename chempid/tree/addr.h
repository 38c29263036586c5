/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of daemons: "127.0.0.1:4000", "[::1]:4000", "host:4000"; without
 * a port, port 0. Listening, connecting, and what became of port 0.
 */
#ifndef CHEMPI_CHEMPID_ADDR_H
#define CHEMPI_CHEMPID_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "common/base/err.h"

#define CHEMPI_ADDR_MAX 300 /* bytes of an address in text, with the zero */

struct chempi_addr {
    struct sockaddr_storage storage;
    socklen_t len;
};

/* Names of hosts are looked up, which may block: not for event loops. -EINVAL,
 * -ENOENT. */
int chempi_addr_parse(const char *text, struct chempi_addr *out,
                      struct chempi_err *err);
/* The same without names, which are -ENOENT, without words. */
int chempi_addr_parse_number(const char *text, struct chempi_addr *out,
                             struct chempi_err *err);
/* Is it one that nobody can call: 0.0.0.0, ::? Names are not looked up. */
bool chempi_addr_is_any(const char *text);
void chempi_addr_format(const struct chempi_addr *addr, char *text,
                        size_t size);

/* A listening non-blocking TCP socket; *bound is its real address. Returns
 * the descriptor or -errno. */
int chempi_addr_listen(const struct chempi_addr *addr,
                       struct chempi_addr *bound, struct chempi_err *err);

/* Begin to connect, without waiting. Returns the descriptor (writable when
 * the attempt is over; see chempi_addr_result) or -errno. */
int chempi_addr_connect(const struct chempi_addr *addr, struct chempi_err *err);
/* 0 or -errno of a connection that was begun. */
int chempi_addr_result(int fd);

/* Unix sockets by path. clear_unix() removes a socket that nobody listens on;
 * -EADDRINUSE when somebody does. connect_unix() waits no longer than limit_ms,
 * which is not 0, for whoever listens to take others: then -EAGAIN. */
int chempi_addr_clear_unix(const char *path, struct chempi_err *err);
int chempi_addr_listen_unix(const char *path, unsigned mode,
                            struct chempi_err *err);
int chempi_addr_connect_unix(const char *path, unsigned limit_ms,
                             struct chempi_err *err);

#endif
