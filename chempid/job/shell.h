/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks have of the process that has submitted their job, as they would if
 * it had started them: resource limits and umask. The daemon that the launcher
 * speaks to reads them from that process; nobody claims them. It travels with
 * LAUNCH from there on.
 */
#ifndef CHEMPI_CHEMPID_SHELL_H
#define CHEMPI_CHEMPID_SHELL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "common/base/err.h"
#include "common/control/wire.h"

#define CHEMPI_SHELL_BYTES_MAX 512u

struct chempi_shell {
    bool is_known; /* else ranks have what their supervisor was started with */
    uint32_t umask;
    uint32_t count; /* limits that are known: those numbered below */
    struct rlimit limits[RLIM_NLIMITS];
};

/* Of the process at the other end of a Unix socket. -ESRCH: it has ended,
 * -errno; with words. */
int chempi_shell_read(struct chempi_shell *shell, int sock,
                      struct chempi_err *err);

/* As a blob, empty if it is not known. */
void chempi_shell_write(const struct chempi_shell *shell,
                        struct chempi_writer *w);
/* 0 or -EBADMSG. */
int chempi_shell_take(struct chempi_shell *shell, struct chempi_reader *r);

/* In a supervisor that is still root: nothing shall be less than the ranks may
 * have, but there shall be no more processes: the kernel asks for the limit of
 * whoever forks, not of the child. */
void chempi_shell_confine(const struct chempi_shell *shell);
/* In a child that becomes a program: have it, as far as this process may. */
void chempi_shell_wear(const struct chempi_shell *shell);

#endif
