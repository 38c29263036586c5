/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines and room: sending messages of one line or one span, telling what was
 * taken, waiting for room.
 *
 *   W1  a sender that lacks room looks at `told` again after it has armed the
 *       adapter, a receiver triggers after it has stored `told`: one of the
 *       two sees the other
 *   W2  `told` lags at most a quarter of the lines and of the data behind, and
 *       a span is at most a quarter of the data, so a receiver that has taken
 *       everything always leaves room for one
 *   W3  before a receiver sleeps it tells all that it has taken: lines that
 *       are not told for long were not heard of, and are rung again
 */
#include <errno.h>

#include "libchempi/devices/scivia/internal.h"

static_assert(SCIVIA_CHUNK <= SCIVIA_DATA_BYTES / 4 &&
                  SCIVIA_EAGER_MAX <= SCIVIA_DATA_BYTES / 4,
              "W2");

/* --- room --- */

bool chempi_scivia_eager_is_free(const struct scivia_ep *ep)
{
    return scivia_has_free_line(ep);
}

/* Read what the peer has taken; it may not be more than was sent, and what
 * arrives late may not take anything back. */
void chempi_scivia_eager_refresh(struct scivia_ep *ep)
{
    uint32_t lines;
    uint32_t data;

    if (ep->framed)
        return; /* frames tell when they come */
    lines = atomic_load_explicit(&ep->in->told.lines, memory_order_acquire);
    data = atomic_load_explicit(&ep->in->told.data, memory_order_acquire);
    if (ep->tx_head - lines > SCIVIA_LINES ||
        ep->data_head - data > SCIVIA_DATA_BYTES) {
        chempi_scivia_endpoint_break(ep, -EPROTO,
                                     "the peer took more than was sent");
        return;
    }
    ep->tx_tail = lines;
    ep->data_tail = data;
}

int chempi_scivia_eager_status(struct chempi_ep *base)
{
    const struct scivia_ep *ep = (const struct scivia_ep *)base;

    if (!ep->is_broken && !ep->is_gone)
        return 0;
    return chempi_err_set(
        &base->dev->err, -ECONNRESET, "rank %u cannot be reached any more: %s",
        (unsigned)base->proc,
        ep->is_broken ? ep->broken_why : "its process has ended");
}

static int CHEMPI_NOINLINE find_room(struct scivia_ep *ep, uint32_t len)
{
    int rc = chempi_scivia_eager_status(&ep->base);

    if (rc == 0 && !ep->is_tx_open)
        rc = chempi_scivia_connect_open(ep);
    if (rc < 0)
        return rc;
    chempi_scivia_eager_refresh(ep);
    return scivia_has_room(ep, len) ? 0 : -EAGAIN;
}

int chempi_scivia_eager_try(struct scivia_ep *ep, uint32_t len)
{
    return CHEMPI_LIKELY(scivia_has_room(ep, len)) ? 0 : find_room(ep, len);
}

static void want_room(struct scivia_ep *ep, uint32_t len)
{
    ep->wants_room = true;
    ep->wanted = len;
    chempi_scivia_endpoint_mark(ep);
}

int chempi_scivia_eager_room(struct scivia_ep *ep, uint32_t len)
{
    int rc = chempi_scivia_eager_try(ep, len);

    if (rc == -EAGAIN)
        want_room(ep, len);
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
        chempi_scivia_eager_close(ep);
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

void chempi_scivia_eager_wake(struct scivia_ep *ep)
{
    if (ep->is_broken || ep->is_gone || !ep->is_tx_open || ep->framed)
        return;
    /* Its fence stands between the line and the look at the mode. */
    (void)chempi_sci_interrupt_trigger(ep->at, 0); /* a link that is down
                                                      shows elsewhere */
    if (CHEMPI_LIKELY(
            atomic_load_explicit(&ep->in->told.mode, memory_order_relaxed) ==
            SCIVIA_MODE_POLLED))
        return;
    ring(ep);
    if (ep->is_tx_open && !ep->is_broken)
        (void)chempi_sci_interrupt_trigger(ep->at, 0);
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

int chempi_scivia_eager_send(struct scivia_ep *ep, struct scivia_line *line)
{
    int rc;

    if (CHEMPI_UNLIKELY(ep->framed != NULL))
        return chempi_scivia_via_eager_send(ep, line, NULL, 0);
    atomic_store_explicit(&line->seq, ep->tx_head + 1, memory_order_relaxed);
    rc = put_line(ep, line, ep->tx_head);
    if (CHEMPI_UNLIKELY(rc < 0)) {
        if (rc != -ENOTCONN)
            return rc;
        keep(ep, line);
    }
    ep->tx_head++;
    if (CHEMPI_UNLIKELY(rc < 0))
        chempi_scivia_eager_close(ep);
    else
        chempi_scivia_eager_wake(ep);
    return 0;
}

int chempi_scivia_eager_send_span(struct scivia_ep *ep,
                                  struct scivia_line *line,
                                  struct scivia_span *span, const void *src,
                                  uint32_t len)
{
    uint32_t before = ep->data_head;
    int rc;

    span->pos = ep->framed ? 0 : scivia_span_start(ep, len);
    span->len = len;
    if (ep->framed)
        return chempi_scivia_via_eager_send(ep, line, src, len);
    ep->data_head = span->pos + scivia_round_up(len);
    rc = put(ep, ep->out,
             offsetof(struct scivia_pair, data) +
                 (span->pos & (SCIVIA_DATA_BYTES - 1)),
             src, len);
    if (CHEMPI_LIKELY(rc == 0))
        return chempi_scivia_eager_send(ep, line);
    ep->data_head = before;
    return rc == -ENOTCONN ? -EAGAIN : rc;
}

void chempi_scivia_eager_close(struct scivia_ep *ep)
{
    ep->is_tx_open = false;
    ep->tx_tail = ep->tx_head - SCIVIA_LINES;
    chempi_scivia_endpoint_mend(ep);
}

void chempi_scivia_eager_reopen(struct scivia_ep *ep)
{
    bool is_first = !ep->was_up;

    ep->was_up = true;
    ep->is_tx_open = true;
    if (ep->framed) {
        ep->tx_tail = ep->framed->lines;
        chempi_scivia_via_eager_resend(ep);
        if (ep->rx_head != ep->rx_told || ep->rx_posted != ep->rx_posted_told)
            chempi_scivia_via_eager_tell(ep);
        return;
    }
    chempi_scivia_eager_refresh(ep);
    if (ep->has_unsent && !ep->is_broken &&
        put_line(ep, &ep->unsent, ep->tx_head - 1) == 0) {
        ep->has_unsent = false;
        scivia_dev_of(ep)->unsent--;
    }
    if (!is_first || ep->is_mode_owed || ep->rx_head || ep->rx_posted)
        chempi_scivia_eager_tell(ep, true);
    if (is_first || !ep->is_tx_open)
        return;
    chempi_scivia_eager_wake(ep); /* the last ring may have been lost */
    if (!ep->is_hot) /* and it may not have known that it must ring */
        atomic_store(&scivia_dev_of(ep)->inbox->exist, 1);
}

uint32_t chempi_scivia_eager_posted(const struct scivia_ep *ep)
{
    return ep->framed ? ep->framed->posted
                      : atomic_load_explicit(&ep->in->told.posted,
                                             memory_order_acquire);
}

/* Where the payload of the next message of this size will go. (The peer may be
 * polling the next line, which had better stay with it.) */
static void expect(const struct scivia_ep *ep, uint32_t len)
{
    if (!ep->is_tx_open || ep->framed)
        return;
    chempi_sci_expect(
        ep->out,
        offsetof(struct scivia_pair, data) +
            (scivia_span_start(ep, len) & (SCIVIA_DATA_BYTES - 1)),
        len);
}

/* --- sending --- */

static int send_short(struct scivia_ep *ep, const struct chempi_envelope *env,
                      const void *data, struct chempi_segment *iter, size_t len)
{
    struct scivia_line line;
    struct scivia_short *brief = &line.body.brief;

    line.kind = SCIVIA_KIND_SHORT;
    line.env_kind = env->kind;
    line.len = (uint8_t)len;
    line.lane = env->lane;
    brief->context = env->context;
    brief->source = env->source;
    brief->tag = env->tag;
    brief->serial = env->serial;
    brief->credit = env->credit;
    brief->flags = env->flags;
    if (iter)
        (void)chempi_segment_pack(iter, brief->bytes, len);
    else if (data && len)
        memcpy(brief->bytes, data, len);
    memset(brief->bytes + len, 0, sizeof(brief->bytes) - len);
    return chempi_scivia_eager_send(ep, &line);
}

static int send_eager(struct scivia_ep *ep, const struct chempi_envelope *env,
                      const void *data, size_t len)
{
    struct scivia_line line = {.kind = SCIVIA_KIND_EAGER};
    int rc;

    line.body.eager.env = *env;
    rc = chempi_scivia_eager_send_span(ep, &line, &line.body.eager.span, data,
                                       (uint32_t)len);
    if (CHEMPI_LIKELY(rc == 0))
        expect(ep, (uint32_t)len);
    else if (rc == -EAGAIN)
        want_room(ep, (uint32_t)len);
    return rc;
}

int chempi_scivia_eager_inject(struct chempi_ep *base,
                               const struct chempi_envelope *env,
                               const void *data, size_t len)
{
    struct scivia_ep *ep = (struct scivia_ep *)base;
    bool is_short = len <= SCIVIA_INLINE_MAX;
    int rc;

    if (len > SCIVIA_EAGER_MAX)
        return -EMSGSIZE;
    rc = chempi_scivia_eager_room(ep, is_short ? 0 : (uint32_t)len);
    if (CHEMPI_UNLIKELY(rc < 0))
        return rc;
    return is_short ? send_short(ep, env, data, NULL, len)
                    : send_eager(ep, env, data, len);
}

int chempi_scivia_eager_inject_iter(struct scivia_ep *ep,
                                    const struct chempi_envelope *env,
                                    struct chempi_segment *iter, size_t len)
{
    bool is_short = len <= SCIVIA_INLINE_MAX;
    unsigned char packed[SCIVIA_EAGER_MAX];
    int rc;

    rc = chempi_scivia_eager_room(ep, is_short ? 0 : (uint32_t)len);
    if (rc < 0)
        return rc;
    if (is_short)
        return send_short(ep, env, NULL, iter, len);
    /* A store that is repeated needs its bytes once more. */
    (void)chempi_segment_pack(iter, packed, len);
    rc = send_eager(ep, env, packed, len);
    if (rc == -EAGAIN)
        chempi_segment_seek(iter, 0); /* all of it is to be sent again */
    return rc;
}

/* --- taking --- */

const unsigned char *
chempi_scivia_eager_take_span(struct scivia_ep *ep,
                              const struct scivia_span *span)
{
    uint32_t offset = span->pos & (SCIVIA_DATA_BYTES - 1);

    if (ep->framed)
        return span->len > 0 && span->len == ep->framed->len ? ep->framed->bytes
                                                             : NULL;
    if (span->len == 0 || span->len > SCIVIA_DATA_BYTES / 4 ||
        span->len > SCIVIA_DATA_BYTES - offset)
        return NULL;
    ep->rx_data = span->pos + scivia_round_up(span->len);
    return ep->in->data + offset;
}

void chempi_scivia_eager_tell(struct scivia_ep *ep, bool is_urgent)
{
    struct scivia_told told = {0};

    if (ep->framed) {
        chempi_scivia_via_eager_tell(ep);
        return;
    }
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
        (void)chempi_sci_interrupt_trigger(ep->at, 0);
}
