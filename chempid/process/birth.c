/* SPDX-License-Identifier: BSD-3-Clause */
/* Children by clone3(); see birth.h. */
#define _GNU_SOURCE /* syscall */
#include "chempid/process/birth.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ThreadSanitizer has a thread of its own, which fork() alone looks after. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_THREADS true
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define HAS_THREADS true
#endif
#ifndef HAS_THREADS
#define HAS_THREADS false
#endif

pid_t chempi_birth_clone(uint64_t flags, int group_fd)
{
    struct clone_args args = {.flags = flags, .exit_signal = SIGCHLD};

    if (HAS_THREADS) {
        errno = ENOSYS;
        return -1;
    }
    if (flags & CLONE_INTO_CGROUP)
        args.cgroup = (__u64)group_fd;
    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}
