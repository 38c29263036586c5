/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the peer's lines say, whether they were stored in the ring or have come
 * in frames (F3, R5 and R6), and the connection on which frames come.
 */
#include <errno.h>

#include "libchempi/devices/scivia/internal.h"

/* --- lines --- */

static const char *announce(struct scivia_ep *ep,
                            struct chempi_arrival *arrival)
{
    const struct chempi_dev_params *params = &ep->base.dev->params;
    struct chempi_rx *rx = NULL;

    if ((uint8_t)(arrival->env.kind - CHEMPI_KIND_MESSAGE) >
        CHEMPI_KIND_SYSTEM - CHEMPI_KIND_MESSAGE)
        return "a message of unknown kind";
    arrival->ep = &ep->base;
    arrival->avail = arrival->env.len;
    arrival->protocol = scivia_line_protocol(ep);
    scivia_dev_of(ep)->bytes_copied += arrival->env.len;
    chempi_dev_count(ep->base.dev, arrival->protocol, arrival->env.len);
    (void)params->sink->arrived(params->sink_arg, arrival, &rx); /* TAKEN */
    return NULL;
}

static const char *take_short(struct scivia_ep *ep,
                              const struct scivia_line *line)
{
    const struct scivia_short *brief = &line->body.brief;
    struct chempi_arrival arrival = {
        .env = {.len = line->len,
                .context = brief->context,
                .source = brief->source,
                .tag = brief->tag,
                .serial = brief->serial,
                .credit = brief->credit,
                .kind = line->env_kind,
                .lane = line->lane,
                .flags = brief->flags},
        .data = brief->bytes,
    };

    if (line->len > SCIVIA_INLINE_MAX)
        return "a short message that is too long";
    return announce(ep, &arrival);
}

static const char *take_eager(struct scivia_ep *ep,
                              const struct scivia_line *line)
{
    struct chempi_arrival arrival = {.env = line->body.eager.env};

    arrival.data = chempi_scivia_eager_take_span(ep, &line->body.eager.span);
    if (!arrival.data || line->body.eager.span.len != arrival.env.len)
        return "a span out of bounds";
    return announce(ep, &arrival);
}

const char *chempi_scivia_take_line(struct scivia_ep *ep,
                                    const struct scivia_line *line)
{
    switch (line->kind) {
    case SCIVIA_KIND_SHORT:
        return take_short(ep, line);
    case SCIVIA_KIND_EAGER:
        return take_eager(ep, line);
    case SCIVIA_KIND_ASK:
        return chempi_scivia_rndv_asked(ep, line);
    case SCIVIA_KIND_GO:
        return chempi_scivia_rndv_go(ep, line);
    case SCIVIA_KIND_DATA:
        return chempi_scivia_rndv_data(ep, line);
    case SCIVIA_KIND_DONE:
        return chempi_scivia_rndv_done(ep, line);
    case SCIVIA_KIND_FIN:
        return chempi_rndv_fin(&ep->rndv, line->body.id);
    default:
        return "a line of unknown kind";
    }
}

/* --- frames --- */

/* What the peer has taken; it may not be more than was sent, and what was
 * told late takes nothing back. */
static bool hear_told(struct scivia_ep *ep, uint32_t lines, uint32_t posted)
{
    struct scivia_framed *framed = ep->framed;

    if (ep->tx_head - lines > ep->tx_head - framed->lines)
        return ep->tx_head - lines <= SCIVIA_LINES; /* older */
    framed->lines = lines;
    framed->posted = posted;
    if (ep->is_tx_open)
        ep->tx_tail = lines;
    return true;
}

/* The same in every frame. */
static bool hear_room(struct scivia_framed *framed, uint32_t room)
{
    if (room < framed->room || room > SCIVIA_FRAMES)
        return false;
    framed->room = room;
    return true;
}

/* R5 */
static uint32_t quarter_of(const struct scivia_framed *framed)
{
    return scivia_frame_quarter(framed->has_told_room ? framed->count
                                                      : SCIVIA_FRAMES_MIN);
}

/* NULL, or why the peer breaks the rules. */
static const char *take(struct scivia_ep *ep,
                        const struct chempi_via_descriptor *d, bool *is_new)
{
    const struct scivia_frame *frame = d->segments[0].addr;
    struct scivia_framed *framed = ep->framed;
    struct scivia_line line; /* a private copy */
    const char *why;
    uint32_t seq;

    if (d->length < SCIVIA_FRAME_HEAD || d->length > sizeof(*frame))
        return "a frame of wrong length";
    memcpy(&line, &frame->line, sizeof(line));
    seq = atomic_load_explicit(&line.seq, memory_order_relaxed);
    if (!hear_told(ep, frame->lines, frame->posted))
        return "it took more than was sent";
    if (!hear_room(framed, frame->room))
        return "room for an impossible number of frames";
    if (ep->rx_head - seq < SCIVIA_FRAMES)
        return NULL; /* sent again, but it had arrived (F3) */
    if (seq != ep->rx_head + 1)
        return "a frame out of order";
    *is_new = true;
    framed->bytes = frame->bytes;
    framed->len = (uint32_t)(d->length - SCIVIA_FRAME_HEAD);
    why = line.kind == SCIVIA_KIND_TOLD ? NULL
                                        : chempi_scivia_take_line(ep, &line);
    framed->bytes = NULL;
    framed->len = 0;
    return why;
}

void chempi_scivia_take_frame(struct scivia_ep *ep,
                              struct chempi_via_descriptor *d)
{
    struct scivia_framed *framed = ep->framed;
    bool is_new = false;
    const char *why;

    if (d->status < 0 || ep->is_broken)
        return; /* the connection is broken: drop_rx follows */
    why = take(ep, d, &is_new);
    if (why) {
        chempi_scivia_endpoint_break(ep, -EPROTO, why);
        return;
    }
    ep->breaks = 0;
    if (framed->rx)
        (void)chempi_via_post_recv(framed->rx, d); /* as it was before */
    ep->rx_head += is_new;
    if (ep->rx_head - ep->rx_told >= quarter_of(framed))
        chempi_scivia_via_eager_tell(ep);
}

void chempi_scivia_take_drop_frames(struct scivia_ep *ep)
{
    struct scivia_framed *framed = ep->framed;
    struct chempi_via_descriptor *d;

    if (!framed || !framed->rx)
        return;
    chempi_via_disconnect(framed->rx); /* what had arrived comes first */
    while ((d = chempi_via_recv_done(framed->rx)))
        chempi_scivia_take_frame(ep, d);
    chempi_via_vi_destroy(framed->rx);
    framed->rx = NULL;
}

int chempi_scivia_take_accept(struct scivia_ep *ep,
                              struct chempi_via_request *request)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct scivia_framed *framed = ep->framed;
    struct chempi_via_attributes attributes = {
        .ptag = dev->ptag,
        .reliability = CHEMPI_VIA_RELIABLE_RECEPTION,
        .recv_cq = dev->cq,
        .user = ep,
    };
    int rc = framed ? chempi_scivia_via_eager_init(ep) : -EINVAL;

    if (rc < 0)
        return rc;
    chempi_scivia_take_drop_frames(ep);
    rc = chempi_via_vi_create(dev->adapter, &attributes, &framed->rx);
    for (uint32_t i = 0; rc == 0 && i < framed->count; i++) {
        framed->receives[i] = (struct chempi_via_descriptor){
            .op = CHEMPI_VIA_RECEIVE,
            .segment_count = 1,
            .segments = {{.addr = &framed->memory[i],
                          .handle = framed->handle,
                          .len = sizeof(struct scivia_frame)}},
        };
        rc = chempi_via_post_recv(framed->rx, &framed->receives[i]);
    }
    return rc < 0 ? rc : chempi_via_connect_accept(request, framed->rx);
}
