/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nodes that a daemon knows, and what other daemons say of them in NEWS.
 *
 *   R1  what the cluster file says of a node is not changed by NEWS. Another
 *       address of a node that is known is a matter of rivals.h; slots are for
 *       the node itself to say, and for the node that it is known from
 *   R2  what a node has told is forgotten, here and by those who have it from
 *       here, when the node takes it back or its key is not trusted any more:
 *       news with an empty address say so
 *   R3  no node tells of more than CHEMPI_NEWS_TOLD_MAX nodes
 *   R4  news for which there is no memory are sent with the next beat, as all
 *       that is known then
 */
#ifndef CHEMPI_CHEMPID_NEWS_H
#define CHEMPI_CHEMPID_NEWS_H

#include "chempid/tree/limits.h"
#include "chempid/tree/members.h"
#include "common/control/channel.h"

struct chempi_conn;
struct chempi_daemon;

/* What follows sees the ready files as they are now. What they say of a node
 * comes before what d->members says. */
void chempi_daemon_look(struct chempi_daemon *d);
/* All nodes with ready files. */
const struct chempi_members *chempi_daemon_ready(struct chempi_daemon *d);
/* A node that is known, or NULL; valid until the next call of these three, or
 * until d->members changes. */
const struct chempi_member *chempi_daemon_member(struct chempi_daemon *d,
                                                 const char *node);
/* Connection to the daemon of such a node. */
struct chempi_conn *chempi_daemon_call(struct chempi_daemon *d,
                                       const char *node,
                                       struct chempi_err *err);
/* NEWS from a daemon: one that joins is told all, what is new to us is passed
 * on to others. -EBADMSG with words. */
int chempi_news_take(struct chempi_daemon *d, struct chempi_conn *from,
                     const struct chempi_frame *frame, struct chempi_err *err);
/* Tell all that we know, ourselves included. */
void chempi_news_tell(struct chempi_daemon *d, struct chempi_conn *to);
/* R2, after keys were read again. */
void chempi_news_recheck(struct chempi_daemon *d);
/* What `from` (NULL: gone) has said of a node holds; who joins is told all. */
void chempi_news_believe(struct chempi_daemon *d, struct chempi_conn *from,
                         const struct chempi_member *claim, bool joins);
/* R1: does the cluster file say where this node is? */
bool chempi_news_is_fixed(const struct chempi_daemon *d, const char *node);

#endif
