/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing. Small messages and control frames are written at once when nothing
 * waits before them, else copied into link->out and written together. Larger
 * payload goes from the user's memory; messages that were cleared take turns,
 * a piece each, so that neither they nor small ones wait for a long one.
 * Messages keep their order (T9): who finds no room comes again, and waits for
 * that where all others wait (didl's N4), not here.
 */
#define _GNU_SOURCE /* MSG_NOSIGNAL */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/containers/array.h"
#include "libchempi/devices/tcp/internal.h"

#define OUT_MIN 4096u            /* first allocation */
#define ON_STACK 2048u           /* a message up to here is copied once */
#define AT_ONCE 2u               /* messages in a row that leave at once */
#define RUNS_MAX 16              /* runs of user memory in one write */
#define RUNS_WORTH (16u * 1024u) /* bytes that make it worth while */
#define ALONE 4u                 /* pieces in one while nobody else waits */

static CHEMPI_COLD bool may_wait(struct chempi_tcp_link *link)
{
    return chempi_shortage_may_wait(&link->sending);
}

/* Ask for EPOLLOUT; it stays asked for until it comes with nothing to do.
 * Without memory for that, the next chempi_tcp_work() tries to write (T5). */
static void block(struct chempi_tcp_link *link)
{
    struct chempi_tcp_dev *dev = chempi_tcp_dev_of(link);
    int rc;

    link->is_blocked = true;
    dev->blocked++;
    if (link->is_armed)
        return;
    rc = chempi_pollset_modify(dev->dev.params.services->pollset, &link->item,
                               EPOLLIN | EPOLLOUT);
    if (rc == -ENOMEM && may_wait(link)) {
        link->is_blocked = false;
        chempi_tcp_link_owe_flush(link);
    } else if (rc) {
        chempi_tcp_link_mute(link, rc);
    } else {
        link->is_armed = true;
        chempi_shortage_end(&link->sending);
    }
}

/* Does more of the message follow behind the frame that is being written? The
 * kernel then need not send a short packet at the frame's end. */
static bool is_amid_message(const struct chempi_tcp_link *link)
{
    const struct chempi_tcp_current *c = &link->current;

    return c->tx && c->xfer && c->pos + c->left < c->xfer->want;
}

/* Bytes written, 0 when the kernel takes none, or memory is missing to seal
 * them, or -errno. */
static ssize_t write_bytes(struct chempi_tcp_link *link, struct iovec *iov,
                           size_t count)
{
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = count};
    const int flags =
        MSG_NOSIGNAL | MSG_DONTWAIT | (is_amid_message(link) ? MSG_MORE : 0);
    ssize_t n;

    link->is_acked = false;
    if (link->seal) {
        n = chempi_tcp_sealed_write(link, iov, count);
        if (n == -ENOMEM && may_wait(link))
            return 0; /* the socket has room: it is asked for again at once */
        if (n > 0)
            chempi_shortage_end(&link->sending);
        if (n >= 0 && chempi_tcp_sealed_is_pending(link))
            block(link);
        return n;
    }
    do {
        if (count == 1)
            n = chempi_sys->send(link->item.fd, iov->iov_base, iov->iov_len,
                                 flags);
        else
            n = chempi_sys->sendmsg(link->item.fd, &msg, flags);
    } while (n < 0 && errno == EINTR);
    if (n >= 0)
        return n;
    return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
}

/* The memory of `out` holds so many bytes; false: out of memory. */
static bool fit(struct chempi_tcp_out *out, size_t len)
{
    return CHEMPI_ARRAY_FIT(out->data, out->cap, len < OUT_MIN ? OUT_MIN : len);
}

/* Nothing waits in `out` any more: another link may need its memory. */
static void give_back(struct chempi_tcp_link *link)
{
    struct chempi_tcp_out *spare = &chempi_tcp_dev_of(link)->spare;
    uint8_t *less = spare->data;

    if (link->out.cap > spare->cap) {
        *spare = (struct chempi_tcp_out){.data = link->out.data,
                                         .cap = link->out.cap};
    } else {
        less = link->out.data;
    }
    free(less);
    link->out = (struct chempi_tcp_out){.data = NULL};
}

/* Room for len bytes in `out`, or NULL (out of memory). */
static uint8_t *reserve(struct chempi_tcp_link *link, size_t len)
{
    struct chempi_tcp_dev *dev = chempi_tcp_dev_of(link);
    struct chempi_tcp_out *out = &link->out;
    size_t used = out->tail - out->head;

    if (!used) {
        *out = dev->spare;
        dev->spare = (struct chempi_tcp_out){.data = NULL};
    }
    if (out->head && out->tail + len > out->cap) {
        memmove(out->data, out->data + out->head, used);
        out->head = 0;
        out->tail = used;
    }
    if (!fit(out, used + len)) {
        if (!used)
            give_back(link);
        return NULL;
    }
    out->tail += len;
    return out->data + out->tail - len;
}

static void owe_flush(struct chempi_tcp_link *link)
{
    if (!link->is_blocked && link->state == CHEMPI_TCP_UP &&
        !chempi_tcp_link_is_written(link))
        chempi_tcp_link_owe_flush(link); /* T5 */
}

/* Write what can be written now, without upcalls. */
static void kick(struct chempi_tcp_link *link)
{
    if (link->state == CHEMPI_TCP_UP && !link->is_blocked)
        chempi_tcp_eager_flush(link);
}

int chempi_tcp_eager_control(struct chempi_tcp_link *link, const void *frame,
                             size_t len)
{
    uint8_t *to;

    if (link->state > CHEMPI_TCP_UP)
        return 0; /* sent() tells */
    to = reserve(link, len);
    if (!to)
        return -ENOMEM;
    chempi_shortage_end(&link->sending);
    memcpy(to, frame, len);
    kick(link);
    return 0;
}

/* Nothing waits before it: write a small message now. What the kernel does
 * not take is kept. */
static int inject_now(struct chempi_tcp_link *link,
                      const struct chempi_envelope *env, const void *data,
                      size_t len)
{
    struct chempi_tcp_out *spare = &chempi_tcp_dev_of(link)->spare;
    uint8_t buf[ON_STACK];
    struct iovec iov[2];
    size_t head_len = chempi_tcp_wire_put_eager(buf, env);
    size_t total = head_len + len;
    size_t count = 1;
    ssize_t n;

    iov[0] = (struct iovec){.iov_base = buf, .iov_len = head_len};
    if (total <= sizeof(buf)) {
        if (len)
            memcpy(buf + head_len, data, len);
        iov[0].iov_len = total;
    } else {
        uint8_t *bytes = NULL;

        memcpy(&bytes, &data, sizeof(bytes)); /* the kernel only reads */
        iov[1] = (struct iovec){.iov_base = bytes, .iov_len = len};
        count = 2;
    }
    if (CHEMPI_UNLIKELY(spare->cap < total) && !fit(spare, total))
        return -ENOMEM; /* before some of it has left */
    n = write_bytes(link, iov, count);
    if (CHEMPI_LIKELY(n == (ssize_t)total))
        return CHEMPI_DONE;
    if (n < 0) {
        chempi_tcp_link_mute(link, (int)n);
        return link->ep->status;
    }
    (void)reserve(link, total - (size_t)n); /* it has room */
    for (size_t i = 0, at = link->out.head; i < count; i++) {
        size_t skip = (size_t)n < iov[i].iov_len ? (size_t)n : iov[i].iov_len;

        memcpy(link->out.data + at, (uint8_t *)iov[i].iov_base + skip,
               iov[i].iov_len - skip);
        at += iov[i].iov_len - skip;
        n -= (ssize_t)skip;
    }
    block(link);
    return CHEMPI_DONE;
}

/* Does a message that goes whole wait for `out` to leave? */
static bool is_whole_waiting(const struct chempi_tcp_link *link)
{
    const struct chempi_tcp_current *c = &link->current;

    return link->whole || (c->tx && !c->xfer && !c->is_started);
}

/* May len bytes of a message come into `out`? (T9) */
static bool has_room(const struct chempi_tcp_link *link, size_t len)
{
    const size_t used = link->out.tail - link->out.head;

    return !is_whole_waiting(link) &&
           (!used ||
            used + len <= chempi_tcp_setting(link, CHEMPI_TCP_SET_QUEUE));
}

/* Copy a small message, from data or iter, behind what waits; DONE, -EAGAIN or
 * -ENOMEM. */
static int line_up(struct chempi_tcp_link *link,
                   const struct chempi_envelope *env, const void *data,
                   struct chempi_segment *iter)
{
    const size_t len = (size_t)env->len;
    const size_t total = sizeof(struct chempi_tcp_eager) + len;
    uint8_t *to;

    if (!has_room(link, total))
        return -EAGAIN;
    to = reserve(link, total);
    if (!to)
        return -ENOMEM;
    chempi_shortage_end(&link->sending);
    to += chempi_tcp_wire_put_eager(to, env);
    if (iter)
        (void)chempi_segment_pack(iter, to, len); /* all of it */
    else if (len)
        memcpy(to, data, len);
    return CHEMPI_DONE;
}

/* Is it one of several that are posted one after the other? */
static bool is_in_a_row(struct chempi_tcp_link *link)
{
    const uint32_t tick = chempi_tcp_dev_of(link)->tick;

    if (link->state != CHEMPI_TCP_UP)
        return false;
    if (link->post_tick != tick) {
        link->post_tick = tick;
        link->posted = 0;
    }
    return link->posted++ >= AT_ONCE;
}

/* Gather it with others for the next progress(), unless that is enough, or the
 * first of them has waited for long; KEPT, DONE, -EAGAIN or -ENOMEM. */
static int keep(struct chempi_tcp_link *link, const struct chempi_envelope *env,
                const void *data, struct chempi_segment *iter)
{
    const uint64_t now_ns = chempi_clock_ns();
    int rc;

    if (link->out.head == link->out.tail)
        link->kept_ns = now_ns;
    rc = line_up(link, env, data, iter);
    if (rc)
        return rc;
    if (link->out.tail - link->out.head >=
            chempi_tcp_setting(link, CHEMPI_TCP_SET_KEEP) ||
        now_ns - link->kept_ns >=
            chempi_tcp_setting(link, CHEMPI_TCP_SET_KEEP_NS)) {
        kick(link);
        return CHEMPI_DONE;
    }
    owe_flush(link);
    return CHEMPI_KEPT;
}

/* Send a small message, from data or iter; DONE, KEPT, -EAGAIN, -ENOMEM, or
 * why the link is broken. */
static inline int send_small(struct chempi_tcp_link *link,
                             const struct chempi_envelope *env,
                             const void *data, struct chempi_segment *iter,
                             bool may_keep)
{
    int rc;

    if (may_keep && is_in_a_row(link))
        return keep(link, env, data, iter);
    if (CHEMPI_LIKELY(link->state == CHEMPI_TCP_UP &&
                      chempi_tcp_link_is_written(link) && !iter))
        return inject_now(link, env, data, (size_t)env->len);
    rc = line_up(link, env, data, iter);
    if (rc == CHEMPI_DONE)
        kick(link);
    return rc;
}

int chempi_tcp_eager_inject(struct chempi_tcp_link *link,
                            const struct chempi_envelope *env, const void *data,
                            bool may_keep)
{
    return send_small(link, env, data, NULL, may_keep);
}

/* Nothing is never announced: it is completely at hand (ddi.h). */
static bool is_announced(const struct chempi_tx *tx)
{
    return tx->env.len &&
           (tx->protocol == CHEMPI_TCP_PROTO_RENDEZVOUS || tx->needs_consent ||
            tx->env.len > CHEMPI_TCP_EAGER_MAX);
}

/* Without memory there is no room, for a while. */
static int announce(struct chempi_tcp_link *link, struct chempi_tx *tx)
{
    int rc = -EAGAIN;

    if (!has_room(link, sizeof(struct chempi_tcp_rts)))
        return rc;
    if (CHEMPI_LIKELY(chempi_rndv_has_room(link->rndv.rndv)))
        rc = chempi_rndv_send(&link->rndv, tx, CHEMPI_TCP_PROTO_RENDEZVOUS);
    if (CHEMPI_UNLIKELY(rc == -EAGAIN)) {
        link->ep->is_starved = true;
        chempi_tcp_link_owe_room(link->ep);
    }
    return rc;
}

int chempi_tcp_eager_send(struct chempi_tcp_link *link, struct chempi_tx *tx)
{
    int rc = -ENOMEM;

    memset(tx->priv, 0, sizeof(tx->priv));
    if (is_announced(tx))
        return announce(link, tx);
    if (tx->env.len <= CHEMPI_TCP_INJECT_MAX)
        rc = send_small(link, &tx->env, tx->buf, tx->iter, tx->may_keep);
    if (rc != -ENOMEM)
        return rc;
    if (is_whole_waiting(link))
        return -EAGAIN;
    link->whole = tx; /* this needs no memory */
    kick(link);
    if (!tx->priv[CHEMPI_TCP_TX_IS_DONE])
        return CHEMPI_PENDING;
    chempi_list_remove(&tx->link);
    return CHEMPI_DONE;
}

/* Payload of a DATA frame at most, bytes. Every frame costs the receiver a read
 * of a head. */
static uint64_t piece_max(struct chempi_tcp_link *link)
{
    uint64_t chunk = chempi_tcp_setting(link, CHEMPI_TCP_SET_CHUNK);

    if (!chempi_list_is_empty(&link->rndv.pumping) || link->whole ||
        link->ep->is_starved)
        return chunk;
    return chunk * ALONE < CHEMPI_TCP_CHUNK_MAX ? chunk * ALONE
                                                : CHEMPI_TCP_CHUNK_MAX;
}

/* The next piece of a message that was asked for; makes its frame's head. */
static void start_piece(struct chempi_tcp_link *link)
{
    struct chempi_tcp_current *c = &link->current;
    struct chempi_xfer *xfer = CHEMPI_CONTAINER_OF(
        chempi_list_first(&link->rndv.pumping), struct chempi_xfer, link);
    uint64_t left = xfer->want - xfer->done;
    uint64_t chunk;

    chempi_list_remove(&xfer->link);
    chunk = piece_max(link);
    c->xfer = xfer;
    c->tx = xfer->tx;
    c->pos = xfer->done;
    c->left = left < chunk ? left : chunk;
    c->head_len = (uint32_t)chempi_tcp_wire_put_data(c->head, xfer->peer_id,
                                                     c->pos, (uint32_t)c->left);
}

/* The message that goes whole. */
static void start_whole(struct chempi_tcp_link *link)
{
    struct chempi_tcp_current *c = &link->current;
    struct chempi_tx *tx = link->whole;

    link->whole = NULL;
    c->xfer = NULL;
    c->tx = tx;
    c->pos = 0;
    c->left = tx->env.len;
    c->head_len = (uint32_t)chempi_tcp_wire_put_eager(c->head, &tx->env);
}

/* Choose the next message with payload. */
static void start_current(struct chempi_tcp_link *link)
{
    bool has_bulk = !chempi_list_is_empty(&link->rndv.pumping);
    bool is_bulk = has_bulk && (!link->whole || link->is_bulk_turn);

    if (!link->whole && !has_bulk)
        return;
    if (is_bulk)
        start_piece(link);
    else
        start_whole(link);
    link->is_bulk_turn = !is_bulk;
    link->current.head_done = 0;
    link->current.is_started = false;
}

/* Runs of non-contiguous payload, or the next of it packed. */
static size_t gather_iter(struct chempi_tcp_dev *dev,
                          const struct chempi_tcp_current *c, struct iovec *iov)
{
    struct chempi_segment *iter = c->tx->iter;
    uint64_t bytes = 0;
    size_t max;
    size_t n;

    if (iter->position != c->pos)
        chempi_segment_seek(iter, c->pos);
    n = chempi_segment_runs(iter, iov, RUNS_MAX, c->left);
    for (size_t i = 0; i < n; i++)
        bytes += iov[i].iov_len;
    if (bytes == c->left || bytes >= RUNS_WORTH)
        return n;
    chempi_segment_seek(iter, c->pos);
    max =
        c->left < sizeof(dev->scratch) ? (size_t)c->left : sizeof(dev->scratch);
    iov[0] =
        (struct iovec){.iov_base = dev->scratch,
                       .iov_len = chempi_segment_pack(iter, dev->scratch, max)};
    return 1;
}

static size_t gather_current(struct chempi_tcp_link *link, struct iovec *iov)
{
    struct chempi_tcp_current *c = &link->current;
    size_t n = 0;

    if (c->head_done < c->head_len)
        iov[n++] = (struct iovec){.iov_base = c->head + c->head_done,
                                  .iov_len = c->head_len - c->head_done};
    if (!c->left)
        return n;
    if (c->tx->iter)
        return n + gather_iter(chempi_tcp_dev_of(link), c, iov + n);
    iov[n].iov_base = NULL;
    memcpy(&iov[n].iov_base, &c->tx->buf, sizeof(void *)); /* only read */
    iov[n].iov_base = (uint8_t *)iov[n].iov_base + c->pos;
    iov[n].iov_len = (size_t)c->left;
    return n + 1;
}

/* The next bytes in the order that T4 demands. */
static size_t gather(struct chempi_tcp_link *link, struct iovec *iov)
{
    struct chempi_tcp_out *out = &link->out;
    size_t n = 0;

    if (link->current.tx && link->current.is_started)
        return gather_current(link, iov);
    if (out->head < out->tail)
        iov[n++] = (struct iovec){.iov_base = out->data + out->head,
                                  .iov_len = out->tail - out->head};
    if (!link->current.tx)
        start_current(link);
    if (link->current.tx)
        n += gather_current(link, iov + n);
    return n;
}

static size_t consume_out(struct chempi_tcp_link *link, size_t n)
{
    struct chempi_tcp_out *out = &link->out;
    size_t used = out->tail - out->head;

    if (n < used) {
        out->head += n;
        return n;
    }
    if (used)
        give_back(link);
    return used;
}

static void finish_current(struct chempi_tcp_link *link)
{
    struct chempi_tcp_current *c = &link->current;
    struct chempi_tx *tx = c->tx;

    c->tx = NULL;
    if (c->xfer && c->pos < c->xfer->want) {
        c->xfer->done = c->pos;
        chempi_list_append(&link->rndv.pumping, &c->xfer->link);
        return;
    }
    if (c->xfer)
        chempi_rndv_forget(c->xfer);
    chempi_tcp_link_done(chempi_tcp_dev_of(link), tx, 0);
}

/* n bytes of what gather() found have left. */
static void consume(struct chempi_tcp_link *link, size_t n)
{
    struct chempi_tcp_current *c = &link->current;
    size_t k;

    if (!c->tx || !c->is_started)
        n -= consume_out(link, n);
    if (!n)
        return;
    c->is_started = true;
    k = c->head_len - c->head_done;
    k = k < n ? k : n;
    c->head_done += (uint32_t)k;
    n -= k;
    c->left -= n;
    c->pos += n;
    if (!c->left && c->head_done == c->head_len)
        finish_current(link);
}

/* Is there room for many, and for the largest? */
static bool has_much_room(const struct chempi_tcp_link *link)
{
    const size_t most = sizeof(struct chempi_tcp_eager) + CHEMPI_TCP_INJECT_MAX;
    const size_t half = chempi_tcp_setting(link, CHEMPI_TCP_SET_QUEUE) / 2;

    return has_room(link, half < most ? most : half);
}

/* Something has left: those that were refused here may come again. */
static void after_flush(struct chempi_tcp_link *link)
{
    if (link->has_refused && has_much_room(link))
        chempi_tcp_link_owe_room(link->ep);
    owe_flush(link);
}

void chempi_tcp_eager_flush(struct chempi_tcp_link *link)
{
    struct iovec iov[RUNS_MAX + 2];
    size_t budget = chempi_tcp_setting(link, CHEMPI_TCP_SET_FLUSH);

    link->is_blocked = false;
    while (link->state == CHEMPI_TCP_UP && !chempi_tcp_link_is_written(link) &&
           budget) {
        size_t count = gather(link, iov);
        size_t total = 0;
        ssize_t n;

        for (size_t i = 0; i < count; i++)
            total += iov[i].iov_len;
        n = write_bytes(link, iov, count);
        if (n < 0) {
            chempi_tcp_link_mute(link, (int)n);
            break;
        }
        if (n)
            consume(link, (size_t)n);
        if ((size_t)n < total && !link->is_blocked)
            block(link);
        if (link->is_blocked || (size_t)n < total)
            break;
        budget -= (size_t)n < budget ? (size_t)n : budget;
    }
    after_flush(link);
}
