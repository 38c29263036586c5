/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keeper: a small child of the daemon that removes the daemon's files
 * when the daemon is gone, however it went. If the keeper is killed, the
 * daemon starts another.
 */
#ifndef CHEMPI_CHEMPID_KEEPER_H
#define CHEMPI_CHEMPID_KEEPER_H

#include <sys/types.h>

#include "common/base/err.h"

struct chempi_keeper {
    pid_t pid;
    int fd; /* closes when either of the two ends */
};

/* Fork a keeper for these files (NULL ends the list); they must exist, and
 * only these very files are removed, not others of the same names. */
int chempi_keeper_start(struct chempi_keeper *k, const char *const *paths,
                        struct chempi_err *err);
/* End it, and wait until it has removed the files. */
void chempi_keeper_stop(struct chempi_keeper *k);

#endif
