/* SPDX-License-Identifier: BSD-3-Clause */
/* The beat between daemons; see beat.h. */
#define _GNU_SOURCE /* clock_gettime */
#include "chempid/peers/beat.h"

#include <poll.h>
#include <stdio.h>

#include "chempid/peers/conn.h"
#include "common/base/clock.h"
#include "common/control/msg.h"

#define PER_DETECTION 4 /* beats */

static bool has_more(const struct chempi_conn *c)
{
    struct pollfd p = {.fd = c->is_proven ? c->link.ch.fd : c->fd,
                       .events = POLLIN};

    return poll(&p, 1, 0) > 0 && (p.revents & (POLLIN | POLLHUP | POLLERR));
}

/* T2: it cannot answer that any more. */
static void say_so(struct chempi_conn *c, double seconds)
{
    uint8_t data[CHEMPI_CONN_GAVE_UP_MAX + 16];
    char text[CHEMPI_CONN_GAVE_UP_MAX];
    struct chempi_writer w;

    if (!c->is_greeted)
        return;
    (void)snprintf(text, sizeof(text),
                   "it has closed the connection, as node %.64s had not "
                   "answered for %g s",
                   c->peer, seconds);
    chempi_wire_fix(&w, data, sizeof(data));
    chempi_wire_put_u32(&w, CHEMPI_MSG_BEAT);
    chempi_wire_put_str(&w, text);
    (void)chempi_link_offer(&c->link, CHEMPI_MSG_REFUSED, 0, w.data, w.len);
}

void chempi_beat_refused(struct chempi_conn *c, struct chempi_reader *r)
{
    const char *why = chempi_wire_get_str(r, CHEMPI_CONN_GAVE_UP_MAX);

    if (chempi_wire_is_done(r))
        (void)snprintf(c->gave_up, sizeof(c->gave_up), "%s", why);
}

static void end(struct chempi_conn *c, double seconds)
{
    char text[160];

    if (c->resolve && c->resolve->fd >= 0) {
        chempi_conns_end(c, "the look-up of its name takes too long");
        return;
    }
    say_so(c, seconds);
    (void)snprintf(text, sizeof(text),
                   "it has not answered for %g s: it stands still, or the "
                   "network to it does",
                   seconds);
    chempi_conns_end(c, text);
}

void chempi_beat_greet(const struct chempi_beat *beat, struct chempi_conn *c)
{
    struct chempi_writer *w = chempi_link_begin(&c->link, CHEMPI_MSG_BEAT, 0);

    chempi_wire_put_u32(w, (uint32_t)(beat->detect_s * 1000));
    (void)chempi_link_try_end(&c->link); /* there is another one */
}

void chempi_beat_take(struct chempi_conn *c, const struct chempi_frame *frame)
{
    struct chempi_reader r;
    double seconds;

    chempi_wire_read(&r, frame->data, frame->len);
    seconds = chempi_wire_get_u32(&r) / 1000.0;
    if (chempi_wire_is_done(&r) && seconds <= CHEMPI_BEAT_DETECT_MAX_S)
        c->detect_s = seconds;
}

static uint64_t to_ns(double seconds)
{
    return (uint64_t)(seconds * (double)CHEMPI_NS_PER_S);
}

static void look_at(const struct chempi_beat *beat, struct chempi_conn *c)
{
    const double limit_s =
        c->detect_s > beat->detect_s ? c->detect_s : beat->detect_s; /* T2 */

    if (c->link.has_heard || has_more(c)) { /* T1 */
        c->silence = (struct chempi_silence){0};
    } else if (chempi_silence_lasts(&c->silence, &beat->looks,
                                    to_ns(limit_s))) {
        end(c, limit_s);
        return;
    }
    c->link.has_heard = false;
    if (c->is_proven && chempi_link_queued(&c->link) == 0)
        chempi_beat_greet(beat, c);
}

static void tick(struct ev_loop *loop, ev_timer *w, int events)
{
    struct chempi_beat *beat = w->data;
    bool is_any = false;

    (void)events;
    chempi_looks_next(&beat->looks, chempi_clock_ns());
    CHEMPI_LIST_FOR_SAFE (e, &beat->conns->all) {
        struct chempi_conn *c =
            CHEMPI_CONTAINER_OF(e, struct chempi_conn, entry);

        /* Who calls and proves nothing has a limit of its own. */
        if (c->kind == CHEMPI_CONN_LOCAL ||
            (c->kind == CHEMPI_CONN_INBOUND && !c->is_proven))
            continue;
        is_any = true;
        if (c->is_proven)
            beat->on_beat(c);
        look_at(beat, c);
    }
    if (!is_any)
        ev_timer_stop(loop, w); /* T3 */
}

void chempi_beat_init(struct chempi_beat *beat, struct chempi_conns *conns,
                      double detect_s, void (*on_beat)(struct chempi_conn *c))
{
    *beat = (struct chempi_beat){
        .conns = conns, .detect_s = detect_s, .on_beat = on_beat};
    ev_timer_init(&beat->timer, tick, detect_s / PER_DETECTION,
                  detect_s / PER_DETECTION);
    ev_set_priority(&beat->timer, EV_MAXPRI);
    beat->timer.data = beat;
}

void chempi_beat_wake(struct chempi_beat *beat)
{
    if (ev_is_active(&beat->timer))
        return;
    chempi_looks_begin(&beat->looks, to_ns(beat->detect_s / PER_DETECTION),
                       chempi_clock_ns());
    ev_timer_again(beat->conns->loop, &beat->timer);
}

void chempi_beat_stop(struct chempi_beat *beat)
{
    if (beat->conns)
        ev_timer_stop(beat->conns->loop, &beat->timer);
}
