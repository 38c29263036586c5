/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tells when memory of this process loses its pages: unmapped, mapped over,
 * moved by mremap(), emptied by madvise(). Whoever keeps something by address
 * (registrations) must forget it then, before the addresses come back.
 *
 * The kernel reports it through userfaultfd(2); the thread that unmaps waits
 * there until the report is read, so a thread of the watch does nothing but
 * read. No page is protected or missing: programs fault as ever. A process
 * without privileges may have this too (UFFD_USER_MODE_ONLY); where it may
 * not, open() says so, and nothing may be kept.
 *
 *   W1  news is set before a report is read, and reading and storing happen
 *       under the lock: a thread that returns from munmap() and then looks at
 *       has_news() cannot miss its own report
 *   -   the reader never allocates or frees: that could unmap, and wait for
 *       itself. Reports it cannot store become "everything is gone"
 *   W3  a forked child closes its copy of the descriptor, so that ranges are
 *       released with this process's last one
 *
 * Threads: one at a time, but for the reader. Nothing here blocks longer than
 * the kernel needs.
 */
#ifndef CHEMPI_LIBCHEMPI_SERVICES_MEMORY_HOOKS_H
#define CHEMPI_LIBCHEMPI_SERVICES_MEMORY_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chempi_memory_hooks;

/* Pages [start, end) are not what they were. */
struct chempi_memory_hooks_event {
    uintptr_t start;
    uintptr_t end;
    uintptr_t moved_to; /* where they are now; 0: not moved */
};

/* -ENOSYS, -EPERM, -EINVAL (an older kernel): memory cannot be watched here.
 * One watch per process: memory has one watcher. */
int chempi_memory_hooks_open(struct chempi_memory_hooks **out);
/* Accepts NULL. Ranges still added are removed as far as they are known to be
 * whole; remove them before. */
void chempi_memory_hooks_close(struct chempi_memory_hooks *watch);

/* Watch whole pages. Adding twice is once. -EINVAL: not this kind of memory
 * (an older kernel, or nothing is mapped); -EBUSY: somebody else watches it;
 * -ENOMEM. */
int chempi_memory_hooks_add(struct chempi_memory_hooks *watch, uintptr_t start,
                            size_t len);
/* Parts that are not mapped any more do not matter. */
void chempi_memory_hooks_remove(struct chempi_memory_hooks *watch,
                                uintptr_t start, size_t len);

/* Has something happened? One load. */
bool chempi_memory_hooks_has_news(const struct chempi_memory_hooks *watch);
/* The next report, oldest first; false: none is left. */
bool chempi_memory_hooks_next(struct chempi_memory_hooks *watch,
                              struct chempi_memory_hooks_event *event);

#endif
