/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nodes that a daemon knows, with the addresses of their daemons. They
 * come from a cluster file, from the ready files in the daemons' directory,
 * or from other daemons (join).
 *
 * A cluster file has a node a line: NAME ADDRESS:PORT [SLOTS]; what follows
 * "#" is a comment. A ready file DIR/NAME.node has one such line, of NAME.
 */
#ifndef CHEMPI_CHEMPID_MEMBERS_H
#define CHEMPI_CHEMPID_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "chempid/tree/addr.h"
#include "common/base/err.h"
#include "common/containers/index.h"
#include "common/control/client.h"

#define CHEMPI_MEMBERS_MAX 65536u
#define CHEMPI_CLUSTER_FILE_MAX (16u << 20) /* bytes */
#define CHEMPI_SLOTS_MAX 65535u             /* of a node: u16 in its table */
#define CHEMPI_READY_SUFFIX ".node"
#define CHEMPI_SOCKET_SUFFIX ".sock"

#define CHEMPI_MEMBER_KEY 32u /* bytes of a node's own key */

struct chempi_member {
    char name[CHEMPI_NODE_NAME_MAX];
    char address[CHEMPI_ADDR_MAX];
    uint32_t slots;                    /* 0: not known */
    char teller[CHEMPI_NODE_NAME_MAX]; /* which node said so; "": a file */
    uint8_t teller_key[CHEMPI_MEMBER_KEY];
    bool is_gone; /* taken back; prune() is due */
};

struct chempi_members { /* all zero: empty; in the order of arrival */
    struct chempi_member *list;
    uint32_t count;
    uint32_t cap;
    struct chempi_index index; /* by name */
};

bool chempi_members_is_name(const char *name);

struct chempi_member *chempi_members_find(const struct chempi_members *m,
                                          const char *name);
/* Add, or change the address of one that is known; as if a file said so. 1:
 * news, 0: known as it is, -EINVAL, -ENOSPC, -ENOMEM. */
int chempi_members_add(struct chempi_members *m, const char *name,
                       const char *address, uint32_t slots);

/* Forget those that are not wanted any more; the others keep their order. */
void chempi_members_prune(struct chempi_members *m,
                          bool (*is_wanted)(void *arg,
                                            const struct chempi_member *one),
                          void *arg);

/* Read a cluster file; errors name file and line. */
int chempi_members_read(struct chempi_members *m, const char *path,
                        struct chempi_err *err);
/* Read the ready files of a directory; files that are no such are left. */
void chempi_members_scan(struct chempi_members *m, const char *dir);
/* Read one node's ready file, if there is one. */
void chempi_members_seek(struct chempi_members *m, const char *dir,
                         const char *name);

void chempi_members_fini(struct chempi_members *m);

#endif
