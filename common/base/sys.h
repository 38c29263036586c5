/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The failure seam: system calls that open, connect, allocate or move data go
 * through this table, so that a test can rig the nth call to fail. Production
 * code never writes chempi_sys; tests swap in a copy of chempi_sys_libc.
 * Semantics are those of the libc functions (result and errno).
 */
#ifndef CHEMPI_COMMON_BASE_SYS_H
#define CHEMPI_COMMON_BASE_SYS_H

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

struct chempi_sys {
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t n, size_t size);
    void *(*realloc)(void *ptr, size_t size);
    int (*posix_memalign)(void **ptr, size_t align, size_t size);
    void *(*mmap)(void *addr, size_t len, int prot, int flags, int fd,
                  off_t off);
    int (*munmap)(void *addr, size_t len);
    int (*memfd_create)(const char *name, unsigned flags);
    int (*fallocate)(int fd, int mode, off_t off, off_t len);
    int (*ftruncate)(int fd, off_t len);
    int (*open)(const char *path, int flags, mode_t mode);
    ssize_t (*read)(int fd, void *buf, size_t len);
    ssize_t (*write)(int fd, const void *buf, size_t len);
    int (*socket)(int domain, int type, int protocol);
    int (*socketpair)(int domain, int type, int protocol, int fds[2]);
    int (*bind)(int fd, const struct sockaddr *addr, socklen_t len);
    int (*listen)(int fd, int backlog);
    int (*accept4)(int fd, struct sockaddr *addr, socklen_t *len, int flags);
    int (*connect)(int fd, const struct sockaddr *addr, socklen_t len);
    ssize_t (*sendmsg)(int fd, const struct msghdr *msg, int flags);
    ssize_t (*recvmsg)(int fd, struct msghdr *msg, int flags);
    ssize_t (*send)(int fd, const void *buf, size_t len, int flags);
    ssize_t (*recv)(int fd, void *buf, size_t len, int flags);
    int (*epoll_create1)(int flags);
    int (*epoll_ctl)(int epfd, int op, int fd, struct epoll_event *ev);
    int (*epoll_wait)(int epfd, struct epoll_event *evs, int max,
                      int timeout_ms);
    int (*eventfd)(unsigned init, int flags);
    pid_t (*fork)(void);
    int (*pipe2)(int fds[2], int flags);
    ssize_t (*process_vm_readv)(pid_t pid, const struct iovec *local,
                                unsigned long nlocal,
                                const struct iovec *remote,
                                unsigned long nremote, unsigned long flags);
    ssize_t (*process_vm_writev)(pid_t pid, const struct iovec *local,
                                 unsigned long nlocal,
                                 const struct iovec *remote,
                                 unsigned long nremote, unsigned long flags);
};

extern const struct chempi_sys chempi_sys_libc; /* the real calls */
extern const struct chempi_sys *chempi_sys;     /* what everybody calls */

#endif
