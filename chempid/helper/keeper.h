/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keeper: a small child of the daemon that removes the daemon's files
 * when the daemon is gone, however it went. If the keeper is killed, the
 * daemon starts another.
 *
 * It is started before there are files. A file is made under a passing name,
 * PATH with the process id of the daemon behind it, which the keeper
 * knows from the beginning; then the keeper is told which file it is, and only
 * then the file gets its own name. So there is no moment at which a file would
 * be forgotten, and a successor's file of the same name is left alone.
 *
 * The control groups of the daemon's jobs are its business, too: what is in
 * them is killed then, and they are removed.
 */
#ifndef CHEMPI_CHEMPID_KEEPER_H
#define CHEMPI_CHEMPID_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "chempid/process/cgroup.h"
#include "common/base/err.h"

#define CHEMPI_KEEPER_FILES 2

struct chempi_keeper {
    const char *paths[CHEMPI_KEEPER_FILES]; /* the caller's */
    struct stat files[CHEMPI_KEEPER_FILES];
    bool is_known[CHEMPI_KEEPER_FILES]; /* files[] is valid */
    const struct chempi_cgroups *groups;
    pid_t pid;
    int fd; /* closes when either of the two ends */
};

/* Fork a keeper, which knows what the daemon knows. */
int chempi_keeper_start(struct chempi_keeper *k, struct chempi_err *err);
/* The passing name of a file. -ENAMETOOLONG when it does not fit. */
int chempi_keeper_name(const char *path, char *out, size_t size,
                       struct chempi_err *err);
/* Tell it that this file, which now has the name `where`, is number `i`. */
int chempi_keeper_tell(struct chempi_keeper *k, int i, const char *where,
                       struct chempi_err *err);
/* It has been killed: close its socket, and leave its process to others. */
void chempi_keeper_forget(struct chempi_keeper *k);
/* End it, and wait until it has removed the files; without a keeper, or if it
 * was killed, they are removed here. */
void chempi_keeper_stop(struct chempi_keeper *k);

#endif
