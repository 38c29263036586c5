/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that the members of a window on one node share: a memory file that
 * the first of them makes and the others open through its process's list of
 * descriptors, which the kernel allows to whom it would allow to trace it
 * (same user). Where it is not allowed, nothing is shared and all goes by
 * messages.
 */
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "common/fd/file.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/rma/internal.h"

struct offer {
    int32_t pid;
    int32_t fd; /* -1: none could be made */
    uint64_t device;
    uint64_t inode;
    int32_t error;
};

/* More than the machine has could not be kept anyway, but reserving it would
 * take all of that first. The maker of the file decides for all: swap space
 * may come and go. */
static bool is_too_much(uint64_t len)
{
    struct sysinfo host;

    return sysinfo(&host) == 0 &&
           len / host.mem_unit > (uint64_t)host.totalram + host.totalswap;
}

static int make_file(uint64_t len, struct offer *offer)
{
    struct stat st;
    int fd;

    offer->fd = -1;
    if (is_too_much(len))
        offer->error = -ENOMEM;
    else if (len > chempi_file_size_limit())
        offer->error = -EFBIG;
    if (offer->error)
        return offer->error;
    fd = chempi_sys->memfd_create("chempi-window",
                                  MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || chempi_sys->ftruncate(fd, (off_t)len) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0 ||
        fstat(fd, &st) != 0) {
        offer->error = -errno;
        chempi_file_close(fd);
        return offer->error;
    }
    offer->pid = (int32_t)getpid();
    offer->fd = fd;
    offer->device = (uint64_t)st.st_dev;
    offer->inode = (uint64_t)st.st_ino;
    return fd;
}

/* Another process of this number (in a PID namespace of its own) has another
 * file. This process's limit of file sizes does not matter: it is long enough.
 */
static int open_file(const struct offer *offer)
{
    char path[64];
    struct stat st;
    int fd;

    if (offer->fd < 0)
        return offer->error < 0 ? offer->error : -EPROTO;
    (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)offer->pid,
                   (int)offer->fd);
    fd = chempi_sys->open(path, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) == 0 && (uint64_t)st.st_dev == offer->device &&
        (uint64_t)st.st_ino == offer->inode)
        return fd;
    (void)close(fd);
    return -ESTALE;
}

static int map(struct chempi_win *win, int fd, uint64_t len)
{
    void *memory =
        chempi_sys->mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED)
        return -errno;
    win->file = memory;
    win->file_len = len;
    return 0;
}

struct chempi_comm_channel chempi_rma_node_channel(struct chempi_win *win)
{
    struct chempi_comm_channel ch = chempi_comm_channel(win->comm);

    ch.ranks = (const int *)win->locals;
    ch.size = (int)win->local_count;
    ch.me = (int)win->me_local;
    return ch;
}

int chempi_rma_share(struct chempi_win *win, uint64_t len, uint64_t common,
                     uint64_t at, uint64_t own)
{
    struct chempi_comm_channel ch = chempi_rma_node_channel(win);
    struct offer offer = {.fd = -1};
    int64_t failed;
    int fd = -1;
    int rc;

    if (win->me_local == 0)
        fd = make_file(len, &offer);
    rc = chempi_comm_bcast(&ch, MPI_SUCCESS, &offer, sizeof(offer));
    if (rc) {
        chempi_file_close(fd);
        return -EIO;
    }
    if (win->me_local != 0)
        fd = open_file(&offer);
    rc = fd < 0 ? fd : map(win, fd, len);
    if (rc == 0 && win->me_local == 0)
        rc = chempi_file_reserve(fd, 0, common);
    if (rc == 0)
        rc = chempi_file_reserve(fd, at, own);
    failed = -(int64_t)rc;
    if (chempi_comm_max(&ch, MPI_SUCCESS, &failed, 1) || failed < 0 ||
        failed > INT32_MAX)
        failed = EIO;
    chempi_file_close(fd);
    if (failed)
        chempi_rma_unshare(win);
    return (int)-failed;
}

void chempi_rma_unshare(struct chempi_win *win)
{
    if (win->file)
        (void)chempi_sys->munmap(win->file, win->file_len);
    win->file = NULL;
}
