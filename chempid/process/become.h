/* SPDX-License-Identifier: BSD-3-Clause */
/* Becoming a job's user, in a supervisor that is still root. */
#ifndef CHEMPI_CHEMPID_BECOME_H
#define CHEMPI_CHEMPID_BECOME_H

#include <stdbool.h>
#include <stdint.h>

#include "chempid/job/shell.h"
#include "chempid/process/cgroup.h"
#include "common/base/err.h"

/* A daemon that runs as root does the job as its user. Groups come from this
 * node's database, never from another node; limits are raised so far that the
 * ranks can have those of the shell; the process dumps nothing from then on
 * (dumps.h). May wait for that database. 0; -ENOENT: no such user, -EPERM: not
 * of that group; -errno; with words. */
int chempi_become_user(uint32_t uid, uint32_t gid,
                       const struct chempi_shell *shell,
                       struct chempi_err *err);

/* What a process of root's has besides its numbers, and others shall not: the
 * keys of its session (keyrings(7)), which fork and setuid keep, and a
 * protection from the kernel's lack of memory. To be called as root. 0, or
 * -errno where the keys remain. */
int chempi_become_bare(void);

/* The same after it has entered the control group (NULL, or zeros: none).
 * Otherwise says REFUSED with the words on the link fd, no longer as root, and
 * returns false: the process is to end. */
bool chempi_become_or_tell(uint32_t uid, uint32_t gid,
                           const struct chempi_shell *shell,
                           const struct chempi_cgroup *group, int fd);

#endif
