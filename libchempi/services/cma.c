/* SPDX-License-Identifier: BSD-3-Clause */
/* Cross-memory attach; see cma.h. */
#define _GNU_SOURCE /* process_vm_readv */
#include "libchempi/services/cma.h"

#include <errno.h>
#include <stddef.h>
#include <sys/uio.h>

#include "common/base/sys.h"

#define RUNS_MAX 64u /* of a side, handed to the kernel at a time */
#define CALL_MAX_BYTES (UINT64_C(1) << 30) /* the kernel stops below 2 GiB */
/* Shorter runs cost the kernel more than copying once more in the cache. */
#define RUN_MIN_BYTES 1024u
#define BOUNCE_BYTES 32768u /* on the stack; most of a first-level cache */

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

/* The next runs of one side, `done` bytes after its start: at most max bytes in
 * all; returns the bytes. */
static uint64_t take_runs(const struct chempi_cma_side *side, uint64_t done,
                          uint64_t max, struct iovec *runs, size_t *count)
{
    uint64_t bytes = 0;

    if (!side->iter) {
        runs[0].iov_base = (char *)((uintptr_t)side->buf + (uintptr_t)done);
        runs[0].iov_len = max;
        *count = 1;
        return max;
    }
    *count = chempi_segment_runs(side->iter, runs, RUNS_MAX, max);
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

/* A copy under way. Iterators stand where `done` is, but between taking runs
 * and settle(). */
struct copy {
    bool is_write;
    pid_t pid;
    struct chempi_cma_side local;
    struct chempi_cma_side remote;
    uint64_t local_start; /* position of the iterator at the beginning */
    uint64_t remote_start;
    uint64_t done; /* bytes */
};

static void settle(const struct copy *c)
{
    if (c->local.iter)
        chempi_segment_seek(c->local.iter, c->local_start + c->done);
    if (c->remote.iter)
        chempi_segment_seek(c->remote.iter, c->remote_start + c->done);
}

/* At most max bytes, run by run. As call(); -EINVAL: a side ends. */
static int64_t copy_runs(struct copy *c, uint64_t max)
{
    struct iovec there[RUNS_MAX];
    struct iovec here[RUNS_MAX];
    size_t there_count = 0;
    size_t here_count = 0;

    max = max < CALL_MAX_BYTES ? max : CALL_MAX_BYTES;
    max = take_runs(&c->remote, c->done, max, there, &there_count);
    if (max > 0)
        max = take_runs(&c->local, c->done, max, here, &here_count);
    if (max == 0)
        return -EINVAL;
    return call(c->is_write, c->pid, here, here_count, there, there_count);
}

/* At most max bytes of short local runs, packed or unpacked here; likewise. */
static int64_t copy_bounced(struct copy *c, uint64_t max)
{
    struct chempi_segment *iter = c->local.iter;
    char bounce[BOUNCE_BYTES];
    struct iovec here = {.iov_base = bounce};
    struct iovec there[RUNS_MAX];
    size_t there_count = 0;
    int64_t n;

    max = max < BOUNCE_BYTES ? max : BOUNCE_BYTES;
    max = take_runs(&c->remote, c->done, max, there, &there_count);
    if (max == 0 || iter->size - iter->position < max)
        return -EINVAL;
    here.iov_len = max;
    if (c->is_write)
        (void)chempi_segment_pack(iter, bounce, max);
    n = call(c->is_write, c->pid, &here, 1, there, there_count);
    if (!c->is_write && n > 0)
        (void)chempi_segment_unpack(iter, bounce, (size_t)n);
    return n;
}

int chempi_cma_copy(bool is_write, pid_t pid, struct chempi_cma_side local,
                    struct chempi_cma_side remote, uint64_t len, uint64_t *done)
{
    struct copy c = {
        .is_write = is_write,
        .pid = pid,
        .local = local,
        .remote = remote,
        .local_start = local.iter ? local.iter->position : 0,
        .remote_start = remote.iter ? remote.iter->position : 0,
    };
    bool is_short =
        local.iter && chempi_segment_mean_run(local.iter) < RUN_MIN_BYTES;
    int64_t n = 0;

    while (c.done < len && n >= 0) {
        n = is_short ? copy_bounced(&c, len - c.done)
                     : copy_runs(&c, len - c.done);
        if (n > 0)
            c.done += (uint64_t)n;
        settle(&c);
    }
    *done = c.done;
    return n < 0 ? (int)n : 0;
}

/* The side at addr in another process. */
static struct chempi_cma_side remote_at(uint64_t addr)
{
    return (struct chempi_cma_side){.buf = (char *)(uintptr_t)addr};
}

static struct chempi_cma_side local_at(const void *buf,
                                       struct chempi_segment *iter)
{
    return (struct chempi_cma_side){.buf = (char *)(uintptr_t)buf,
                                    .iter = buf ? NULL : iter};
}

int chempi_cma_read(pid_t pid, void *buf, struct chempi_segment *iter,
                    uint64_t remote_addr, uint64_t len, uint64_t *done)
{
    return chempi_cma_copy(false, pid, local_at(buf, iter),
                           remote_at(remote_addr), len, done);
}

int chempi_cma_write(pid_t pid, const void *buf, struct chempi_segment *iter,
                     uint64_t remote_addr, uint64_t len, uint64_t *done)
{
    return chempi_cma_copy(true, pid, local_at(buf, iter),
                           remote_at(remote_addr), len, done);
}
