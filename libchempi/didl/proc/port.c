/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports; see port.h. Who connects is a guest until the handshake has proven
 * that it has the port's name: it gets no answer before its first message is
 * right, nothing but that handshake is read of it, and it loses its place after
 * CHEMPI_PORT_GUEST_S. Then it is a caller, and waits to be accepted.
 *
 *   O1  a port has at most CHEMPI_PORT_GUESTS_MAX guests; one more makes the
 *       oldest go that has not shown the token. If all have, nobody is let in.
 *       A first message that was seen before does not show it
 *   O2  a port has at most CHEMPI_PORT_CALLERS_MAX callers, and no accept that
 *       waits while it has any
 *   O3  who is not let in waits in the system's queue: the listener is in the
 *       pollset exactly while is_open
 *   O4  the timer ticks while there are guests, or is_open is false. It is had
 *       with the port: where no descriptor is left, it is what tries again
 */
#define _GNU_SOURCE /* SOCK_NONBLOCK, accept4 */
#include "libchempi/didl/proc/port.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/auth/auth.h"
#include "common/base/clock.h"
#include "common/base/number.h"
#include "common/base/sys.h"
#include "common/fd/descriptors.h"
#include "common/fd/file.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/proc/hands.h"
#include "libchempi/didl/proc/internal.h"
#include "libchempi/didl/proc/port_name.h"

#define CHEMPI_PORT_GUESTS_MAX 64u
#define CHEMPI_PORT_CALLERS_MAX 256u
#define CHEMPI_PORT_GUEST_S 5u /* a guest that says nothing leaves after */
#define BACKLOG 4096           /* cut to the system's limit */
#define ACCEPT_MAX 32          /* connections taken in one go */
#define TICK_NS 500000000L     /* how often guests are looked at */

struct guest {
    struct chempi_poll_item item;
    struct chempi_list link; /* in port->guests or port->callers */
    struct port *port;
    struct chempi_hands hands;
    struct chempi_seal *seal; /* of a caller */
    uint64_t since_ns;
};

struct port {
    struct chempi_list link;
    struct chempi_poll_item listener;
    bool is_open;
    struct chempi_poll_item timer;
    bool is_ticking;
    struct chempi_keys *keys;
    struct chempi_hands_seen seen;
    struct chempi_list guests; /* oldest first */
    uint32_t guest_count;
    struct chempi_list callers; /* the same */
    uint32_t caller_count;
    struct chempi_list accepts; /* chempi_exchange.link, the same */
    char name[CHEMPI_PORT_NAME_MAX];
};

static struct chempi_list ports = {&ports, &ports};

static struct guest *guest_of(struct chempi_list *link)
{
    return CHEMPI_CONTAINER_OF(link, struct guest, link);
}

static struct port *port_of(struct chempi_list *link)
{
    return CHEMPI_CONTAINER_OF(link, struct port, link);
}

/* ---- the timer ------------------------------------------------------- */

static void ticked(struct chempi_poll_item *item, uint32_t events);

static void set_timer(struct port *p)
{
    const bool is_ticking = p->guest_count > 0 || !p->is_open;

    if (is_ticking != p->is_ticking)
        chempi_pollset_pace(&p->timer, is_ticking ? TICK_NS : 0);
    p->is_ticking = is_ticking;
}

static void let_in(struct port *p, bool is_open)
{
    struct chempi_pollset *set = chempi_exchange_pollset();

    if (is_open && !p->is_open)
        p->is_open = chempi_pollset_add(set, &p->listener, EPOLLIN) == 0;
    else if (!is_open && p->is_open)
        chempi_pollset_remove(set, &p->listener);
    p->is_open = p->is_open && is_open;
    set_timer(p);
}

/* ---- guests and callers ---------------------------------------------- */

static void drop(struct guest *g)
{
    chempi_pollset_remove(chempi_exchange_pollset(), &g->item);
    if (g->item.fd >= 0)
        (void)close(g->item.fd); /* nothing of ours is in it */
    chempi_list_remove(&g->link);
    chempi_hands_fini(&g->hands);
    chempi_seal_destroy(g->seal);
    free(g);
}

static void drop_guest(struct guest *g)
{
    struct port *p = g->port;

    p->guest_count--;
    drop(g);
    set_timer(p);
}

static void drop_caller(struct guest *g)
{
    g->port->caller_count--;
    drop(g);
}

/* The first caller and the first accept find each other. */
static void match(struct port *p)
{
    while (!chempi_list_is_empty(&p->callers) &&
           !chempi_list_is_empty(&p->accepts)) {
        struct guest *g = guest_of(chempi_list_first(&p->callers));
        struct chempi_exchange *x = CHEMPI_CONTAINER_OF(
            chempi_list_first(&p->accepts), struct chempi_exchange, link);
        struct chempi_seal *seal = g->seal;
        const int fd = g->item.fd;

        chempi_pollset_remove(chempi_exchange_pollset(), &g->item);
        g->item.fd = -1;
        g->seal = NULL;
        drop_caller(g);
        chempi_exchange_open(x, fd, true, seal);
    }
    if (p->caller_count < CHEMPI_PORT_CALLERS_MAX)
        let_in(p, true);
}

/* It has hung up while it waited. */
static void caller_ready(struct chempi_poll_item *item, uint32_t events)
{
    struct guest *g = CHEMPI_CONTAINER_OF(item, struct guest, item);
    struct port *p = g->port;

    (void)events; /* RDHUP, and errors */
    drop_caller(g);
    match(p);
}

static void make_caller(struct guest *g)
{
    struct port *p = g->port;

    g->seal = chempi_hands_seal(&g->hands);
    g->item.ready = caller_ready;
    if (!g->seal || chempi_pollset_modify(chempi_exchange_pollset(), &g->item,
                                          EPOLLRDHUP) != 0) {
        drop_guest(g); /* it calls again */
        return;
    }
    chempi_exchange_set_options(g->item.fd);
    chempi_list_remove(&g->link);
    chempi_list_append(&p->callers, &g->link);
    p->guest_count--;
    p->caller_count++;
    if (p->caller_count == CHEMPI_PORT_CALLERS_MAX)
        let_in(p, false);
    match(p);
}

/* Take what it says, as far as it is here. False: it is no guest any more. */
static bool hear(struct guest *g)
{
    int rc = 1;

    while (rc == 1 && !g->hands.is_over) {
        rc = chempi_hands_read(&g->hands, g->item.fd);
        if (rc == 1)
            rc = chempi_hands_write(&g->hands, g->item.fd);
        else if (rc == 0)
            return true;
    }
    if (rc == 1)
        make_caller(g);
    else
        drop_guest(g); /* an empty socket takes a few bytes */
    return false;
}

static void guest_ready(struct chempi_poll_item *item, uint32_t events)
{
    (void)events; /* errors show in reading */
    (void)hear(CHEMPI_CONTAINER_OF(item, struct guest, item));
}

static bool has_shown_token(const struct guest *g)
{
    return g->hands.shake.noise.message > 0;
}

/* A place for one more (O1). */
static bool make_place(struct port *p)
{
    struct chempi_list *l = p->guests.next;

    if (p->guest_count < CHEMPI_PORT_GUESTS_MAX)
        return true;
    while (l != &p->guests && has_shown_token(guest_of(l)))
        l = l->next;
    if (l == &p->guests)
        return false;
    drop_guest(guest_of(l));
    return true;
}

static void ticked(struct chempi_poll_item *item, uint32_t events)
{
    struct port *p = CHEMPI_CONTAINER_OF(item, struct port, timer);
    const uint64_t now = chempi_clock_ns();
    struct chempi_list *l = p->guests.next;

    chempi_pollset_ticked(item, events);
    while (l != &p->guests) {
        struct guest *g = guest_of(l);

        l = l->next;
        /* This process may not have looked for as long as that. */
        if (now - g->since_ns >= CHEMPI_PORT_GUEST_S * CHEMPI_NS_PER_S &&
            hear(g))
            drop_guest(g);
    }
    match(p);
}

/* ---- accepting ------------------------------------------------------- */

static bool add_guest(struct port *p, int fd)
{
    struct guest *g = chempi_sys->calloc(1, sizeof(*g));

    if (!g) {
        (void)close(fd); /* it calls again */
        return false;
    }
    g->item = (struct chempi_poll_item){.fd = fd, .ready = guest_ready};
    g->port = p;
    g->since_ns = chempi_clock_ns();
    chempi_list_append(&p->guests, &g->link);
    p->guest_count++;
    if (chempi_hands_begin(&g->hands, false, p->keys, CHEMPI_HANDS_PORT, NULL,
                           NULL) != 0 ||
        chempi_pollset_add(chempi_exchange_pollset(), &g->item, EPOLLIN) != 0) {
        drop_guest(g);
        return true;
    }
    g->hands.seen = &p->seen;
    (void)hear(g);
    return true;
}

/* The next descriptor: the last ones are not for strangers. */
static bool has_spare(const struct port *p)
{
    const int fd = fcntl(p->listener.fd, F_DUPFD_CLOEXEC, 0);
    const bool has = fd >= 0 && chempi_descriptors_are_spare(
                                    fd, chempi_ctx.services.proc_count);

    chempi_file_close(fd);
    return has;
}

/* False: there is nobody more, or not now. */
static bool accept_one(struct port *p)
{
    int fd;

    if (!make_place(p) || !has_spare(p)) {
        let_in(p, false);
        return false;
    }
    fd = chempi_sys->accept4(p->listener.fd, NULL, NULL,
                             SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        return add_guest(p, fd);
    if (errno == EINTR || errno == ECONNABORTED)
        return true;
    if (errno != EAGAIN)
        let_in(p, false); /* no descriptor left, say: at the next tick */
    return false;
}

static void listener_ready(struct chempi_poll_item *item, uint32_t events)
{
    struct port *p = CHEMPI_CONTAINER_OF(item, struct port, listener);

    (void)events; /* a listener has only one */
    for (int i = 0; i < ACCEPT_MAX && p->is_open && accept_one(p); i++)
        continue;
    set_timer(p);
}

/* ---- opening --------------------------------------------------------- */

static int listen_at(struct port *p, struct chempi_address *a)
{
    socklen_t len = chempi_address_len(a);
    const int on = 1;
    const int off = 0;
    int fd = chempi_sys->socket(a->u.sa.sa_family,
                                SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc;

    if (fd < 0)
        return -errno;
    if (a->u.sa.sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off,
                         sizeof(off)); /* else IPv6 alone must do */
    if (chempi_address_port(a))        /* the last owner's connections linger */
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (chempi_sys->bind(fd, &a->u.sa, len) < 0 ||
        chempi_sys->listen(fd, BACKLOG) < 0 ||
        getsockname(fd, &a->u.sa, &len) < 0) {
        rc = -errno;
        (void)close(fd); /* never used */
        return rc;
    }
    p->listener = (struct chempi_poll_item){.fd = fd, .ready = listener_ready};
    return 0;
}

static int listen_any(struct port *p, uint16_t port, struct chempi_address *a)
{
    int rc;

    *a = (struct chempi_address){.u.in6.sin6_family = AF_INET6};
    chempi_address_set_port(a, port);
    rc = listen_at(p, a);
    if (rc != -EAFNOSUPPORT && rc != -EADDRNOTAVAIL)
        return rc;
    *a = (struct chempi_address){.u.in.sin_family = AF_INET};
    chempi_address_set_port(a, port);
    return listen_at(p, a);
}

static bool is_unspecified(const struct chempi_address *a)
{
    return sodium_is_zero(chempi_address_bytes(a),
                          a->u.sa.sa_family == AF_INET6 ? 16 : 4);
}

/* Addresses of this machine, those of the loopback last: they lead here from
 * this host only. */
static int list_addresses(const struct chempi_address *at,
                          struct chempi_port_name *name)
{
    struct chempi_interface mine[CHEMPI_ADDRESS_INTERFACES_MAX];
    const int count = chempi_address_local(mine);

    for (int i = 0; i < 2 * count; i++) {
        const struct chempi_address *a = &mine[i % count].address;

        if (chempi_address_is_loopback(a) != (i >= count) ||
            chempi_address_is_link_local(a) ||
            (at->u.sa.sa_family == AF_INET && a->u.sa.sa_family == AF_INET6) ||
            name->count == CHEMPI_PORT_ADDRESSES_MAX)
            continue;
        name->addresses[name->count] = *a;
        chempi_address_set_port(&name->addresses[name->count++],
                                chempi_address_port(at));
    }
    return count < 0 ? count : name->count ? 0 : -EADDRNOTAVAIL;
}

static int read_port(const char *text, uint16_t *out, struct chempi_err *err)
{
    uint32_t port = 0; /* any */

    if (text && !chempi_number_parse32(text, 1, UINT16_MAX, &port))
        return chempi_err_set(err, -EINVAL,
                              "'%.64s' is no port number (info key ip_port): "
                              "1 to 65535",
                              text);
    *out = (uint16_t)port;
    return 0;
}

static int listen_where(struct port *p, const char *ip_port,
                        const char *ip_address, struct chempi_port_name *name,
                        struct chempi_err *err)
{
    struct chempi_address a;
    uint16_t port = 0;
    int rc = read_port(ip_port, &port, err);

    if (rc)
        return rc;
    if (ip_address && (chempi_address_parse(ip_address, &a) != 0 ||
                       chempi_address_is_link_local(&a)))
        return chempi_err_set(err, -EINVAL,
                              "'%.64s' is no IPv4 or IPv6 address that leads "
                              "here from other hosts (info key ip_address)",
                              ip_address);
    if (ip_address) {
        chempi_address_set_port(&a, port);
        rc = listen_at(p, &a);
    } else {
        rc = listen_any(p, port, &a);
    }
    if (!rc && ip_address && !is_unspecified(&a)) {
        name->addresses[0] = a;
        name->count = 1;
    } else if (!rc) {
        rc = list_addresses(&a, name);
    }
    return rc ? chempi_err_set(err, rc, "cannot listen on %.64s port %s: %s",
                               ip_address ? ip_address : "any address,",
                               ip_port ? ip_port : "(any)", chempi_err_name(rc))
              : 0;
}

static void destroy(struct port *p)
{
    struct chempi_pollset *set = chempi_exchange_pollset();

    chempi_list_remove(&p->link);
    while (!chempi_list_is_empty(&p->accepts))
        chempi_exchange_lose(CHEMPI_CONTAINER_OF(chempi_list_first(&p->accepts),
                                                 struct chempi_exchange, link),
                             -ECANCELED, "the port has been closed");
    while (!chempi_list_is_empty(&p->guests))
        drop(guest_of(chempi_list_first(&p->guests)));
    while (!chempi_list_is_empty(&p->callers))
        drop(guest_of(chempi_list_first(&p->callers)));
    chempi_pollset_untick(set, &p->timer);
    chempi_pollset_remove(set, &p->listener);
    if (p->listener.fd >= 0)
        (void)close(p->listener.fd); /* nothing is written there */
    chempi_hands_forget_keys(p->keys);
    sodium_memzero(p->name, sizeof(p->name));
    free(p);
}

/* O4 */
static int watch(struct port *p, struct chempi_err *err)
{
    int rc = chempi_pollset_tick(chempi_exchange_pollset(), &p->timer, ticked,
                                 TICK_NS);

    p->is_ticking = true;
    if (!rc) {
        let_in(p, true);
        rc = p->is_open ? 0 : -ENOMEM;
    }
    return rc ? chempi_err_set(err, rc, "cannot wait for callers of a port: %s",
                               chempi_err_name(rc))
              : 0;
}

int chempi_port_open(const char *ip_port, const char *ip_address,
                     char name[CHEMPI_PORT_NAME_MAX], struct chempi_err *err)
{
    struct chempi_port_name parts = {.count = 0};
    struct port *p = chempi_sys->calloc(1, sizeof(*p));
    int rc;

    if (!p)
        return chempi_err_set(err, -ENOMEM, "out of memory for a port");
    p->listener.fd = -1;
    p->timer.fd = -1;
    chempi_list_init(&p->link);
    chempi_list_init(&p->guests);
    chempi_list_init(&p->callers);
    chempi_list_init(&p->accepts);
    rc = chempi_auth_make_key(parts.token);
    if (!rc)
        p->keys = chempi_hands_make_keys(parts.token);
    if (!rc && !p->keys)
        rc = -ENOMEM;
    if (rc)
        (void)chempi_err_set(err, rc, "cannot make the keys of a port: %s",
                             chempi_err_name(rc));
    else
        rc = listen_where(p, ip_port, ip_address, &parts, err);
    if (!rc)
        rc = watch(p, err);
    if (rc) {
        destroy(p);
        return rc;
    }
    memcpy(parts.key, p->keys->node.public, sizeof(parts.key));
    chempi_port_name_write(&parts, p->name);
    memcpy(name, p->name, sizeof(p->name));
    sodium_memzero(&parts, sizeof(parts));
    chempi_list_append(&ports, &p->link);
    return 0;
}

/* ---- what it is for -------------------------------------------------- */

static struct port *find(const char *name, struct chempi_err *err)
{
    CHEMPI_LIST_FOR (l, &ports) {
        if (strcmp(port_of(l)->name, name) == 0)
            return port_of(l);
    }
    (void)chempi_err_set(err, -ENOENT,
                         "this process has opened no port of that name");
    return NULL;
}

int chempi_port_close(const char *name, struct chempi_err *err)
{
    struct port *p = find(name, err);

    if (!p)
        return -ENOENT;
    destroy(p);
    return 0;
}

void chempi_port_close_all(void)
{
    while (!chempi_list_is_empty(&ports))
        destroy(port_of(chempi_list_first(&ports)));
}

int chempi_port_accept(const char *name, struct chempi_exchange **out,
                       struct chempi_err *err)
{
    struct port *p = find(name, err);
    struct chempi_exchange *x;

    if (!p)
        return -ENOENT;
    x = chempi_exchange_create();
    if (!x)
        return chempi_err_set(err, -ENOMEM, "out of memory to accept a caller");
    chempi_list_append(&p->accepts, &x->link);
    match(p);
    *out = x;
    return 0;
}
