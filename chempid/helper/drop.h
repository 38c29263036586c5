/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Giving up root: the process that reads what others send becomes a user that
 * has nothing. Its helper stays root (helper.h).
 */
#ifndef CHEMPI_CHEMPID_DROP_H
#define CHEMPI_CHEMPID_DROP_H

#include <sys/types.h>

#include "common/base/err.h"

#define CHEMPI_DROP_USER "chempid" /* where there is one */
#define CHEMPI_DROP_UID 65530 /* else: nobody's, by no distribution's rules */

struct chempi_drop {
    uid_t uid;
    gid_t gid;
};

/* The user of this name; NULL: the usual one. 0; -ENOENT, -EPERM (root, or its
 * group), -EEXIST (CHEMPI_DROP_UID is somebody's), with words. */
int chempi_drop_choose(const char *name, struct chempi_drop *out,
                       struct chempi_err *err);

/* Become that user, without groups, capabilities and ways to get any, also by
 * programs with another one's rights; no process of the same user can trace
 * this one. 0 or -errno with words: the process has to end then. */
int chempi_drop_now(const struct chempi_drop *drop, struct chempi_err *err);

#endif
