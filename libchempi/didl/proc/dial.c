/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calling a port. All of its addresses are tried at once, as one may lead
 * nowhere, or to a process that only has the same address as the owner. An
 * attempt walks
 *
 *   CALL    the kernel connects; then our first message is written
 *   REPLY   the owner's answer is awaited, for as long as it computes
 *
 * The first one that is answered by who has the port's key is taken, and all
 * others are ended before the last message of the handshake leaves: so the
 * owner never accepts one that is not used. One that the owner has ended for
 * want of a place is made again, CHEMPI_DIAL_AGAIN times.
 *
 * An address that refuses tells that the port is closed; one of this machine,
 * which the owner's may have, too, only if all are. Who is silent at an address
 * of this machine is somebody else then, and has CHEMPI_SET_MEET_PATIENCE to
 * answer; at another one it may be the owner, who computes.
 */
#define _GNU_SOURCE /* SOCK_NONBLOCK */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/proc/hands.h"
#include "libchempi/didl/proc/internal.h"
#include "libchempi/didl/proc/port.h"
#include "libchempi/didl/proc/port_name.h"

#define CHEMPI_DIAL_AGAIN 8u

struct attempt {
    struct chempi_poll_item item; /* fd -1: it has failed */
    struct dial *dial;
    struct chempi_hands hands;
    const struct chempi_address *address;
    bool is_here;      /* an address of this machine */
    bool is_connected; /* REPLY */
    unsigned again;
};

struct dial {
    struct chempi_exchange *exchange;
    struct chempi_port_name name;
    struct chempi_keys *keys;
    struct chempi_poll_item timer; /* ticks when patience with who is silent
                                      is over, once somebody has refused */
    bool is_refused;
    bool is_all_here;
    int code; /* why an attempt has failed */
    char where[CHEMPI_ADDRESS_TEXT];
    struct attempt attempts[CHEMPI_PORT_ADDRESSES_MAX];
};

static void hang_up(struct attempt *a)
{
    chempi_pollset_remove(chempi_exchange_pollset(), &a->item);
    if (a->item.fd >= 0)
        (void)close(a->item.fd); /* nothing was agreed on it */
    a->item.fd = -1;
    chempi_hands_fini(&a->hands);
}

static void end_dial(void *making)
{
    struct dial *dial = making;

    for (uint32_t i = 0; i < dial->name.count; i++)
        hang_up(&dial->attempts[i]);
    chempi_pollset_untick(chempi_exchange_pollset(), &dial->timer);
    chempi_hands_forget_keys(dial->keys);
    sodium_memzero(&dial->name, sizeof(dial->name));
    free(dial);
}

/* Who answers has the port's key. */
static int is_owner(void *arg, const uint8_t *key, struct chempi_err *err)
{
    const struct dial *dial = arg;

    return sodium_memcmp(key, dial->name.key, sizeof(dial->name.key)) == 0
               ? 0
               : chempi_err_set(err, -EACCES, "it has another key");
}

/* The port seems to be closed: who is silent has so long from now on. */
static void note_refusal(struct dial *dial)
{
    const uint64_t limit_ms = chempi_setting(CHEMPI_SET_MEET_PATIENCE);

    if (!dial->is_refused)
        chempi_pollset_pace(&dial->timer, (long)(limit_ms * CHEMPI_NS_PER_MS));
    dial->is_refused = true;
}

static void note_failure(struct attempt *a, int code)
{
    struct dial *dial = a->dial;

    hang_up(a);
    if ((code == -ECONNREFUSED || code == -ECONNRESET) &&
        (!a->is_here || dial->is_all_here))
        note_refusal(dial);
    /* That somebody was there says more than that nobody was. */
    if (!dial->code || code == -EACCES) {
        dial->code = code;
        (void)chempi_address_format(a->address, dial->where);
    }
}

/* If no attempt is left, the call has failed. */
static void conclude(struct dial *dial)
{
    for (uint32_t i = 0; i < dial->name.count; i++)
        if (dial->attempts[i].item.fd >= 0)
            return;
    if (dial->code == -EACCES || dial->code == -EPROTO)
        chempi_exchange_lose(dial->exchange, -ECONNREFUSED,
                             "who answers at %s is not the port's owner",
                             dial->where);
    else if (dial->code == -ECONNREFUSED || dial->code == -ECONNRESET)
        chempi_exchange_lose(dial->exchange, -ECONNREFUSED,
                             "nobody listens at %s: the port is closed, or its "
                             "owner has ended",
                             dial->where);
    else
        chempi_exchange_lose(dial->exchange, dial->code,
                             "cannot call the port at %s: %s", dial->where,
                             chempi_err_name(dial->code));
}

static void give_up(struct attempt *a, int code)
{
    note_failure(a, code);
    conclude(a->dial);
}

static void ticked(struct chempi_poll_item *item, uint32_t events)
{
    struct dial *dial = CHEMPI_CONTAINER_OF(item, struct dial, timer);

    chempi_pollset_ticked(item, events);
    for (uint32_t i = 0; i < dial->name.count; i++)
        if (dial->attempts[i].is_here)
            hang_up(&dial->attempts[i]);
    conclude(dial);
}

static void attempt_ready(struct chempi_poll_item *item, uint32_t events);

/* 0 or -errno; a descriptor that was opened stays in a->item. */
static int call(struct attempt *a)
{
    struct dial *dial = a->dial;
    int rc;

    a->is_connected = false;
    a->item = (struct chempi_poll_item){
        .fd = chempi_sys->socket(a->address->u.sa.sa_family,
                                 SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
        .ready = attempt_ready};
    if (a->item.fd < 0)
        return -errno;
    chempi_exchange_set_options(a->item.fd);
    rc = chempi_hands_begin(&a->hands, true, dial->keys, CHEMPI_HANDS_PORT,
                            is_owner, dial);
    if (rc)
        return rc;
    if (chempi_sys->connect(a->item.fd, &a->address->u.sa,
                            chempi_address_len(a->address)) < 0 &&
        errno != EINPROGRESS && errno != EINTR)
        return -errno;
    return chempi_pollset_add(chempi_exchange_pollset(), &a->item,
                              EPOLLIN | EPOLLOUT);
}

/* It is the owner: this connection is it. */
static void take(struct attempt *a)
{
    struct dial *dial = a->dial;
    struct chempi_seal *seal;
    int fd;

    for (uint32_t i = 0; i < dial->name.count; i++)
        if (&dial->attempts[i] != a)
            hang_up(&dial->attempts[i]);
    seal = chempi_hands_seal(&a->hands);
    if (!seal) {
        give_up(a, -ENOMEM);
        return;
    }
    if (chempi_hands_write(&a->hands, a->item.fd) != 1) {
        chempi_seal_destroy(seal);
        give_up(a, -ECONNRESET); /* an empty socket takes a few bytes */
        return;
    }
    chempi_pollset_remove(chempi_exchange_pollset(), &a->item);
    fd = a->item.fd;
    a->item.fd = -1;
    chempi_exchange_open(dial->exchange, fd, false, seal);
}

static int write_first(struct attempt *a)
{
    int failed = 0;
    socklen_t len = sizeof(failed);
    int rc;

    if (getsockopt(a->item.fd, SOL_SOCKET, SO_ERROR, &failed, &len) == 0 &&
        failed)
        return -failed;
    rc = chempi_hands_write(&a->hands, a->item.fd);
    if (rc == -ENOTCONN)
        return 0;
    if (rc == 1) {
        a->is_connected = true;
        return chempi_pollset_modify(chempi_exchange_pollset(), &a->item,
                                     EPOLLIN);
    }
    return rc;
}

static void attempt_ready(struct chempi_poll_item *item, uint32_t events)
{
    struct attempt *a = CHEMPI_CONTAINER_OF(item, struct attempt, item);
    int rc;

    (void)events; /* errors show in writing and reading */
    if (!a->is_connected) {
        rc = write_first(a);
    } else {
        rc = chempi_hands_read(&a->hands, a->item.fd);
        if (rc == 1) {
            take(a);
            return;
        }
    }
    if (rc == -ECONNRESET && a->is_connected && a->again < CHEMPI_DIAL_AGAIN) {
        a->again++;
        hang_up(a);
        rc = call(a);
    }
    if (rc < 0)
        give_up(a, rc);
}

static bool is_same_host(const struct chempi_address *a,
                         const struct chempi_address *b)
{
    return a->u.sa.sa_family == b->u.sa.sa_family &&
           memcmp(chempi_address_bytes(a), chempi_address_bytes(b),
                  a->u.sa.sa_family == AF_INET6 ? 16 : 4) == 0;
}

/* Which addresses are of this machine; what is not known is of others. */
static void find_here(struct dial *dial)
{
    struct chempi_interface mine[CHEMPI_ADDRESS_INTERFACES_MAX];
    const int count = chempi_address_local(mine);

    dial->is_all_here = true;
    for (uint32_t i = 0; i < dial->name.count; i++) {
        struct attempt *a = &dial->attempts[i];

        a->is_here = chempi_address_is_loopback(a->address);
        for (int k = 0; k < count && !a->is_here; k++)
            a->is_here = is_same_host(a->address, &mine[k].address);
        dial->is_all_here &= a->is_here;
    }
}

static int open_dial(struct dial *dial, const char *name)
{
    int rc;

    dial->timer.fd = -1;
    for (uint32_t i = 0; i < CHEMPI_PORT_ADDRESSES_MAX; i++)
        dial->attempts[i] = (struct attempt){
            .item.fd = -1, .dial = dial, .address = &dial->name.addresses[i]};
    rc = chempi_port_name_read(name, &dial->name);
    if (!rc)
        rc = chempi_pollset_tick(chempi_exchange_pollset(), &dial->timer,
                                 ticked, 0);
    if (rc)
        return rc;
    dial->keys = chempi_hands_make_keys(dial->name.token);
    find_here(dial);
    return dial->keys ? 0 : -ENOMEM;
}

int chempi_port_connect(const char *name, struct chempi_exchange **out,
                        struct chempi_err *err)
{
    struct dial *dial = chempi_sys->calloc(1, sizeof(*dial));
    struct chempi_exchange *x = chempi_exchange_create();
    int rc = -ENOMEM;

    if (dial && x) {
        dial->exchange = x;
        x->making = dial;
        x->end_making = end_dial;
        rc = open_dial(dial, name);
    } else {
        free(dial);
    }
    if (rc) {
        chempi_exchange_close(x);
        return rc == -EINVAL
                   ? chempi_err_set(err, rc,
                                    "that is no name of a port of this library")
                   : chempi_err_set(err, rc, "cannot call a port: %s",
                                    chempi_err_name(rc));
    }
    for (uint32_t i = 0; i < dial->name.count; i++) {
        const int code = call(&dial->attempts[i]);

        if (code)
            note_failure(&dial->attempts[i], code);
    }
    conclude(dial);
    *out = x;
    return 0;
}
