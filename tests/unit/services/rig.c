/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls that fail on demand; see rig.h. */
#define _GNU_SOURCE /* process_vm_readv */
#include "tests/unit/services/rig.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/compiler.h"
#include "common/base/sys.h"

static struct {
    struct chempi_sys table;
    struct {
        unsigned calls;
        unsigned nth; /* 0: never */
        int error;
        bool is_lasting;
    } call[RIG_COUNT];
    unsigned long copy_max;
} rig;

static bool is_hit(enum rig_call call)
{
    unsigned n = ++rig.call[call].calls;

    if (!rig.call[call].nth || n < rig.call[call].nth ||
        (n > rig.call[call].nth && !rig.call[call].is_lasting))
        return false;
    errno = rig.call[call].error;
    return true;
}

static void *rig_malloc(size_t size)
{
    return is_hit(RIG_MALLOC) ? NULL : malloc(size);
}

static void *rig_calloc(size_t n, size_t size)
{
    return is_hit(RIG_MALLOC) ? NULL : calloc(n, size);
}

static void *rig_realloc(void *ptr, size_t size)
{
    return is_hit(RIG_MALLOC) ? NULL : realloc(ptr, size);
}

static void *rig_mmap(void *addr, size_t len, int prot, int flags, int fd,
                      off_t off)
{
    return is_hit(RIG_MMAP)
               ? MAP_FAILED
               : chempi_sys_libc.mmap(addr, len, prot, flags, fd, off);
}

static int rig_memfd_create(const char *name, unsigned flags)
{
    return is_hit(RIG_MEMFD) ? -1 : chempi_sys_libc.memfd_create(name, flags);
}

static int rig_fallocate(int fd, int mode, off_t off, off_t len)
{
    return is_hit(RIG_FALLOCATE)
               ? -1
               : chempi_sys_libc.fallocate(fd, mode, off, len);
}

/* The first bytes of the local list, as many as may move. */
static unsigned long cut(const struct iovec *local, unsigned long count,
                         struct iovec *part)
{
    unsigned long left = rig.copy_max ? rig.copy_max : ~0ul;
    unsigned long n = 0;

    for (; n < count && n < 64 && left; n++) {
        part[n] = local[n];
        if (part[n].iov_len > left)
            part[n].iov_len = left;
        left -= part[n].iov_len;
    }
    return n;
}

static ssize_t rig_readv(pid_t pid, const struct iovec *local,
                         unsigned long nlocal, const struct iovec *remote,
                         unsigned long nremote, unsigned long flags)
{
    struct iovec part[64];
    unsigned long n = cut(local, nlocal, part);

    return is_hit(RIG_READV) ? -1
                             : chempi_sys_libc.process_vm_readv(
                                   pid, part, n, remote, nremote, flags);
}

static ssize_t rig_writev(pid_t pid, const struct iovec *local,
                          unsigned long nlocal, const struct iovec *remote,
                          unsigned long nremote, unsigned long flags)
{
    struct iovec part[64];
    unsigned long n = cut(local, nlocal, part);

    return is_hit(RIG_WRITEV) ? -1
                              : chempi_sys_libc.process_vm_writev(
                                    pid, part, n, remote, nremote, flags);
}

static void install(void)
{
    rig.table = chempi_sys_libc;
    rig.table.malloc = rig_malloc;
    rig.table.calloc = rig_calloc;
    rig.table.realloc = rig_realloc;
    rig.table.mmap = rig_mmap;
    rig.table.memfd_create = rig_memfd_create;
    rig.table.fallocate = rig_fallocate;
    rig.table.process_vm_readv = rig_readv;
    rig.table.process_vm_writev = rig_writev;
    chempi_sys = &rig.table;
}

void rig_fail(enum rig_call call, unsigned nth, int error, int is_lasting)
{
    install();
    rig.call[call].calls = 0;
    rig.call[call].nth = nth;
    rig.call[call].error = error;
    rig.call[call].is_lasting = is_lasting != 0;
}

void rig_limit_copies(unsigned long max)
{
    install();
    rig.copy_max = max;
}

unsigned rig_calls(enum rig_call call)
{
    return rig.call[call].calls;
}

void rig_reset(void)
{
    memset(&rig, 0, sizeof(rig));
    chempi_sys = &chempi_sys_libc;
}
