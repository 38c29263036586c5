/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linked into launcher and daemon with "-Wl,--wrap=CALL" for every call below:
 * counts the calls of all processes that share the file $CHEMPI_TEST_RIG, and
 * lets one of them fail, or its process die or stand still on the spot.
 * calls.py writes the file's first bytes, a struct order.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct order {
    char call[32];        /* name, or "any" */
    int32_t nth;          /* which one, from 1; 0: only count */
    int32_t action;       /* errno, 0: the call's usual one, or -signal */
    _Atomic int32_t seen; /* calls of this name */
    _Atomic int32_t pid;  /* where it happened; 0: it did not */
    char comm[16];        /* name of that process */
};

static struct order *order;

/* The launcher has it: $CHEMPI_TEST_DEBUGGED does what a debugger does. */
__attribute__((weak)) extern volatile int MPIR_being_debugged;

__attribute__((constructor)) static void attach(void)
{
    const char *path = getenv("CHEMPI_TEST_RIG");
    FILE *file = path ? fopen(path, "r+e") : NULL;

    if (&MPIR_being_debugged && getenv("CHEMPI_TEST_DEBUGGED"))
        MPIR_being_debugged = 1;
    if (!file)
        return;
    order = mmap(NULL, sizeof(*order), PROT_READ | PROT_WRITE, MAP_SHARED,
                 fileno(file), 0);
    if (order == MAP_FAILED)
        order = NULL;
    (void)fclose(file);
}

static bool is_due(const char *call, int usual)
{
    const char *wanted;

    if (!order)
        return false;
    wanted = order->call;
    if (strcmp(wanted, call) != 0 && strcmp(wanted, "any") != 0)
        return false;
    if (atomic_fetch_add(&order->seen, 1) + 1 != order->nth)
        return false;
    (void)prctl(PR_GET_NAME, order->comm);
    atomic_store(&order->pid, getpid());
    if (order->action < 0)
        (void)kill(getpid(), -order->action);
    errno = order->action > 0 ? order->action : usual;
    return true;
}

#define RIG(type, name, bad, usual, params, args)                              \
    type __real_##name params;                                                 \
    type __wrap_##name params;                                                 \
    type __wrap_##name params                                                  \
    {                                                                          \
        return is_due(#name, usual) ? (bad) : __real_##name args;              \
    }

RIG(void *, malloc, NULL, ENOMEM, (size_t n), (n))
RIG(void *, calloc, NULL, ENOMEM, (size_t n, size_t size), (n, size))
RIG(void *, realloc, NULL, ENOMEM, (void *p, size_t size), (p, size))
RIG(void *, mmap64, MAP_FAILED, ENOMEM,
    (void *at, size_t len, int prot, int flags, int fd, off_t off),
    (at, len, prot, flags, fd, off))
RIG(int, memfd_create, -1, EMFILE, (const char *name, unsigned flags),
    (name, flags))
RIG(int, fallocate64, -1, ENOSPC, (int fd, int mode, off_t off, off_t len),
    (fd, mode, off, len))
RIG(int, ftruncate64, -1, ENOSPC, (int fd, off_t len), (fd, len))
RIG(ssize_t, read, -1, EIO, (int fd, void *buf, size_t len), (fd, buf, len))
RIG(ssize_t, write, -1, EIO, (int fd, const void *buf, size_t len),
    (fd, buf, len))
RIG(int, socket, -1, EMFILE, (int domain, int type, int protocol),
    (domain, type, protocol))
RIG(int, socketpair, -1, EMFILE, (int domain, int type, int protocol, int *fds),
    (domain, type, protocol, fds))
RIG(int, bind, -1, EADDRINUSE,
    (int fd, const struct sockaddr *addr, socklen_t len), (fd, addr, len))
RIG(int, listen, -1, EADDRINUSE, (int fd, int backlog), (fd, backlog))
RIG(int, accept4, -1, EMFILE,
    (int fd, struct sockaddr *addr, socklen_t *len, int flags),
    (fd, addr, len, flags))
RIG(int, connect, -1, ECONNREFUSED,
    (int fd, const struct sockaddr *addr, socklen_t len), (fd, addr, len))
RIG(ssize_t, sendmsg, -1, ENOBUFS,
    (int fd, const struct msghdr *msg, int flags), (fd, msg, flags))
RIG(ssize_t, recvmsg, -1, ENOMEM, (int fd, struct msghdr *msg, int flags),
    (fd, msg, flags))
RIG(ssize_t, send, -1, ENOBUFS,
    (int fd, const void *buf, size_t len, int flags), (fd, buf, len, flags))
RIG(ssize_t, recv, -1, ENOMEM, (int fd, void *buf, size_t len, int flags),
    (fd, buf, len, flags))
RIG(int, eventfd, -1, EMFILE, (unsigned init, int flags), (init, flags))
RIG(pid_t, fork, -1, EAGAIN, (void), ())
RIG(pid_t, chempi_birth_clone, -1, EAGAIN, (uint64_t flags, int group_fd),
    (flags, group_fd))
RIG(int, close_range, -1, EMFILE, (unsigned from, unsigned to, int flags),
    (from, to, flags))
RIG(int, pipe2, -1, EMFILE, (int *fds, int flags), (fds, flags))
RIG(int, signalfd, -1, EMFILE, (int fd, const sigset_t *set, int flags),
    (fd, set, flags))
RIG(int, dup2, -1, EBUSY, (int from, int to), (from, to))
RIG(int, getsockopt, -1, ENOBUFS,
    (int fd, int level, int name, void *value, socklen_t *len),
    (fd, level, name, value, len))
RIG(int, getsockname, -1, ENOBUFS,
    (int fd, struct sockaddr *addr, socklen_t *len), (fd, addr, len))
RIG(int, chmod, -1, EPERM, (const char *path, mode_t mode), (path, mode))
RIG(int, rename, -1, EACCES, (const char *from, const char *to), (from, to))
RIG(int, link, -1, EACCES, (const char *from, const char *to), (from, to))
RIG(int, mkdir, -1, EACCES, (const char *path, mode_t mode), (path, mode))
RIG(int, lstat64, -1, EACCES, (const char *path, struct stat *st), (path, st))
RIG(int, stat64, -1, EACCES, (const char *path, struct stat *st), (path, st))
RIG(FILE *, fopen64, NULL, EMFILE, (const char *path, const char *mode),
    (path, mode))
RIG(DIR *, opendir, NULL, EMFILE, (const char *path), (path))
RIG(char *, get_current_dir_name, NULL, ENOENT, (void), ())
RIG(pid_t, waitpid, -1, EINTR, (pid_t pid, int *status, int options),
    (pid, status, options))
RIG(int, poll, -1, EINTR, (struct pollfd * fds, nfds_t n, int timeout_ms),
    (fds, n, timeout_ms))
RIG(int, chdir, -1, EACCES, (const char *path), (path))
RIG(int, execvp, -1, ENOMEM, (const char *file, char *const *argv),
    (file, argv))
RIG(struct ev_loop *, ev_loop_new, NULL, EMFILE, (unsigned flags), (flags))

/* Those with "..." take one argument of up to a register's size. */
#define RIG_LAST(name, usual, params, last, args)                              \
    int __real_##name params;                                                  \
    int __wrap_##name params;                                                  \
    int __wrap_##name params                                                   \
    {                                                                          \
        va_list list;                                                          \
        unsigned long more;                                                    \
                                                                               \
        va_start(list, last);                                                  \
        more = va_arg(list, unsigned long);                                    \
        va_end(list);                                                          \
        return is_due(#name, usual) ? -1 : __real_##name args;                 \
    }

RIG_LAST(open64, EMFILE, (const char *path, int flags, ...), flags,
         (path, flags, more))
RIG_LAST(fcntl64, EINVAL, (int fd, int command, ...), command,
         (fd, command, more))
/* The kernel wants zeros behind it. */
RIG_LAST(prctl, EPERM, (int option, ...), option, (option, more, 0ul, 0ul, 0ul))
RIG(struct passwd *, getpwuid, NULL, EIO, (uid_t uid), (uid))
RIG(int, initgroups, -1, ENOMEM, (const char *user, gid_t group), (user, group))
RIG(int, setgid, -1, EPERM, (gid_t gid), (gid))
RIG(int, setuid, -1, EAGAIN, (uid_t uid), (uid))
RIG(int, setrlimit64, -1, EPERM, (int what, const struct rlimit *limit),
    (what, limit))
