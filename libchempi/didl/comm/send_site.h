/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where in its sender's source a message was sent, for what a checker says of
 * it at the receiver (doc/checking.md). The sender keeps the places of its
 * last messages (sent_sites.h), and tells them when it is asked. Nobody is
 * asked unless a checker is there (call_site.h).
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COMM_SEND_SITE_H
#define CHEMPI_LIBCHEMPI_DIDL_COMM_SEND_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "libchempi/didl/base/call_site.h"

struct chempi_peer;

/* Ask a process for the place of its message with this number: "it was sent by
 * MPI_Send at ring.c:12", or why nobody knows: a sender that computes is given
 * 1 s to answer, and this process asks no one any more when that has happened
 * twice; one that is lost is not waited for. False: there is nothing to say, as
 * the sender has forgotten it or nobody notes places. Makes progress; without
 * the lane lock. */
bool chempi_send_site_ask(struct chempi_peer *peer, uint32_t serial,
                          char text[CHEMPI_CALL_SITE_TEXT]);

/* At start. */
void chempi_send_site_register(void);

#endif
