/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket to a PMI server and the words "key=value" of its messages, for
 * both versions of the protocol. A process has one. The server is trusted to be
 * the launcher, but not to be right: all lengths are checked.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_PMI_LINE_H
#define CHEMPI_LIBCHEMPI_DIDL_PMI_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define CHEMPI_PMI_MESSAGE_MAX 32768u /* bytes */

/* The descriptor in PMI_FD, checked to be a socket; close-on-exec from now
 * on. -errno with words. */
int chempi_pmi_line_inherit(struct chempi_err *err);
/* Connect to the address in PMI_PORT ("HOST:PORT"). Blocks as TCP does. */
int chempi_pmi_line_connect(struct chempi_err *err);
void chempi_pmi_line_close(void);
int chempi_pmi_line_fd(void); /* -1: there is none */

/* While nothing is asked: 0, -EPIPE: the server has gone. Does not block. */
int chempi_pmi_line_look(void);

/* Blocks while the server does not read; -EPIPE. */
int chempi_pmi_line_send(const char *text, size_t len);

/*
 * The next message, ended by a zero, valid until the next call: with
 * is_framed it has six digits with its length before it, else it is a line.
 * 1; 0: none has come within timeout_ms; -EPIPE, -EMSGSIZE, -EBADMSG.
 */
int chempi_pmi_line_next(bool is_framed, int timeout_ms, char **message);

/* Copy the value of a key of a message whose words are separated by `end`.
 * False: it has none, or that does not fit. */
bool chempi_pmi_line_value(const char *message, char end, const char *key,
                           char *value, size_t room);
/* Is the message's command ("cmd") this one? */
bool chempi_pmi_line_is(const char *message, char end, const char *command);
/* The same for a number that is not negative; `other` if there is none. */
uint32_t chempi_pmi_line_number(const char *message, char end, const char *key,
                                uint32_t other);

/* A number in the environment; false: not set, or none. */
bool chempi_pmi_line_variable(const char *name, uint32_t *out);

#endif
