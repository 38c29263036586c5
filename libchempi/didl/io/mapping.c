/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing small pieces through a mapping of the file, which other processes
 * see at once and which changes nothing between the pieces. Room is reserved
 * and the pages are brought in before anything is stored, so that a full file
 * system, a quota or a broken disk give an error and no signal. What is left
 * is a file that somebody cuts off in the microseconds between, which kills
 * the process by SIGBUS; MPI programs that do so are wrong.
 */
#define _GNU_SOURCE /* MADV_* */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "libchempi/didl/io/count.h"
#include "libchempi/didl/io/op.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

static int populate(void *pages, size_t len)
{
    int rc;

    do
        rc = madvise(pages, len, MADV_POPULATE_WRITE);
    while (rc && errno == EINTR);
    if (!rc)
        return 0;
    /* An old kernel; -EFAULT stands for the signal of a broken mapping. */
    return errno == EINVAL || errno == ENOSYS ? -EOPNOTSUPP
           : errno == EFAULT                  ? -EIO
                                              : -errno;
}

/* Pages of the offsets [from, to), there and with room behind them, or NULL
 * and *rc. The first one begins at *start. */
static char *map(struct chempi_file *file, int64_t from, int64_t to,
                 int64_t *start, int *rc)
{
    int64_t page = sysconf(_SC_PAGESIZE);
    char *pages;

    *start = from / page * page;
    *rc = file->fd.ops->reserve(&file->fd, from, to - from);
    if (*rc == -ENOSYS || *rc == -ENODEV)
        *rc = -EOPNOTSUPP;
    if (*rc)
        return NULL;
    pages =
        chempi_sys->mmap(NULL, (size_t)(to - *start), PROT_READ | PROT_WRITE,
                         MAP_SHARED, file->fd.number, *start);
    *rc = pages == MAP_FAILED ? -EOPNOTSUPP
                              : populate(pages, (size_t)(to - *start));
    if (*rc == 0)
        return pages;
    if (pages != MAP_FAILED)
        (void)chempi_sys->munmap(pages, (size_t)(to - *start));
    return NULL;
}

static void unmap(struct chempi_file *file, char *pages, size_t span,
                  uint64_t len)
{
    (void)chempi_sys->munmap(pages, span);
    file->was_written = true;
    chempi_io_count(CHEMPI_IO_COUNT_MAPPED, len);
}

int chempi_io_map_write(struct chempi_file *file,
                        const struct chempi_io_view *view, uint64_t position,
                        const char *data, uint64_t len, int64_t from,
                        int64_t to)
{
    struct chempi_segment iter;
    int64_t start;
    int rc;
    char *pages = map(file, from, to, &start, &rc);

    if (!pages)
        return rc;
    chempi_io_view_iter(view, &iter, pages, start, position);
    (void)chempi_segment_unpack(&iter, data, len);
    unmap(file, pages, (size_t)(to - start), len);
    return 0;
}

int chempi_io_map_store(struct chempi_file *file, const char *window,
                        const char *mask, int64_t from, int64_t to)
{
    int64_t start;
    int rc;
    char *pages = map(file, from, to, &start, &rc);
    char *at;
    uint64_t len = 0;

    if (!pages)
        return rc;
    at = pages + (from - start);
    for (int64_t i = 0; i < to - from; i++) {
        if (!mask[i])
            continue;
        at[i] = window[i];
        len++;
    }
    unmap(file, pages, (size_t)(to - start), len);
    return 0;
}
