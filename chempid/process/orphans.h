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

/* Told of each child of a sweep: whether it has been reaped now. */
typedef void chempi_orphans_seen_fn(void *arg, pid_t pid, bool is_gone);

/* Kill all children but the spared and reap those that have ended, without
 * waiting for any. Returns how many have not ended yet (SIGCHLD will tell), or
 * -errno. It looks at a bounded number, and raises SIGCHLD when there may be
 * more: so the caller comes back after its other work. Those of which `slow`
 * says that they do not end are looked at once, and are no reason to come back.
 * Both may be NULL; `seen` is called more than once of a child. */
int chempi_orphans_sweep(chempi_orphans_spare_fn *spare,
                         chempi_orphans_spare_fn *slow,
                         chempi_orphans_seen_fn *seen, void *arg);

/* Sweep until nothing is left or the time is up: a child that others trace, or
 * that waits for a device, may not end. Blocks SIGCHLD, and waits for it; not
 * for event loops. Returns as a sweep does. */
int chempi_orphans_end(chempi_orphans_spare_fn *spare, void *arg,
                       unsigned limit_ms);

#endif
