/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What other daemons say of nodes, in NEWS.
 *
 *   R1  what the cluster file says of a node is not changed by NEWS. Another
 *       address of a node that is known is a matter of rivals.h; slots are for
 *       the node itself to say, and for the node that it is known from
 *   R2  what a node has told is forgotten, here and by those who have it from
 *       here, when the node takes it back or its key is not trusted any more:
 *       news with an empty address say so
 *   -   no node tells of more than CHEMPI_NEWS_TOLD_MAX nodes
 *   R4  news for which there is no memory are sent with the next beat, as all
 *       that is known then
 */
#ifndef CHEMPI_CHEMPID_NEWS_H
#define CHEMPI_CHEMPID_NEWS_H

#include "chempid/tree/limits.h"
#include "chempid/tree/nodes/members.h"
#include "common/control/channel.h"

struct chempi_conn;
struct chempi_daemon;
struct chempi_err;

/* NEWS from a daemon: one that joins is told all, what is new to us is passed
 * on to others. -EBADMSG with words. */
int chempi_news_take(struct chempi_daemon *d, struct chempi_conn *from,
                     const struct chempi_frame *frame, struct chempi_err *err);
/* R2, after keys were read again. */
void chempi_news_recheck(struct chempi_daemon *d);

#endif
