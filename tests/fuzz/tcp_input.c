/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tcp device does with the frames of a proven peer: the bytes of an
 * input go through the device's reading, from a pair of sockets, into a sink
 * that takes, accepts, postpones and drops in turn. The first two bytes choose
 * how the rest is cut into pieces.
 */
#define _GNU_SOURCE /* SOCK_NONBLOCK */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libchempi/devices/tcp/internal.h"
#include "libchempi/devices/tcp/tcp.h"
#include "libchempi/services/pollset.h"
#include "tests/fuzz/target.h"

#define RX_MAX 64        /* receives that can be under way */
#define RX_CAP 3000u     /* bytes of each */
#define ANNOUNCED_MAX 8u /* messages of ours that wait for the peer */

struct receive {
    struct chempi_rx rx;
    bool is_busy;
    uint8_t data[RX_CAP];
};

struct state {
    struct receive receives[RX_MAX];
    uint64_t late[16][2];
    unsigned late_count;
    unsigned turn;
    unsigned sent;
    unsigned pending;
    bool is_lost;
    uint8_t sum; /* of what was taken, so that it is read */
};

static struct chempi_rx *free_receive(struct state *s)
{
    for (size_t i = 0; i < RX_MAX; i++) {
        struct receive *r = &s->receives[i];

        if (r->is_busy)
            continue;
        r->is_busy = true;
        r->rx = (struct chempi_rx){.buf = r->data, .cap = RX_CAP};
        return &r->rx;
    }
    return NULL;
}

static enum chempi_verdict
arrived(void *arg, const struct chempi_arrival *arrival, struct chempi_rx **rx)
{
    struct state *s = arg;
    uint8_t sum = 0;

    if (arrival->avail == arrival->env.len) {
        for (uint64_t i = 0; i < arrival->avail; i++)
            sum ^= ((const uint8_t *)arrival->data)[i]; /* all readable? */
        s->sum = sum;
        return CHEMPI_TAKEN;
    }
    *rx = free_receive(s);
    if (*rx && (arrival->flags & CHEMPI_ARRIVAL_STREAMED || ++s->turn % 3))
        return CHEMPI_ACCEPT;
    if (*rx)
        CHEMPI_CONTAINER_OF(*rx, struct receive, rx)->is_busy = false;
    if (arrival->flags & CHEMPI_ARRIVAL_STREAMED)
        abort(); /* one streams at a time, so there is always a receive */
    if (s->late_count < CHEMPI_ARRAY_LEN(s->late)) {
        s->late[s->late_count][0] = arrival->token[0];
        s->late[s->late_count][1] = arrival->token[1];
        s->late_count++;
    }
    return CHEMPI_LATER;
}

static void delivered(void *arg, struct chempi_rx *rx, int status)
{
    struct receive *r = CHEMPI_CONTAINER_OF(rx, struct receive, rx);

    (void)arg;
    (void)status;
    if (!r->is_busy)
        abort(); /* twice */
    r->is_busy = false;
}

static void sent(void *arg, struct chempi_tx *tx, int status)
{
    struct state *s = arg;

    (void)tx;
    (void)status;
    if (++s->sent > s->pending)
        abort(); /* more than there were */
}

static void room(void *arg, struct chempi_ep *ep)
{
    (void)arg;
    (void)ep;
}

static void lost(void *arg, uint32_t proc, int status, const char *why)
{
    struct state *s = arg;

    if (s->is_lost || proc != 1 || !status || !why[0])
        abort();
    s->is_lost = true;
}

static const struct chempi_sink sink = {.arrived = arrived,
                                        .delivered = delivered,
                                        .sent = sent,
                                        .room = room,
                                        .lost = lost};

/* Take or drop what was left with the peer. */
static void settle(struct state *s, struct chempi_ep *ep)
{
    while (s->late_count) {
        const uint64_t *token = s->late[--s->late_count];
        struct chempi_rx *rx = s->late_count % 2 ? free_receive(s) : NULL;

        if (!rx)
            chempi_tcp_ops.drop(ep, token);
        else if (chempi_tcp_ops.accept(ep, token, rx) != CHEMPI_PENDING)
            CHEMPI_CONTAINER_OF(rx, struct receive, rx)->is_busy = false;
    }
}

static void drain(int fd)
{
    uint8_t sink_bytes[4096];

    while (recv(fd, sink_bytes, sizeof(sink_bytes), MSG_DONTWAIT) > 0)
        continue;
}

/* Feed the link its bytes in pieces of a size that changes. */
static void feed(struct chempi_dev *dev, struct chempi_tcp_link *link,
                 struct state *s, int fd, const uint8_t *data, size_t size)
{
    size_t piece = 1 + data[0];
    size_t step = data[1];

    for (size_t at = 2; at < size && !s->is_lost;) {
        size_t n = size - at < piece ? size - at : piece;

        if (send(fd, data + at, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n)
            break;
        at += n;
        piece = 1 + (piece + step) % 5000;
        if (link->state == CHEMPI_TCP_UP)
            (void)chempi_tcp_drain_poll(link);
        (void)dev->ops->progress(dev);
        if (s->late_count > 4)
            settle(s, &link->ep->ep);
        drain(fd);
    }
}

static void run(struct chempi_dev *dev, struct state *s, const uint8_t *data,
                size_t size)
{
    static uint8_t payload[2000];
    struct chempi_tx txs[ANNOUNCED_MAX];
    struct chempi_ep *ep;
    struct chempi_tcp_link *link;
    int fds[2];

    if (dev->ops->connect(dev, 1, &ep, NULL) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0)
        abort();
    link = ((struct chempi_tcp_ep *)(void *)ep)->links[0];
    link->item.fd = fds[0];
    if (chempi_pollset_add(link->ep->ep.dev->params.services->pollset,
                           &link->item, EPOLLIN) != 0)
        abort();
    chempi_tcp_work_up(link, NULL);
    for (unsigned i = 0; i < ANNOUNCED_MAX; i++) {
        txs[i] = (struct chempi_tx){
            .env = {.len = sizeof(payload), .kind = CHEMPI_KIND_MESSAGE},
            .buf = payload,
            .protocol = CHEMPI_TCP_PROTO_RENDEZVOUS};
        if (dev->ops->send(ep, &txs[i]) == CHEMPI_PENDING)
            s->pending++;
    }
    feed(dev, link, s, fds[1], data, size);
    settle(s, ep);
    (void)close(fds[1]);
    for (int i = 0; i < 4; i++) {
        if (link->state == CHEMPI_TCP_UP)
            (void)chempi_tcp_drain_poll(link);
        (void)dev->ops->progress(dev);
    }
    if (link->state < CHEMPI_TCP_ENDED || s->sent != s->pending)
        abort(); /* the end was overlooked, or a message forgotten */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t nodes[2] = {0, 1};
    static const uint32_t zeros[2];
    static const char *const names[2] = {"a", "b"};
    static const uint8_t secret[32];
    struct chempi_services services = {.job_id = "fuzz",
                                       .secret = secret,
                                       .proc_count = 2,
                                       .node_count = 2,
                                       .local_size = 1,
                                       .node_of_proc = nodes,
                                       .local_rank_of_proc = zeros,
                                       .node_names = names};
    struct state *s = calloc(1, sizeof(*s));
    struct chempi_dev_params params = {
        .services = &services, .sink = &sink, .sink_arg = s};
    struct chempi_dev *dev;

    if (size < 3 || !s) {
        free(s);
        return 0;
    }
    if (chempi_pollset_create(&services.pollset) != 0 ||
        chempi_tcp_ops.open(&params, &dev, NULL) != 0)
        abort();
    run(dev, s, data, size);
    chempi_tcp_ops.close(dev);
    chempi_pollset_destroy(services.pollset);
    for (size_t i = 0; i < RX_MAX; i++) {
        if (s->receives[i].is_busy)
            abort(); /* forgotten */
    }
    free(s);
    return 0;
}

size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    struct chempi_envelope env = {.len = 10, .kind = CHEMPI_KIND_MESSAGE};
    size_t n = 2;

    if (i > 2)
        return 0;
    out[0] = (uint8_t)(i * 40);
    out[1] = (uint8_t)i;
    n += chempi_tcp_wire_put_eager(out + n, &env) + env.len;
    env.len = 20000;
    n += chempi_tcp_wire_put_eager(out + n, &env) + env.len;
    env.len = 2500;
    n += chempi_tcp_wire_put_rts(out + n, &env, 77);
    n += chempi_tcp_wire_put_data(out + n, (uint64_t)1 << 32, 0, 1000) + 1000;
    n +=
        chempi_tcp_wire_put_data(out + n, (uint64_t)1 << 32, 1000, 1500) + 1500;
    n += chempi_tcp_wire_put_cts(out + n, (uint64_t)1 << 32, 5, 2000);
    n += chempi_tcp_wire_put_cts(out + n, ((uint64_t)1 << 32) + 1, 6, 100);
    n += chempi_tcp_wire_put_drop(out + n, ((uint64_t)1 << 32) + 2);
    env.len = 4096;
    env.kind = CHEMPI_KIND_SYSTEM;
    n += chempi_tcp_wire_put_eager(out + n, &env) + env.len;
    return n + chempi_tcp_wire_put_bye(out + n);
}
