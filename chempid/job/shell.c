/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks have of their submitter; see shell.h. */
#define _GNU_SOURCE /* struct ucred */
#include "chempid/job/shell.h"

#include "common/fd/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME_COLUMN 26 /* bytes of a limit's name in /proc */

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

/* ---- reading ------------------------------------------------------------- */

/* The process itself; where the kernel does not hand that out, whichever has
 * its number now. */
static int open_peer(int sock, pid_t pid)
{
    socklen_t len = sizeof(int);
    int fd = -1;

    if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0)
        return fd;
    if (errno != ENOPROTOOPT)
        return -errno;
    fd = (int)syscall(SYS_pidfd_open, pid, 0);
    return fd < 0 ? -errno : fd;
}

static const char *find_line(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? at + strlen(name) : NULL;
}

/* All of them, real, effective, saved and of the file system: a program that
 * has another one's rights may also have other limits. */
static bool are_all(const char *numbers, uint32_t id)
{
    char *end;

    for (int i = 0; i < 4; i++, numbers = end)
        if (strtoul(numbers, &end, 10) != id || end == numbers)
            return false;
    return true;
}

/* The umask, and that the process is still its user's. */
static int read_status(struct chempi_shell *shell, const struct ucred *peer)
{
    char path[64];
    char text[4096];
    const char *mask;
    const char *uid;
    const char *gid;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "/proc/%ld/status", (long)peer->pid);
    n = chempi_file_read(path, text, sizeof(text));
    if (n < 0)
        return (int)n;
    mask = find_line(text, "\nUmask:");
    uid = find_line(text, "\nUid:");
    gid = find_line(text, "\nGid:");
    if (!mask || !uid || !gid || !are_all(uid, peer->uid) ||
        !are_all(gid, peer->gid))
        return -ESRCH;
    shell->umask = (uint32_t)strtoul(mask, NULL, 8) & 0777;
    return 0;
}

static const char *take_limit(const char *at, rlim_t *out)
{
    char *end;

    at += strspn(at, " ");
    if (strncmp(at, "unlimited", 9) == 0) {
        *out = RLIM_INFINITY;
        return at + 9;
    }
    *out = (rlim_t)strtoull(at, &end, 10);
    return end == at ? NULL : end;
}

/* A line each, in the order of their numbers, below a heading; asking for them
 * by prlimit(2) is for those who may also set them. */
static int read_limits(struct chempi_shell *shell, pid_t pid)
{
    char path[64];
    char line[256];
    FILE *file;
    bool is_good;

    (void)snprintf(path, sizeof(path), "/proc/%ld/limits", (long)pid);
    file = fopen(path, "re");
    if (!file)
        return -errno;
    is_good = fgets(line, sizeof(line), file) != NULL;
    while (is_good && shell->count < RLIM_NLIMITS &&
           fgets(line, sizeof(line), file)) {
        struct rlimit *limit = &shell->limits[shell->count];
        const char *at = strlen(line) > NAME_COLUMN ? line + NAME_COLUMN : NULL;

        at = at ? take_limit(at, &limit->rlim_cur) : NULL;
        is_good = at && take_limit(at, &limit->rlim_max);
        shell->count += is_good;
    }
    (void)fclose(file); /* read only */
    return is_good && shell->count == RLIM_NLIMITS ? 0 : -ESRCH;
}

/* Does not wait. */
static bool has_ended(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    int n;

    while ((n = poll(&p, 1, 0)) < 0 && errno == EINTR)
        ;
    return n != 0;
}

int chempi_shell_read(struct chempi_shell *shell, int sock,
                      struct chempi_err *err)
{
    struct chempi_shell found = {.is_known = true};
    struct ucred peer;
    socklen_t len = sizeof(peer);
    int fd = -1;
    int rc = 0;

    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        rc = -errno;
    if (!rc)
        fd = open_peer(sock, peer.pid);
    if (!rc && fd < 0)
        rc = fd;
    if (!rc)
        rc = read_limits(&found, peer.pid);
    if (!rc)
        rc = read_status(&found, &peer);
    if (!rc && has_ended(fd)) /* its number may be another one's */
        rc = -ESRCH;
    if (fd >= 0)
        (void)close(fd); /* it was only to see */
    if (rc)
        return chempi_err_set(err, rc,
                              "the limits of the process that launches the job "
                              "cannot be read: %s",
                              chempi_err_name(rc));
    *shell = found;
    return 0;
}

/* ---- bytes --------------------------------------------------------------- */

void chempi_shell_write(const struct chempi_shell *shell,
                        struct chempi_writer *w)
{
    const uint32_t count = shell->is_known ? shell->count : 0;

    chempi_wire_put_u8(w, shell->is_known);
    chempi_wire_put_u32(w, shell->umask);
    chempi_wire_put_u32(w, count);
    for (uint32_t i = 0; i < count; i++) {
        chempi_wire_put_u64(w, shell->limits[i].rlim_cur);
        chempi_wire_put_u64(w, shell->limits[i].rlim_max);
    }
}

int chempi_shell_take(struct chempi_shell *shell, struct chempi_reader *r)
{
    struct chempi_shell found = {.is_known = chempi_wire_get_u8(r) != 0};
    uint32_t count;

    found.umask = chempi_wire_get_u32(r) & 0777;
    count = chempi_wire_get_count(r, CHEMPI_SHELL_BYTES_MAX / 16, 16);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t cur = chempi_wire_get_u64(r);
        const uint64_t max = chempi_wire_get_u64(r);

        if (i >= RLIM_NLIMITS) /* a newer kernel's */
            continue;
        found.limits[i] = (struct rlimit){cur < max ? cur : max, max};
        found.count = i + 1;
    }
    if (r->is_bad)
        return -EBADMSG;
    *shell = found;
    return 0;
}

/* ---- having -------------------------------------------------------------- */

static void lift(const struct chempi_shell *shell)
{
    for (uint32_t i = 0; shell->is_known && i < shell->count; i++) {
        const __rlimit_resource_t which = (__rlimit_resource_t)i;
        struct rlimit own;

        if (getrlimit(which, &own) < 0 ||
            own.rlim_max >= shell->limits[i].rlim_max)
            continue;
        own.rlim_max = shell->limits[i].rlim_max;
        (void)setrlimit(which, &own); /* else the node's own limit holds */
    }
}

void chempi_shell_confine(const struct chempi_shell *shell)
{
    struct rlimit own;

    lift(shell);
    if (!shell->is_known || shell->count <= RLIMIT_NPROC ||
        getrlimit(RLIMIT_NPROC, &own) < 0)
        return;
    if (own.rlim_max > shell->limits[RLIMIT_NPROC].rlim_max)
        own.rlim_max = shell->limits[RLIMIT_NPROC].rlim_max;
    own.rlim_cur = shell->limits[RLIMIT_NPROC].rlim_cur;
    if (own.rlim_cur > own.rlim_max)
        own.rlim_cur = own.rlim_max;
    (void)setrlimit(RLIMIT_NPROC, &own); /* less is always allowed */
}

void chempi_shell_wear(const struct chempi_shell *shell)
{
    if (!shell->is_known)
        return;
    (void)umask(shell->umask);
    for (uint32_t i = 0; i < shell->count; i++) {
        const __rlimit_resource_t which = (__rlimit_resource_t)i;
        struct rlimit limit = shell->limits[i];
        struct rlimit own;

        if (getrlimit(which, &own) < 0)
            continue;
        if (limit.rlim_max > own.rlim_max)
            limit.rlim_max = own.rlim_max;
        if (limit.rlim_cur > limit.rlim_max)
            limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(which, &limit); /* less is always allowed */
    }
}
