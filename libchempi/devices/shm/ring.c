/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines and room: sending and taking messages of one line or one span, and
 * waiting for room.
 *
 *   W1  a sender that lacks room sets `waits`, orders, and looks at `taken`
 *       again before it sleeps (is_ready); a receiver that advances `taken`
 *       orders, looks at `waits`, and then wakes: one of the two sees the
 *       other
 *   W2  `taken` lags at most a quarter of the lines and of the data behind,
 *       and a span is at most a quarter of the data, so a receiver that has
 *       taken everything always leaves room for one
 */
#include <errno.h>

#include "libchempi/devices/shm/internal.h"

/* --- room --- */

/* Where a span of len bytes would start, skipping what is left of a lap. */
static uint32_t span_start(const struct shm_ep *ep, uint32_t len)
{
    uint32_t size = shm_dev_of(ep)->data_size;
    uint32_t left = size - (ep->data_head & (size - 1));

    return shm_round(len) <= left ? ep->data_head : ep->data_head + left;
}

static inline bool has_line(const struct shm_ep *ep)
{
    return ep->tx_head - ep->tx_tail <= ep->line_mask;
}

static inline bool has_room(const struct shm_ep *ep, uint32_t len)
{
    return has_line(ep) &&
           (len == 0 || span_start(ep, len) + shm_round(len) - ep->data_tail <=
                            shm_dev_of(ep)->data_size);
}

/* Read what the peer has taken; it may not be more than was put. */
static void refresh(struct shm_ep *ep)
{
    struct shm_taken *taken = &ep->tx_pair->taken;
    uint32_t lines = atomic_load_explicit(&taken->lines, memory_order_acquire);
    uint32_t data = atomic_load_explicit(&taken->data, memory_order_acquire);

    if (ep->tx_head - lines > ep->line_mask + 1 ||
        ep->data_head - data > shm_dev_of(ep)->data_size) {
        chempi_shm_ring_break(ep, "the peer took more than was sent");
        return;
    }
    ep->tx_tail = lines;
    ep->data_tail = data;
}

void chempi_shm_ring_wait(struct shm_ep *ep)
{
    struct shm_dev *dev = shm_dev_of(ep);

    if (!chempi_list_is_empty(&ep->busy_link))
        return;
    chempi_list_append(&dev->busy, &ep->busy_link);
    dev->has_work = true;
    if (!ep->is_tx_open)
        return;
    atomic_store_explicit(&ep->tx_pair->sender.waits, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* W1; partner: tell() */
}

static int CHEMPI_NOINLINE find_room(struct shm_ep *ep, uint32_t len)
{
    int rc;

    if (ep->is_broken)
        return chempi_err_set(&ep->base.dev->err, -ECONNRESET,
                              "rank %u broke the rules of shared memory",
                              (unsigned)ep->base.proc);
    if (!ep->is_tx_open) {
        rc = chempi_shm_area_open_tx(ep);
        if (rc < 0)
            return rc;
    }
    refresh(ep);
    if (!chempi_list_is_empty(&ep->control))
        (void)chempi_shm_rndv_flush(ep);
    return has_room(ep, len) ? 0 : -EAGAIN;
}

int chempi_shm_ring_try(struct shm_ep *ep, uint32_t len)
{
    return CHEMPI_LIKELY(has_room(ep, len)) ? 0 : find_room(ep, len);
}

int chempi_shm_ring_room(struct shm_ep *ep, uint32_t len)
{
    int rc = chempi_shm_ring_try(ep, len);

    if (rc == -EAGAIN) {
        ep->wants_room = true;
        ep->wanted = len;
        chempi_shm_ring_wait(ep);
    }
    return rc;
}

static void give_up(struct shm_ep *ep, int status, const char *why)
{
    ep->is_broken = true;
    ep->broken_status = status;
    ep->broken_why = why;
    ep->tx_tail = ep->tx_head - (ep->line_mask + 1); /* E1 */
    chempi_shm_ring_wait(ep); /* reported from progress */
}

void chempi_shm_ring_break(struct shm_ep *ep, const char *why)
{
    if (!ep->is_broken)
        give_up(ep, -EPROTO, why);
}

void chempi_shm_ring_give_up(struct shm_ep *ep, int status)
{
    struct shm_dev *dev = shm_dev_of(ep);

    if (ep->is_broken)
        return;
    dev->broken = dev->base.err;
    give_up(ep, status, NULL);
}

/* --- sending --- */

static inline void copy_short(unsigned char *dst, const unsigned char *src,
                              size_t len)
{
    if (len >= 16) {
        memcpy(dst, src, 16);
        memcpy(dst + len - 8, src + len - 8, 8);
    } else if (len >= 8) {
        memcpy(dst, src, 8);
        memcpy(dst + len - 8, src + len - 8, 8);
    } else if (len >= 4) {
        memcpy(dst, src, 4);
        memcpy(dst + len - 4, src + len - 4, 4);
    } else if (len > 0) {
        dst[0] = src[0];
        dst[len / 2] = src[len / 2];
        dst[len - 1] = src[len - 1];
    }
}
static_assert(SHM_INLINE_MAX <= 24, "copy_short covers 24 bytes");

unsigned char *chempi_shm_ring_span(struct shm_ep *ep, uint32_t len,
                                    struct shm_span *span)
{
    span->pos = span_start(ep, len);
    span->len = len;
    ep->data_head = span->pos + shm_round(len);
    return ep->tx_data + (span->pos & (shm_dev_of(ep)->data_size - 1));
}

/*
 * Take back the lines that the next message of this size will be written to:
 * the peer read them in the last lap, and asking now, while this process
 * waits anyway, hides that the writes would wait for each.
 */
void chempi_shm_ring_warm(const struct shm_ep *ep, uint32_t len)
{
    uint32_t size = shm_dev_of(ep)->data_size;
    const unsigned char *p = ep->tx_data + (span_start(ep, len) & (size - 1));

    for (uint32_t i = 0; i < len; i += CHEMPI_CACHE_LINE)
        CHEMPI_PREFETCH_WRITE(p + i);
}

int chempi_shm_ring_inject(struct chempi_ep *base,
                           const struct chempi_envelope *env, const void *data,
                           size_t len)
{
    struct shm_ep *ep = (struct shm_ep *)base;
    bool is_registered = base->dev->params.services->is_wake_registered;
    struct shm_line *line;
    int rc;

    if (CHEMPI_LIKELY(len <= SHM_INLINE_MAX)) {
        if (CHEMPI_UNLIKELY(!has_line(ep))) {
            rc = chempi_shm_ring_room(ep, 0);
            if (rc < 0)
                return rc;
        }
        line = shm_next_line(ep);
        line->kind = SHM_KIND_SHORT;
        line->body.msg.env = *env;
        copy_short(line->body.msg.u.bytes, data, len);
        shm_publish(ep, line, is_registered);
        if (CHEMPI_UNLIKELY(env->flags & CHEMPI_ENVELOPE_URGENT))
            shm_urge(ep);
        return CHEMPI_DONE;
    }
    if (len > SHM_EAGER_MAX)
        return -EMSGSIZE;
    rc = chempi_shm_ring_room(ep, (uint32_t)len);
    if (rc < 0)
        return rc;
    line = shm_next_line(ep);
    line->kind = SHM_KIND_EAGER;
    line->body.msg.env = *env;
    memcpy(chempi_shm_ring_span(ep, (uint32_t)len, &line->body.msg.u.span),
           data, len);
    shm_publish(ep, line, is_registered);
    if (CHEMPI_UNLIKELY(env->flags & CHEMPI_ENVELOPE_URGENT))
        shm_urge(ep);
    chempi_shm_ring_warm(ep, (uint32_t)len);
    return CHEMPI_DONE;
}

int chempi_shm_ring_inject_iter(struct shm_ep *ep,
                                const struct chempi_envelope *env,
                                struct chempi_iter *iter, size_t len)
{
    bool is_short = len <= SHM_INLINE_MAX;
    unsigned char *dst;
    struct shm_line *line;
    int rc;

    rc = chempi_shm_ring_room(ep, is_short ? 0 : (uint32_t)len);
    if (rc < 0)
        return rc;
    line = shm_next_line(ep);
    line->kind = is_short ? SHM_KIND_SHORT : SHM_KIND_EAGER;
    line->body.msg.env = *env;
    dst = is_short
              ? line->body.msg.u.bytes
              : chempi_shm_ring_span(ep, (uint32_t)len, &line->body.msg.u.span);
    (void)chempi_iter_pack(iter, dst, len);
    shm_publish(ep, line, ep->base.dev->params.services->is_wake_registered);
    if (env->flags & CHEMPI_ENVELOPE_URGENT)
        shm_urge(ep);
    return CHEMPI_DONE;
}

/* --- taking --- */

const unsigned char *chempi_shm_ring_take_span(struct shm_ep *ep,
                                               const struct shm_span *span)
{
    uint32_t size = shm_dev_of(ep)->data_size;
    uint32_t offset = span->pos & (size - 1);

    if (span->len == 0 || span->len > size / 4 || span->len > size - offset)
        return NULL;
    ep->rx_data = span->pos + shm_round(span->len);
    return ep->rx_base + offset;
}

/* A message that is completely at hand. Returns the rule broken, or NULL. */
static const char *take_message(struct shm_ep *ep, const struct shm_line *line,
                                bool is_short)
{
    const struct chempi_dev_params *params = &ep->base.dev->params;
    struct chempi_arrival arrival;
    struct chempi_rx *rx = NULL;

    arrival.ep = &ep->base;
    arrival.env = line->body.msg.env;
    arrival.data = line->body.msg.u.bytes;
    if (!is_short) {
        struct shm_span span = line->body.msg.u.span;

        atomic_signal_fence(memory_order_seq_cst); /* read once */
        arrival.data = chempi_shm_ring_take_span(ep, &span);
        if (!arrival.data || span.len != arrival.env.len)
            return "a span out of bounds";
    } else {
        atomic_signal_fence(memory_order_seq_cst); /* read once */
        if (arrival.env.len > SHM_INLINE_MAX)
            return "a short message that is too long";
    }
    if (CHEMPI_UNLIKELY((uint8_t)(arrival.env.kind - CHEMPI_KIND_MESSAGE) >
                        CHEMPI_KIND_SYSTEM - CHEMPI_KIND_MESSAGE))
        return "a message of unknown kind";
    arrival.avail = arrival.env.len;
    arrival.token[0] = 0;
    arrival.token[1] = 0;
    arrival.flags = 0;
    arrival.protocol = is_short ? SHM_PROTOCOL_SHORT : SHM_PROTOCOL_EAGER;
    chempi_dev_count(ep->base.dev, arrival.protocol, arrival.env.len);
    (void)params->sink->arrived(params->sink_arg, &arrival, &rx); /* TAKEN */
    return NULL;
}

static const char *CHEMPI_NOINLINE take_other(struct shm_ep *ep,
                                              const struct shm_line *line)
{
    switch (line->kind) {
    case SHM_KIND_EAGER:
        return take_message(ep, line, false);
    case SHM_KIND_ASK:
        return chempi_shm_rndv_asked(ep, line);
    case SHM_KIND_GO:
        return chempi_shm_rndv_go(ep, line);
    case SHM_KIND_HELP:
        return chempi_shm_rndv_help(ep, line);
    case SHM_KIND_DATA:
        return chempi_shm_rndv_data(ep, line);
    case SHM_KIND_FIN:
        return chempi_shm_rndv_fin(ep, line);
    default:
        return "a line of unknown kind";
    }
}

/* Publish what was taken, and call a sender that waits for it (W1). */
static void tell(struct shm_ep *ep)
{
    struct shm_pair *pair = ep->rx_pair;

    ep->rx_told = ep->rx_head;
    ep->rx_data_told = ep->rx_data;
    atomic_store_explicit(&pair->taken.data, ep->rx_data,
                          memory_order_release); /* partner: refresh() */
    atomic_store_explicit(&pair->taken.lines, ep->rx_head,
                          memory_order_release);
    atomic_thread_fence(memory_order_seq_cst); /* partner: ring_wait() */
    if (atomic_load_explicit(&pair->sender.waits, memory_order_relaxed))
        chempi_wake_urge(ep->wake, ep->wake_fd, false);
}

int chempi_shm_ring_drain(struct shm_ep *ep, int budget)
{
    uint32_t lag_max = (ep->line_mask + 1) / 4;
    uint32_t data_lag_max = shm_dev_of(ep)->data_size / 4;
    int events = 0;

    while (events < budget && chempi_shm_ring_has_line(ep)) {
        const struct shm_line *line =
            &ep->rx_lines[ep->rx_head & ep->line_mask];
        const char *why;

        if (CHEMPI_LIKELY(line->kind == SHM_KIND_SHORT))
            why = take_message(ep, line, true);
        else
            why = take_other(ep, line);
        events++;
        ep->rx_head++;
        if (CHEMPI_UNLIKELY(why != NULL)) {
            chempi_shm_ring_break(ep, why);
            break;
        }
        if (CHEMPI_UNLIKELY(ep->rx_head - ep->rx_told >= lag_max ||
                            ep->rx_data - ep->rx_data_told >= data_lag_max))
            tell(ep);
    }
    ep->recent += events > 0;
    return events;
}

/* --- endpoints that wait --- */

static int report_broken(struct shm_ep *ep)
{
    struct shm_dev *dev = shm_dev_of(ep);
    const struct chempi_dev_params *params = &dev->base.params;

    chempi_list_remove(&ep->busy_link);
    if (ep->is_reported)
        return 0;
    ep->is_reported = true;
    chempi_shm_area_cool(ep);
    if (ep->broken_why)
        (void)chempi_err_set(&dev->broken, ep->broken_status,
                             "shared memory is damaged: %s", ep->broken_why);
    chempi_shm_rndv_fail(ep, ep->broken_status);
    params->sink->lost(params->sink_arg, ep->base.proc, ep->broken_status,
                       dev->broken.text);
    return 1;
}

static int serve(struct shm_ep *ep)
{
    const struct chempi_dev_params *params = &ep->base.dev->params;
    int events = 0;

    if (!ep->is_broken)
        refresh(ep);
    if (ep->is_broken)
        return report_broken(ep);
    events += chempi_shm_rndv_flush(ep);
    if (ep->wants_room && has_room(ep, ep->wanted)) {
        ep->wants_room = false;
        params->sink->room(params->sink_arg, &ep->base);
        events++;
    }
    events += chempi_shm_rndv_pump(ep);
    if (chempi_list_is_empty(&ep->control) &&
        chempi_list_is_empty(&ep->pumping) && !ep->wants_room &&
        !ep->is_broken) {
        chempi_list_remove(&ep->busy_link);
        atomic_store_explicit(&ep->tx_pair->sender.waits, 0,
                              memory_order_relaxed);
    }
    return events;
}

int chempi_shm_ring_serve(struct shm_dev *dev)
{
    int events = 0;

    CHEMPI_LIST_FOR_SAFE (node, &dev->busy)
        events += serve(CHEMPI_CONTAINER_OF(node, struct shm_ep, busy_link));
    return events;
}

/* Would serve() get anywhere? */
static bool can_serve(struct shm_ep *ep)
{
    struct shm_taken *taken = &ep->tx_pair->taken;

    return ep->is_broken ||
           atomic_load_explicit(&taken->lines, memory_order_acquire) !=
               ep->tx_tail ||
           atomic_load_explicit(&taken->data, memory_order_acquire) !=
               ep->data_tail ||
           (!chempi_list_is_empty(&ep->control) && has_line(ep)) ||
           (!chempi_list_is_empty(&ep->pumping) &&
            has_room(ep, SHM_CHUNK_MAX)) ||
           (ep->wants_room && has_room(ep, ep->wanted));
}

bool chempi_shm_ring_can_serve(struct shm_dev *dev)
{
    CHEMPI_LIST_FOR (node, &dev->busy) {
        if (can_serve(CHEMPI_CONTAINER_OF(node, struct shm_ep, busy_link)))
            return true;
    }
    return false;
}
