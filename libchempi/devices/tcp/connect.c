/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting. An attempt walks through the peer's addresses, best first:
 *
 *   CALL     the kernel connects; then preamble and hello are written
 *   REPLY    the verdict and the proof of the listening side are awaited
 *   VERDICT  our proof is written, its verdict is awaited
 *   YIELDED  the peer's own connection is, which has precedence (T11)
 *
 * A peer that computes does not answer for as long as it likes, so nothing
 * here is limited by time, except that the kernel gives up a host that does
 * not answer at all. A connection that ends before its verdict is tried again
 * a few times: the listening side sends the oldest away when too many queue.
 */
#define _GNU_SOURCE /* SOCK_NONBLOCK, IP_BIND_ADDRESS_NO_PORT */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "common/fd/descriptors.h"
#include "libchempi/devices/tcp/internal.h"

bool chempi_tcp_connect_may_have(const struct chempi_tcp_dev *dev, int fd)
{
    const struct chempi_services *s = dev->dev.params.services;

    return !s->bonds || chempi_descriptors_are_spare(fd, s->proc_count);
}

static int open_socket(const struct chempi_tcp_dev *dev, int family)
{
    int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    int fd = chempi_sys->socket(family, type, 0);

    if (fd < 0 && errno == EMFILE && chempi_descriptors_lift())
        fd = chempi_sys->socket(family, type, 0);
    if (fd < 0)
        return -errno;
    if (chempi_tcp_connect_may_have(dev, fd))
        return fd;
    (void)close(fd); /* never used */
    return -EMFILE;
}

/* Do we listen on every address of this host for this network? */
static bool is_anywhere(const struct chempi_tcp_dev *dev, uint32_t network)
{
    for (uint32_t i = 0; i < dev->listener_count; i++)
        if (dev->listeners[i].network == network)
            return dev->listeners[i].is_anywhere;
    return true;
}

/* Leave by the address that the description gives us on this network. Without
 * one the kernel knows which of ours leads there. */
static void bind_source(struct chempi_tcp_link *link, int fd, int family)
{
    const struct chempi_tcp_dev *dev = chempi_tcp_dev_of(link);
    const int one = 1;

    if (is_anywhere(dev, link->network))
        return;
    for (uint32_t i = 0; i < dev->card.count; i++) {
        const struct chempi_tcp_entry *e = &dev->card.entries[i];
        struct chempi_address a = e->address;

        if (e->network != link->network || a.u.sa.sa_family != family)
            continue;
        chempi_address_set_port(&a, 0);
        (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one,
                         sizeof(one)); /* saves ports; needless to work */
        /* The kernel's choice of source will do as well. */
        (void)chempi_sys->bind(fd, &a.u.sa, chempi_address_len(&a));
        return;
    }
}

static void start_ready(struct chempi_poll_item *item, uint32_t events);

/* Begin anew when there is memory, but not for too long. */
static bool wait_for_memory(struct chempi_tcp_link *link)
{
    if (!chempi_shortage_may_wait(&link->sending))
        return false;
    chempi_tcp_link_put_off(link);
    link->item.ready = start_ready;
    chempi_tcp_link_owe_flush(link);
    return true;
}

static void fail(struct chempi_tcp_link *link, int code)
{
    char name[CHEMPI_TCP_WHY_MAX];

    if (code == -ENOMEM && wait_for_memory(link))
        return;
    (void)chempi_tcp_link_name(link, name);
    if (code == -EMFILE || code == -ENFILE)
        chempi_tcp_link_break(
            link, code,
            "no file descriptor left for a connection to %s (limit %llu); "
            "raise the limit ('ulimit -n', or nofile in "
            "/etc/security/limits.conf)",
            name, (unsigned long long)chempi_descriptors_limit());
    else
        chempi_tcp_link_break(link, code, "cannot connect to %s: %s", name,
                              chempi_err_name(code));
}

static void call(struct chempi_tcp_link *link);

/* This address does not do; is there another one? */
static void next_address(struct chempi_tcp_link *link, int code)
{
    struct chempi_tcp_attempt *a = link->attempt;

    chempi_tcp_link_close_fd(link);
    if (code == -EMFILE || code == -ENFILE || code == -ENOMEM ||
        a->address + 1 >= a->address_count) {
        fail(link, code);
        return;
    }
    a->address++;
    a->again = 0;
    call(link);
}

/* The connection has ended before the verdict. */
static void try_again(struct chempi_tcp_link *link, int code)
{
    chempi_tcp_link_close_fd(link);
    if (link->attempt->step == CHEMPI_TCP_STEP_CALL ||
        link->attempt->again >=
            chempi_tcp_setting(link, CHEMPI_TCP_SET_DIAL_AGAIN)) {
        next_address(link, code);
        return;
    }
    link->attempt->again++;
    chempi_tcp_dev_of(link)->redials++;
    call(link);
}

/* Take the authentication one step; 0, 1 (over) or -errno. */
static int step_auth(struct chempi_tcp_link *link, const uint8_t *in,
                     size_t len)
{
    struct chempi_tcp_attempt *a = link->attempt;
    size_t out_len;
    int rc = chempi_tcp_proof_step(&a->proof, in, len, a->out + a->out_len,
                                   &out_len, &link->ep->ep.dev->err);

    if (rc >= 0)
        a->out_len += out_len;
    return rc;
}

static int prepare(struct chempi_tcp_link *link)
{
    const struct chempi_tcp_dev *dev = chempi_tcp_dev_of(link);
    struct chempi_tcp_attempt *a = link->attempt;
    struct chempi_tcp_preamble preamble;
    struct chempi_tcp_tie tie;
    int rc;

    chempi_tcp_proof_fini(&a->proof);
    rc = chempi_tcp_tie_get(dev->dev.params.services, link->ep->ep.proc, &tie);
    if (!rc)
        rc = chempi_tcp_tie_prove(dev, &tie, true, link->network, &a->proof);
    if (rc)
        return rc;
    chempi_tcp_wire_put_preamble(&preamble, tie.bond ? tie.bond->name : NULL,
                                 tie.self, tie.peer, link->network);
    memcpy(a->out, &preamble, sizeof(preamble));
    a->out_len = sizeof(preamble);
    a->out_done = 0;
    a->in_len = 0;
    a->in_need = 0;
    a->step = CHEMPI_TCP_STEP_CALL;
    rc = step_auth(link, NULL, 0);
    return rc < 0 ? rc : 0;
}

/* Write what is to be written: 1 when all is, 0 to wait, or -errno. */
static int write_out(struct chempi_tcp_link *link)
{
    struct chempi_tcp_attempt *a = link->attempt;

    while (a->out_done < a->out_len) {
        ssize_t n = chempi_sys->send(link->item.fd, a->out + a->out_done,
                                     a->out_len - a->out_done,
                                     MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n > 0)
            a->out_done += (size_t)n;
        else if (n < 0 && (errno == EAGAIN || errno == ENOTCONN))
            return 0;
        else if (n == 0 || errno != EINTR)
            return n == 0 ? -EIO : -errno;
    }
    return 1;
}

/* CALL -> REPLY once the greeting is out. */
static void greet(struct chempi_tcp_link *link)
{
    struct chempi_tcp_attempt *a = link->attempt;
    int rc = write_out(link);

    if (rc < 0) {
        next_address(link, rc);
        return;
    }
    if (rc == 0)
        return;
    rc = chempi_pollset_modify(link->ep->ep.dev->params.services->pollset,
                               &link->item, EPOLLIN);
    if (rc) {
        fail(link, rc);
        return;
    }
    a->step = CHEMPI_TCP_STEP_REPLY;
    a->in_need = sizeof(struct chempi_tcp_verdict);
}

static void dial_ready(struct chempi_poll_item *item, uint32_t events);

static void call(struct chempi_tcp_link *link)
{
    struct chempi_pollset *set = link->ep->ep.dev->params.services->pollset;
    struct chempi_tcp_attempt *a = link->attempt;
    char before[CHEMPI_TCP_CONGESTION_MAX];
    int fd;
    int rc;

    if (link->ep->status) { /* meanwhile: there is nobody to call again */
        chempi_tcp_link_break(link, link->ep->status, "%s", link->ep->why);
        return;
    }
    link->peer = a->addresses[a->address];
    rc = prepare(link);
    fd = rc ? rc
            : open_socket(chempi_tcp_dev_of(link), link->peer.u.sa.sa_family);
    if (fd < 0) {
        next_address(link, fd);
        return;
    }
    chempi_tcp_link_set_options(chempi_tcp_dev_of(link), fd);
    if (chempi_address_is_loopback(&link->peer))
        chempi_tcp_link_hurry(fd, before);
    bind_source(link, fd, link->peer.u.sa.sa_family);
    link->item = (struct chempi_poll_item){.fd = fd, .ready = dial_ready};
    if (chempi_sys->connect(fd, &link->peer.u.sa,
                            chempi_address_len(&link->peer)) < 0 &&
        errno != EINPROGRESS && errno != EINTR) {
        next_address(link, -errno);
        return;
    }
    rc = chempi_pollset_add(set, &link->item, EPOLLIN | EPOLLOUT);
    if (rc) {
        fail(link, rc);
        return;
    }
    greet(link); /* on one host the connection stands already */
}

void chempi_tcp_connect_start(struct chempi_tcp_link *link)
{
    struct chempi_tcp_dev *dev = chempi_tcp_dev_of(link);
    struct chempi_tcp_card card;
    char who[CHEMPI_TCP_WHO_MAX];
    struct chempi_tcp_attempt *a = chempi_sys->calloc(1, sizeof(*a));

    if (!a) {
        fail(link, -ENOMEM);
        return;
    }
    link->attempt = a;
    link->state = CHEMPI_TCP_DIALING;
    /* It was validated when it came. */
    (void)chempi_tcp_card_get(link->ep->card, link->ep->card_len, &card);
    a->address_count =
        chempi_tcp_card_choose(&dev->card, &card, link->network, a->addresses);
    if (!a->address_count) {
        chempi_tcp_link_break(link, -EADDRNOTAVAIL,
                              "%s has no address that can be reached from "
                              "here; name addresses in the network description",
                              chempi_tcp_tie_words(dev->dev.params.services,
                                                   link->ep->ep.proc, who));
        return;
    }
    call(link);
}

static void start_ready(struct chempi_poll_item *item, uint32_t events)
{
    (void)events; /* it is owed */
    chempi_tcp_connect_start(
        CHEMPI_CONTAINER_OF(item, struct chempi_tcp_link, item));
}

static const char *refusal(unsigned code)
{
    static const char *const words[CHEMPI_TCP_VERDICT_END] = {
        [CHEMPI_TCP_STRANGER] = "it belongs to another job, has another "
                                "network description, or has not met this "
                                "process",
        [CHEMPI_TCP_NO_FILES] = "it has no file descriptor left; raise the "
                                "limit there ('ulimit -n', or nofile in "
                                "/etc/security/limits.conf)",
        [CHEMPI_TCP_DUPLICATE] = "it says that it is connected already",
    };

    return words[code] ? words[code] : "it does not follow the protocol";
}

/* The other side has said something else than "go on". */
static void take_refusal(struct chempi_tcp_link *link,
                         const struct chempi_tcp_verdict *v)
{
    const struct chempi_services *s = link->ep->ep.dev->params.services;
    char name[CHEMPI_TCP_WHY_MAX];

    (void)chempi_tcp_link_name(link, name);
    if (v->code == CHEMPI_TCP_YIELD &&
        !chempi_tcp_tie_is_before(s, link->ep->ep.proc) &&
        link->attempt->step == CHEMPI_TCP_STEP_VERDICT) {
        link->attempt->step = CHEMPI_TCP_STEP_YIELDED;
        link->attempt->in_len = 0; /* nothing more comes but its end */
        if (link->ep->status)      /* which has come already, elsewhere */
            chempi_tcp_link_break(link, link->ep->status, "%s", link->ep->why);
    } else if (v->code == CHEMPI_TCP_VERSIONS) {
        chempi_tcp_link_break(
            link, -EPROTO,
            "%s refuses: it speaks version %u of the tcp device's protocol "
            "and this process version %d; install the same CHEMPI everywhere",
            name, (unsigned)v->version, CHEMPI_TCP_VERSION);
    } else {
        chempi_tcp_link_break(link, -ECONNREFUSED, "%s refuses: %s", name,
                              refusal(v->code));
    }
}

/* The proof of the listening side; ours follows it. */
static void take_reply(struct chempi_tcp_link *link)
{
    struct chempi_tcp_attempt *a = link->attempt;
    size_t skip = sizeof(struct chempi_tcp_verdict);
    char name[CHEMPI_TCP_WHY_MAX];
    int rc;

    a->out_len = 0;
    a->out_done = 0;
    rc = step_auth(link, a->in + skip, a->in_len - skip);
    if (rc != 1) {
        /* Somebody else may have that address; another may be right. */
        if (a->address + 1 < a->address_count) {
            next_address(link, -EACCES);
            return;
        }
        chempi_tcp_link_break(link, -EACCES, "%s could not prove that it %s",
                              chempi_tcp_link_name(link, name),
                              link->ep->ep.dev->params.services->bonds
                                  ? "is who was met"
                                  : "belongs to this job");
        return;
    }
    rc = chempi_tcp_proof_seal(&a->proof, &link->seal);
    if (rc) { /* before the other side takes the connection into use */
        fail(link, rc);
        return;
    }
    rc = write_out(link);
    if (rc != 1) { /* an empty socket takes a few bytes */
        try_again(link, rc < 0 ? rc : -EIO);
        return;
    }
    a->step = CHEMPI_TCP_STEP_VERDICT;
    a->in_len = 0;
    a->in_need = sizeof(struct chempi_tcp_verdict);
}

/* in_need bytes are there. */
static void take_input(struct chempi_tcp_link *link)
{
    struct chempi_tcp_attempt *a = link->attempt;
    struct chempi_tcp_verdict v;

    if (chempi_tcp_wire_get_verdict(a->in, &v) != 0) {
        next_address(link, -EPROTO);
    } else if (v.code != CHEMPI_TCP_WELCOME ||
               a->step == CHEMPI_TCP_STEP_YIELDED) {
        take_refusal(link, &v);
    } else if (a->step == CHEMPI_TCP_STEP_VERDICT) {
        chempi_tcp_link_drop_yielded(link);
        chempi_tcp_link_forget_attempt(link);
        chempi_tcp_work_up(link, link->seal);
    } else if (a->in_len == sizeof(v)) {
        a->in_need = sizeof(v) + chempi_tcp_proof_need(&a->proof);
    } else {
        take_reply(link);
    }
}

/* Take what has come, as long as the attempt has the same descriptor. */
static void read_in(struct chempi_tcp_link *link)
{
    struct chempi_tcp_attempt *a = link->attempt;
    int fd = link->item.fd;

    while (link->attempt && link->item.fd == fd &&
           a->step != CHEMPI_TCP_STEP_CALL) {
        ssize_t n = chempi_sys->recv(fd, a->in + a->in_len,
                                     a->in_need - a->in_len, MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            try_again(link, n < 0 ? -errno : -ECONNRESET);
            return;
        }
        a->in_len += (size_t)n;
        if (a->in_len == a->in_need)
            take_input(link);
    }
}

static void dial_ready(struct chempi_poll_item *item, uint32_t events)
{
    struct chempi_tcp_link *link =
        CHEMPI_CONTAINER_OF(item, struct chempi_tcp_link, item);

    if (link->attempt->step != CHEMPI_TCP_STEP_CALL)
        read_in(link);
    else if (events & ~(uint32_t)EPOLLIN)
        greet(link);
    (void)chempi_tcp_work(chempi_tcp_dev_of(link));
}
