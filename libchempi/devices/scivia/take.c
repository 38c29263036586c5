/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the peer's lines say, whether they were stored in the ring or have come
 * in frames.
 */
#include "libchempi/devices/scivia/internal.h"

/* NULL, which rule is broken, or chempi_shortage_left. */
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
    arrival->protocol = ep->carrier->protocol;
    scivia_dev_of(ep)->bytes_copied += arrival->env.len;
    chempi_dev_count(ep->base.dev, arrival->protocol, arrival->env.len);
    if (CHEMPI_LIKELY(params->sink->arrived(params->sink_arg, arrival, &rx) !=
                      CHEMPI_NO_ROOM))
        return NULL;
    scivia_dev_of(ep)->bytes_copied -= arrival->env.len;
    chempi_dev_uncount(ep->base.dev, arrival->protocol, arrival->env.len);
    return chempi_shortage_left;
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
    const uint32_t rx_data = ep->rx_data;
    const char *why;

    arrival.data = ep->carrier->take_span(ep, &line->body.eager.span);
    if (!arrival.data || line->body.eager.span.len != arrival.env.len)
        return "a span out of bounds";
    why = announce(ep, &arrival);
    if (CHEMPI_UNLIKELY(why == chempi_shortage_left))
        ep->rx_data = rx_data;
    return why;
}

const char *chempi_scivia_take_line(struct scivia_ep *ep,
                                    const struct scivia_line *line)
{
    switch (line->kind) {
    case SCIVIA_KIND_SHORT:
        return take_short(ep, line);
    case SCIVIA_KIND_EAGER:
        return take_eager(ep, line);
    case SCIVIA_KIND_RTS:
        return chempi_scivia_rndv_rts(ep, line);
    case SCIVIA_KIND_CTS:
        return chempi_scivia_rndv_cts(ep, line);
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
