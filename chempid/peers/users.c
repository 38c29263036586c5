/* SPDX-License-Identifier: BSD-3-Clause */
/* Whom a daemon serves; see users.h. */
#define _GNU_SOURCE /* realpath */
#include "chempid/peers/users.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd/file.h"

/* Does a folder keep all others out, whatever is below it? */
static bool is_closed(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && chempi_file_is_ours(&st) &&
           (st.st_mode & (S_IXGRP | S_IXOTH)) == 0;
}

/* The directory, or one above it. */
static bool is_private(char *path)
{
    char *end = path + strlen(path);

    while (end > path) {
        *end = '\0';
        if (is_closed(path))
            return true;
        while (end > path && *--end != '/')
            ;
    }
    return false;
}

int chempi_users_decide(enum chempi_serve wish, const char *dir,
                        bool *serves_users, struct chempi_err *err)
{
    char path[PATH_MAX];

    if (wish == CHEMPI_SERVE_USERS && geteuid() != 0)
        return chempi_err_set(err, -EPERM,
                              "--serve users needs root: user %ld cannot start "
                              "ranks of others",
                              (long)geteuid());
    if (!realpath(dir, path))
        return chempi_err_set(err, -errno, "%s: %s", dir,
                              chempi_err_name(errno));
    *serves_users =
        wish == CHEMPI_SERVE_USERS ||
        (wish == CHEMPI_SERVE_UNSAID && geteuid() == 0 && !is_private(path));
    return 0;
}

bool chempi_users_is_client(bool serves_users, uid_t uid)
{
    return serves_users || uid == geteuid() || uid == 0;
}

int chempi_users_check(bool serves_users, const char *node, uid_t uid,
                       gid_t gid, struct chempi_err *err)
{
    if (!serves_users && uid != geteuid())
        return chempi_err_set(err, -EPERM,
                              "the daemon of node %s serves user %ld only and "
                              "starts no ranks of user %ld",
                              node, (long)geteuid(), (long)uid);
    if (serves_users && (uid == 0 || gid == 0))
        return chempi_err_set(err, -EPERM,
                              "the daemon of node %s serves all users and "
                              "starts no ranks of %s; start jobs as another "
                              "user, or a daemon with --serve owner and a "
                              "--dir of its own",
                              node, uid == 0 ? "root" : "root's group");
    return 0;
}
