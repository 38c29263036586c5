/* SPDX-License-Identifier: BSD-3-Clause */
/* Small files; see file.h. */
#define _GNU_SOURCE /* O_CLOEXEC */
#include "common/fd/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/sys.h"

ssize_t chempi_file_read(const char *path, char *text, size_t size)
{
    size_t len = 0;
    ssize_t n = 0;
    int fd;

    text[0] = '\0';
    fd = chempi_sys->open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    do {
        n = chempi_sys->read(fd, text + len, size - 1 - len);
        len += n > 0 ? (size_t)n : 0;
    } while ((n > 0 && len < size - 1) || (n < 0 && errno == EINTR));
    n = n < 0 ? -errno : (ssize_t)len;
    (void)close(fd); /* read only */
    text[n < 0 ? 0 : len] = '\0';
    return n;
}

int chempi_file_write_all(int fd, const void *data, size_t len)
{
    const char *at = data;

    while (len) {
        const ssize_t n = chempi_sys->write(fd, at, len);

        if (n < 0 && errno != EINTR)
            return -errno;
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int chempi_file_read_all(int fd, void *data, size_t len)
{
    char *at = data;

    while (len) {
        const ssize_t n = chempi_sys->read(fd, at, len);

        if (n == 0)
            return -EPIPE;
        if (n < 0 && errno != EINTR)
            return -errno;
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

uint64_t chempi_file_size_limit(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
                   limit.rlim_cur != RLIM_INFINITY
               ? (uint64_t)limit.rlim_cur
               : UINT64_MAX;
}

static int allocate(int fd, uint64_t at, uint64_t len)
{
    return chempi_sys->fallocate(fd, 0, (off_t)at, (off_t)len) == 0 ? 0
                                                                    : -errno;
}

/* Before Linux 6.10 any signal undoes what the call has done for a file in
 * memory, so one that takes longer than a profiler's timer would be tried for
 * ever. In pieces it could stop half-way. */
int chempi_file_reserve(int fd, uint64_t at, uint64_t len)
{
    sigset_t all;
    sigset_t before;
    int rc;

    if (len == 0)
        return 0;
    rc = allocate(fd, at, len);
    if (rc != -EINTR)
        return rc;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    do
        rc = allocate(fd, at, len);
    while (rc == -EINTR); /* it was stopped */
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int chempi_file_leave_streams(void)
{
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (fd < 0 || dup2(fd, 0) < 0 || dup2(fd, 1) < 0)
        return -errno;
    if (fd > 2)
        (void)close(fd); /* duplicated */
    return 0;
}

void chempi_file_close(int fd)
{
    if (fd >= 0)
        (void)close(fd); /* nothing was written that could be lost */
}

bool chempi_file_is_ours(const struct stat *st)
{
    return st->st_uid == 0 || st->st_uid == geteuid();
}

bool chempi_file_is_safe(const struct stat *st)
{
    return chempi_file_is_ours(st) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

uint64_t chempi_file_inode(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void chempi_file_host(uint8_t host[CHEMPI_FILE_HOST_BYTES])
{
    const uint64_t space = chempi_file_inode("/proc/self/ns/net");
    uint8_t found[CHEMPI_FILE_HOST_BYTES] = {0};
    size_t digits = 0;
    char text[64];

    memset(host, 0, CHEMPI_FILE_HOST_BYTES);
    (void)chempi_file_read("/proc/sys/kernel/random/boot_id", text,
                           sizeof(text)); /* or it has no digits */
    for (const char *p = text; *p && digits < 2 * sizeof(found); p++) {
        const int d = hex_digit(*p);

        if (d < 0)
            continue; /* a dash */
        found[digits / 2] |= (uint8_t)(d << (digits % 2 ? 0 : 4));
        digits++;
    }
    if (!space || digits < 2 * sizeof(found))
        return;
    memcpy(host, found, sizeof(found));
    for (size_t i = 0; i < sizeof(space); i++)
        host[i] ^= (uint8_t)(space >> 8 * i);
}
