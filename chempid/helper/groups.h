/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control groups of a daemon's jobs (chempid/process/cgroup.h), as its
 * options say.
 */
#ifndef CHEMPI_CHEMPID_GROUPS_H
#define CHEMPI_CHEMPID_GROUPS_H

#include "chempid/process/cgroup.h"

/* limits: a file of joblimits.h, or NULL. Where there are no groups, that is
 * logged; -errno with words: the file is wrong. */
int chempi_groups_open(struct chempi_cgroups *groups, const char *node,
                       const char *limits, struct chempi_err *err);
/* When all supervisors are gone. */
void chempi_groups_close(struct chempi_cgroups *groups);

#endif
