/* SPDX-License-Identifier: BSD-3-Clause */
/* Cross-memory attach; see cma.h. */
#define _GNU_SOURCE /* process_vm_readv */
#include "libchempi/services/cma.h"

#include <errno.h>
#include <stdbool.h>

#include "common/base/sys.h"

#define RUNS_MAX 64u /* local runs handed to the kernel at a time */
#define REMOTE_RUNS_MAX 64u
#define CALL_MAX_BYTES (UINT64_C(1) << 30) /* the kernel stops below 2 GiB */
/* Shorter runs cost the kernel more than copying once more in the cache. */
#define RUN_MIN_BYTES 1024u
#define BOUNCE_BYTES 32768u /* on the stack; most of a first-level cache */

/* Where the local side stands: contiguous memory or a layout's runs. */
struct local {
    char *buf;
    struct chempi_iter *iter;
};

int chempi_cma_probe(pid_t pid, const void *remote, unsigned char expected)
{
    unsigned char found = (unsigned char)~expected;
    struct iovec to = {.iov_base = &found, .iov_len = 1};
    struct iovec from = {.iov_len = 1};
    ssize_t n;

    from.iov_base = (void *)(uintptr_t)remote;
    n = chempi_sys->process_vm_readv(pid, &to, 1, &from, 1, 0);
    if (n < 0)
        return -errno;
    return n == 1 && found == expected ? 0 : -EBADMSG;
}

/* The next local runs, at most max bytes in all; returns the bytes. */
static uint64_t take_runs(struct local *local, uint64_t done, uint64_t max,
                          struct iovec *runs, size_t *count)
{
    uint64_t bytes = 0;

    if (!local->iter) {
        runs[0].iov_base = local->buf + done;
        runs[0].iov_len = max;
        *count = 1;
        return max;
    }
    *count = chempi_iter_runs(local->iter, runs, RUNS_MAX, max);
    for (size_t i = 0; i < *count; i++)
        bytes += runs[i].iov_len;
    return bytes;
}

/* One call: 0 < result <= bytes, or -errno. */
static int64_t call(bool is_write, pid_t pid, const struct iovec *local,
                    size_t local_count, const struct iovec *remote,
                    size_t remote_count)
{
    ssize_t n;

    do
        n = is_write ? chempi_sys->process_vm_writev(pid, local, local_count,
                                                     remote, remote_count, 0)
                     : chempi_sys->process_vm_readv(pid, local, local_count,
                                                    remote, remote_count, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    return n == 0 ? -EFAULT : (int64_t)n;
}

/* Fill `part` with the remote runs that cover [skip, skip + max) of the list;
 * returns the bytes covered. */
static uint64_t slice_remote(const struct iovec *remote, size_t count,
                             uint64_t skip, uint64_t max, struct iovec *part,
                             size_t *part_count)
{
    uint64_t bytes = 0;
    size_t n = 0;

    for (size_t i = 0; i < count && n < REMOTE_RUNS_MAX && bytes < max; i++) {
        uint64_t len = remote[i].iov_len;

        if (skip >= len) {
            skip -= len;
            continue;
        }
        len -= skip;
        len = len < max - bytes ? len : max - bytes;
        part[n].iov_base = (char *)remote[i].iov_base + skip;
        part[n].iov_len = len;
        bytes += len;
        skip = 0;
        n++;
    }
    *part_count = n;
    return bytes;
}

/* max bytes of short runs, packed or unpacked here; as call(). The iterator
 * goes on by what was copied. */
static int64_t call_bounced(bool is_write, pid_t pid, struct chempi_iter *iter,
                            uint64_t max, const struct iovec *remote,
                            size_t remote_count)
{
    char bounce[BOUNCE_BYTES];
    struct iovec here = {.iov_base = bounce, .iov_len = max};
    uint64_t start = iter->position;
    int64_t n;

    if (iter->size - start < max)
        return -EINVAL;
    if (is_write)
        (void)chempi_iter_pack(iter, bounce, max);
    n = call(is_write, pid, &here, 1, remote, remote_count);
    if (is_write)
        chempi_iter_seek(iter, start + (n > 0 ? (uint64_t)n : 0));
    else if (n > 0)
        (void)chempi_iter_unpack(iter, bounce, (size_t)n);
    return n;
}

static int copy_bounced(bool is_write, pid_t pid, struct chempi_iter *iter,
                        const struct iovec *remote, size_t remote_count,
                        uint64_t len, uint64_t *done)
{
    while (*done < len) {
        struct iovec there[REMOTE_RUNS_MAX];
        size_t count;
        uint64_t left = len - *done;
        uint64_t max = left < BOUNCE_BYTES ? left : BOUNCE_BYTES;
        int64_t n;

        max = slice_remote(remote, remote_count, *done, max, there, &count);
        n = max ? call_bounced(is_write, pid, iter, max, there, count)
                : -EINVAL; /* the remote side is shorter than len */
        if (n < 0)
            return (int)n;
        *done += (uint64_t)n;
    }
    return 0;
}

static int copy(bool is_write, pid_t pid, struct local *local,
                const struct iovec *remote, size_t remote_count, uint64_t len,
                uint64_t *done)
{
    uint64_t start = local->iter ? local->iter->position : 0;

    *done = 0;
    if (local->iter && chempi_iter_mean_run(local->iter) < RUN_MIN_BYTES)
        return copy_bounced(is_write, pid, local->iter, remote, remote_count,
                            len, done);
    while (*done < len) {
        struct iovec there[REMOTE_RUNS_MAX];
        struct iovec here[RUNS_MAX];
        size_t there_count;
        size_t here_count;
        uint64_t max = len - *done;
        int64_t n;

        max = max < CALL_MAX_BYTES ? max : CALL_MAX_BYTES;
        max =
            slice_remote(remote, remote_count, *done, max, there, &there_count);
        max = max ? take_runs(local, *done, max, here, &here_count) : 0;
        if (max == 0)
            return -EINVAL; /* one of the two sides is shorter than len */
        n = call(is_write, pid, here, here_count, there, there_count);
        if (n > 0)
            *done += (uint64_t)n;
        if (local->iter && n != (int64_t)max)
            chempi_iter_seek(local->iter, start + *done);
        if (n < 0)
            return (int)n;
    }
    return 0;
}

int chempi_cma_read(pid_t pid, void *buf, struct chempi_iter *iter,
                    uint64_t remote_addr, uint64_t len, uint64_t *done)
{
    const struct iovec remote = {
        .iov_base = (void *)(uintptr_t)remote_addr,
        .iov_len = len,
    };
    struct local local = {.buf = buf, .iter = buf ? NULL : iter};

    return copy(false, pid, &local, &remote, 1, len, done);
}

int chempi_cma_read_runs(pid_t pid, void *buf, struct chempi_iter *iter,
                         const struct iovec *remote, size_t remote_count,
                         uint64_t len, uint64_t *done)
{
    struct local local = {.buf = buf, .iter = buf ? NULL : iter};

    return copy(false, pid, &local, remote, remote_count, len, done);
}

int chempi_cma_write(pid_t pid, const void *buf, struct chempi_iter *iter,
                     uint64_t remote_addr, uint64_t len, uint64_t *done)
{
    const struct iovec remote = {
        .iov_base = (void *)(uintptr_t)remote_addr,
        .iov_len = len,
    };
    struct local local = {.buf = (char *)(uintptr_t)buf,
                          .iter = buf ? NULL : iter};

    return copy(true, pid, &local, &remote, 1, len, done);
}
