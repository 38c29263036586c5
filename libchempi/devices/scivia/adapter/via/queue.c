/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues: posting descriptors, executing and completing them; see via.h.
 *
 * The process that posts to a send queue executes the descriptor: it looks its
 * own memory up in its own table and the other side's in the other side's
 * table, moves the data once by cross-memory attach (or through bounce.c),
 * and writes the result where the other side looks for it.
 *
 *   Q1  the head of vi->sends is the only descriptor under execution; those
 *       behind wait, so a queue completes in order
 *   Q2  a result is in place before `done` says so (release), and `done` is
 *       said before the other side is notified
 *   Q3  who breaks a connection says so, then takes what is done; who has
 *       executed a descriptor says that it is done, then looks whether the
 *       connection is broken; with a full fence on either side, so that the
 *       result is taken or the descriptor fails
 */
#define _GNU_SOURCE /* process_vm_writev */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "common/base/compiler.h"
#include "common/base/sys.h"
#include "libchempi/devices/scivia/adapter/internal.h"

/* --- checking --- */

static uint64_t total_of(const struct chempi_via_descriptor *d)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < d->segment_count; i++)
        total += d->segments[i].len;
    return total;
}

static int check_shape(struct chempi_via_vi *vi,
                       const struct chempi_via_descriptor *d, bool is_recv)
{
    if (d->segment_count > CHEMPI_VIA_SEGMENT_MAX ||
        (d->op == CHEMPI_VIA_RECEIVE) != is_recv ||
        (unsigned)d->op > CHEMPI_VIA_RDMA_READ ||
        (d->op == CHEMPI_VIA_RDMA_READ && d->has_immediate) ||
        total_of(d) > vi->attributes.transfer_max)
        return ADAPTER_FAIL(vi->adapter, -EINVAL, "a malformed descriptor");
    return 0;
}

/* Do all local segments lie in memory registered under the VI's tag? */
static int check_local(struct chempi_via_vi *vi,
                       const struct chempi_via_descriptor *d)
{
    const struct chempi_tpt *tpt = &vi->adapter->tpt;

    for (uint32_t i = 0; i < d->segment_count; i++) {
        const struct chempi_via_segment *s = &d->segments[i];

        if (s->len > 0 &&
            chempi_tpt_check(tpt->entries, tpt->region_max, s->handle,
                             vi->attributes.ptag, (uint64_t)(uintptr_t)s->addr,
                             s->len, 0) < 0) {
            vi->adapter->counters.refused++;
            return -EACCES;
        }
    }
    return 0;
}

static int check_remote(struct chempi_via_vi *vi, const struct vi_piece *pieces,
                        uint32_t count, uint32_t enables)
{
    const struct chempi_adapter_link *link = vi->at;

    for (uint32_t i = 0; i < count; i++) {
        if (pieces[i].len > 0 &&
            chempi_tpt_check(link->page->table, link->region_max,
                             pieces[i].handle, vi->peer->ptag, pieces[i].addr,
                             pieces[i].len, enables) < 0) {
            vi->adapter->counters.refused++;
            return -EACCES;
        }
    }
    return 0;
}

/* --- moving data --- */

/* Runs of [skip, skip + len) of a list; returns their number. */
static size_t slice(const struct iovec *from, size_t count, uint64_t skip,
                    uint64_t len, struct iovec *to)
{
    size_t n = 0;

    for (size_t i = 0; i < count && len > 0; i++) {
        uint64_t size = from[i].iov_len;

        if (skip >= size) {
            skip -= size;
            continue;
        }
        size = size - skip < len ? size - skip : len;
        to[n].iov_base = (char *)from[i].iov_base + skip;
        to[n++].iov_len = (size_t)size;
        len -= size;
        skip = 0;
    }
    return n;
}

/* Move len bytes between the descriptor's segments and the remote pieces. */
static int attach(struct chempi_adapter_link *link, bool is_write,
                  const struct iovec *local, size_t local_count,
                  const struct iovec *remote, size_t remote_count, uint64_t len)
{
    uint64_t done = 0;

    while (done < len) {
        struct iovec here[CHEMPI_VIA_SEGMENT_MAX];
        struct iovec there[CHEMPI_VIA_SEGMENT_MAX];
        size_t h = slice(local, local_count, done, len - done, here);
        size_t t = slice(remote, remote_count, done, len - done, there);
        ssize_t n =
            is_write
                ? chempi_sys->process_vm_writev(link->pid, here, h, there, t, 0)
                : chempi_sys->process_vm_readv(link->pid, here, h, there, t, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EFAULT;
        done += (uint64_t)n;
    }
    return 0;
}

static int move(struct chempi_via_vi *vi, const struct chempi_via_descriptor *d,
                const struct vi_piece *pieces, uint32_t count, uint64_t len)
{
    struct chempi_adapter *adapter = vi->adapter;
    struct iovec local[CHEMPI_VIA_SEGMENT_MAX];
    struct iovec remote[CHEMPI_VIA_SEGMENT_MAX];
    int rc;

    if (len == 0)
        return 0;
    if (!vi->at->is_cma_refused && chempi_share_fits(vi, d, len)) {
        rc = chempi_share_run(vi, d, pieces, len);
        if (rc != -EPERM && rc != -ENOSYS)
            return rc == -ESRCH ? -ECONNRESET : rc;
        vi->at->is_cma_refused = true; /* from now on */
    }
    if (!vi->at->is_cma_refused) {
        for (uint32_t i = 0; i < d->segment_count; i++) {
            local[i].iov_base = d->segments[i].addr;
            local[i].iov_len = d->segments[i].len;
        }
        for (uint32_t i = 0; i < count; i++) {
            remote[i].iov_base = (void *)(uintptr_t)pieces[i].addr;
            remote[i].iov_len = pieces[i].len;
        }
        rc = attach(vi->at, d->op != CHEMPI_VIA_RDMA_READ, local,
                    d->segment_count, remote, count, len);
        if (rc != -EPERM && rc != -ENOSYS) {
            adapter->counters.bytes_moved += rc == 0 ? len : 0;
            return rc == -ESRCH ? -ECONNRESET : rc;
        }
        vi->at->is_cma_refused = true; /* from now on */
    }
    return chempi_bounce_start(vi, d, pieces, count, len);
}

/* --- executing --- */

/* Tell the other side how its next receive descriptor ended, and return that,
 * or -ECONNRESET: it may have taken back what it had posted (Q3). */
static int complete_remote(struct chempi_via_vi *vi,
                           const struct chempi_via_descriptor *d, uint64_t len,
                           int status)
{
    struct vi_result *result = &vi->peer->results[vi->taken % CHEMPI_VIA_DEPTH];

    if (!vi->at)
        return -ECONNRESET; /* the link broke while the data was moved */
    result->len = len;
    result->status = status;
    result->has_immediate = d->has_immediate;
    result->immediate = d->immediate;
    vi->taken++;
    atomic_store_explicit(&vi->peer->done, vi->taken,
                          memory_order_release); /* Q2 */
    (void)atomic_fetch_add_explicit(&vi->at->page->completions, 1,
                                    memory_order_release);
    chempi_adapter_notify(vi->at); /* its fence: Q3 */
    return status < 0 || chempi_via_vi_state(vi) != CHEMPI_VIA_ERROR
               ? status
               : -ECONNRESET;
}

/* The other side's next receive descriptor; false: none is posted. */
static bool peek_slot(struct chempi_via_vi *vi, struct vi_slot *slot)
{
    uint32_t posted =
        atomic_load_explicit(&vi->peer->posted, memory_order_acquire);

    if (posted - vi->taken - 1 >= CHEMPI_VIA_DEPTH)
        return false; /* none, or nonsense (A1) */
    *slot = vi->peer->slots[vi->taken % CHEMPI_VIA_DEPTH];
    atomic_signal_fence(memory_order_seq_cst); /* read once */
    return slot->count <= CHEMPI_VIA_SEGMENT_MAX;
}

static bool is_reliable(const struct chempi_via_vi *vi)
{
    return vi->attributes.reliability != CHEMPI_VIA_UNRELIABLE;
}

static int execute_send(struct chempi_via_vi *vi,
                        struct chempi_via_descriptor *d)
{
    uint64_t len = total_of(d);
    struct vi_slot slot;
    uint64_t room = 0;
    int rc;

    if (!peek_slot(vi, &slot)) {
        vi->adapter->counters.dropped++;
        return is_reliable(vi) ? -ENOBUFS : 0;
    }
    for (uint32_t i = 0; i < slot.count; i++)
        room += slot.pieces[i].len;
    if (room < len) {
        vi->adapter->counters.dropped += !is_reliable(vi);
        rc = complete_remote(vi, d, 0, -EMSGSIZE);
        return is_reliable(vi) ? rc : 0;
    }
    rc = check_remote(vi, slot.pieces, slot.count, 0);
    if (rc == 0)
        rc = move(vi, d, slot.pieces, slot.count, len);
    if (rc == -EINPROGRESS)
        return rc;
    if (rc == 0)
        d->length = len;
    return complete_remote(vi, d, rc == 0 ? len : 0, rc);
}

static int execute_rdma(struct chempi_via_vi *vi,
                        struct chempi_via_descriptor *d)
{
    uint64_t len = total_of(d);
    const struct vi_piece piece = {.addr = d->remote_addr,
                                   .handle = d->remote_handle,
                                   .len = (uint32_t)len};
    struct vi_slot slot;
    int rc;

    if (d->has_immediate && !peek_slot(vi, &slot)) {
        vi->adapter->counters.dropped++;
        return is_reliable(vi) ? -ENOBUFS : 0;
    }
    rc = check_remote(vi, &piece, 1,
                      d->op == CHEMPI_VIA_RDMA_WRITE ? CHEMPI_VIA_ENABLE_WRITE
                                                     : CHEMPI_VIA_ENABLE_READ);
    if (rc == 0)
        rc = move(vi, d, &piece, 1, len);
    if (rc == 0) {
        d->length = len;
        if (d->has_immediate)
            rc = complete_remote(vi, d, len, 0);
    }
    return rc;
}

static void finish(struct chempi_via_vi *vi, struct chempi_via_descriptor *d,
                   int status)
{
    chempi_share_close(vi);
    chempi_list_remove(&d->link);
    d->status = status;
    chempi_list_append(&vi->sent, &d->link);
    vi->moved = 0;
    if (vi->attributes.send_cq)
        vi->attributes.send_cq->has_local = true;
}

static const char *words_for(int status)
{
    switch (status) {
    case -EACCES:
        return "an access against the protection";
    case -ENOBUFS:
        return "no receive descriptor was posted";
    case -EMSGSIZE:
        return "the receive descriptor was too small";
    default:
        return "the data could not be moved";
    }
}

/* Execute the head; false: it waits. */
static bool run_head(struct chempi_via_vi *vi, struct chempi_via_descriptor *d)
{
    bool is_broken;
    int rc;

    if (chempi_via_vi_state(vi) == CHEMPI_VIA_ERROR) {
        finish(vi, d, -ECONNRESET);
        return true;
    }
    if (d->delay > 0) {
        d->delay--;
        return false;
    }
    if (vi->moved == 0)
        chempi_timing_model_descriptor(
            &vi->adapter->pace, d->op == CHEMPI_VIA_RDMA_READ, total_of(d));
    is_broken =
        vi->moved == 0 && !vi->share.is_open &&
        chempi_dice_strikes(&vi->adapter->dice, vi->adapter->faults.broken_vi);
    rc = check_local(vi, d);
    if (is_broken && chempi_dice_roll(&vi->adapter->dice) % 2)
        rc = -ECONNRESET; /* before anything has moved */
    if (rc == 0)
        rc = d->op == CHEMPI_VIA_SEND ? execute_send(vi, d)
                                      : execute_rdma(vi, d);
    if (rc == -EINPROGRESS)
        return false;
    finish(vi, d, is_broken ? -ECONNRESET : rc);
    rc = d->status;
    if (rc < 0 && (is_reliable(vi) || rc == -ECONNRESET))
        chempi_via_break(vi, rc, words_for(rc));
    return true;
}

int chempi_queue_run(struct chempi_via_vi *vi)
{
    int events = 0;

    if (vi->is_running || vi->is_bouncing)
        return 0;
    if (vi->share.is_waiting && !chempi_share_is_settled(vi) &&
        chempi_via_vi_state(vi) == CHEMPI_VIA_CONNECTED)
        return 0;
    vi->is_running = true;
    while (!chempi_list_is_empty(&vi->sends)) {
        struct chempi_via_descriptor *d = CHEMPI_CONTAINER_OF(
            chempi_list_first(&vi->sends), struct chempi_via_descriptor, link);

        if (!run_head(vi, d))
            break;
        events++;
    }
    vi->is_running = false;
    chempi_list_remove(&vi->active_link);
    if (!chempi_list_is_empty(&vi->sends))
        chempi_list_append(&vi->adapter->active, &vi->active_link);
    return events;
}

/* --- breaking --- */

/* The VI is in the error state: what is queued fails. */
static void flush(struct chempi_via_vi *vi)
{
    if (!vi->is_running)
        (void)chempi_queue_run(vi);
    if (vi->attributes.recv_cq)
        vi->attributes.recv_cq->has_local = true;
}

void chempi_via_break(struct chempi_via_vi *vi, int status, const char *text)
{
    struct chempi_adapter *adapter = vi->adapter;
    bool was_connected = vi->state == CHEMPI_VIA_CONNECTED;

    if (vi->state == CHEMPI_VIA_ERROR)
        return;
    vi->state = CHEMPI_VIA_ERROR;
    vi->status = status;
    atomic_store_explicit(&vi->page->is_broken, 1, memory_order_release);
    if (vi->peer)
        atomic_store_explicit(&vi->peer->is_broken, 1, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst); /* Q3; partner: notify */
    if (vi->at && was_connected) {
        const struct word word = {.type = WORD_VI_BREAK,
                                  .token = vi->peer_token,
                                  .status = -ECONNRESET};

        (void)chempi_adapter_link_say(vi->at, &word, -1,
                                      -1); /* else it is down */
    }
    if (vi->at && vi->at->bouncing == vi)
        vi->at->bouncing = NULL;
    vi->is_bouncing = false;
    flush(vi);
    if (vi->is_told || !adapter->events.error)
        return;
    vi->is_told = true;
    adapter->events.error(adapter->arg, vi, status, text);
}

/* --- posting --- */

int chempi_via_post_send(struct chempi_via_vi *vi,
                         struct chempi_via_descriptor *d)
{
    struct chempi_adapter *adapter = vi->adapter;
    int rc = check_shape(vi, d, false);

    if (rc < 0)
        return rc;
    if (vi->state == CHEMPI_VIA_IDLE || vi->state == CHEMPI_VIA_CONNECTING)
        return ADAPTER_FAIL(adapter, -ENOTCONN, "the VI is not connected");
    d->status = -EINPROGRESS;
    d->length = 0;
    d->delay = 0;
    if (chempi_dice_strikes(&adapter->dice, adapter->faults.late))
        d->delay = 1 + chempi_dice_roll(&adapter->dice) % ADAPTER_LATE_MAX;
    chempi_list_append(&vi->sends, &d->link);
    if (vi->at &&
        chempi_dice_strikes(&adapter->dice, adapter->faults.broken_link))
        chempi_adapter_link_fail(vi->at, -ECONNRESET);
    (void)chempi_queue_run(vi);
    chempi_timing_model_posted(&adapter->pace,
                               chempi_timing_model_begin(&adapter->pace));
    return 0;
}

int chempi_via_post_recv(struct chempi_via_vi *vi,
                         struct chempi_via_descriptor *d)
{
    struct vi_page *page = vi->page;
    uint32_t posted = atomic_load_explicit(&page->posted, memory_order_relaxed);
    struct vi_slot *slot = &page->slots[posted % CHEMPI_VIA_DEPTH];
    int rc = check_shape(vi, d, true);

    if (rc < 0)
        return rc;
    if (posted - vi->received == CHEMPI_VIA_DEPTH)
        return ADAPTER_FAIL(vi->adapter, -ENOSPC,
                            "%u receive descriptors are posted",
                            CHEMPI_VIA_DEPTH);
    if (check_local(vi, d) < 0)
        return ADAPTER_FAIL(vi->adapter, -EACCES,
                            "the memory of a receive descriptor is not "
                            "registered under the VI's protection tag");
    d->status = -EINPROGRESS;
    d->length = 0;
    slot->count = d->segment_count;
    for (uint32_t i = 0; i < d->segment_count; i++)
        slot->pieces[i] = (struct vi_piece){
            .addr = (uint64_t)(uintptr_t)d->segments[i].addr,
            .handle = d->segments[i].handle,
            .len = d->segments[i].len,
        };
    chempi_list_append(&vi->receives, &d->link);
    atomic_store_explicit(&page->posted, posted + 1,
                          memory_order_release); /* partner: peek_slot */
    return 0;
}

/* --- taking --- */

static struct chempi_via_descriptor *take(struct chempi_list *list)
{
    struct chempi_via_descriptor *d;

    if (chempi_list_is_empty(list))
        return NULL;
    d = CHEMPI_CONTAINER_OF(chempi_list_first(list),
                            struct chempi_via_descriptor, link);
    chempi_list_remove(&d->link);
    return d;
}

struct chempi_via_descriptor *chempi_via_send_done(struct chempi_via_vi *vi)
{
    struct chempi_via_descriptor *d;

    if (chempi_list_is_empty(&vi->sent) && !chempi_list_is_empty(&vi->sends))
        (void)chempi_queue_run(vi);
    d = take(&vi->sent);
    if (d && chempi_list_is_empty(&vi->sent) &&
        chempi_list_is_empty(&vi->sends))
        chempi_timing_model_collect(&vi->adapter->pace);
    return d;
}

struct chempi_via_descriptor *chempi_via_recv_done(struct chempi_via_vi *vi)
{
    struct vi_page *page = vi->page;
    /* In this order: what was done before it broke comes first. */
    bool is_broken = chempi_via_vi_state(vi) == CHEMPI_VIA_ERROR;
    uint32_t done = atomic_load_explicit(&page->done, memory_order_acquire);
    struct chempi_via_descriptor *d;
    struct vi_result result;

    if (done == vi->received) {
        /* Of a broken connection the rest comes back, too. */
        if (!is_broken)
            return NULL;
        d = take(&vi->receives);
        if (!d)
            return NULL;
        d->status = -ECONNRESET;
        d->has_immediate = false;
        return d;
    }
    d = take(&vi->receives);
    if (!d)
        return NULL; /* more done than posted: not believed (A1) */
    result = page->results[vi->received % CHEMPI_VIA_DEPTH];
    atomic_signal_fence(memory_order_seq_cst); /* read once */
    vi->received++;
    d->status = result.status <= 0 ? result.status : -EPROTO;
    d->length =
        result.len < total_of(d) || d->status < 0 || result.has_immediate
            ? result.len
            : total_of(d);
    d->has_immediate = result.has_immediate != 0;
    d->immediate = result.immediate;
    return d;
}

/* --- completion queues --- */

int chempi_via_cq_create(struct chempi_adapter *adapter,
                         struct chempi_via_cq **out)
{
    struct chempi_via_cq *cq = chempi_sys->calloc(1, sizeof(*cq));

    if (!cq)
        return ADAPTER_FAIL(adapter, -ENOMEM, "out of memory");
    cq->adapter = adapter;
    cq->seen =
        atomic_load_explicit(&adapter->page->completions, memory_order_acquire);
    *out = cq;
    return 0;
}

int chempi_via_cq_destroy(struct chempi_via_cq *cq)
{
    if (cq->users > 0)
        return ADAPTER_FAIL(cq->adapter, -EBUSY,
                            "a VI uses the completion queue");
    free(cq);
    return 0;
}

static bool has_received(const struct chempi_via_vi *vi)
{
    return atomic_load_explicit(&vi->page->done, memory_order_acquire) !=
               vi->received ||
           (chempi_via_vi_state(vi) == CHEMPI_VIA_ERROR &&
            !chempi_list_is_empty(&vi->receives));
}

int chempi_queue_run_active(struct chempi_adapter *adapter, bool is_for_shared)
{
    struct chempi_list todo;
    int events = 0;

    /* What runs may break others' connections, which run then, too. */
    chempi_list_init(&todo);
    chempi_list_splice(&todo, &adapter->active);
    while (!chempi_list_is_empty(&todo)) {
        struct chempi_via_vi *vi = CHEMPI_CONTAINER_OF(
            chempi_list_first(&todo), struct chempi_via_vi, active_link);

        chempi_list_remove(&vi->active_link);
        chempi_list_append(&adapter->active, &vi->active_link);
        if (vi->share.is_waiting || !is_for_shared)
            events += chempi_queue_run(vi);
    }
    return events;
}

struct chempi_via_vi *chempi_via_cq_done(struct chempi_via_cq *cq,
                                         bool *is_recv)
{
    struct chempi_adapter *adapter = cq->adapter;

    if (CHEMPI_UNLIKELY(
            atomic_load_explicit(&adapter->page->jobs, memory_order_relaxed) !=
            adapter->jobs_seen))
        chempi_share_help(adapter, cq);
    if (CHEMPI_UNLIKELY(adapter->share_waits))
        (void)chempi_queue_run_active(adapter, true);
    uint32_t now =
        atomic_load_explicit(&adapter->page->completions, memory_order_acquire);

    if (now == cq->seen && !cq->has_local)
        return NULL;
    CHEMPI_LIST_FOR (node, &adapter->vis) {
        struct chempi_via_vi *vi =
            CHEMPI_CONTAINER_OF(node, struct chempi_via_vi, link);
        bool is_ours = vi->attributes.recv_cq == cq && has_received(vi);

        if (!is_ours &&
            (vi->attributes.send_cq != cq || chempi_list_is_empty(&vi->sent)))
            continue;
        *is_recv = is_ours;
        /* The next one to be looked at is another. */
        chempi_list_remove(&vi->link);
        chempi_list_append(&adapter->vis, &vi->link);
        cq->has_local = true;
        return vi;
    }
    cq->seen = now;
    cq->has_local = false;
    return NULL;
}
