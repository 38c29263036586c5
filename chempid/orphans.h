/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descendants of a process that is a subreaper: whatever loses its parent
 * becomes its child, so killing children until none is left kills the whole
 * tree, also what has left its process group or session.
 */
#ifndef CHEMPI_CHEMPID_ORPHANS_H
#define CHEMPI_CHEMPID_ORPHANS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Children of this process, in no order: malloc'ed *out, *count of them. 0,
 * -ENOMEM, or -errno when /proc cannot be read. */
int chempi_orphans_list(pid_t **out, size_t *count);

/* Says whether a child shall be left alone. */
typedef bool chempi_orphans_spare_fn(void *arg, pid_t pid);

/* SIGKILL to all children but the spared (spare NULL: none is). Returns the
 * number of those killed, or -errno. Does not wait. */
int chempi_orphans_kill(chempi_orphans_spare_fn *spare, void *arg);

/* Kill and reap until no child is left that is not spared; blocks for as long
 * as the kernel takes to end them. */
void chempi_orphans_end(chempi_orphans_spare_fn *spare, void *arg);

#endif
