/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines and room: sending messages of one line or one span, and waiting for
 * room. How lines travel is the carrier's (sci_eager.c, via_eager.c).
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

#include "common/base/copy.h"
#include "libchempi/devices/scivia/internal.h"

/* --- room --- */

/* Read what the peer has taken; it may not be more than was sent, and what
 * arrives late may not take anything back. */
void chempi_scivia_eager_refresh(struct scivia_ep *ep)
{
    uint32_t lines =
        atomic_load_explicit(&ep->told->lines, memory_order_acquire);
    uint32_t data = atomic_load_explicit(&ep->told->data, memory_order_acquire);

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

void chempi_scivia_eager_want(struct scivia_ep *ep, uint32_t len)
{
    ep->wants_room = true;
    ep->wanted = len;
    chempi_scivia_endpoint_mark(ep);
}

int chempi_scivia_eager_room(struct scivia_ep *ep, uint32_t len)
{
    int rc = chempi_scivia_eager_try(ep, len);

    if (rc == -EAGAIN)
        chempi_scivia_eager_want(ep, len);
    return rc;
}

/* --- sending --- */

static_assert(SCIVIA_INLINE_MAX <= CHEMPI_COPY_SHORT,
              "chempi_copy_short does it");

/* Filled here and then stored at once: whoever fills a line that the peer polls
 * loses it to the peer's core meanwhile (where a line took 150 ns to the other
 * core, 8 bytes took 0.28 us so and 0.20 us otherwise). */
static int send_short(struct scivia_ep *ep, const struct chempi_envelope *env,
                      const void *data, struct chempi_segment *iter, size_t len)
{
    struct scivia_line line = {
        .kind = SCIVIA_KIND_SHORT,
        .env_kind = env->kind,
        .len = (uint8_t)len,
        .lane = env->lane,
        .body.brief = {.context = env->context,
                       .source = env->source,
                       .tag = env->tag,
                       .serial = env->serial,
                       .credit = env->credit,
                       .flags = env->flags},
    };

    if (iter)
        (void)chempi_segment_pack(iter, line.body.brief.bytes, len);
    else
        chempi_copy_short(line.body.brief.bytes, data, len);
    return ep->carrier->send(ep, &line, NULL, NULL, 0);
}

static int send_eager(struct scivia_ep *ep, const struct chempi_envelope *env,
                      const void *data, size_t len)
{
    struct scivia_line line = {.kind = SCIVIA_KIND_EAGER};
    int rc;

    line.body.eager.env = *env;
    rc = ep->carrier->send(ep, &line, &line.body.eager.span, data,
                           (uint32_t)len);
    if (CHEMPI_UNLIKELY(rc == -EAGAIN))
        chempi_scivia_eager_want(ep, (uint32_t)len);
    return rc;
}

int chempi_scivia_eager_inject(struct chempi_ep *base,
                               const struct chempi_envelope *env,
                               const void *data, size_t len, bool may_keep)
{
    struct scivia_ep *ep = (struct scivia_ep *)base;
    bool is_short = len <= SCIVIA_INLINE_MAX;
    int rc;

    (void)may_keep;
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
