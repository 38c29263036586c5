/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single copy by cross-memory attach: the receiver reads the payload from the
 * sender's memory straight to its place. Whether the kernel allows that is
 * found out per peer with a real byte; when it changes its mind later, the
 * rest of the message and all following ones come through the ring.
 *
 * A large transfer is shared: cut into chunks that both sides
 * claim from one counter, the receiver reading, the sender writing, whoever
 * has time. A side that does something else simply claims nothing.
 *
 *   S1  a chunk belongs to the side whose fetch-and-add answered its number
 *   S2  the sender counts a chunk in share->done after it is in place, or
 *       names it in share->failed and claims no more
 *   S3  the receiver is done when its own chunks and the sender's add up to
 *       all; only then it says FIN, and the slot is the sender's again
 *   S4  a side helps only while its own receives leave it nothing to claim:
 *       with payload under way in both directions each core fetches its own,
 *       and no target goes from one core's cache to the other's
 *   S5  the counter only grows, so a side's next chunk is at least the number
 *       of those that it has had. A sender that will claim no more says so,
 *       when it has counted what it had: where it leaves chunks to nobody, the
 *       counter has leapt ahead. Shared memory that says otherwise ends the
 *       connection
 */
#include <errno.h>

#include "libchempi/devices/shm/internal.h"

#define CHUNK_MIN (UINT64_C(32) << 10)
#define CHUNK_MAX (UINT64_C(256) << 10)
#define CHUNKS_GOAL 8u        /* chunks of a transfer that is not huge */
#define CLAIM_STOP (1u << 30) /* no more chunks for anybody */

bool chempi_shm_copy_is_possible(struct shm_ep *ep)
{
    const struct shm_pair *pair = ep->rx_pair;

    if (CHEMPI_LIKELY(ep->cma != SHM_CMA_UNKNOWN))
        return ep->cma == SHM_CMA_WORKS;
    ep->cma_pid = (pid_t)pair->sender.pid;
    ep->cma = SHM_CMA_REFUSED;
    if (ep->cma_pid > 0 &&
        chempi_dev_setting(ep->base.dev, SHM_SET_SINGLE_COPY) &&
        chempi_cma_probe(ep->cma_pid,
                         (const void *)(uintptr_t)pair->sender.probe_addr,
                         (unsigned char)pair->sender.probe_value) == 0)
        ep->cma = SHM_CMA_WORKS;
    shm_dev_of(ep)->refused += ep->cma == SHM_CMA_REFUSED;
    return ep->cma == SHM_CMA_WORKS;
}

/* Bytes per transfer and progress. */
static uint64_t slice_max(const struct shm_xfer *xfer)
{
    return chempi_dev_setting(shm_ep_of(xfer)->base.dev, SHM_SET_SLICE);
}

/* --- chunks; both sides compute the same from the same `want` --- */

static uint64_t chunk_size(uint64_t want)
{
    uint64_t size = (want / CHUNKS_GOAL + 4095) & ~UINT64_C(4095);

    if (size < CHUNK_MIN)
        return CHUNK_MIN;
    if (size <= CHUNK_MAX)
        return size;
    /* Stay far below CLAIM_STOP however large the message is. */
    return want >> 40 ? want >> 20 : CHUNK_MAX;
}

static uint32_t chunk_count(uint64_t want)
{
    uint64_t size = chunk_size(want);

    return (uint32_t)((want + size - 1) / size);
}

static uint64_t chunk_len(uint64_t want, uint32_t k)
{
    uint64_t size = chunk_size(want);
    uint64_t left = want - k * size;

    return left < size ? left : size;
}

/* Copy len bytes of the payload from byte `at` on: the receiver reads them, the
 * sender writes. 0 or -errno; *got tells how many. */
static int copy_part(struct shm_xfer *xfer, uint64_t at, uint64_t len,
                     uint64_t *got)
{
    const struct chempi_tx *tx = xfer->base.tx;
    struct chempi_cma_side here = {.iter = tx ? tx->iter : xfer->base.rx->iter};

    if (here.iter)
        chempi_segment_seek(here.iter, at);
    else
        here.buf = (char *)(uintptr_t)(tx ? tx->buf : xfer->base.rx->buf) + at;
    return chempi_cma_copy(tx != NULL, shm_ep_of(xfer)->cma_pid, here,
                           chempi_shm_form_side(xfer, at), len, got);
}

static int copy_chunk(struct shm_xfer *xfer, uint32_t k)
{
    uint64_t start_ns = chempi_shm_choice_start(xfer);
    uint64_t got;
    int rc = copy_part(xfer, k * chunk_size(xfer->base.want),
                       chunk_len(xfer->base.want, k), &got);

    chempi_shm_choice_stop(xfer, start_ns);
    return rc;
}

/* --- receiver --- */

/* The payload is in place. */
static void finish(struct shm_xfer *xfer)
{
    xfer->base.took = SHM_PROTOCOL_SINGLE_COPY;
    chempi_rndv_fetched(&xfer->base);
}

static void refuse(struct shm_xfer *xfer, int rc)
{
    /* EPERM, ESRCH, ENOSYS; the others are about this payload, this time. */
    if (rc != -EFAULT && rc != -EBADMSG && rc != -ENOMEM) {
        shm_dev_of(shm_ep_of(xfer))->refused +=
            shm_ep_of(xfer)->cma != SHM_CMA_REFUSED;
        shm_ep_of(xfer)->cma = SHM_CMA_REFUSED;
        xfer->is_refused = true;
    }
    if (xfer->base.rx->iter)
        chempi_segment_seek(xfer->base.rx->iter, xfer->base.done);
    chempi_rndv_owe(&xfer->base, CHEMPI_RNDV_CTS); /* from xfer->base.done on */
}

/* Returns events. */
static int advance_alone(struct shm_xfer *xfer)
{
    uint64_t slice = slice_max(xfer);
    uint64_t len = xfer->base.want - xfer->base.done;
    uint64_t got = 0;
    uint64_t start_ns;
    int rc;

    len = len < slice ? len : slice;
    start_ns = chempi_shm_choice_start(xfer);
    rc = copy_part(xfer, xfer->base.done, len, &got);
    chempi_shm_choice_stop(xfer, start_ns);
    xfer->base.done += got;
    if (rc < 0) {
        refuse(xfer, rc);
    } else if (xfer->base.done == xfer->base.want) {
        chempi_shm_choice_learn_copy(xfer, xfer->base.want);
        finish(xfer);
    }
    return 1;
}

static struct shm_share *share_in(const struct shm_xfer *xfer)
{
    return &shm_ep_of(xfer)->rx_pair->shares[xfer->share];
}

/* How many of its chunks has the sender dealt with? */
static uint32_t sender_count(const struct shm_share *share)
{
    uint32_t failed =
        atomic_load_explicit(&share->failed, memory_order_acquire) != 0;

    return atomic_load_explicit(&share->done, memory_order_acquire) + failed;
}

/* All chunks are claimed; has the sender finished its own? */
static bool is_settled(const struct shm_xfer *xfer)
{
    return sender_count(share_in(xfer)) >= xfer->theirs;
}

/* S5. Orders its count before; partner: close_share(). */
static bool is_closed(const struct shm_xfer *xfer)
{
    return atomic_load_explicit(&share_in(xfer)->is_closed,
                                memory_order_acquire) != 0;
}

static CHEMPI_COLD int break_off(struct shm_xfer *xfer)
{
    chempi_shm_eager_break(shm_ep_of(xfer), "a shared copy does not add up");
    return 1;
}

static void learn_shared(struct shm_xfer *xfer)
{
    uint64_t mine = xfer->mine * chunk_size(xfer->base.want);

    xfer->peer_spent =
        atomic_load_explicit(&share_in(xfer)->spent, memory_order_relaxed);
    chempi_shm_choice_learn_copy(
        xfer, mine < xfer->base.want ? mine : xfer->base.want);
}

/* S3. Returns events. */
static int settle(struct shm_xfer *xfer)
{
    uint32_t failed;

    if (!is_settled(xfer)) /* perhaps it is since the first look */
        return is_closed(xfer) && !is_settled(xfer) ? break_off(xfer) : 0;
    failed =
        atomic_load_explicit(&share_in(xfer)->failed, memory_order_acquire);
    if (sender_count(share_in(xfer)) > xfer->theirs ||
        failed > chunk_count(xfer->base.want))
        return break_off(xfer);
    if (failed && xfer->status == 0)
        xfer->status = copy_chunk(xfer, failed - 1);
    if (xfer->status < 0) {
        refuse(xfer, xfer->status); /* all of it again, from 0 */
        return 1;
    }
    learn_shared(xfer);
    finish(xfer);
    return 1;
}

/* Nobody may claim any more; what was claimed before must be awaited. */
static void stop_claims(struct shm_xfer *xfer, uint32_t claimed)
{
    uint32_t count = chunk_count(xfer->base.want);

    claimed = claimed < count ? claimed : count;
    claimed = claimed > xfer->mine ? claimed : xfer->mine; /* S5 */
    xfer->theirs = claimed - xfer->mine;
    xfer->is_claimed = true;
}

static int advance_shared(struct shm_xfer *xfer)
{
    struct shm_share *share = share_in(xfer);
    uint32_t count = chunk_count(xfer->base.want);
    uint64_t budget = slice_max(xfer);

    while (!xfer->is_claimed) {
        uint32_t k =
            atomic_fetch_add_explicit(&share->claimed, 1, memory_order_relaxed);

        if (k >= count) {
            stop_claims(xfer, count);
            break;
        }
        if (CHEMPI_UNLIKELY(k < xfer->mine))
            return break_off(xfer); /* S5 */
        xfer->mine++;
        xfer->status = copy_chunk(xfer, k);
        if (xfer->status < 0) {
            stop_claims(xfer,
                        atomic_exchange_explicit(&share->claimed, CLAIM_STOP,
                                                 memory_order_relaxed));
            break;
        }
        if (chunk_len(xfer->base.want, k) >= budget)
            return 1;
        budget -= chunk_len(xfer->base.want, k);
    }
    return settle(xfer);
}

/* Is it worth asking the sender for help? One that is to fetch what this
 * process sends has enough to do. */
static bool is_worth_sharing(struct shm_xfer *xfer)
{
    struct shm_ep *ep = shm_ep_of(xfer);
    struct shm_dev *dev = shm_dev_of(ep);

    return dev->rndv.outgoing == 0 &&
           xfer->base.want >=
               chempi_dev_setting(&dev->base, SHM_SET_SHARE_MIN) &&
           chempi_shm_eager_try(ep, 0) == 0 &&
           chempi_shm_choice_is_shared(xfer);
}

static void ask_for_help(struct shm_xfer *xfer)
{
    struct shm_ep *ep = shm_ep_of(xfer);
    struct shm_help help = {
        .id = xfer->base.peer_id,
        .addr = (uint64_t)(uintptr_t)xfer->base.rx->buf,
        .want = xfer->base.want,
        .timed = xfer->is_timed,
    };
    struct shm_line *line;

    if (xfer->base.rx->iter)
        help.addr = chempi_shm_form_tell(xfer, xfer->base.rx->iter, &help.form);
    if (help.addr == 0) {
        chempi_shm_choice_take_back(xfer);
        return;
    }
    line = shm_next_line(ep);
    line->kind = SHM_KIND_HELP;
    line->body.help = help;
    xfer->is_shared = true;
    shm_dev_of(ep)->shared++;
    shm_publish(ep, line, ep->base.dev->params.services->is_wake_registered);
    shm_urge(ep);
}

void chempi_shm_copy_start(struct shm_xfer *xfer)
{
    struct shm_dev *dev = shm_dev_of(shm_ep_of(xfer));
    int rc = chempi_shm_form_learn(xfer);

    if (rc < 0) {
        refuse(xfer, rc);
        return;
    }
    xfer->base.state = CHEMPI_RNDV_FETCHING;
    chempi_list_append(&dev->copying, &xfer->base.link);
    dev->has_work = true;
    if (is_worth_sharing(xfer))
        ask_for_help(xfer);
}

/* --- sender --- */

static struct shm_share *share_out(const struct shm_xfer *xfer)
{
    return &shm_ep_of(xfer)->tx_pair->shares[xfer->share];
}

/* S5 */
static void close_share(const struct shm_xfer *xfer)
{
    atomic_store_explicit(&share_out(xfer)->is_closed, 1, memory_order_release);
}

void chempi_shm_copy_help(struct shm_xfer *xfer, const struct shm_help *help)
{
    struct shm_dev *dev = shm_dev_of(shm_ep_of(xfer));

    if (!chempi_shm_copy_is_possible(shm_ep_of(xfer))) {
        close_share(xfer); /* the receiver does it all */
        return;
    }
    xfer->addr = help->addr;
    xfer->form_len = help->form;
    xfer->base.want = help->want;
    xfer->is_timed = help->timed != 0;
    chempi_list_append(&dev->helping, &xfer->base.link);
    dev->has_work = true;
}

static int give_help(struct shm_xfer *xfer)
{
    struct shm_ep *ep = shm_ep_of(xfer);
    struct shm_share *share = share_out(xfer);
    uint32_t count = chunk_count(xfer->base.want);
    uint64_t budget = slice_max(xfer);
    bool is_over = false;
    int events = 0;

    while (budget > 0) {
        uint32_t k =
            atomic_fetch_add_explicit(&share->claimed, 1, memory_order_relaxed);
        uint64_t len;
        int rc;

        is_over = k >= count;
        if (is_over)
            break;
        len = chunk_len(xfer->base.want, k);
        rc = chempi_shm_form_learn(xfer); /* F2 */
        if (rc == 0)
            rc = copy_chunk(xfer, k);
        events++;
        if (rc < 0) {
            atomic_store_explicit(&share->failed, k + 1, memory_order_release);
            is_over = true;
            break;
        }
        atomic_store_explicit(&share->spent,
                              xfer->spent < UINT32_MAX ? (uint32_t)xfer->spent
                                                       : UINT32_MAX,
                              memory_order_relaxed);
        (void)atomic_fetch_add_explicit(&share->done, 1,
                                        memory_order_release); /* S2 */
        budget -= len < budget ? len : budget;
    }
    if (is_over) {
        close_share(xfer);
        chempi_list_remove(&xfer->base.link);
    }
    if (events || is_over)
        shm_urge(ep);
    return events;
}

/* --- both --- */

/* Is payload of this process's own receives left to be claimed or read? */
static bool has_own_work(struct shm_dev *dev)
{
    CHEMPI_LIST_FOR (node, &dev->copying) {
        struct shm_xfer *xfer =
            CHEMPI_CONTAINER_OF(node, struct shm_xfer, base.link);

        if (!xfer->is_shared || !xfer->is_claimed)
            return true;
    }
    return false;
}

int chempi_shm_copy_advance(struct shm_dev *dev)
{
    int events = 0;

    CHEMPI_LIST_FOR_SAFE (node, &dev->copying) {
        struct shm_xfer *xfer =
            CHEMPI_CONTAINER_OF(node, struct shm_xfer, base.link);

        events += xfer->is_shared ? advance_shared(xfer) : advance_alone(xfer);
    }
    if (has_own_work(dev)) /* S4 */
        return events;
    CHEMPI_LIST_FOR_SAFE (node, &dev->helping)
        events +=
            give_help(CHEMPI_CONTAINER_OF(node, struct shm_xfer, base.link));
    return events;
}

bool chempi_shm_copy_is_ready(struct shm_dev *dev)
{
    if (!chempi_list_is_empty(&dev->helping) || has_own_work(dev))
        return true;
    CHEMPI_LIST_FOR (node, &dev->copying) {
        const struct shm_xfer *xfer =
            CHEMPI_CONTAINER_OF(node, struct shm_xfer, base.link);

        if (is_settled(xfer) || is_closed(xfer))
            return true;
    }
    return false;
}
