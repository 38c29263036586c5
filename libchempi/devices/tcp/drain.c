/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading. An ordinary read fills the device's buffer, and all frames in it
 * are delivered; the start of an incomplete one is stashed. While a frame's
 * payload has a receive to go to, reads go straight into the user's memory,
 * with a little room behind for the next frames. After a long payload another
 * is expected: then an ordinary read takes little more than its frame's head,
 * so that hardly any of it is copied twice. At the end of a long message
 * nothing behind it is read and the poll ends: whoever waited for it may be
 * about to post the receive of the next, which would else be kept in memory of
 * our own and copied.
 *
 * What there is no memory for waits, with all behind it on its link, and is
 * asked for again in each chempi_tcp_work(). What has been read of the first
 * such link is put aside (dev->unread). There is but one place for that; so the
 * other links are then read no further than what is delivered: payload that
 * has its place, and whole frames, which are looked at before they are taken
 * from the connection.
 */
#define _GNU_SOURCE /* MSG_DONTWAIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/sys.h"
#include "libchempi/devices/tcp/internal.h"

#define STASH_MAX (sizeof(struct chempi_tcp_eager) + CHEMPI_TCP_INJECT_MAX)
#define BEHIND 4096u       /* room for frames behind a direct read, bytes */
#define LONG (60u * 1024u) /* a message after which a poll ends, bytes */
#define RUNS_MAX 16        /* runs of user memory in one read */
#define RUNS_WORTH (16u * 1024u) /* bytes that make it worth while */
#define REST_POLLS 1024          /* of one that goes on sending all the same */

static_assert(STASH_MAX + BEHIND <= CHEMPI_TCP_RBUF, "a stash fits a read");

/* Who has broken the rules on one link is not listened to on any other. */
static void violate(struct chempi_tcp_link *link, const char *what)
{
    char name[CHEMPI_TCP_WHY_MAX];

    chempi_tcp_link_break(link, -EPROTO, "%s came from %s", what,
                          chempi_tcp_link_name(link, name));
    chempi_tcp_link_end_all(link->ep);
}

/* The frame that link->rx takes is complete. */
static void finish_frame(struct chempi_tcp_link *link)
{
    const struct chempi_dev_params *params = &link->ep->ep.dev->params;
    struct chempi_xfer *xfer = link->rx_xfer;
    struct chempi_rx *rx = link->rx;

    link->rx = NULL;
    if (xfer)
        xfer->done = link->rx_pos;
    if (!xfer)
        params->sink->delivered(params->sink_arg, rx, 0);
    else if (xfer->done == xfer->want)
        chempi_rndv_end(xfer, 0);
}

/* n <= rx_left payload bytes have been read into our own buffer. */
static void store(struct chempi_tcp_link *link, const uint8_t *p, size_t n)
{
    struct chempi_rx *rx = link->rx;
    uint64_t pos = link->rx_pos;
    uint64_t limit = link->rx_limit;
    size_t keep = 0;

    if (pos < limit)
        keep = limit - pos < n ? (size_t)(limit - pos) : n;
    if (keep && rx->buf) {
        memcpy((uint8_t *)rx->buf + pos, p, keep);
    } else if (keep) {
        if (rx->iter->position != pos)
            chempi_segment_seek(rx->iter, pos);
        (void)chempi_segment_unpack(rx->iter, p, keep); /* keep <= its size */
    }
    link->rx_pos = pos + n;
    link->rx_left -= n;
}

/* The next bytes, all of a frame, are payload for rx. */
static void begin_frame(struct chempi_tcp_link *link, struct chempi_rx *rx,
                        struct chempi_xfer *xfer, uint64_t len)
{
    link->rx = rx;
    link->rx_xfer = xfer;
    link->rx_left = len;
    link->rx_pos = xfer ? xfer->done : 0;
    link->rx_limit = xfer ? xfer->want : rx->cap < len ? rx->cap : len;
}

/* Memory is missing for what has come: it stays where it is. */
static void leave(struct chempi_tcp_link *link)
{
    struct chempi_tcp_dev *dev = chempi_tcp_dev_of(link);

    if (chempi_list_is_empty(&link->left_link))
        chempi_list_append(&dev->left, &link->left_link);
    dev->has_work = true;
}

static bool is_left(const struct chempi_tcp_link *link)
{
    return !chempi_list_is_empty(&link->left_link);
}

static bool is_put_aside(const struct chempi_tcp_link *link)
{
    return chempi_tcp_dev_of(link)->unread.link == link;
}

/* An eager message whose fixed part has been read; `have` bytes of payload
 * stand at p. Returns the payload bytes used, or -1: wait for all of it, or for
 * memory (it is left). */
static ssize_t take_eager(struct chempi_tcp_link *link,
                          const struct chempi_tcp_frame *f, const uint8_t *p,
                          size_t have)
{
    struct chempi_arrival arrival = {
        .ep = &link->ep->ep, .env = f->env, .protocol = CHEMPI_TCP_PROTO_EAGER};
    struct chempi_dev *dev = link->ep->ep.dev;
    const struct chempi_sink *sink = dev->params.sink;
    struct chempi_rx *rx = NULL;
    enum chempi_verdict verdict;

    link->is_bulky = f->len >= CHEMPI_TCP_BULKY;
    if (have >= f->len) {
        arrival.data = p;
        arrival.avail = f->len;
    } else if (f->len <= CHEMPI_TCP_INJECT_MAX) {
        return -1;
    } else {
        arrival.flags = CHEMPI_ARRIVAL_STREAMED;
    }
    chempi_dev_count(dev, arrival.protocol, f->len);
    verdict = sink->arrived(dev->params.sink_arg, &arrival, &rx);
    if (CHEMPI_UNLIKELY(verdict == CHEMPI_NO_ROOM)) {
        chempi_dev_uncount(dev, arrival.protocol, f->len);
        leave(link);
        return -1;
    }
    if (CHEMPI_UNLIKELY(verdict == CHEMPI_REFUSED)) {
        violate(link, "a message that is refused");
        return -1;
    }
    assert(verdict == (arrival.flags ? CHEMPI_ACCEPT : CHEMPI_TAKEN));
    if (verdict == CHEMPI_TAKEN)
        return (ssize_t)f->len;
    rx->ep = &link->ep->ep;
    begin_frame(link, rx, NULL, f->len);
    if (have)
        store(link, p, have);
    return (ssize_t)have;
}

static const char *take_cts(struct chempi_tcp_link *link,
                            const struct chempi_tcp_frame *f)
{
    const char *why =
        chempi_rndv_cts(chempi_rndv_find_for_cts(&link->rndv, f->sender),
                        f->receiver, f->take, 0, f->take);

    if (!why && !link->is_blocked)
        chempi_tcp_eager_flush(link);
    return why;
}

static const char *take_data(struct chempi_tcp_link *link,
                             const struct chempi_tcp_frame *f)
{
    struct chempi_xfer *xfer =
        chempi_rndv_find(&link->rndv, f->receiver, CHEMPI_RNDV_WAITING);

    if (!xfer || f->offset != xfer->done || f->len > xfer->want - xfer->done)
        return "data for no message that was cleared";
    link->is_bulky = f->len >= CHEMPI_TCP_BULKY;
    begin_frame(link, xfer->rx, xfer, f->len);
    return NULL;
}

/* The next frame from the n bytes at p. Returns the bytes used, 0 to wait for
 * more (they are stashed) or for memory (they are left), or because the link
 * has gone. */
static size_t take_frame(struct chempi_tcp_link *link, const uint8_t *p,
                         size_t n)
{
    struct chempi_tcp_frame f;
    const char *why;
    ssize_t body = 0;
    int fixed = chempi_tcp_wire_get(p, n, &f, &why);

    if (fixed == 0)
        return 0;
    if (fixed < 0) {
        violate(link, why);
        return 0;
    }
    why = NULL;
    switch (f.kind) {
    case CHEMPI_TCP_EAGER:
        body = take_eager(link, &f, p + fixed, n - (size_t)fixed);
        break;
    case CHEMPI_TCP_RTS:
        why = chempi_rndv_rts(&link->rndv, &f.env, f.sender, NULL);
        if (CHEMPI_UNLIKELY(why == chempi_shortage_left)) {
            leave(link);
            return 0;
        }
        break;
    case CHEMPI_TCP_CTS:
        why = take_cts(link, &f);
        break;
    case CHEMPI_TCP_DROP:
        why = chempi_rndv_fin(&link->rndv, f.sender);
        break;
    case CHEMPI_TCP_DATA:
        why = take_data(link, &f);
        break;
    default:
        chempi_tcp_link_end(link);
        break;
    }
    if (why)
        violate(link, why);
    return body < 0 ? 0 : (size_t)fixed + (size_t)body;
}

/* No memory for what has come. Leave it, or it has been too long. */
static CHEMPI_COLD void miss_memory(struct chempi_tcp_link *link)
{
    char who[CHEMPI_TCP_WHO_MAX];

    if (chempi_shortage_may_wait(&link->coming))
        leave(link);
    else
        chempi_tcp_link_break(
            link, -ENOMEM, "out of memory for a message of %s",
            chempi_tcp_tie_words(link->ep->ep.dev->params.services,
                                 link->ep->ep.proc, who));
}

/* Keep the start of a frame; returns n, or 0: memory is missing. */
static size_t stash(struct chempi_tcp_link *link, const uint8_t *p, size_t n)
{
    assert(n <= STASH_MAX); /* else take_frame() would have used it */
    if (!link->stash)
        link->stash = chempi_sys->malloc(STASH_MAX);
    if (!link->stash) {
        miss_memory(link);
        return 0;
    }
    chempi_shortage_end(&link->coming);
    memcpy(link->stash, p, n);
    link->stash_len = n;
    return n;
}

/* Deliver from n bytes that have been read. Returns how many have been used or
 * stashed: all, unless they are left or the link has gone. */
static size_t parse(struct chempi_tcp_link *link, const uint8_t *p, size_t n,
                    int *events)
{
    size_t done = 0;

    if (CHEMPI_UNLIKELY(is_left(link)))
        chempi_list_remove(&link->left_link);
    while (done < n && chempi_tcp_is_open(link)) {
        size_t used = n - done;

        if (link->rx) {
            if (link->rx_left < used)
                used = (size_t)link->rx_left;
            store(link, p + done, used);
            if (!link->rx_left)
                finish_frame(link);
        } else {
            used = take_frame(link, p + done, used);
            if (!used)
                break;
        }
        ++*events;
        done += used;
    }
    if (done < n && chempi_tcp_is_open(link) && !is_left(link))
        done += stash(link, p + done, n - done);
    return done;
}

/* These n bytes, the last that were read of the link, are left. */
static CHEMPI_COLD void put_aside(struct chempi_tcp_link *link,
                                  const uint8_t *p, size_t n)
{
    struct chempi_tcp_dev *dev = chempi_tcp_dev_of(link);

    memcpy(dev->unread.data, p, n);
    dev->unread.link = link;
    dev->unread.from = 0;
    dev->unread.len = n;
}

/* Where the payload of the current frame goes without a copy: runs of user
 * memory, none if it is better copied. */
static size_t direct_runs(struct chempi_tcp_link *link, struct iovec *iov,
                          size_t *bytes)
{
    struct chempi_rx *rx = link->rx;
    uint64_t pos = link->rx_pos;
    uint64_t limit = link->rx_limit;
    uint64_t want;
    size_t n;

    *bytes = 0;
    if (pos >= limit)
        return 0; /* the rest is dropped */
    want = limit - pos < link->rx_left ? limit - pos : link->rx_left;
    if (rx->buf) {
        iov[0] = (struct iovec){.iov_base = (uint8_t *)rx->buf + pos,
                                .iov_len = (size_t)want};
        *bytes = (size_t)want;
        return 1;
    }
    if (rx->iter->position != pos)
        chempi_segment_seek(rx->iter, pos);
    n = chempi_segment_runs(rx->iter, iov, RUNS_MAX, want);
    for (size_t i = 0; i < n; i++)
        *bytes += iov[i].iov_len;
    if (*bytes == want || *bytes >= RUNS_WORTH)
        return n;
    *bytes = 0;
    return 0;
}

static ssize_t read_bytes(struct chempi_tcp_link *link, struct iovec *iov,
                          size_t count)
{
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = count};
    ssize_t n;

    if (link->seal) {
        n = chempi_tcp_sealed_read(link, iov, count);
        if (n > 0)
            chempi_shortage_end(&link->coming);
        errno = n < 0 ? (int)-n : 0;
        return n < 0 ? -1 : n;
    }
    do {
        if (count == 1)
            n = chempi_sys->recv(link->item.fd, iov->iov_base, iov->iov_len,
                                 MSG_DONTWAIT);
        else
            n = chempi_sys->recvmsg(link->item.fd, &msg, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    link->ep->has_come |= n > 0;
    return n;
}

/* Do the next `direct` bytes end a long message? */
static bool ends_long(const struct chempi_tcp_link *link, size_t direct)
{
    return direct == link->rx_left && link->rx_limit >= LONG &&
           link->rx_pos + direct >= link->rx_limit;
}

/* A read has returned n: is there nothing to go on with? */
static bool is_nothing(struct chempi_tcp_link *link, ssize_t n, int *events)
{
    const int status = n < 0 ? -errno : 0;

    if (CHEMPI_LIKELY(n > 0))
        return false;
    if (status == -EAGAIN || status == -EWOULDBLOCK)
        return true;
    if (status == -ENOMEM) {
        miss_memory(link);
        return true;
    }
    chempi_tcp_link_fail(link, status);
    if (status == -EKEYREJECTED) /* of a secure link */
        chempi_tcp_link_end_all(link->ep);
    ++*events;
    return true;
}

/* Look at what has come, without taking it. Bytes, 0: the end, or -1. */
static ssize_t peek_bytes(struct chempi_tcp_link *link, uint8_t *to,
                          size_t room)
{
    ssize_t n;

    if (link->seal) {
        n = chempi_tcp_sealed_peek(link, to, room);
        errno = n < 0 ? (int)-n : 0;
        return n < 0 ? -1 : n;
    }
    do
        n = chempi_sys->recv(link->item.fd, to, room, MSG_PEEK | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n;
}

/* Take n bytes that have been looked at. */
static void take_bytes(struct chempi_tcp_link *link, size_t n)
{
    struct chempi_tcp_dev *dev = chempi_tcp_dev_of(link);

    while (n && chempi_tcp_is_open(link)) {
        struct iovec iov = {.iov_base = dev->rbuf, .iov_len = n};
        const ssize_t got = read_bytes(link, &iov, 1);

        if (got <= 0)
            chempi_tcp_link_fail(link, got < 0 ? -errno : 0);
        else
            n -= (size_t)got;
    }
}

/* As read_once(), between frames, while there is no place for what cannot be
 * delivered. */
static CHEMPI_COLD size_t peek_once(struct chempi_tcp_link *link, int *events)
{
    struct chempi_tcp_dev *dev = chempi_tcp_dev_of(link);
    const size_t held = link->stash_len;
    const size_t room = sizeof(dev->rbuf) - held;
    const ssize_t n = peek_bytes(link, dev->rbuf + held, room);
    size_t used;

    if (is_nothing(link, n, events))
        return 0;
    if (held)
        memcpy(dev->rbuf, link->stash, held);
    link->stash_len = 0;
    used = parse(link, dev->rbuf, held + (size_t)n, events);
    if (!used) {
        link->stash_len = held;
        return 0;
    }
    take_bytes(link, used - held);
    return used < held + room ? 0 : used;
}

/* One read and what follows from it. Returns the bytes read, 0 when there is
 * nothing more for now; *events counts. */
static size_t read_once(struct chempi_tcp_link *link, int *events)
{
    struct chempi_tcp_dev *dev = chempi_tcp_dev_of(link);
    struct iovec iov[RUNS_MAX + 1];
    size_t held = link->stash_len;
    size_t direct = 0;
    size_t room = link->is_bulky ? BEHIND : sizeof(dev->rbuf) - held;
    size_t count = 0;
    bool is_end;
    size_t got;
    ssize_t n;

    if (CHEMPI_UNLIKELY(dev->unread.link != NULL) && !link->rx)
        return peek_once(link, events);
    if (link->rx)
        count = direct_runs(link, iov, &direct);
    is_end = direct && ends_long(link, direct);
    if (direct)
        room = direct == link->rx_left && !is_end ? BEHIND : 0;
    if (CHEMPI_UNLIKELY(dev->unread.link != NULL) &&
        room > link->rx_left - direct)
        room = (size_t)link->rx_left - direct; /* nothing of the next frame */
    if (room)
        iov[count++] =
            (struct iovec){.iov_base = dev->rbuf + held, .iov_len = room};
    n = read_bytes(link, iov, count);
    if (is_nothing(link, n, events))
        return 0;
    ++*events; /* also where it does not complete a frame */
    got = (size_t)n;
    if (direct) {
        size_t here = got < direct ? got : direct;

        link->rx_pos += here;
        link->rx_left -= here;
        got -= here;
        if (!link->rx_left)
            finish_frame(link);
    }
    if (held) {
        memcpy(dev->rbuf, link->stash, held);
        link->stash_len = 0;
    }
    if (got) {
        size_t used = parse(link, dev->rbuf, held + got, events);

        if (CHEMPI_UNLIKELY(is_left(link)))
            put_aside(link, dev->rbuf + used, held + got - used);
    }
    return is_end || (size_t)n < direct + room ? 0 : (size_t)n;
}

int chempi_tcp_drain_poll(struct chempi_tcp_link *link)
{
    size_t budget = chempi_tcp_setting(link, CHEMPI_TCP_SET_READ);
    int events = 0;

    if (CHEMPI_UNLIKELY(is_put_aside(link)))
        return 0;
    if (CHEMPI_UNLIKELY(is_left(link)))
        chempi_list_remove(&link->left_link);
    while (chempi_tcp_is_open(link) &&
           (budget || chempi_tcp_sealed_has_input(link))) {
        size_t n;

        link->is_sparing = !budget;
        n = read_once(link, &events);
        if (is_left(link) || (!n && !chempi_tcp_sealed_has_input(link)))
            break;
        budget -= n < budget ? n : budget;
    }
    link->is_sparing = false;
    if (events) {
        link->misses = 0;
        chempi_tcp_link_heat(link);
    }
    return events;
}

/* Deliver what was left of the link, if there is memory for it now, and what
 * has come behind it. */
static int drain_left(struct chempi_tcp_link *link)
{
    struct chempi_tcp_dev *dev = chempi_tcp_dev_of(link);
    int events = 0;

    if (is_put_aside(link)) {
        size_t used = parse(link, dev->unread.data + dev->unread.from,
                            dev->unread.len, &events);

        dev->unread.from += used;
        dev->unread.len -= used;
        if (is_left(link))
            return events;
        dev->unread.link = NULL;
    }
    return events + chempi_tcp_drain_poll(link);
}

int chempi_tcp_drain_left(struct chempi_tcp_dev *dev)
{
    struct chempi_list now;
    int events = 0;

    chempi_list_init(&now);
    chempi_list_splice(&now, &dev->left);
    while (!chempi_list_is_empty(&now)) {
        struct chempi_tcp_link *link = CHEMPI_CONTAINER_OF(
            chempi_list_first(&now), struct chempi_tcp_link, left_link);

        chempi_list_remove(&link->left_link);
        events += drain_left(link);
    }
    return events;
}

bool chempi_tcp_drain_rest(struct chempi_tcp_link *link)
{
    (void)drain_left(link);
    for (int i = 0; i < REST_POLLS && chempi_tcp_drain_poll(link); i++)
        ;
    return !is_left(link);
}
