/* SPDX-License-Identifier: BSD-3-Clause */
/* The member of the access layer that asks the system; see access.h. */
#define _GNU_SOURCE /* preadv, pwritev, statx, F_OFD_SETLKW */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/compiler.h"
#include "common/base/sys.h"
#include "common/fd/file.h"
#include "libchempi/didl/io/access/access.h"

/* From <linux/magic.h>, which not all systems' headers have. */
enum {
    MAGIC_TMPFS = 0x01021994,
    MAGIC_EXT = 0xef53,
    MAGIC_XFS = 0x58465342,
    MAGIC_OVERLAY = 0x794c7630, /* what is written lies on this node */
};

/* After EINTR the number is free all the same, as Linux does it. */
static int posix_close(struct chempi_io_fd *fd)
{
    int rc = close(fd->number);

    fd->number = -1;
    return rc && errno != EINTR ? -errno : 0;
}

static int posix_remove(const char *path)
{
    return unlink(path) ? -errno : 0;
}

static int posix_stat(struct chempi_io_fd *fd, struct chempi_io_stat *out)
{
    struct statx st;

    if (statx(fd->number, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME,
              &st))
        return -errno;
    out->size = (int64_t)st.stx_size;
    out->inode = st.stx_ino;
    out->mode = st.stx_mode;
    out->born_ns =
        st.stx_mask & STATX_BTIME
            ? st.stx_btime.tv_sec * INT64_C(1000000000) + st.stx_btime.tv_nsec
            : 0;
    return 0;
}

static int posix_open(struct chempi_io_fd *fd, const char *path, int flags,
                      mode_t mode)
{
    struct chempi_io_stat st;

    fd->size_limit = chempi_file_size_limit();
    do
        fd->number = chempi_sys->open(path, flags | O_CLOEXEC, mode);
    while (fd->number < 0 && errno == EINTR);
    if (fd->number < 0)
        return -errno;
    if ((flags & O_ACCMODE) != O_RDONLY || posix_stat(fd, &st) ||
        !S_ISDIR(st.mode))
        return 0;
    (void)posix_close(fd); /* the system lets folders be opened to read */
    return -EISDIR;
}

/* A file that is longer already may stay so. */
static bool is_beyond_limit(struct chempi_io_fd *fd, int64_t end)
{
    struct chempi_io_stat st;

    return CHEMPI_UNLIKELY((uint64_t)end > fd->size_limit) &&
           (uint64_t)end > chempi_file_size_limit() &&
           (posix_stat(fd, &st) || end > st.size);
}

static int posix_truncate(struct chempi_io_fd *fd, int64_t size)
{
    int rc;

    if (is_beyond_limit(fd, size))
        return -EFBIG;
    do
        rc = chempi_sys->ftruncate(fd->number, size);
    while (rc && errno == EINTR);
    return rc ? -errno : 0;
}

static int posix_reserve(struct chempi_io_fd *fd, int64_t offset, int64_t len)
{
    return is_beyond_limit(fd, offset + len)
               ? -EFBIG
               : chempi_file_reserve(fd->number, (uint64_t)offset,
                                     (uint64_t)len);
}

static ssize_t posix_readv(struct chempi_io_fd *fd, const struct iovec *runs,
                           int count, int64_t offset)
{
    ssize_t n = count == 1 ? pread(fd->number, runs[0].iov_base,
                                   runs[0].iov_len, offset)
                           : preadv(fd->number, runs, count, offset);

    return n < 0 ? -errno : n;
}

static ssize_t posix_writev(struct chempi_io_fd *fd, const struct iovec *runs,
                            int count, int64_t offset)
{
    ssize_t n;

    /* What begins below the limit the system cuts off there. */
    if (CHEMPI_UNLIKELY((uint64_t)offset >= fd->size_limit) &&
        (uint64_t)offset >=
            chempi_file_size_limit()) /* it may have been raised */
        return -EFBIG;
    n = count == 1
            ? pwrite(fd->number, runs[0].iov_base, runs[0].iov_len, offset)
            : pwritev(fd->number, runs, count, offset);
    return n < 0 ? -errno : n;
}

static int sync_number(int number)
{
    int rc;

    do
        rc = fsync(number);
    while (rc && errno == EINTR);
    return rc && errno != EINVAL && errno != EROFS ? -errno : 0;
}

static int posix_sync(struct chempi_io_fd *fd)
{
    return sync_number(fd->number);
}

/* The folder is found by the open file: its path may be a symbolic link, or
 * begin in a working directory that is another one now. A folder that may be
 * written but not read cannot be synced, and is left to the system. */
static int posix_sync_name(struct chempi_io_fd *fd)
{
    char link[32];
    char path[PATH_MAX];
    ssize_t len;
    int folder;
    int rc;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd->number);
    len = readlink(link, path, sizeof(path) - 1);
    while (len > 0 && path[len - 1] != '/')
        len--;
    if (len <= 0)
        return 0;
    path[len] = '\0';
    folder = chempi_sys->open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (folder < 0)
        return errno == EACCES || errno == ENOENT ? 0 : -errno;
    rc = sync_number(folder);
    (void)close(folder);
    return rc;
}

/* File systems whose clients look at what others do now and then only. */
static bool is_remote(struct chempi_io_fd *fd)
{
    static const uint32_t magics[] = {
        0x6969,     /* NFS */
        0x517b,     /* SMB */
        0xfe534d42, /* SMB2 */
        0xff534d42, /* CIFS */
        0x01021997, /* 9P */
        0x65735546, /* FUSE */
    };
    struct statfs fs;

    if (fstatfs(fd->number, &fs))
        return false;
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(magics); i++)
        if ((uint32_t)fs.f_type == magics[i])
            return true;
    return false;
}

/* The server says the size; pages, which are clean after a sync, go. */
static int posix_refresh(struct chempi_io_fd *fd)
{
    struct statx st;

    if (!is_remote(fd))
        return 0;
    if (statx(fd->number, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_SIZE,
              &st))
        return -errno;
    return -posix_fadvise(fd->number, 0, 0, POSIX_FADV_DONTNEED);
}

static int posix_lock(struct chempi_io_fd *fd, enum chempi_io_lock how,
                      int64_t offset, int64_t len)
{
    struct flock lock = {
        .l_type = how == CHEMPI_IO_UNLOCK        ? F_UNLCK
                  : how == CHEMPI_IO_LOCK_SHARED ? F_RDLCK
                                                 : F_WRLCK,
        .l_whence = SEEK_SET,
        .l_start = offset,
        .l_len = len,
    };
    int rc;

    do
        rc = fcntl(fd->number, F_OFD_SETLKW, &lock);
    while (rc && errno == EINTR);
    return rc ? -errno : 0;
}

/* The number of the file system's kind; 0: it cannot be had. */
static uint32_t kind_of(const struct chempi_io_fd *fd)
{
    struct statfs fs;

    return fstatfs(fd->number, &fs) ? 0 : (uint32_t)fs.f_type;
}

static enum chempi_io_home posix_home(struct chempi_io_fd *fd)
{
    switch (kind_of(fd)) {
    case MAGIC_TMPFS:
        return CHEMPI_IO_IN_MEMORY;
    case MAGIC_EXT:
    case MAGIC_XFS:
    case MAGIC_OVERLAY:
        return CHEMPI_IO_ON_DISK;
    default:
        return CHEMPI_IO_ELSEWHERE;
    }
}

/* Mappings of those that have a home here are coherent, and pages that are
 * there stay writable. What an overlay keeps its files on nobody says: there a
 * store might need new room and end in a signal. */
static bool posix_can_map(struct chempi_io_fd *fd)
{
    return posix_home(fd) != CHEMPI_IO_ELSEWHERE &&
           kind_of(fd) != MAGIC_OVERLAY;
}

const struct chempi_io_access chempi_io_posix = {
    .name = "posix",
    .open = posix_open,
    .close = posix_close,
    .remove = posix_remove,
    .stat = posix_stat,
    .truncate = posix_truncate,
    .reserve = posix_reserve,
    .readv = posix_readv,
    .writev = posix_writev,
    .sync = posix_sync,
    .sync_name = posix_sync_name,
    .refresh = posix_refresh,
    .lock = posix_lock,
    .home = posix_home,
    .can_map = posix_can_map,
};
