/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines in segments, for cards with an SCI half: what stands in the pair that
 * the peer exports for us is stored there, and what it stores in ours is read.
 * The rules W1 to W3 are in eager.c.
 */
#include <errno.h>

#include "libchempi/devices/scivia/internal.h"

static_assert(SCIVIA_CHUNK <= SCIVIA_DATA_BYTES / 4 &&
                  SCIVIA_EAGER_MAX <= SCIVIA_DATA_BYTES / 4,
              "W2");

/* --- opening --- */

static int init(struct scivia_ep *ep)
{
    ep->window = SCIVIA_LINES;
    return 0;
}

/* Export what the peer will write. */
static int prepare(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    int rc;

    if (ep->in)
        return 0;
    rc = chempi_sci_segment_create(
        dev->adapter, SCIVIA_SEGMENT_PAIR(ep->base.proc),
        sizeof(struct scivia_pair), dev->tag, &ep->segment);
    if (rc == 0)
        rc = chempi_sci_segment_prepare(ep->segment);
    if (rc == 0)
        rc = chempi_sci_segment_set_available(ep->segment);
    if (rc < 0) {
        dev->base.err = *chempi_adapter_words(dev->adapter);
        chempi_sci_segment_remove(ep->segment);
        ep->segment = NULL;
        return rc == -ENOMEM && chempi_shortage_may_wait(&ep->shortage)
                   ? -EAGAIN
                   : rc;
    }
    ep->in = chempi_sci_segment_memory(ep->segment);
    ep->told = &ep->in->told;
    chempi_list_append(&dev->used, &ep->used_link);
    return 0;
}

/* Memory was missing for this segment, here or there: also for what is not
 * exported yet. */
static bool is_refused(const struct chempi_sci_remote *remote)
{
    return remote && (chempi_sci_state(remote) == -ENOMEM ||
                      chempi_sci_state(remote) == -ENOENT);
}

static bool has_to_ask(const struct scivia_ep *ep)
{
    return !ep->out || !ep->bell || is_refused(ep->out) || is_refused(ep->bell);
}

/* Ask for a segment of the peer's, again where that was in vain. */
static int connect_segment(struct scivia_ep *ep, uint32_t id,
                           struct chempi_sci_remote **remote)
{
    int rc;

    if (is_refused(*remote)) {
        chempi_sci_disconnect(*remote);
        *remote = NULL;
        if (!chempi_shortage_may_wait(&ep->shortage))
            return -ENOMEM;
    }
    if (*remote)
        return 0;
    rc = chempi_sci_connect(ep->at, id, scivia_dev_of(ep)->tag, remote);
    return rc == -ENOMEM && chempi_shortage_may_wait(&ep->shortage) ? -EAGAIN
                                                                    : rc;
}

/* The link is up: connect to what the peer exports. */
static int connect_segments(struct scivia_ep *ep)
{
    uint32_t me = scivia_dev_of(ep)->base.params.services->proc;
    int rc = connect_segment(ep, SCIVIA_SEGMENT_PAIR(me), &ep->out);

    if (rc == 0)
        rc = connect_segment(ep, SCIVIA_SEGMENT_INBOX, &ep->bell);
    if (rc == 0)
        rc = chempi_sci_state(ep->out);
    if (rc == 0)
        rc = chempi_sci_state(ep->bell);
    if (rc == 0 && (chempi_sci_len(ep->out) < sizeof(struct scivia_pair) ||
                    chempi_sci_len(ep->bell) < sizeof(struct scivia_inbox) +
                                                   (me + 1) * sizeof(uint32_t)))
        rc = -EPROTO;
    if (rc == 0)
        chempi_shortage_end(&ep->shortage);
    return rc;
}

/* --- storing --- */

/*
 * Store, and do it again until the card says that all has arrived. A long
 * store that failed is repeated in blocks: where packets are lost often, many
 * in a row never succeed together.
 */
static int put(struct scivia_ep *ep, struct chempi_sci_remote *remote,
               size_t offset, const void *src, size_t len)
{
    const char *from = src;
    int rc = chempi_sci_copy_surely(remote, offset, from, len, 1);

    if (CHEMPI_LIKELY(rc == 0))
        return 0;
    for (size_t at = 0; at < len && (rc == 0 || rc == -EIO);
         at += SCIVIA_BLOCK) {
        size_t size = len - at < SCIVIA_BLOCK ? len - at : SCIVIA_BLOCK;

        rc = chempi_sci_copy_surely(remote, offset + at, from + at, size,
                                    SCIVIA_TRIES);
        if (rc < 0)
            break;
    }
    if (rc == 0)
        return 0;
    if (rc == -ENOTCONN) { /* until the link's end is told and mended */
        chempi_scivia_endpoint_close(ep);
        return rc;
    }
    scivia_dev_of(ep)->base.err =
        *chempi_adapter_words(scivia_dev_of(ep)->adapter);
    chempi_scivia_endpoint_break(ep, rc, "the card loses everything");
    return -ECONNRESET;
}

static void ring(struct scivia_ep *ep)
{
    const uint32_t one = 1;
    size_t offset = offsetof(struct scivia_inbox, bells) +
                    ep->base.dev->params.services->proc * sizeof(uint32_t);

    ep->rung++;
    if (put(ep, ep->bell, offset, &ep->rung, sizeof(ep->rung)) == 0) /* R4 */
        (void)put(ep, ep->bell, offsetof(struct scivia_inbox, exist), &one,
                  sizeof(one));
}

void chempi_scivia_sci_eager_wake(struct scivia_ep *ep)
{
    if (ep->is_broken || ep->is_gone || !ep->is_tx_open)
        return;
    /* Orders the line before the look at the mode. */
    (void)chempi_sci_interrupt_call(ep->at, 0); /* a link that is down
                                                   shows elsewhere */
    if (CHEMPI_LIKELY(
            atomic_load_explicit(&ep->in->told.mode, memory_order_relaxed) ==
            SCIVIA_MODE_POLLED))
        return;
    ring(ep);
    if (ep->is_tx_open && !ep->is_broken)
        (void)chempi_sci_interrupt_call(ep->at, 0);
}

static int put_line(struct scivia_ep *ep, const struct scivia_line *line,
                    uint32_t number)
{
    return put(ep, ep->out,
               offsetof(struct scivia_pair, lines) +
                   number % SCIVIA_LINES * sizeof(*line),
               line, sizeof(*line));
}

/* A line on whose way the link broke may have arrived: it is kept, and stored
 * once more as it is. */
static void CHEMPI_NOINLINE keep(struct scivia_ep *ep,
                                 const struct scivia_line *line)
{
    memcpy(&ep->unsent, line, sizeof(*line));
    ep->has_unsent = true;
    scivia_dev_of(ep)->unsent++;
}

/* Where the payload of the next message of this size will go. (The peer may be
 * polling the next line, which had better stay with it.) */
static void expect(const struct scivia_ep *ep, uint32_t len)
{
    if (!ep->is_tx_open)
        return;
    chempi_sci_expect(
        ep->out,
        offsetof(struct scivia_pair, data) +
            (scivia_span_start(ep, len) & (SCIVIA_DATA_BYTES - 1)),
        len);
}

static int put_span(struct scivia_ep *ep, struct scivia_span *span,
                    const void *src, uint32_t len)
{
    int rc;

    *span = (struct scivia_span){scivia_span_start(ep, len), len};
    rc = put(ep, ep->out,
             offsetof(struct scivia_pair, data) +
                 (span->pos & (SCIVIA_DATA_BYTES - 1)),
             src, len);
    if (CHEMPI_UNLIKELY(rc < 0))
        return rc == -ENOTCONN ? -EAGAIN : rc;
    ep->data_head = span->pos + scivia_round_up(len);
    return 0;
}

static int send_line(struct scivia_ep *ep, struct scivia_line *line,
                     struct scivia_span *span, const void *src, uint32_t len)
{
    int rc = span ? put_span(ep, span, src, len) : 0;

    if (CHEMPI_UNLIKELY(rc < 0))
        return rc;
    atomic_store_explicit(&line->seq, ep->tx_head + 1, memory_order_relaxed);
    rc = put_line(ep, line, ep->tx_head);
    if (CHEMPI_UNLIKELY(rc < 0)) {
        if (rc != -ENOTCONN)
            return rc;
        keep(ep, line);
    }
    ep->tx_head++;
    if (CHEMPI_UNLIKELY(rc < 0)) {
        chempi_scivia_endpoint_close(ep);
        return 0;
    }
    ep->breaks = 0;
    chempi_scivia_sci_eager_wake(ep);
    if (line->kind == SCIVIA_KIND_EAGER)
        expect(ep, len);
    return 0;
}

static void tell(struct scivia_ep *ep, bool is_urgent)
{
    struct scivia_told told = {0};

    if (!ep->is_tx_open || ep->is_broken || ep->is_gone)
        return; /* told when the connection is open */
    atomic_init(&told.lines, ep->rx_head);
    atomic_init(&told.data, ep->rx_data);
    atomic_init(&told.posted, ep->rx_posted);
    atomic_init(&told.mode, ep->is_hot ? SCIVIA_MODE_POLLED : SCIVIA_MODE_BELL);
    if (put(ep, ep->out, offsetof(struct scivia_pair, told), &told,
            sizeof(told)) < 0)
        return;
    ep->rx_told = ep->rx_head;
    ep->rx_data_told = ep->rx_data;
    ep->rx_posted_told = ep->rx_posted;
    ep->is_mode_owed = false;
    /* W1; a trigger that gets lost is made good by the sender's timer. */
    if (is_urgent)
        (void)chempi_sci_interrupt_call(ep->at, 0);
}

/* Store what was not, tell, ring. */
static void reopen(struct scivia_ep *ep, bool is_first)
{
    if (ep->has_unsent && put_line(ep, &ep->unsent, ep->tx_head - 1) == 0) {
        ep->has_unsent = false;
        ep->breaks = 0;
        scivia_dev_of(ep)->unsent--;
    }
    if (!is_first || ep->is_mode_owed || ep->rx_head || ep->rx_posted)
        tell(ep, true);
    if (is_first || !ep->is_tx_open)
        return;
    chempi_scivia_sci_eager_wake(ep); /* the last ring may have been lost */
    if (!ep->is_hot) /* and it may not have known that it must ring */
        atomic_store(&scivia_dev_of(ep)->inbox->exist, 1);
}

static void fail(struct scivia_ep *ep)
{
    scivia_dev_of(ep)->unsent -= ep->has_unsent;
    ep->has_unsent = false;
}

/* --- taking --- */

static const unsigned char *take_span(struct scivia_ep *ep,
                                      const struct scivia_span *span)
{
    uint32_t offset = span->pos & (SCIVIA_DATA_BYTES - 1);

    if (span->len == 0 || span->len > SCIVIA_DATA_BYTES / 4 ||
        span->len > SCIVIA_DATA_BYTES - offset)
        return NULL;
    ep->rx_data = span->pos + scivia_round_up(span->len);
    return ep->in->data + offset;
}

const struct scivia_carrier chempi_scivia_sci_eager = {
    .protocol = SCIVIA_PROTOCOL_SHARED_MEMORY,
    .piece_max = SCIVIA_CHUNK,
    .init = init,
    .prepare = prepare,
    .open = connect_segments,
    .has_to_ask = has_to_ask,
    .reopen = reopen,
    .send = send_line,
    .take_span = take_span,
    .tell = tell,
    .fail = fail,
};
