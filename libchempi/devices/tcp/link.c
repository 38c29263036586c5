/* SPDX-License-Identifier: BSD-3-Clause */
/* Links: what a connection is set to, and how it comes to its end. */
#define _GNU_SOURCE /* TCP_KEEPIDLE */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libchempi/devices/tcp/internal.h"

static void set_option(int fd, int level, int name, int value)
{
    /* They tune; a connection works without. */
    (void)setsockopt(fd, level, name, &value, sizeof(value));
}

void chempi_tcp_link_set_options(struct chempi_tcp_dev *dev, int fd)
{
    static const struct {
        int option;
        enum chempi_tcp_setting setting;
    } all[] = {
        {TCP_KEEPIDLE, CHEMPI_TCP_SET_KEEPALIVE_IDLE},
        {TCP_KEEPINTVL, CHEMPI_TCP_SET_KEEPALIVE_EVERY},
        {TCP_KEEPCNT, CHEMPI_TCP_SET_KEEPALIVE_COUNT},
    };

    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(all); i++)
        set_option(fd, IPPROTO_TCP, all[i].option,
                   (int)chempi_dev_setting(&dev->dev, all[i].setting));
}

/*
 * The default of many systems (bbr) arms a timer for nearly every packet, and
 * once a socket is connected with it, this cannot be undone. The others send
 * as soon as they may; "reno" is there and allowed on every system.
 */
void chempi_tcp_link_hurry(int fd, char before[CHEMPI_TCP_CONGESTION_MAX])
{
    static const char other[] = "reno";
    char now[CHEMPI_TCP_CONGESTION_MAX] = "";
    socklen_t len = sizeof(now);

    before[0] = '\0';
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, now, &len) < 0 ||
        len > sizeof(now) || memchr(now, '\0', sizeof(now)) == NULL ||
        strncmp(now, "bbr", 3) != 0)
        return;
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, other, sizeof(other) - 1) ==
        0) /* else it is slower */
        memcpy(before, now, sizeof(now));
}

void chempi_tcp_link_calm(int fd, const char before[CHEMPI_TCP_CONGESTION_MAX])
{
    if (*before) /* refused: what was chosen works, too */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, before,
                         (socklen_t)strlen(before));
}

const char *chempi_tcp_link_name(const struct chempi_tcp_link *link,
                                 char buf[CHEMPI_TCP_WHY_MAX])
{
    char address[CHEMPI_ADDRESS_TEXT];
    char who[CHEMPI_TCP_WHO_MAX];

    (void)chempi_tcp_tie_words(link->ep->ep.dev->params.services,
                               link->ep->ep.proc, who);
    if (link->peer.u.sa.sa_family == AF_UNSPEC)
        (void)snprintf(buf, CHEMPI_TCP_WHY_MAX, "%s", who);
    else
        (void)snprintf(buf, CHEMPI_TCP_WHY_MAX, "%s (%s)",
                       chempi_address_format(&link->peer, address), who);
    return buf;
}

void chempi_tcp_link_drop_yielded(struct chempi_tcp_link *link)
{
    if (link->yielded.fd < 0)
        return;
    chempi_pollset_remove(chempi_tcp_dev_of(link)->dev.params.services->pollset,
                          &link->yielded);
    (void)close(link->yielded.fd); /* nothing of ours is in it */
    link->yielded.fd = -1;
}

void chempi_tcp_link_forget_attempt(struct chempi_tcp_link *link)
{
    chempi_tcp_proof_fini(&link->attempt->proof);
    free(link->attempt);
    link->attempt = NULL;
}

void chempi_tcp_link_cancel(struct chempi_tcp_link *link)
{
    chempi_tcp_link_drop_yielded(link);
    chempi_tcp_link_put_off(link);
}

void chempi_tcp_link_put_off(struct chempi_tcp_link *link)
{
    if (!link->attempt)
        return;
    chempi_tcp_link_forget_attempt(link);
    chempi_tcp_link_close_fd(link);
    link->state = CHEMPI_TCP_IDLE;
}

/* ---- life ------------------------------------------------------------ */

bool chempi_tcp_link_is_written(const struct chempi_tcp_link *link)
{
    return link->out.head == link->out.tail && !link->current.tx &&
           !chempi_tcp_sealed_is_pending(link) && !link->whole &&
           chempi_list_is_empty(&link->rndv.pumping);
}

void chempi_tcp_link_done(struct chempi_tcp_dev *dev, struct chempi_tx *tx,
                          int status)
{
    tx->priv[CHEMPI_TCP_TX_STATUS] = (uint64_t)(int64_t)status;
    tx->priv[CHEMPI_TCP_TX_IS_DONE] = 1;
    chempi_list_append(&dev->done, &tx->link);
    dev->has_work = true;
}

/* T10, after chempi_tcp_work(), of an UP link. */
static bool is_room_untold(const struct chempi_tcp_link *link)
{
    return link->has_refused && chempi_list_is_empty(&link->ep->room_link) &&
           (chempi_tcp_link_is_written(link) || !link->ep->is_starved);
}

const char *chempi_tcp_link_check(const struct chempi_tcp_link *link)
{
    const bool has_fd = link->item.fd >= 0;

    if (chempi_tcp_is_open(link) != has_fd && link->state != CHEMPI_TCP_DIALING)
        return "tcp T1: a descriptor without a use, or none";
    if (has_fd != (link->item.slot != 0))
        return "tcp T1: a descriptor that nobody watches";
    if ((link->attempt != NULL) != (link->state == CHEMPI_TCP_DIALING))
        return "tcp T2: an attempt to connect in another state";
    if (link->yielded.fd >= 0 && !link->attempt &&
        chempi_list_is_empty(&link->flush_link))
        return "tcp T11: a call that yields to no other one";
    if (link->ep->is_lost && link->state == CHEMPI_TCP_UP)
        return "tcp T6: a process that is lost is written to";
    if (link->state == CHEMPI_TCP_MUTE &&
        chempi_list_is_empty(&link->ep->broken_link))
        return "tcp T6: nobody reads to its end what is not written any more";
    if (link->state == CHEMPI_TCP_UP && !chempi_tcp_link_is_written(link) &&
        !link->is_blocked && chempi_list_is_empty(&link->flush_link))
        return "tcp T5: output that nobody will write";
    if (chempi_tcp_dev_of(link)->unread.link == link &&
        chempi_list_is_empty(&link->left_link))
        return "tcp T7: input that nobody will ask for";
    if (link->state == CHEMPI_TCP_UP && is_room_untold(link))
        return "tcp T10: room that nobody will tell of";
    return NULL;
}

void chempi_tcp_link_heat(struct chempi_tcp_link *link)
{
    struct chempi_tcp_dev *dev = chempi_tcp_dev_of(link);

    if (dev->hot[0] == link)
        return;
    dev->hot[1] = dev->hot[0];
    dev->hot[0] = link;
}

void chempi_tcp_link_owe_room(struct chempi_tcp_ep *ep)
{
    struct chempi_tcp_dev *dev = (struct chempi_tcp_dev *)(void *)ep->ep.dev;

    if (!ep->is_starved || !chempi_list_is_empty(&ep->room_link))
        return;
    chempi_list_append(&dev->room, &ep->room_link);
    dev->has_work = true;
}

void chempi_tcp_link_owe_flush(struct chempi_tcp_link *link)
{
    struct chempi_tcp_dev *dev = chempi_tcp_dev_of(link);

    if (chempi_list_is_empty(&link->flush_link))
        chempi_list_append(&dev->flush, &link->flush_link);
    dev->has_work = true;
}

void chempi_tcp_link_close_fd(struct chempi_tcp_link *link)
{
    struct chempi_tcp_dev *dev = chempi_tcp_dev_of(link);

    for (size_t i = 0; i < CHEMPI_TCP_HOT_MAX; i++) {
        if (dev->hot[i] == link)
            dev->hot[i] = NULL;
    }
    if (dev->unread.link == link)
        dev->unread.link = NULL;
    chempi_list_remove(&link->left_link);
    chempi_list_remove(&link->flush_link);
    chempi_tcp_sealed_close(link);
    if (link->item.fd < 0)
        return;
    chempi_pollset_remove(dev->dev.params.services->pollset, &link->item);
    (void)close(link->item.fd); /* what mattered has been said before */
    link->item.fd = -1;
}

void chempi_tcp_link_owe_reap(struct chempi_tcp_ep *ep)
{
    struct chempi_tcp_dev *dev = (struct chempi_tcp_dev *)(void *)ep->ep.dev;

    chempi_list_remove(&ep->broken_link);
    chempi_list_append(&dev->broken, &ep->broken_link);
    dev->has_work = true;
}

/* Nothing more comes or goes here, and not because it has ended in order. */
static void put_down(struct chempi_tcp_link *link)
{
    if (link->state >= CHEMPI_TCP_ENDED)
        return;
    chempi_tcp_link_cancel(link);
    chempi_tcp_link_close_fd(link);
    link->state = CHEMPI_TCP_BROKEN;
}

/* Nothing more comes or goes here. */
static void end_link(struct chempi_tcp_link *link)
{
    chempi_tcp_link_close_fd(link);
    link->state = CHEMPI_TCP_ENDED;
    chempi_tcp_link_owe_reap(link->ep);
}

/* May its WELCOME, and what follows, be there, or on its way? */
static bool may_be_welcome(const struct chempi_tcp_link *link)
{
    return link->state == CHEMPI_TCP_DIALING && link->item.slot &&
           link->attempt->step == CHEMPI_TCP_STEP_VERDICT;
}

void chempi_tcp_link_lose(struct chempi_tcp_ep *ep, int status, const char *why)
{
    if (ep->status)
        return; /* the first reason counts */
    ep->status = status;
    ep->is_lost = true;
    (void)snprintf(ep->why, sizeof(ep->why), "%s", why);
    (void)chempi_err_set(&ep->ep.dev->err, status, "%s", why);
    for (uint32_t i = 0; i < ep->link_count; i++) {
        struct chempi_tcp_link *link = ep->links[i];

        if (link->state == CHEMPI_TCP_UP)
            link->state = CHEMPI_TCP_MUTE; /* T6 */
        else if (link->state != CHEMPI_TCP_MUTE && !may_be_welcome(link))
            put_down(link);
    }
}

void chempi_tcp_link_break(struct chempi_tcp_link *link, int status,
                           const char *fmt, ...)
{
    struct chempi_tcp_ep *ep = link->ep;
    char why[CHEMPI_TCP_WHY_MAX];
    va_list args;

    if (link->state >= CHEMPI_TCP_ENDED)
        return; /* the first reason counts */
    if (ep->status) {
        chempi_tcp_link_cancel(link);
        end_link(link); /* it has said BYE on another link, or is lost */
        return;
    }
    va_start(args, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    if (link->state != CHEMPI_TCP_MUTE)
        put_down(link);
    chempi_tcp_link_lose(ep, status, why);
    chempi_tcp_link_owe_reap(ep);
}

void chempi_tcp_link_end_all(const struct chempi_tcp_ep *ep)
{
    for (uint32_t i = 0; i < ep->link_count; i++)
        if (ep->is_lost)
            put_down(ep->links[i]);
        else /* it has said BYE on another one */
            chempi_tcp_link_break(ep->links[i], ep->status, "%s", ep->why);
}

void chempi_tcp_link_fail(struct chempi_tcp_link *link, int status)
{
    char name[CHEMPI_TCP_WHY_MAX];

    (void)chempi_tcp_link_name(link, name);
    if (status == 0)
        chempi_tcp_link_break(link, -ECONNRESET, "connection closed by %s",
                              name);
    else if (status == -ECONNRESET || status == -EPIPE)
        chempi_tcp_link_break(link, status, "connection reset by %s", name);
    else
        chempi_tcp_link_break(link, status, "connection to %s failed: %s", name,
                              chempi_err_name(status));
}

/* Who has said BYE on another link has nothing more to say on this one. With
 * several links nothing is known of what the others may still bring. */
void chempi_tcp_link_mute(struct chempi_tcp_link *link, int status)
{
    struct chempi_tcp_ep *ep = link->ep;

    if (!ep->status) {
        link->state = CHEMPI_TCP_MUTE;
        (void)shutdown(link->item.fd, SHUT_RD); /* what has come ends so */
        ep->is_unread =
            ep->link_count == 1 && (status == -ECONNRESET || status == -EPIPE);
    }
    chempi_tcp_link_fail(link, status);
}

void chempi_tcp_link_end(struct chempi_tcp_link *link)
{
    struct chempi_tcp_ep *ep = link->ep;
    char who[CHEMPI_TCP_WHO_MAX];

    if (!chempi_tcp_is_open(link))
        return;
    if (ep->is_unread) { /* it has ended in order, and a write told it first */
        ep->is_lost = ep->is_unread = false;
        ep->status = 0;
    }
    if (!ep->status) {
        ep->status = -EPIPE;
        (void)snprintf(ep->why, sizeof(ep->why), "%s has already finished",
                       chempi_tcp_tie_words(ep->ep.dev->params.services,
                                            ep->ep.proc, who));
        ep->has_finished = ep->ep.dev->params.services->bonds != NULL;
    }
    end_link(link);
}

static void reap_link(struct chempi_tcp_link *link, int status)
{
    struct chempi_tcp_dev *dev = chempi_tcp_dev_of(link);
    const struct chempi_sink *sink = dev->dev.params.sink;
    struct chempi_rx *rx = link->rx_xfer ? NULL : link->rx;

    if (link->current.tx && !link->current.xfer)
        chempi_tcp_link_done(dev, link->current.tx, status);
    link->current.tx = NULL;
    if (link->whole)
        chempi_tcp_link_done(dev, link->whole, status);
    link->whole = NULL;
    link->rx = NULL;
    if (rx)
        sink->delivered(dev->dev.params.sink_arg, rx, status);
    chempi_rndv_fail(&link->rndv, status);
}

void chempi_tcp_link_reap(struct chempi_tcp_ep *ep)
{
    for (uint32_t i = 0; i < ep->link_count; i++)
        if (ep->links[i]->state >= CHEMPI_TCP_ENDED)
            reap_link(ep->links[i], ep->status);
    chempi_tcp_link_owe_room(ep); /* who comes again hears of it (T10) */
}
