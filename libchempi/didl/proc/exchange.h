/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the leaders of two groups tell each other, over a sealed stream of
 * their own: messages, each with its length, in order. See doc/dynamic.md.
 *
 *   -   of the two, one is first: who has accepted, or in MPI_Comm_join who has
 *       the smaller key. Both agree
 *   -   nothing blocks; what has come is there after the pollset was dispatched
 *   -   what a stranger can make this process hold is bounded: messages have at
 *       most as many bytes as are expected, and one of them is kept
 *
 * Under the first lane's lock.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_EXCHANGE_H
#define CHEMPI_LIBCHEMPI_DIDL_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* Of any message, whatever is expected. */
#define CHEMPI_EXCHANGE_LEN_MAX ((size_t)1 << 31)

struct chempi_exchange;

/* Over a socket of the user's, which stays his and is left with no byte too
 * many read when the exchange is closed. 0 or -errno with words. */
int chempi_exchange_join(int fd, struct chempi_exchange **out,
                         struct chempi_err *err);

/* 1: the other side is there, and has proved itself; 0: not yet; -errno with
 * words: it will not be, or is lost. */
int chempi_exchange_state(const struct chempi_exchange *exchange,
                          struct chempi_err *err);
/* Once that was 1. */
bool chempi_exchange_is_first(const struct chempi_exchange *exchange);

/* The same on both sides, and of no other exchange: 64 bytes. NULL: it is
 * lost. */
const uint8_t *chempi_exchange_hash(const struct chempi_exchange *exchange);

/* Messages of the other side that begin to come from now on have at most `len`
 * bytes; a longer one breaks the rules. CHEMPI_EXCHANGE_LEN_MAX at first. */
void chempi_exchange_limit(struct chempi_exchange *exchange, size_t len);

/* Send a message; it is copied. Once connected. 0 or -errno with words. */
int chempi_exchange_send(struct chempi_exchange *exchange, const void *data,
                         size_t len, struct chempi_err *err);

/* The next message of the other side, malloc'ed. -EAGAIN: it has not come yet,
 * and is read when it does; other -errno with words: it will not. Nothing is
 * read before it is asked for. */
int chempi_exchange_take(struct chempi_exchange *exchange, void **data,
                         size_t *len, struct chempi_err *err);

/* All that was sent has left this process. */
bool chempi_exchange_is_drained(const struct chempi_exchange *exchange);

/* NULL is fine. What has not left is lost. */
void chempi_exchange_close(struct chempi_exchange *exchange);

#endif
