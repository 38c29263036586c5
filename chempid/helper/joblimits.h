/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job may have of a node, as the node's administrator writes it:
 *
 *     # comment
 *     memory 8G
 *     processes 4096
 *     cpus 2.5
 */
#ifndef CHEMPI_CHEMPID_JOBLIMITS_H
#define CHEMPI_CHEMPID_JOBLIMITS_H

#include "chempid/process/cgroup.h"
#include "common/base/err.h"

/* The file must be the daemon's user's or root's, and nobody else may write it.
 * 0 or -errno with words that name file and line. */
int chempi_joblimits_read(struct chempi_cgroup_limits *limits, const char *path,
                          struct chempi_err *err);

#endif
