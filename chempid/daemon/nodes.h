/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nodes that a daemon knows, by ready files, the cluster file and what
 * others say (news.h), and the telling of them.
 */
#ifndef CHEMPI_CHEMPID_NODES_H
#define CHEMPI_CHEMPID_NODES_H

#include <stdbool.h>

#include "chempid/tree/nodes/members.h"
#include "common/base/err.h"
#include "common/control/wire.h"

struct chempi_conn;
struct chempi_daemon;

/* What follows sees the ready files as they are now. What they say of a node
 * comes before what d->members says. */
void chempi_nodes_look(struct chempi_daemon *d);
/* All nodes with ready files. */
const struct chempi_members *chempi_nodes_ready(struct chempi_daemon *d);
/* A node that is known, or NULL; valid until the next call of these three, or
 * until d->members changes. */
const struct chempi_member *chempi_nodes_member(struct chempi_daemon *d,
                                                const char *node);
/* Connection to the daemon of such a node. */
struct chempi_conn *chempi_nodes_call(struct chempi_daemon *d, const char *node,
                                      struct chempi_err *err);
/* Tell all that we know, ourselves included. */
void chempi_nodes_tell(struct chempi_daemon *d, struct chempi_conn *to);
/* What `from` (NULL: gone) has said of a node holds; who joins is told all. */
void chempi_nodes_believe(struct chempi_daemon *d, struct chempi_conn *from,
                          const struct chempi_member *claim, bool joins);
/* R1 of news.h: does the cluster file say where this node is? */
bool chempi_nodes_is_fixed(const struct chempi_daemon *d, const char *node);

/* ---- for news.c ---- */

/* How many nodes are known from this one. */
uint32_t chempi_nodes_count_told(const struct chempi_members *m,
                                 const char *teller);
/* 1: it is new; 0: it was known, or -errno. */
int chempi_nodes_put(struct chempi_daemon *d,
                     const struct chempi_member *claim);
void chempi_nodes_write(struct chempi_writer *w, const char *name,
                        const char *address, uint32_t slots);
/* Tell what is news to the neighbours it did not come from. */
void chempi_nodes_spread(struct chempi_daemon *d,
                         const struct chempi_conn *from,
                         const struct chempi_writer *news, uint32_t count);

#endif
