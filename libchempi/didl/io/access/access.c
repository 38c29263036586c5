/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole transfers and locks over the access layer. */
#include "libchempi/didl/io/access/access.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/sys.h"
#include "libchempi/didl/io/count.h"
#include "libchempi/didl/io/file.h"

/* After a lock was refused for a while, with pauses from 1 ms on that double.
 */
#define LOCK_RETRIES 9

const struct chempi_io_access *chempi_io_access_choose(void)
{
    const char *faults = getenv("CHEMPI_IO_FAULTS");

    return faults && *faults ? &chempi_io_failing : &chempi_io_posix;
}

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
