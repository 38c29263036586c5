/* SPDX-License-Identifier: BSD-3-Clause */
/* The system-call table; see sys.h. */
#define _GNU_SOURCE /* memfd_create, accept4, process_vm_readv */
#include "common/base/sys.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

static int sys_open(const char *path, int flags, mode_t mode)
{
    return open(path, flags, mode);
}

const struct chempi_sys chempi_sys_libc = {
    .malloc = malloc,
    .calloc = calloc,
    .realloc = realloc,
    .posix_memalign = posix_memalign,
    .mmap = mmap,
    .munmap = munmap,
    .memfd_create = memfd_create,
    .fallocate = fallocate,
    .ftruncate = ftruncate,
    .open = sys_open,
    .read = read,
    .write = write,
    .socket = socket,
    .socketpair = socketpair,
    .bind = bind,
    .listen = listen,
    .accept4 = accept4,
    .connect = connect,
    .sendmsg = sendmsg,
    .recvmsg = recvmsg,
    .send = send,
    .recv = recv,
    .epoll_create1 = epoll_create1,
    .epoll_ctl = epoll_ctl,
    .epoll_wait = epoll_wait,
    .eventfd = (int (*)(unsigned, int))eventfd,
    .fork = fork,
    .pipe2 = pipe2,
    .process_vm_readv = process_vm_readv,
    .process_vm_writev = process_vm_writev,
};

const struct chempi_sys *chempi_sys = &chempi_sys_libc;
