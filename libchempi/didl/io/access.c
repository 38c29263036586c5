/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole transfers and locks over the access layer, and its posix member. */
#define _GNU_SOURCE /* preadv, pwritev, fallocate, F_OFD_SETLKW */
#include "libchempi/didl/io/access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "libchempi/didl/io/count.h"
#include "libchempi/didl/io/file.h"

/* After a lock was refused for a while, with pauses from 1 ms on that double.
 */
#define LOCK_RETRIES 9

/* From <linux/magic.h>, which not all systems' headers have. */
enum { MAGIC_TMPFS = 0x01021994, MAGIC_EXT = 0xef53, MAGIC_XFS = 0x58465342 };

/* ---- posix ---- */

static int posix_open(struct chempi_io_fd *fd, const char *path, int flags,
                      mode_t mode)
{
    do
        fd->number = chempi_sys->open(path, flags | O_CLOEXEC, mode);
    while (fd->number < 0 && errno == EINTR);
    return fd->number < 0 ? -errno : 0;
}

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
    struct stat st;

    if (fstat(fd->number, &st))
        return -errno;
    out->size = st.st_size;
    out->device = (uint64_t)st.st_dev;
    out->inode = (uint64_t)st.st_ino;
    return 0;
}

static int posix_truncate(struct chempi_io_fd *fd, int64_t size)
{
    int rc;

    do
        rc = chempi_sys->ftruncate(fd->number, size);
    while (rc && errno == EINTR);
    return rc ? -errno : 0;
}

static int posix_reserve(struct chempi_io_fd *fd, int64_t offset, int64_t len)
{
    int rc;

    do
        rc = chempi_sys->fallocate(fd->number, 0, offset, len);
    while (rc && errno == EINTR);
    return rc ? -errno : 0;
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
    ssize_t n = count == 1 ? pwrite(fd->number, runs[0].iov_base,
                                    runs[0].iov_len, offset)
                           : pwritev(fd->number, runs, count, offset);

    return n < 0 ? -errno : n;
}

static int posix_sync(struct chempi_io_fd *fd)
{
    int rc;

    do
        rc = fsync(fd->number);
    while (rc && errno == EINTR);
    return rc && errno != EINVAL && errno != EROFS ? -errno : 0;
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

static bool posix_can_map(struct chempi_io_fd *fd)
{
    struct statfs fs;

    if (fstatfs(fd->number, &fs))
        return false;
    return (uint32_t)fs.f_type == MAGIC_TMPFS ||
           (uint32_t)fs.f_type == MAGIC_EXT || (uint32_t)fs.f_type == MAGIC_XFS;
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
    .lock = posix_lock,
    .can_map = posix_can_map,
};

const struct chempi_io_access *chempi_io_access_choose(void)
{
    const char *mischief = getenv("CHEMPI_IO_MISCHIEF");

    return mischief && *mischief ? &chempi_io_failing : &chempi_io_posix;
}

/* ---- whole transfers ---- */

/* How many of the runs, at most TRANSFER_MAX bytes: the last one may be cut,
 * to *cut bytes. */
static int limit(const struct iovec *runs, int count, uint64_t *cut)
{
    uint64_t sum = 0;
    int n = 0;

    *cut = 0;
    while (n < count && sum + runs[n].iov_len <= CHEMPI_IO_TRANSFER_MAX)
        sum += runs[n++].iov_len;
    if (n == 0)
        *cut = CHEMPI_IO_TRANSFER_MAX;
    return n;
}

/* Take n bytes off the front of the list. */
static void skip(struct iovec **runs, int *count, uint64_t n)
{
    while (*count > 0 && n >= (*runs)->iov_len) {
        n -= (*runs)->iov_len;
        (*runs)++;
        (*count)--;
    }
    if (*count > 0) {
        (*runs)->iov_base = (char *)(*runs)->iov_base + n;
        (*runs)->iov_len -= n;
    }
}

static ssize_t move_once(struct chempi_file *file, const struct iovec *runs,
                         int count, int64_t offset, bool is_write)
{
    const struct chempi_io_access *ops = file->fd.ops;
    struct iovec first;
    uint64_t cut;
    int n = limit(runs, count, &cut);
    ssize_t got;

    if (n == 0) {
        first = (struct iovec){runs[0].iov_base, cut};
        runs = &first;
        n = 1;
    }
    do
        got = is_write ? ops->writev(&file->fd, runs, n, offset)
                       : ops->readv(&file->fd, runs, n, offset);
    while (got == -EINTR);
    return got;
}

static int move_all(struct chempi_file *file, struct iovec *runs, int count,
                    int64_t offset, uint64_t *done, bool is_write)
{
    int calls = 0;

    *done = 0;
    skip(&runs, &count, 0); /* empty ones */
    while (count > 0) {
        ssize_t n =
            move_once(file, runs, count, offset + (int64_t)*done, is_write);

        calls++;
        if (n < 0)
            return (int)n;
        if (n == 0 && is_write)
            return -EIO;
        if (n == 0)
            break;
        *done += (uint64_t)n;
        skip(&runs, &count, (uint64_t)n);
    }
    chempi_io_count(is_write ? CHEMPI_IO_COUNT_WRITTEN : CHEMPI_IO_COUNT_READ,
                    *done);
    chempi_io_count(CHEMPI_IO_COUNT_CALLS, (uint64_t)calls);
    return 0;
}

int chempi_io_read_runs(struct chempi_file *file, struct iovec *runs, int count,
                        int64_t offset, uint64_t *done)
{
    return move_all(file, runs, count, offset, done, false);
}

int chempi_io_write_runs(struct chempi_file *file, struct iovec *runs,
                         int count, int64_t offset, uint64_t *done)
{
    file->was_written = true;
    return move_all(file, runs, count, offset, done, true);
}

/* ---- locks ---- */

static bool may_pass(int neg_errno)
{
    return neg_errno == -EAGAIN || neg_errno == -EACCES ||
           neg_errno == -EDEADLK || neg_errno == -EINTR;
}

/* About a second, for servers of locks that are restarted or crowded. */
static int lock_patiently(struct chempi_file *file, enum chempi_io_lock how,
                          int64_t offset, int64_t len)
{
    struct timespec pause = {.tv_nsec = 1000000};
    int rc = file->fd.ops->lock(&file->fd, how, offset, len);

    for (int i = 0; i < LOCK_RETRIES && may_pass(rc); i++) {
        (void)nanosleep(&pause, NULL);
        pause.tv_nsec *= 2;
        rc = file->fd.ops->lock(&file->fd, how, offset, len);
    }
    return rc;
}

int chempi_io_lock_range(struct chempi_file *file, enum chempi_io_lock how,
                         int64_t offset, int64_t len)
{
    int rc;

    (void)pthread_mutex_lock(&file->range_lock);
    rc = lock_patiently(file, how, offset, len);
    if (rc)
        (void)pthread_mutex_unlock(&file->range_lock);
    return rc;
}

void chempi_io_unlock_range(struct chempi_file *file, int64_t offset,
                            int64_t len)
{
    (void)file->fd.ops->lock(&file->fd, CHEMPI_IO_UNLOCK, offset, len);
    (void)pthread_mutex_unlock(&file->range_lock);
}

int chempi_io_probe_locks(struct chempi_file *file)
{
    int rc = chempi_io_lock_range(file,
                                  file->amode & MPI_MODE_RDONLY
                                      ? CHEMPI_IO_LOCK_SHARED
                                      : CHEMPI_IO_LOCK_EXCLUSIVE,
                                  0, 1);

    if (!rc)
        chempi_io_unlock_range(file, 0, 1);
    return rc;
}
