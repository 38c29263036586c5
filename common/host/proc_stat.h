/* SPDX-License-Identifier: BSD-3-Clause */
/* What /proc/PID/stat says of a process. */
#ifndef CHEMPI_COMMON_HOST_PROC_STAT_H
#define CHEMPI_COMMON_HOST_PROC_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct chempi_proc_stat {
    pid_t parent;
    bool has_ended; /* all its threads have, and nobody has waited for it */
    uint64_t born;  /* clock ticks since the machine started; with the number
                       it is the process's own for good */
};

/* 0 or -errno; -ENOENT or -ESRCH: there is none of this number. */
int chempi_proc_stat(pid_t pid, struct chempi_proc_stat *out);

#endif
