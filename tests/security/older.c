/* SPDX-License-Identifier: BSD-3-Clause */
/* For LD_PRELOAD: a kernel before 6.16, which refuses no descriptors. */
#define _GNU_SOURCE /* syscall */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PASSRIGHTS = 83 /* asm-generic/socket.h */ };

__attribute__((visibility("default"))) int
setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    if (level != SOL_SOCKET || name != PASSRIGHTS)
        return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
    errno = ENOPROTOOPT;
    return -1;
}

__attribute__((visibility("default"))) int
getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    if (level != SOL_SOCKET || name != PASSRIGHTS)
        return (int)syscall(SYS_getsockopt, fd, level, name, value, len);
    errno = ENOPROTOOPT;
    return -1;
}
