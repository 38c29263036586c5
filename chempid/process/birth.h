/* SPDX-License-Identifier: BSD-3-Clause */
/* What only clone3() can say of a child. */
#ifndef CHEMPI_CHEMPID_BIRTH_H
#define CHEMPI_CHEMPID_BIRTH_H

#include <linux/sched.h> /* CLONE_FILES, CLONE_INTO_CGROUP */
#include <stdint.h>
#include <sys/types.h>

/*
 * fork() with CLONE_INTO_CGROUP (group_fd), or with CLONE_FILES: then the child
 * may open, close and change no descriptor until it has called close_range()
 * with CLOSE_RANGE_UNSHARE. The pid, 0 in the child, -1 with errno: ENOSYS,
 * EPERM or EINVAL where that cannot be had, and fork() is to be called.
 */
pid_t chempi_birth_clone(uint64_t flags, int group_fd);

#endif
