/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large RDMA writes, moved by both cards. A card at either end of a link has a
 * DMA engine; here each engine is the process that looks at its card. So the
 * active side cuts a large write into chunks that both sides claim from one
 * counter: it writes its own, and the passive side, if it is polling, reads
 * its own. Each byte is moved once, by one of the two.
 *
 *   J1  the active side alone opens and closes a job, one at a time in the
 *       page of the VI it is connected to; `number` is odd while one is open
 *   J2  a chunk belongs to the side whose compare-and-swap on `claim` took
 *       it; the claim carries the job's number, so that a late one never
 *       takes a chunk of the next job
 *   J3  the passive side counts a chunk in `helped` after it is in place, or
 *       names it in `failed` and claims no more of this job
 *   J4  a job is closed when all chunks are claimed and those of the passive
 *       side counted; until then the descriptor is under execution
 */
#include <errno.h>

#include "common/base/sys.h"
#include "libchempi/devices/scivia/adapter/internal.h"
#include "libchempi/services/cma.h"

#define CHUNK_MIN (UINT64_C(32) << 10)
#define CHUNK_MAX (UINT64_C(256) << 10)
#define CHUNKS_GOAL 8u /* chunks of a write that is not huge */

static uint64_t chunk_size(uint64_t len)
{
    uint64_t size = (len / CHUNKS_GOAL + 4095) & ~UINT64_C(4095);

    if (size < CHUNK_MIN)
        return CHUNK_MIN;
    return size < CHUNK_MAX ? size : CHUNK_MAX;
}

static uint32_t chunk_count(uint64_t len)
{
    return (uint32_t)((len + chunk_size(len) - 1) / chunk_size(len));
}

static uint64_t chunk_len(uint64_t len, uint32_t k)
{
    uint64_t left = len - k * chunk_size(len);

    return left < chunk_size(len) ? left : chunk_size(len);
}

/* The next chunk of this job; false: none is left, or the job is closed. */
static bool claim(struct vi_job *job, uint32_t number, uint32_t count,
                  uint32_t *k)
{
    uint64_t now = atomic_load_explicit(&job->claim, memory_order_relaxed);

    do {
        *k = (uint32_t)now;
        if (now >> 32 != number || *k >= count)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&job->claim, &now, now + 1,
                                                    memory_order_acq_rel,
                                                    memory_order_relaxed));
    return true;
}

/* --- active side --- */

bool chempi_share_fits(const struct chempi_via_vi *vi,
                       const struct chempi_via_descriptor *d, uint64_t len)
{
    return vi->share.is_open ||
           (d->op == CHEMPI_VIA_RDMA_WRITE && d->segment_count == 1 &&
            len >= ADAPTER_SHARE_MIN && !vi->adapter->has_personality &&
            atomic_load_explicit(&vi->at->page->armed, memory_order_relaxed) ==
                0);
}

static void offer(struct chempi_via_vi *vi,
                  const struct chempi_via_descriptor *d,
                  const struct vi_piece *to, uint64_t len)
{
    struct vi_job *job = &vi->peer->job;
    struct vi_share *share = &vi->share;

    share->number += share->number % 2 ? 2 : 1;
    share->mine = 0;
    share->theirs = 0;
    share->status = 0;
    share->is_open = true;
    share->is_claimed = false;
    atomic_thread_fence(memory_order_seq_cst); /* after the last close */
    job->from = (uint64_t)(uintptr_t)d->segments[0].addr;
    job->from_handle = d->segments[0].handle;
    job->to = to->addr;
    job->to_handle = to->handle;
    job->len = len;
    atomic_store_explicit(&job->helped, 0, memory_order_relaxed);
    atomic_store_explicit(&job->failed, 0, memory_order_relaxed);
    atomic_store_explicit(&job->claim, (uint64_t)share->number << 32,
                          memory_order_relaxed);
    atomic_store_explicit(&job->number, share->number,
                          memory_order_release); /* partner: help */
    (void)atomic_fetch_add_explicit(&vi->at->page->jobs, 1,
                                    memory_order_release);
}

static int write_chunk(struct chempi_via_vi *vi,
                       const struct chempi_via_descriptor *d,
                       const struct vi_piece *to, uint64_t len, uint32_t k)
{
    uint64_t at = k * chunk_size(len);
    uint64_t done = 0;
    int rc = chempi_cma_write(vi->at->pid, (char *)d->segments[0].addr + at,
                              NULL, to->addr + at, chunk_len(len, k), &done);

    vi->adapter->counters.bytes_moved += done;
    return rc;
}

/* No more claims; those that were made before must be awaited. */
static void stop_claims(struct chempi_via_vi *vi, uint64_t len)
{
    struct vi_share *share = &vi->share;
    uint32_t claimed = (uint32_t)atomic_exchange_explicit(
        &vi->peer->job.claim, 0, memory_order_acq_rel);

    if (claimed < share->mine || claimed > chunk_count(len)) {
        share->status = -EPROTO; /* the other side wrote nonsense (A1) */
        claimed = share->mine;
    }
    share->theirs = claimed - share->mine;
    share->is_claimed = true;
}

static uint32_t failed_chunk(const struct chempi_via_vi *vi)
{
    return atomic_load_explicit(&vi->peer->job.failed, memory_order_acquire);
}

bool chempi_share_is_settled(const struct chempi_via_vi *vi)
{
    return atomic_load_explicit(&vi->peer->job.helped, memory_order_acquire) +
               (failed_chunk(vi) != 0) >=
           vi->share.theirs;
}

int chempi_share_run(struct chempi_via_vi *vi,
                     const struct chempi_via_descriptor *d,
                     const struct vi_piece *to, uint64_t len)
{
    struct vi_share *share = &vi->share;
    uint32_t count = chunk_count(len);
    uint32_t failed;
    uint32_t k;

    if (!share->is_open)
        offer(vi, d, to, len);
    while (!share->is_claimed) {
        if (share->status == 0 &&
            claim(&vi->peer->job, share->number, count, &k)) {
            share->mine++;
            share->status = write_chunk(vi, d, to, len, k);
        } else {
            stop_claims(vi, len);
        }
    }
    if (!chempi_share_is_settled(vi)) {
        vi->adapter->share_waits += !share->is_waiting;
        share->is_waiting = true;
        return -EINPROGRESS;
    }
    failed = failed_chunk(vi);
    if (failed && share->status == 0)
        share->status =
            failed <= count ? write_chunk(vi, d, to, len, failed - 1) : -EPROTO;
    chempi_share_close(vi);
    return share->status;
}

void chempi_share_close(struct chempi_via_vi *vi)
{
    struct vi_share *share = &vi->share;

    if (!share->is_open)
        return;
    atomic_store_explicit(&vi->peer->job.number, share->number + 1,
                          memory_order_release);
    vi->adapter->share_waits -= share->is_waiting;
    share->is_waiting = false;
    share->is_open = false;
}

/* --- passive side --- */

/* The job as it was when it had this number; false: it has changed. */
static bool copy_job(const struct vi_job *job, uint32_t number,
                     struct vi_job *copy)
{
    copy->from = job->from;
    copy->from_handle = job->from_handle;
    copy->to = job->to;
    copy->to_handle = job->to_handle;
    copy->len = job->len;
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&job->number, memory_order_relaxed) == number;
}

/* What the active side has found by looking at both tables, found again:
 * the page can be written by it, and the memory is ours. */
static bool is_allowed(struct chempi_via_vi *vi, const struct vi_job *job)
{
    struct chempi_adapter *adapter = vi->adapter;
    const struct chempi_adapter_link *link = vi->at;

    if (job->len >= ADAPTER_SHARE_MIN &&
        job->len <= vi->attributes.transfer_max &&
        chempi_tpt_check(adapter->tpt.entries, adapter->tpt.region_max,
                         job->to_handle, vi->attributes.ptag, job->to, job->len,
                         CHEMPI_VIA_ENABLE_WRITE) == 0 &&
        chempi_tpt_check(link->page->table, link->region_max, job->from_handle,
                         vi->peer->ptag, job->from, job->len, 0) == 0)
        return true;
    adapter->counters.refused++;
    return false;
}

static void help(struct chempi_via_vi *vi, uint32_t number)
{
    struct vi_job *job = &vi->page->job;
    struct vi_job copy;
    uint32_t k;

    if (vi->at->is_cma_refused || !copy_job(job, number, &copy) ||
        !is_allowed(vi, &copy))
        return;
    while (claim(job, number, chunk_count(copy.len), &k)) {
        uint64_t at = k * chunk_size(copy.len);
        uint64_t done = 0;
        int rc =
            chempi_cma_read(vi->at->pid, (char *)(uintptr_t)copy.to + at, NULL,
                            copy.from + at, chunk_len(copy.len, k), &done);

        vi->adapter->counters.bytes_moved += done;
        if (rc < 0) {
            atomic_store_explicit(&job->failed, k + 1, memory_order_release);
            break;
        }
        (void)atomic_fetch_add_explicit(&job->helped, 1, memory_order_release);
    }
    (void)atomic_fetch_add_explicit(&vi->at->page->completions, 1,
                                    memory_order_release);
    chempi_adapter_notify(vi->at);
}

void chempi_share_help(struct chempi_adapter *adapter,
                       const struct chempi_via_cq *cq)
{
    adapter->jobs_seen =
        atomic_load_explicit(&adapter->page->jobs, memory_order_acquire);
    CHEMPI_LIST_FOR (node, &adapter->vis) {
        struct chempi_via_vi *vi =
            CHEMPI_CONTAINER_OF(node, struct chempi_via_vi, link);
        uint32_t number =
            atomic_load_explicit(&vi->page->job.number, memory_order_acquire);

        if (vi->attributes.recv_cq == cq && vi->at && vi->peer &&
            number % 2 == 1 && number != vi->job_seen &&
            chempi_via_vi_state(vi) == CHEMPI_VIA_CONNECTED) {
            vi->job_seen = number;
            help(vi, number);
        }
    }
}
