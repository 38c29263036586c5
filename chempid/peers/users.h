/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whom a daemon serves: its owner only, or (root's) all users but root. The
 * same rule holds for clients of the Unix socket and for what other daemons
 * say in the name of users: root on one node, or a stolen key, is not root on
 * another.
 */
#ifndef CHEMPI_CHEMPID_USERS_H
#define CHEMPI_CHEMPID_USERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/err.h"

/* --serve */
enum chempi_serve {
    CHEMPI_SERVE_UNSAID, /* users, if root's and others reach its directory */
    CHEMPI_SERVE_OWNER,
    CHEMPI_SERVE_USERS
};

/* Decide for a daemon with this directory, which exists. 0; -EPERM with words:
 * it cannot serve all users; -errno. */
int chempi_users_decide(enum chempi_serve wish, const char *dir,
                        bool *serves_users, struct chempi_err *err);

/* May a process of this user be a client? */
bool chempi_users_is_client(bool serves_users, uid_t uid);

/* May ranks run as this user and group on this node? 0, -EPERM with words. */
int chempi_users_check(bool serves_users, const char *node, uid_t uid,
                       gid_t gid, struct chempi_err *err);

#endif
