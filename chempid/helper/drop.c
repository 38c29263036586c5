/* SPDX-License-Identifier: BSD-3-Clause */
/* Giving up root; see drop.h. */
#define _GNU_SOURCE /* setresuid, setgroups */
#include "chempid/helper/drop.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "chempid/process/become.h"

int chempi_drop_choose(const char *name, struct chempi_drop *out,
                       struct chempi_err *err)
{
    const struct passwd *pw = getpwnam(name ? name : CHEMPI_DROP_USER);

    if (!pw && name)
        return chempi_err_set(err, -ENOENT,
                              "--user %s: this node has no such user", name);
    if (pw && (pw->pw_uid == 0 || pw->pw_gid == 0))
        return chempi_err_set(err, -EPERM,
                              "user %s is root or in root's group: a daemon "
                              "that serves all users needs one that has "
                              "nothing; say another --user",
                              pw->pw_name);
    if (pw) {
        *out = (struct chempi_drop){pw->pw_uid, pw->pw_gid};
        return 0;
    }
    pw = getpwuid(CHEMPI_DROP_UID);
    if (pw)
        return chempi_err_set(err, -EEXIST,
                              "user number %d is %s's on this node: make a "
                              "user " CHEMPI_DROP_USER " for the daemon "
                              "('useradd --system " CHEMPI_DROP_USER
                              "'), or say --user",
                              CHEMPI_DROP_UID, pw->pw_name);
    *out = (struct chempi_drop){CHEMPI_DROP_UID, CHEMPI_DROP_UID};
    return 0;
}

int chempi_drop_now(const struct chempi_drop *drop, struct chempi_err *err)
{
    if (chempi_become_bare() || setgroups(0, NULL) < 0 ||
        setresgid(drop->gid, drop->gid, drop->gid) < 0 ||
        setresuid(drop->uid, drop->uid, drop->uid) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return chempi_err_set(err, -errno, "cannot become user %ld: %s",
                              (long)drop->uid, chempi_err_name(errno));
    /* Where the kernel keeps capabilities over that, nothing was gained. */
    if (setresuid(0, 0, 0) == 0)
        return chempi_err_set(err, -EPERM,
                              "root is not given up for good: this node keeps "
                              "capabilities (securebits)");
    return 0;
}
