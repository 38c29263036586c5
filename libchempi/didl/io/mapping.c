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

int chempi_io_map_write(struct chempi_file *file,
                        const struct chempi_io_view *view, uint64_t position,
                        const char *data, uint64_t len, int64_t from,
                        int64_t to)
{
    int64_t page = sysconf(_SC_PAGESIZE);
    int64_t start = from / page * page;
    size_t span = (size_t)(to - start);
    struct chempi_iter iter;
    char *pages;
    int rc = file->fd.ops->reserve(&file->fd, from, to - from);

    if (rc == -ENOSYS || rc == -ENODEV)
        rc = -EOPNOTSUPP;
    if (rc)
        return rc;
    pages = chempi_sys->mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_SHARED,
                             file->fd.number, start);
    if (pages == MAP_FAILED)
        return -EOPNOTSUPP;
    rc = populate(pages, span);
    if (!rc) {
        chempi_io_view_iter(view, &iter, pages, start, position);
        (void)chempi_iter_unpack(&iter, data, len);
        file->was_written = true;
        chempi_io_count(CHEMPI_IO_COUNT_MAPPED, len);
    }
    (void)chempi_sys->munmap(pages, span);
    return rc;
}
