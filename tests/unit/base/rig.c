/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls that fail on demand; see rig.h. */
#define _GNU_SOURCE /* process_vm_readv */
#include "tests/unit/base/rig.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "common/base/compiler.h"
#include "common/base/sys.h"

#define PARTS 64u /* of a list, at most */

static struct {
    struct chempi_sys table;
    unsigned which;
    unsigned calls;
    unsigned nth; /* 0: never */
    int error;
    bool is_lasting;
    size_t max;
} rig;

/* What the kernel says where there is no more of it. */
static int usual_error(enum rig_call call)
{
    switch (call) {
    case RIG_SOCKET:
    case RIG_ACCEPT:
    case RIG_OPEN:
        return EMFILE;
    case RIG_EPOLL:
        return ENOSPC;
    default:
        return ENOMEM;
    }
}

/* Does this call have to fail? */
static bool is_hit(enum rig_call call)
{
    if (!(rig.which & call) || ++rig.calls < rig.nth || !rig.nth ||
        (rig.calls > rig.nth && !rig.is_lasting))
        return false;
    errno = rig.error ? rig.error : usual_error(call);
    return true;
}

static void *rig_malloc(size_t size)
{
    return is_hit(RIG_MALLOC) ? NULL : malloc(size);
}

static void *rig_calloc(size_t n, size_t size)
{
    return is_hit(RIG_MALLOC) ? NULL : calloc(n, size);
}

static void *rig_realloc(void *ptr, size_t size)
{
    return is_hit(RIG_MALLOC) ? NULL : realloc(ptr, size);
}

static void *rig_mmap(void *addr, size_t len, int prot, int flags, int fd,
                      off_t off)
{
    return is_hit(RIG_MMAP)
               ? MAP_FAILED
               : chempi_sys_libc.mmap(addr, len, prot, flags, fd, off);
}

static int rig_memfd_create(const char *name, unsigned flags)
{
    return is_hit(RIG_MEMFD) ? -1 : chempi_sys_libc.memfd_create(name, flags);
}

static int rig_fallocate(int fd, int mode, off_t off, off_t len)
{
    return is_hit(RIG_FALLOCATE)
               ? -1
               : chempi_sys_libc.fallocate(fd, mode, off, len);
}

/* The first bytes of a list, as many as may move. */
static size_t cut(const struct iovec *iov, size_t count, struct iovec *part)
{
    size_t left = rig.max ? rig.max : SIZE_MAX;
    size_t n = 0;

    for (; n < count && n < PARTS && left; n++) {
        part[n] = iov[n];
        if (part[n].iov_len > left)
            part[n].iov_len = left;
        left -= part[n].iov_len;
    }
    return n;
}

static ssize_t rig_readv(pid_t pid, const struct iovec *local,
                         unsigned long nlocal, const struct iovec *remote,
                         unsigned long nremote, unsigned long flags)
{
    struct iovec part[PARTS];
    unsigned long n = cut(local, nlocal, part);

    return is_hit(RIG_READV) ? -1
                             : chempi_sys_libc.process_vm_readv(
                                   pid, part, n, remote, nremote, flags);
}

static ssize_t rig_writev(pid_t pid, const struct iovec *local,
                          unsigned long nlocal, const struct iovec *remote,
                          unsigned long nremote, unsigned long flags)
{
    struct iovec part[PARTS];
    unsigned long n = cut(local, nlocal, part);

    return is_hit(RIG_WRITEV) ? -1
                              : chempi_sys_libc.process_vm_writev(
                                    pid, part, n, remote, nremote, flags);
}

static int rig_open(const char *path, int flags, mode_t mode)
{
    return is_hit(RIG_OPEN) ? -1 : chempi_sys_libc.open(path, flags, mode);
}

static int rig_socket(int domain, int type, int protocol)
{
    return is_hit(RIG_SOCKET) ? -1
                              : chempi_sys_libc.socket(domain, type, protocol);
}

static int rig_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
    return is_hit(RIG_BIND) ? -1 : chempi_sys_libc.bind(fd, addr, len);
}

static int rig_listen(int fd, int backlog)
{
    return is_hit(RIG_LISTEN) ? -1 : chempi_sys_libc.listen(fd, backlog);
}

static int rig_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
    return is_hit(RIG_ACCEPT) ? -1
                              : chempi_sys_libc.accept4(fd, addr, len, flags);
}

static int rig_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    return is_hit(RIG_CONNECT) ? -1 : chempi_sys_libc.connect(fd, addr, len);
}

static ssize_t rig_sendmsg(int fd, const struct msghdr *given, int flags)
{
    struct msghdr msg = *given;
    struct iovec part[PARTS];

    if (is_hit(RIG_SEND))
        return -1;
    msg.msg_iovlen = cut(given->msg_iov, given->msg_iovlen, part);
    msg.msg_iov = part;
    return chempi_sys_libc.sendmsg(fd, &msg, flags);
}

static ssize_t rig_recvmsg(int fd, struct msghdr *given, int flags)
{
    struct iovec part[PARTS];
    struct iovec *iov = given->msg_iov;
    const size_t count = given->msg_iovlen;
    ssize_t n;

    if (is_hit(RIG_RECV))
        return -1;
    given->msg_iovlen = cut(iov, count, part);
    given->msg_iov = part;
    n = chempi_sys_libc.recvmsg(fd, given, flags);
    given->msg_iovlen = count;
    given->msg_iov = iov;
    return n;
}

static size_t at_most(size_t len)
{
    return rig.max && len > rig.max ? rig.max : len;
}

static ssize_t rig_send(int fd, const void *buf, size_t len, int flags)
{
    return is_hit(RIG_SEND)
               ? -1
               : chempi_sys_libc.send(fd, buf, at_most(len), flags);
}

static ssize_t rig_recv(int fd, void *buf, size_t len, int flags)
{
    return is_hit(RIG_RECV)
               ? -1
               : chempi_sys_libc.recv(fd, buf, at_most(len), flags);
}

static int rig_epoll_create1(int flags)
{
    return is_hit(RIG_EPOLL) ? -1 : chempi_sys_libc.epoll_create1(flags);
}

static int rig_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
    /* Taking one out cannot fail while it is in. */
    if (op != EPOLL_CTL_DEL && is_hit(RIG_EPOLL))
        return -1;
    return chempi_sys_libc.epoll_ctl(epfd, op, fd, ev);
}

static void install(void)
{
    rig.table = chempi_sys_libc;
    rig.table.malloc = rig_malloc;
    rig.table.calloc = rig_calloc;
    rig.table.realloc = rig_realloc;
    rig.table.mmap = rig_mmap;
    rig.table.memfd_create = rig_memfd_create;
    rig.table.fallocate = rig_fallocate;
    rig.table.process_vm_readv = rig_readv;
    rig.table.process_vm_writev = rig_writev;
    rig.table.open = rig_open;
    rig.table.socket = rig_socket;
    rig.table.bind = rig_bind;
    rig.table.listen = rig_listen;
    rig.table.accept4 = rig_accept4;
    rig.table.connect = rig_connect;
    rig.table.sendmsg = rig_sendmsg;
    rig.table.recvmsg = rig_recvmsg;
    rig.table.send = rig_send;
    rig.table.recv = rig_recv;
    rig.table.epoll_create1 = rig_epoll_create1;
    rig.table.epoll_ctl = rig_epoll_ctl;
    chempi_sys = &rig.table;
}

void rig_fail(unsigned which, unsigned nth, int error, int is_lasting)
{
    install();
    rig.which = which;
    rig.calls = 0;
    rig.nth = nth;
    rig.error = error;
    rig.is_lasting = is_lasting != 0;
}

void rig_limit(size_t max)
{
    install();
    rig.max = max;
}

unsigned rig_calls(void)
{
    return rig.calls;
}

void rig_reset(void)
{
    memset(&rig, 0, sizeof(rig));
    chempi_sys = &chempi_sys_libc;
}
