/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking what has arrived: the lines of a ring, the bells that tell which
 * rings have some, and the endpoints that wait for room (W1 and W2 in eager.c,
 * B1 to B3 in endpoint.c).
 */
#include <assert.h>
#include <errno.h>

#include "common/base/invariant.h"
#include "libchempi/devices/shm/internal.h"

/* What is fetched while an earlier line is dealt with. */
#define LINES_AHEAD 3u
#define DATA_AHEAD 128u /* bytes */

static const char nothing_there[] = "nothing";

/* --- lines --- */

/* There is no memory for this message: its line stays the next one, and nothing
 * is told before that has been taken. */
static CHEMPI_COLD const char *leave(struct shm_ep *ep,
                                     const struct chempi_arrival *arrival)
{
    if (arrival->protocol == SHM_PROTOCOL_SHORT)
        ep->rx_head -= shm_row_rest(arrival->env.len);
    chempi_dev_uncount(ep->base.dev, arrival->protocol, arrival->env.len);
    return chempi_shortage_left;
}

/* Announce a message, which is completely at hand or else comes in pieces (W5):
 * then *rx is where they go. Returns the rule broken, or NULL. */
static inline const char *announce(struct shm_ep *ep,
                                   struct chempi_arrival *arrival,
                                   enum shm_protocol protocol, bool is_whole,
                                   struct chempi_rx **rx)
{
    const struct chempi_dev_params *params = &ep->base.dev->params;

    if (CHEMPI_UNLIKELY((uint8_t)(arrival->env.kind - CHEMPI_KIND_MESSAGE) >
                        CHEMPI_KIND_SYSTEM - CHEMPI_KIND_MESSAGE))
        return "a message of unknown kind";
    arrival->ep = &ep->base;
    arrival->avail = is_whole ? arrival->env.len : 0;
    arrival->token[0] = 0;
    arrival->token[1] = 0;
    arrival->flags = is_whole ? 0 : CHEMPI_ARRIVAL_STREAMED;
    arrival->protocol = protocol;
    chempi_dev_count(ep->base.dev, protocol, arrival->env.len);
    if (CHEMPI_UNLIKELY(params->sink->arrived(params->sink_arg, arrival, rx) ==
                        CHEMPI_NO_ROOM))
        return leave(ep, arrival);
    return NULL;
}

/* The lines after the first one come while the message's receive is sought. */
static inline void fetch_row(const struct shm_line *line, uint32_t rest)
{
    for (uint32_t i = 1; i <= rest; i++)
        CHEMPI_PREFETCH(line + i);
}

static inline const char *take_short(struct shm_ep *ep,
                                     const struct shm_line *line)
{
    const uint32_t len = line->len;
    struct chempi_arrival arrival;
    struct chempi_rx *rx = NULL;
    const char *why;

    atomic_signal_fence(memory_order_seq_cst); /* read once */
    if (CHEMPI_UNLIKELY(len > SHM_INLINE_MAX)) {
        const uint32_t rest = shm_row_rest(len);

        if (len > SHM_SHORT_MAX ||
            (ep->rx_head & ep->line_mask) + rest > ep->line_mask)
            return "a short message that is too long";
        fetch_row(line, rest);
        ep->rx_head += rest;
    }
    arrival.env.len = len;
    memcpy((char *)&arrival.env + SHM_ENVELOPE_TAIL, line->body.brief.tail,
           sizeof(line->body.brief.tail));
    arrival.data = line->body.brief.u.bytes;
    atomic_signal_fence(memory_order_seq_cst); /* read once */
    why = announce(ep, &arrival, SHM_PROTOCOL_SHORT, true, &rx);
    if (!why && len <= SHM_TINY_MAX)
        ep->rx_tiny = line->body.brief.u.tiny.more;
    else if (!why)
        ep->rx_tiny = NULL;
    return why;
}

/* R4. What follows the last message in its line; nothing has been taken since,
 * so that is the last line. */
static const char *take_tiny(struct shm_ep *ep)
{
    const struct shm_tiny *tiny = ep->rx_tiny;
    const struct shm_line *line =
        &ep->rx_lines[(ep->rx_head - 1) & ep->line_mask];
    const uint32_t len =
        atomic_load_explicit(&tiny->mark, memory_order_relaxed) - 1;
    struct chempi_arrival arrival;
    struct chempi_rx *rx = NULL;
    const char *why;

    if (len > SHM_TINY_MAX)
        return "a short message that is too long";
    arrival.env.len = len;
    memcpy((char *)&arrival.env + SHM_ENVELOPE_TAIL, line->body.brief.tail,
           sizeof(line->body.brief.tail));
    arrival.env.serial += 1 + (uint32_t)(tiny - line->body.brief.u.tiny.more);
    arrival.data = tiny->bytes;
    atomic_signal_fence(memory_order_seq_cst); /* read once */
    why = announce(ep, &arrival, SHM_PROTOCOL_SHORT, true, &rx);
    if (!why)
        ep->rx_tiny = shm_is_line_over(tiny + 1) ? NULL : tiny + 1;
    return why;
}

/* Put the next piece in its place; what is longer than the receive is left. */
static void store(struct shm_ep *ep, const unsigned char *data, uint32_t len)
{
    const struct chempi_dev_params *params = &ep->base.dev->params;
    struct chempi_rx *rx = ep->rx;
    uint64_t left = rx->cap > ep->rx_done ? rx->cap - ep->rx_done : 0;
    size_t n = (size_t)(left < len ? left : len);

    if (n > 0 && rx->iter)
        (void)chempi_segment_unpack(rx->iter, data, n);
    else if (n > 0)
        memcpy((char *)rx->buf + ep->rx_done, data, n);
    ep->rx_done += len;
    if (ep->rx_done < ep->rx_len)
        return;
    ep->rx = NULL;
    params->sink->delivered(params->sink_arg, rx, 0);
}

static const char *take_first(struct shm_ep *ep, struct chempi_arrival *arrival,
                              uint32_t len)
{
    const unsigned char *data = arrival->data;
    struct chempi_rx *rx = NULL;
    const char *why;

    if (ep->rx || arrival->env.len > SHM_EAGER_MAX || len > arrival->env.len)
        return "a span out of bounds";
    arrival->data = NULL;
    why = announce(ep, arrival, SHM_PROTOCOL_EAGER, false, &rx);
    if (why)
        return why;
    assert(rx); /* what is STREAMED is accepted */
    rx->ep = &ep->base;
    ep->rx = rx;
    ep->rx_len = (uint32_t)arrival->env.len;
    ep->rx_done = 0;
    store(ep, data, len);
    return NULL;
}

static const char *take_more(struct shm_ep *ep, const struct shm_line *line)
{
    struct shm_span span = line->body.more;
    const unsigned char *data;

    atomic_signal_fence(memory_order_seq_cst); /* read once */
    data = chempi_shm_eager_take_span(ep, &span);
    if (!data || !ep->rx || span.len > ep->rx_len - ep->rx_done)
        return "a piece of no message";
    store(ep, data, span.len);
    return NULL;
}

static const char *take_eager(struct shm_ep *ep, const struct shm_line *line)
{
    struct shm_span span = line->body.msg.u.span;
    struct chempi_arrival arrival;
    struct chempi_rx *rx = NULL;

    arrival.env = line->body.msg.env;
    atomic_signal_fence(memory_order_seq_cst); /* read once */
    arrival.data = chempi_shm_eager_take_span(ep, &span);
    if (!arrival.data)
        return "a span out of bounds";
    if (span.len != arrival.env.len)
        return take_first(ep, &arrival, span.len);
    return announce(ep, &arrival, SHM_PROTOCOL_EAGER, true, &rx);
}

static const char *CHEMPI_NOINLINE take_other(struct shm_ep *ep,
                                              const struct shm_line *line)
{
    ep->rx_tiny = NULL;
    switch (line->kind) {
    case SHM_KIND_EAGER:
        return take_eager(ep, line);
    case SHM_KIND_MORE:
        return take_more(ep, line);
    case SHM_KIND_RTS:
        return chempi_shm_rndv_rts(ep, line);
    case SHM_KIND_CTS:
        return chempi_shm_rndv_cts(ep, line);
    case SHM_KIND_HELP:
        return chempi_shm_rndv_help(ep, line);
    case SHM_KIND_DATA:
        return chempi_shm_rndv_data(ep, line);
    case SHM_KIND_FIN:
        return chempi_rndv_fin(&ep->rndv, line->body.fin.id);
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
    atomic_thread_fence(memory_order_seq_cst); /* partner: eager_wait() */
    if (atomic_load_explicit(&pair->sender.waits, memory_order_relaxed))
        chempi_wake_urge(ep->wake, ep->wake_fd, false);
}

/* W2. Behind SHM_LAP a quarter of the data is soon enough. */
static void tell_if_due(struct shm_ep *ep)
{
    uint32_t size = shm_dev_of(ep)->data_size;

    if (ep->rx_head - ep->rx_told >= (ep->line_mask + 1) / 4 ||
        (ep->rx_data & (size - 1)) <= SHM_LAP ||
        ep->rx_data - ep->rx_data_told >= size / 4)
        tell(ep);
}

/* More than one line was there: those that follow are likely to be as well.
 * What is fetched before it was written costs its sender a transfer. */
static inline void look_ahead(const struct shm_ep *ep)
{
    uint32_t line = (ep->rx_head + LINES_AHEAD) & ep->line_mask;
    uint32_t data =
        (ep->rx_data + DATA_AHEAD) & (shm_dev_of(ep)->data_size - 1);

    CHEMPI_PREFETCH(&ep->rx_lines[line]);
    CHEMPI_PREFETCH(ep->rx_base + data);
}

/* Take the next message, if there is one. Returns the rule broken, NULL, or
 * nothing_there. */
static inline const char *take_next(struct shm_ep *ep, bool is_first)
{
    const struct shm_line *line = &ep->rx_lines[ep->rx_head & ep->line_mask];
    const bool has_line = chempi_shm_eager_has_line(ep);
    const char *why;

    /* R4. Second: what was put into the last line came before the next one. */
    if (chempi_shm_eager_has_tiny(ep))
        return take_tiny(ep);
    if (!has_line)
        return nothing_there;
    if (!is_first)
        look_ahead(ep);
    if (CHEMPI_LIKELY(line->kind == SHM_KIND_SHORT))
        why = take_short(ep, line);
    else
        why = take_other(ep, line);
    if (CHEMPI_LIKELY(!why))
        ep->rx_head++;
    return why;
}

int chempi_shm_drain_ring(struct shm_ep *ep, int budget)
{
    uint32_t lag_max = (ep->line_mask + 1) / 4;
    int events = 0;

    while (events < budget) {
        const char *why = take_next(ep, events == 0);

        if (why == nothing_there)
            break;
        if (CHEMPI_UNLIKELY(why != NULL)) {
            if (why != chempi_shortage_left) {
                chempi_shm_eager_break(ep, why);
                events++;
            }
            break;
        }
        events++;
        if (CHEMPI_UNLIKELY(ep->rx_head - ep->rx_told >= lag_max ||
                            ep->rx_data - ep->rx_data_told >= SHM_LAP / 4))
            tell_if_due(ep);
    }
    if (events > 0) {
        ep->recent++;
        ep->tx_tiny = NULL; /* W3 */
    }
    return events;
}

/* --- bells --- */

/* Make `ep` hot in place of the least used hot ring, if it is busier. */
static void contest(struct shm_dev *dev, struct shm_ep *ep)
{
    uint32_t least = 0;

    for (uint32_t i = 1; i < SHM_HOT_MAX; i++) {
        if (dev->hot[i]->recent < dev->hot[least]->recent)
            least = i;
    }
    if (dev->hot[least]->recent < ep->rings) {
        struct shm_ep *old = dev->hot[least];

        atomic_store_explicit(&old->rx_pair->taken.mode, SHM_MODE_BELL,
                              memory_order_seq_cst);
        if (!chempi_wake_barrier()) {
            atomic_store_explicit(&old->rx_pair->taken.mode, SHM_MODE_POLLED,
                                  memory_order_relaxed);
        } else {
            old->is_hot = false;
            old->rings = 0;
            chempi_shm_endpoint_bell(dev->inbox, old->peer); /* B3 */
            dev->hot[least] = ep;
            ep->is_hot = true;
            atomic_store_explicit(&ep->rx_pair->taken.mode, SHM_MODE_POLLED,
                                  memory_order_relaxed);
        }
    }
    for (uint32_t i = 0; i < SHM_HOT_MAX; i++)
        dev->hot[i]->recent = 0;
    ep->rings = 0;
}

static void consider_hot(struct shm_dev *dev, struct shm_ep *ep)
{
    if (ep->is_hot || ep->is_broken)
        return;
    if (dev->hot_count < SHM_HOT_MAX) {
        dev->hot[dev->hot_count++] = ep;
        ep->is_hot = true;
        atomic_store_explicit(&ep->rx_pair->taken.mode, SHM_MODE_POLLED,
                              memory_order_relaxed);
    } else if (++ep->rings >= chempi_dev_setting(&dev->base, SHM_SET_CONTEST)) {
        contest(dev, ep);
    }
}

static int answer(struct shm_dev *dev, uint32_t sender)
{
    struct shm_ep *ep;
    int events;

    if (sender >= dev->local_size || sender == dev->local_rank)
        return 0; /* nobody's bell: some process wrote garbage */
    ep = chempi_shm_endpoint_ep(dev, sender);
    if (ep->is_broken)
        return 0;
    dev->bells++;
    events = chempi_shm_drain_ring(ep, dev->drain_budget);
    if (!ep->is_hot && (events >= dev->drain_budget ||
                        (!ep->is_broken && chempi_shm_eager_has_any(ep))))
        chempi_shm_endpoint_bell(dev->inbox, sender); /* there may be more */
    consider_hot(dev, ep);
    return events;
}

int chempi_shm_drain_hear(struct shm_dev *dev)
{
    uint64_t summary = atomic_exchange_explicit(&dev->inbox->summary, 0,
                                                memory_order_acq_rel); /* B2 */
    int events = 0;

    while (summary) {
        uint32_t w = CHEMPI_LOWEST_BIT(summary);
        uint64_t word = atomic_exchange_explicit(&dev->inbox->words[w], 0,
                                                 memory_order_acq_rel);

        summary &= summary - 1;
        while (word) {
            uint32_t bit = CHEMPI_LOWEST_BIT(word);

            word &= word - 1;
            events += answer(dev, w * 64 + bit);
        }
    }
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
    chempi_shm_endpoint_cool(ep);
    if (ep->broken_why)
        (void)chempi_err_set(&dev->broken, ep->broken_status,
                             "shared memory is damaged: %s", ep->broken_why);
    if (ep->rx)
        params->sink->delivered(params->sink_arg, ep->rx, ep->broken_status);
    ep->rx = NULL;
    chempi_rndv_fail(&ep->rndv, ep->broken_status);
    params->sink->lost(params->sink_arg, ep->base.proc, ep->broken_status,
                       dev->broken.text);
    return 1;
}

static int serve(struct shm_ep *ep)
{
    const struct chempi_dev_params *params = &ep->base.dev->params;
    int events = 0;

    if (!ep->is_broken)
        chempi_shm_eager_refresh(ep);
    if (ep->is_broken)
        return report_broken(ep);
    events += chempi_rndv_flush(&ep->rndv);
    if (ep->wants_room && shm_has_room(ep, ep->wanted)) {
        ep->wants_room = false;
        params->sink->room(params->sink_arg, &ep->base);
        events += !chempi_rndv_is_poor(ep->rndv.rndv);
    }
    events += chempi_shm_rndv_pump(ep);
    if (chempi_list_is_empty(&ep->rndv.control) &&
        chempi_list_is_empty(&ep->rndv.pumping) && !ep->wants_room &&
        !ep->is_broken) {
        chempi_list_remove(&ep->busy_link);
        atomic_store_explicit(&ep->tx_pair->sender.waits, 0,
                              memory_order_relaxed);
    }
    return events;
}

int chempi_shm_drain_serve(struct shm_dev *dev)
{
    int events = 0;

    CHEMPI_LIST_FOR_SAFE (node, &dev->busy) {
        struct shm_ep *ep = CHEMPI_CONTAINER_OF(node, struct shm_ep, busy_link);

        events += serve(ep);
        CHEMPI_CHECK(chempi_shm_eager_check(ep));
    }
    return events;
}

/* Would serve() get anywhere? */
static bool can_serve(struct shm_ep *ep)
{
    struct shm_taken *taken;

    if (ep->is_broken)
        return true; /* and may have no pair */
    taken = &ep->tx_pair->taken;
    return atomic_load_explicit(&taken->lines, memory_order_acquire) !=
               ep->tx_tail ||
           atomic_load_explicit(&taken->data, memory_order_acquire) !=
               ep->data_tail ||
           (!chempi_list_is_empty(&ep->rndv.control) && shm_has_line(ep)) ||
           chempi_shm_rndv_can_pump(ep) ||
           (ep->wants_room && shm_has_room(ep, ep->wanted));
}

bool chempi_shm_drain_can_serve(struct shm_dev *dev)
{
    CHEMPI_LIST_FOR (node, &dev->busy) {
        if (can_serve(CHEMPI_CONTAINER_OF(node, struct shm_ep, busy_link)))
            return true;
    }
    return false;
}
