/* SPDX-License-Identifier: BSD-3-Clause */
/* A control channel in an event loop; see link.h. */
#define _GNU_SOURCE /* O_NONBLOCK and friends */
#include "chempid/tree/link.h"

#include <errno.h>
#include <fcntl.h>

#include "common/base/clock.h"

#define REST_S 0.1       /* without memory */
#define TURN_FRAMES 64   /* handed on in a turn, at most (L6) */
#define TURN_S 0.002     /* for them, about */
#define CROWD_S 0.01     /* for all that are not shared, in an iteration (L6) */
#define AHEAD_S 0.001    /* who had none, of who had a turn and has more */
#define OWN_PART 1e-6    /* of a link's own waiting, beside its user's */
#define LAST_READINGS 64 /* of a peer that goes on sending after a failure */

/* What the turns of links that are not shared have taken in this iteration of
 * this process's loop. */
static struct {
    const struct ev_loop *loop;
    unsigned iteration;
    uint64_t began_ns; /* one time for all that wait: they keep their order */
    uint64_t spent_ns;
} crowd;

static void lose(struct chempi_link *link, int code, struct chempi_err *err)
{
    ev_io_stop(link->loop, &link->in);
    ev_io_stop(link->loop, &link->out);
    ev_timer_stop(link->loop, &link->rest);
    if (err->code == 0 && code == -EBADMSG)
        (void)chempi_err_set(err, code, "it sent bytes that are no message");
    else if (err->code == 0 && code == -EKEYREJECTED)
        (void)chempi_err_set(err, code,
                             "it sent bytes that are not sealed with the keys "
                             "of this link (were they changed on the way?)");
    else if (err->code == 0 && code == -EPERM)
        (void)chempi_err_set(err, code, "it sent descriptors");
    else if (err->code == 0 && code == -EMSGSIZE)
        (void)chempi_err_set(err, code,
                             "it announced a message over the limit of %u "
                             "bytes",
                             link->ch.in_max);
    else if (err->code == 0 && code == -EDQUOT)
        (void)chempi_err_set(err, code,
                             "its messages need more memory of the daemon than "
                             "a user may have (limit: %zu bytes)",
                             link->ch.purse ? link->ch.purse->max : 0);
    else if (err->code == 0 && code == link->failure)
        (void)chempi_err_set(err, code, "messages to it cannot be sent: %s",
                             chempi_err_name(code));
    else if (err->code == 0)
        (void)chempi_err_set(err, code, "%s", chempi_err_name(code));
    link->on_lost(link, code, err); /* may close and free the link */
}

/* In so many seconds, or before. */
static void go_on_in(struct chempi_link *link, ev_tstamp seconds)
{
    if (ev_is_active(&link->rest) &&
        ev_timer_remaining(link->loop, &link->rest) <= seconds)
        return;
    ev_timer_stop(link->loop, &link->rest);
    ev_timer_set(&link->rest, seconds, 0.0);
    ev_timer_start(link->loop, &link->rest);
}

/* A turn's worth of what is here, or all of it: 1: there may be more, 0: there
 * is no whole frame left, -errno. */
static int hand_on(struct chempi_link *link, bool is_all,
                   struct chempi_err *err)
{
    const ev_tstamp end = ev_time() + TURN_S;
    struct chempi_frame frame;
    int rc;

    for (int n = 0; is_all || n < TURN_FRAMES; n++) {
        rc = chempi_channel_next(&link->ch, &frame);
        if (rc != 1)
            return rc;
        rc = link->on_frame(link, &frame, err);
        if (rc)
            return rc;
        if (!is_all && ev_time() >= end)
            break;
    }
    return 1;
}

/* What is left of the last turn comes first: until then nothing is read, so
 * that no more waits here than one reading takes. Returns true when there may
 * be more to read. */
static bool take(struct chempi_link *link, bool is_all)
{
    struct chempi_err err = {0};
    int filled;
    int rc;

    if (!link->has_more)
        link->filled = chempi_channel_fill(&link->ch);
    if (link->filled > 0)
        link->has_heard = true;
    filled = link->filled;

    rc = hand_on(link, is_all, &err);
    link->has_more = rc > 0;
    if (rc > 0) {
        go_on_in(link, 0.0); /* an event fed now would be of this turn, too */
        return false;
    }
    if (rc == 0)
        chempi_channel_rest(&link->ch);
    if (rc == 0 && filled == -ENOMEM && !link->failure && link->is_shared) {
        ev_io_stop(link->loop, &link->in);
        go_on_in(link, REST_S);
        return false;
    }
    if (link->failure && (filled <= 0 || --link->readings == 0))
        filled = link->failure;
    else if (link->failure)
        go_on_in(link, 0.0);
    if (rc < 0)
        lose(link, rc, &err);
    else if (filled < 0)
        lose(link, filled, &err);
    return rc == 0 && filled > 0;
}

/* At least one of them has a turn in each iteration. */
static bool has_time(struct ev_loop *loop)
{
    if (crowd.loop != loop || crowd.iteration != ev_iteration(loop)) {
        crowd.loop = loop;
        crowd.iteration = ev_iteration(loop);
        crowd.began_ns = chempi_clock_ns();
        crowd.spent_ns = 0;
    }
    return (double)crowd.spent_ns < CROWD_S * (double)CHEMPI_NS_PER_S;
}

static double seconds_since(uint64_t then_ns)
{
    return then_ns < crowd.began_ns
               ? (double)(crowd.began_ns - then_ns) / (double)CHEMPI_NS_PER_S
               : 0.0;
}

/* In the next iteration: first who belongs to the user that has had no turn
 * for longest, however many links others have; of those of one user, who has
 * waited for longest. */
static void put_off(struct chempi_link *link)
{
    const struct chempi_purse *user = link->ch.purse;
    uint64_t from_ns;

    if (!link->waits_since_ns)
        link->waits_since_ns = crowd.began_ns;
    from_ns = link->waits_since_ns;
    if (user && user->served_ns > from_ns)
        from_ns = user->served_ns;
    ev_io_stop(link->loop, &link->in);
    go_on_in(link, -AHEAD_S - seconds_since(from_ns) -
                       seconds_since(link->waits_since_ns) * OWN_PART);
}

static void readable(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_link *link = w->data;
    const uint64_t began_ns = chempi_clock_ns();

    (void)events;
    if (link->is_shared) {
        (void)take(link, false); /* once: others want their turn */
    } else if (has_time(loop)) {
        link->waits_since_ns = 0;
        if (link->ch.purse)
            link->ch.purse->served_ns = began_ns;
        (void)take(link, false); /* it may free the link and the purse */
        crowd.spent_ns += chempi_clock_ns() - began_ns;
    } else {
        put_off(link);
    }
}

void chempi_link_drain(struct chempi_link *link)
{
    while (take(link, true))
        ;
}

/* The reader takes what has come so far, however many readings of a bounded
 * number that needs, and then reports the loss (L2); the peer notices nothing
 * before. */
static void break_off(struct chempi_link *link, int code)
{
    if (!link->failure) {
        link->failure = code;
        link->readings = LAST_READINGS;
    }
    ev_io_stop(link->loop, &link->out);
    if (link->is_started)
        ev_feed_event(link->loop, &link->in, EV_READ);
}

static void push(struct chempi_link *link)
{
    int rc = chempi_channel_flush(&link->ch);

    if (rc > 0)
        ev_io_start(link->loop, &link->out);
    else
        ev_io_stop(link->loop, &link->out);
    if ((rc == -ENOMEM || rc == -ENOBUFS) && link->is_shared)
        go_on_in(link, REST_S);
    else if (rc < 0)
        break_off(link, rc);
}

static void writable(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_link *link = w->data;

    (void)loop;
    (void)events;
    push(link);
    if (link->on_written)
        link->on_written(link);
}

static void go_on(struct ev_loop *loop, ev_timer *w, int events)
{
    struct chempi_link *link = w->data;

    ev_io_start(loop, &link->in);
    ev_feed_event(loop, &link->in, EV_READ); /* it may be read already */
    if (!link->failure && !ev_is_active(&link->out) &&
        chempi_channel_has_output(&link->ch))
        writable(loop, &link->out, events); /* it may free the link */
}

void chempi_link_prepare(struct chempi_link *link, struct ev_loop *loop,
                         uint32_t in_max, size_t queue_max)
{
    chempi_channel_init(&link->ch, -1, in_max, queue_max);
    link->loop = loop;
    link->on_written = NULL;
    ev_io_init(&link->in, readable, -1, EV_READ);
    ev_io_init(&link->out, writable, -1, EV_WRITE);
    ev_timer_init(&link->rest, go_on, REST_S, 0.0);
    link->in.data = link;
    link->rest.data = link;
    link->out.data = link;
    link->failure = 0;
    link->readings = 0;
    link->filled = 0;
    link->has_more = false;
    link->waits_since_ns = 0;
    link->sent = 0;
    link->has_heard = true; /* its peer has not had its time yet */
    link->is_shared = false;
    link->is_open = true;
    link->is_started = false;
}

void chempi_link_share(struct chempi_link *link)
{
    link->is_shared = true;
    link->ch.spare = CHEMPI_LINK_SPARE;
    /* Without memory now: before the first frame that is offered. */
    (void)chempi_channel_keep(&link->ch);
}

void chempi_link_start(struct chempi_link *link, int fd)
{
    const int flags = fcntl(fd, F_GETFL);

    /* Reads and writes ask for non-blocking themselves; this is for peers
     * that share the description. */
    (void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    link->ch.fd = fd;
    link->is_started = true;
    ev_io_set(&link->in, fd, EV_READ);
    ev_io_set(&link->out, fd, EV_WRITE);
    ev_io_start(link->loop, &link->in);
    if (link->failure)
        break_off(link, link->failure);
    else
        push(link);
}

void chempi_link_open(struct chempi_link *link, struct ev_loop *loop, int fd,
                      uint32_t in_max, size_t queue_max)
{
    chempi_link_prepare(link, loop, in_max, queue_max);
    chempi_link_start(link, fd);
}

void chempi_link_adopt(struct chempi_link *link, struct ev_loop *loop,
                       struct chempi_channel *ch)
{
    const int fd = ch->fd;

    chempi_link_prepare(link, loop, ch->in_max, ch->queue_max);
    link->ch = *ch;
    chempi_channel_init(ch, -1, ch->in_max, ch->queue_max);
    link->has_more = true;
    chempi_link_start(link, fd);
    go_on_in(link, 0.0);
}

void chempi_link_close(struct chempi_link *link)
{
    if (!link->is_open)
        return;
    link->is_open = false;
    ev_io_stop(link->loop, &link->in);
    ev_io_stop(link->loop, &link->out);
    ev_timer_stop(link->loop, &link->rest);
    chempi_channel_fini(&link->ch);
}

struct chempi_writer *chempi_link_begin(struct chempi_link *link, uint16_t type,
                                        uint64_t job)
{
    return chempi_channel_begin(&link->ch, type, job);
}

static int end_within(struct chempi_link *link, size_t reserve)
{
    const size_t begun = link->ch.out_frame;
    int rc;

    if (!link->is_open) {
        chempi_wire_clear(&link->ch.out);
        return 0;
    }
    rc = chempi_channel_end_within(&link->ch, reserve);
    if (rc)
        return rc;
    link->sent += link->ch.out.len - begun;
    if (link->is_started && !ev_is_active(&link->out))
        push(link);
    return 0;
}

int chempi_link_try_end(struct chempi_link *link)
{
    return end_within(link, 0);
}

void chempi_link_end(struct chempi_link *link)
{
    const int rc =
        end_within(link, link->is_shared ? CHEMPI_LINK_RESERVE : 0); /* L7 */

    if (rc)
        break_off(link, rc); /* it does not read, or there is no memory */
}

int chempi_link_offer(struct chempi_link *link, uint16_t type, uint64_t job,
                      const void *data, size_t len)
{
    if (!link->is_open)
        return 0;
    chempi_wire_put_raw(chempi_link_begin(link, type, job), data, len);
    return chempi_link_try_end(link);
}

void chempi_link_send(struct chempi_link *link, uint16_t type, uint64_t job,
                      const void *data, size_t len)
{
    if (!link->is_open)
        return;
    chempi_wire_put_raw(chempi_link_begin(link, type, job), data, len);
    chempi_link_end(link);
}
