/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Being connected to. There is one listener for each network of the
 * description that this node is attached to and tcp serves, on this node's
 * address there, and one on all addresses when there is no description or it
 * leaves some node of the job without a common network.
 *
 * Who connects is a guest until it has proven the job's secret, or that of a
 * bond: it may send a preamble and two messages of fixed length, no byte more
 * is read. Guests are not limited in time, since a peer may start to compute at
 * any point, but in number: the oldest has to go, and tries again if it was one
 * of ours.
 */
#define _GNU_SOURCE /* SOCK_NONBLOCK, accept4 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/sys.h"
#include "common/fd/descriptors.h"
#include "common/fd/file.h"
#include "libchempi/devices/tcp/internal.h"

#define BACKLOG 4096  /* cut to the system's limit */
#define ACCEPT_MAX 32 /* connections taken in one go */

struct chempi_tcp_guest {
    struct chempi_poll_item item;
    struct chempi_list link; /* in dev->guests */
    struct chempi_tcp_dev *dev;
    struct chempi_address address;
    struct chempi_tcp_proof proof;
    bool is_greeted; /* the preamble was right; now the authentication */
    bool is_proven;  /* and waits for memory to be admitted */
    struct chempi_shortage shortage;
    uint32_t from;
    uint32_t network;
    size_t in_len;
    size_t in_need;
    uint8_t in[CHEMPI_TCP_PROOF_MAX];
};

static_assert(sizeof(struct chempi_tcp_preamble) <= CHEMPI_TCP_PROOF_MAX,
              "a preamble fits");

/* ---- guests ---------------------------------------------------------- */

static void close_guest(struct chempi_tcp_guest *guest)
{
    chempi_pollset_remove(guest->dev->dev.params.services->pollset,
                          &guest->item);
    if (guest->item.fd >= 0)
        (void)close(guest->item.fd); /* nothing of ours is in it */
    chempi_list_remove(&guest->link);
    guest->dev->guest_count--;
    chempi_tcp_proof_fini(&guest->proof);
    free(guest);
}

/* A few bytes into an empty socket go at once or not at all. */
static int say(int fd, const void *bytes, size_t len)
{
    ssize_t n;

    do
        n = chempi_sys->send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    return (size_t)n == len ? 0 : -EIO;
}

static int say_verdict(int fd, enum chempi_tcp_verdict_code code)
{
    struct chempi_tcp_verdict verdict;

    chempi_tcp_wire_put_verdict(&verdict, code);
    return say(fd, &verdict, sizeof(verdict));
}

static void refuse(struct chempi_tcp_guest *guest,
                   enum chempi_tcp_verdict_code code)
{
    (void)say_verdict(guest->item.fd, code); /* it finds out anyway */
    close_guest(guest);
}

/* The link that this guest asks for; 0, -ENOMEM, or it is not for us. */
static int find_link(struct chempi_tcp_guest *guest,
                     struct chempi_tcp_link **out)
{
    struct chempi_tcp_ep *ep;
    int rc = chempi_tcp_endpoint_get(guest->dev, guest->from, &ep, NULL);

    if (rc)
        return rc;
    *out = chempi_tcp_endpoint_link(ep, guest->network);
    return *out ? 0 : -EHOSTUNREACH;
}

/* Whose connection shall it be? WELCOME: this one's. */
static enum chempi_tcp_verdict_code judge(const struct chempi_tcp_guest *guest,
                                          const struct chempi_tcp_link *link)
{
    if (link->state >= CHEMPI_TCP_UP)
        return CHEMPI_TCP_DUPLICATE;
    return link->state == CHEMPI_TCP_DIALING &&
                   chempi_tcp_tie_is_before(guest->dev->dev.params.services,
                                            guest->from)
               ? CHEMPI_TCP_YIELD
               : CHEMPI_TCP_WELCOME;
}

/* The link takes the guest's connection over. */
static void move_in(struct chempi_tcp_guest *guest,
                    struct chempi_tcp_link *link, struct chempi_seal *seal)
{
    int rc = say_verdict(guest->item.fd, CHEMPI_TCP_WELCOME);

    chempi_tcp_link_cancel(link);
    link->peer = guest->address;
    if (rc) { /* it has ended already */
        chempi_seal_destroy(seal);
        chempi_tcp_link_fail(link, rc);
    } else {
        chempi_pollset_hand_over(guest->dev->dev.params.services->pollset,
                                 &guest->item, &link->item);
        chempi_tcp_work_up(link, seal);
    }
    close_guest(guest);
}

/* It has ended, or speaks out of turn: who calls may do so again. */
static void yielded_ready(struct chempi_poll_item *item, uint32_t events)
{
    (void)events;
    chempi_tcp_link_drop_yielded(
        CHEMPI_CONTAINER_OF(item, struct chempi_tcp_link, yielded));
}

/* The link's own attempt has precedence (T11). */
static void make_yield(struct chempi_tcp_guest *guest,
                       struct chempi_tcp_link *link)
{
    struct chempi_pollset *set = guest->dev->dev.params.services->pollset;

    chempi_tcp_link_drop_yielded(link); /* it calls again */
    /* Who has waited for memory is asked for room to write, too. */
    if ((!guest->is_proven ||
         chempi_pollset_modify(set, &guest->item, EPOLLIN) == 0) &&
        say_verdict(guest->item.fd, CHEMPI_TCP_YIELD) == 0) {
        link->yielded.ready = yielded_ready;
        chempi_pollset_hand_over(set, &guest->item, &link->yielded);
    }
    close_guest(guest);
}

/* When there is memory: as long as there is room to write, which there is, the
 * process does not sleep. */
static void wait_for_memory(struct chempi_tcp_guest *guest)
{
    guest->is_proven = true;
    if (!chempi_shortage_may_wait(&guest->shortage) ||
        chempi_pollset_modify(guest->dev->dev.params.services->pollset,
                              &guest->item, EPOLLIN | EPOLLOUT) != 0)
        close_guest(guest); /* it tries again */
}

/* Who it is has been proven. False: it is still a guest, or it was for too
 * long. */
static bool admit(struct chempi_tcp_guest *guest)
{
    enum chempi_tcp_verdict_code code = CHEMPI_TCP_STRANGER;
    struct chempi_tcp_link *link = NULL;
    struct chempi_seal *seal = NULL;
    int rc = find_link(guest, &link);

    if (rc == 0)
        code = judge(guest, link);
    if (code == CHEMPI_TCP_WELCOME)
        rc = chempi_tcp_proof_seal(&guest->proof, &seal);
    if (rc == -ENOMEM) {
        wait_for_memory(guest);
        return false;
    }
    if (rc)
        refuse(guest, CHEMPI_TCP_STRANGER);
    else if (code == CHEMPI_TCP_WELCOME)
        move_in(guest, link, seal);
    else if (code == CHEMPI_TCP_YIELD)
        make_yield(guest, link);
    else
        refuse(guest, code);
    return true;
}

/* Check the preamble; 0, what to refuse it with, or -ENOMEM: not now. */
static int check_preamble(struct chempi_tcp_guest *guest)
{
    const struct chempi_services *s = guest->dev->dev.params.services;
    struct chempi_tcp_preamble preamble;
    struct chempi_tcp_tie tie;
    int rc = chempi_tcp_wire_get_preamble(guest->in, &preamble);

    if (rc)
        return rc == -EPROTONOSUPPORT ? CHEMPI_TCP_VERSIONS
                                      : CHEMPI_TCP_STRANGER;
    if (chempi_tcp_tie_find(s, &preamble, &tie, &guest->from))
        return CHEMPI_TCP_STRANGER;
    guest->network = preamble.network;
    rc = chempi_tcp_tie_prove(guest->dev, &tie, false, guest->network,
                              &guest->proof);
    return rc && rc != -ENOMEM ? CHEMPI_TCP_STRANGER : rc;
}

/* in_need bytes have come. Returns false when nothing more is to be read of the
 * guest, which may be gone. */
static bool step_guest(struct chempi_tcp_guest *guest)
{
    uint8_t out[sizeof(struct chempi_tcp_verdict) + CHEMPI_TCP_PROOF_MAX];
    struct chempi_tcp_verdict verdict;
    struct chempi_err err;
    size_t len;
    int rc;

    guest->in_len = 0;
    if (!guest->is_greeted) {
        rc = check_preamble(guest);
        if (rc) {
            if (rc < 0)
                close_guest(guest); /* it tries again */
            else
                refuse(guest, (enum chempi_tcp_verdict_code)rc);
            return false;
        }
        guest->is_greeted = true;
        guest->in_need = chempi_tcp_proof_need(&guest->proof);
        return true;
    }
    rc = chempi_tcp_proof_step(&guest->proof, guest->in, guest->in_need,
                               out + sizeof(verdict), &len, &err);
    if (rc == 1) {
        (void)admit(guest); /* now, or later */
        return false;
    }
    chempi_tcp_wire_put_verdict(&verdict, CHEMPI_TCP_WELCOME);
    memcpy(out, &verdict, sizeof(verdict));
    if (rc < 0 || say(guest->item.fd, out, sizeof(verdict) + len) != 0) {
        if (rc < 0)
            chempi_log(CHEMPI_LOG_WARNING, "tcp",
                       "a connection was refused: %s", err.text);
        close_guest(guest);
        return false;
    }
    guest->in_need = chempi_tcp_proof_need(&guest->proof);
    return true;
}

static void read_guest(struct chempi_tcp_guest *guest)
{
    for (;;) {
        ssize_t n =
            chempi_sys->recv(guest->item.fd, guest->in + guest->in_len,
                             guest->in_need - guest->in_len, MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            close_guest(guest);
            return;
        }
        guest->in_len += (size_t)n;
        if (guest->in_len == guest->in_need && !step_guest(guest))
            return;
    }
}

/* Or it speaks out of turn. */
static bool has_gone(const struct chempi_tcp_guest *guest)
{
    uint8_t byte;

    return chempi_sys->recv(guest->item.fd, &byte, 1,
                            MSG_PEEK | MSG_DONTWAIT) >= 0 ||
           (errno != EAGAIN && errno != EINTR);
}

static void guest_ready(struct chempi_poll_item *item, uint32_t events)
{
    struct chempi_tcp_guest *guest =
        CHEMPI_CONTAINER_OF(item, struct chempi_tcp_guest, item);
    struct chempi_tcp_dev *dev = guest->dev;

    (void)events; /* errors show in recv() */
    if (!guest->is_proven)
        read_guest(guest);
    else if (has_gone(guest))
        close_guest(guest);
    else if (!admit(guest))
        chempi_pollset_in_vain(dev->dev.params.services->pollset);
    (void)chempi_tcp_work(dev);
}

static void add_guest(struct chempi_tcp_dev *dev,
                      struct chempi_tcp_guest *guest, int fd,
                      const struct chempi_address *address)
{
    if (dev->guest_count == CHEMPI_TCP_GUEST_MAX)
        close_guest(CHEMPI_CONTAINER_OF(chempi_list_first(&dev->guests),
                                        struct chempi_tcp_guest, link));
    guest->item = (struct chempi_poll_item){.fd = fd, .ready = guest_ready};
    guest->dev = dev;
    guest->address = *address;
    chempi_address_unmap(&guest->address);
    guest->in_need = sizeof(struct chempi_tcp_preamble);
    chempi_list_append(&dev->guests, &guest->link);
    dev->guest_count++;
    if (chempi_pollset_add(dev->dev.params.services->pollset, &guest->item,
                           EPOLLIN) != 0)
        close_guest(guest);
    else
        read_guest(guest);
}

/* ---- accepting ------------------------------------------------------- */

/* A caller for whom there is no descriptor left is told so. */
static void turn_away(struct chempi_tcp_dev *dev, int fd)
{
    (void)chempi_err_set(&dev->dev.err, -EMFILE,
                         "no file descriptor left to accept a connection%s; "
                         "raise the limit ('ulimit -n', or nofile in "
                         "/etc/security/limits.conf)",
                         dev->dev.params.services->bonds ? " of another world"
                                                         : "");
    if (!dev->has_turned_away) /* once is enough: strangers may go on */
        chempi_log(CHEMPI_LOG_ERROR, "tcp", "%s", dev->dev.err.text);
    dev->has_turned_away = true;
    if (fd < 0)
        return;
    (void)say_verdict(fd, CHEMPI_TCP_NO_FILES); /* or it sees the end */
    (void)shutdown(fd, SHUT_WR);
    (void)close(fd); /* both: the best that can be done for it */
}

/* With the one that was kept back the caller can at least be told, and the
 * queue does not stay full. */
static void turn_next_away(struct chempi_tcp_listener *listener)
{
    struct chempi_tcp_dev *dev = listener->dev;

    if (dev->reserve_fd >= 0)
        (void)close(dev->reserve_fd); /* /dev/null */
    turn_away(dev, chempi_sys->accept4(listener->item.fd, NULL, NULL,
                                       SOCK_CLOEXEC | SOCK_NONBLOCK));
    dev->reserve_fd = chempi_sys->open("/dev/null", O_RDONLY | O_CLOEXEC, 0);
}

/* Returns false when there is nothing more to accept now, or no memory: callers
 * wait. */
static bool accept_one(struct chempi_tcp_listener *listener)
{
    struct chempi_tcp_guest *guest = chempi_sys->calloc(1, sizeof(*guest));
    struct chempi_address address = {.u.sa.sa_family = AF_UNSPEC};
    socklen_t len = sizeof(address.u);
    int fd;

    if (!guest)
        return false;
    fd = chempi_sys->accept4(listener->item.fd, &address.u.sa, &len,
                             SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0 && !chempi_tcp_connect_may_have(listener->dev, fd)) {
        free(guest);
        turn_away(listener->dev, fd);
        return true;
    }
    if (fd >= 0) {
        if (!chempi_address_is_loopback(&address))
            chempi_tcp_link_calm(fd, listener->congestion);
        add_guest(listener->dev, guest, fd, &address);
        return true;
    }
    free(guest);
    if (errno == EMFILE || errno == ENFILE) {
        if (errno == EMFILE && chempi_descriptors_lift())
            return true;
        turn_next_away(listener);
        return false; /* the rest at the next event */
    }
    /* One that went away while it waited is none. */
    return errno == EINTR || errno == ECONNABORTED;
}

static void listener_ready(struct chempi_poll_item *item, uint32_t events)
{
    struct chempi_tcp_listener *listener =
        CHEMPI_CONTAINER_OF(item, struct chempi_tcp_listener, item);

    int i = 0;

    (void)events; /* a listener has only one */
    while (i < ACCEPT_MAX && accept_one(listener))
        i++;
    if (i == 0)
        chempi_pollset_in_vain(listener->dev->dev.params.services->pollset);
    (void)chempi_tcp_work(listener->dev);
}

/* ---- listeners ------------------------------------------------------- */

static bool is_unspecified(const struct chempi_address *a)
{
    return a->u.sa.sa_family == AF_INET6
               ? IN6_IS_ADDR_UNSPECIFIED(&a->u.in6.sin6_addr)
               : a->u.in.sin_addr.s_addr == htonl(INADDR_ANY);
}

/* Listen at address (port 0), whose port is filled in. */
static int listen_at(struct chempi_tcp_dev *dev, uint32_t network,
                     struct chempi_address *address)
{
    struct chempi_tcp_listener *l = &dev->listeners[dev->listener_count];
    socklen_t len = chempi_address_len(address);
    const int off = 0;
    int rc;
    int fd = chempi_sys->socket(address->u.sa.sa_family,
                                SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    if (address->u.sa.sa_family == AF_INET6 && is_unspecified(address))
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off,
                         sizeof(off));    /* else IPv6 alone must do */
    chempi_tcp_link_set_options(dev, fd); /* accepted ones inherit them */
    if (chempi_sys->bind(fd, &address->u.sa, len) < 0 ||
        chempi_sys->listen(fd, BACKLOG) < 0 ||
        getsockname(fd, &address->u.sa, &len) < 0) {
        rc = -errno;
        (void)close(fd); /* never used */
        return rc;
    }
    *l = (struct chempi_tcp_listener){
        .item = {.fd = fd, .ready = listener_ready},
        .dev = dev,
        .network = network,
        .is_anywhere = is_unspecified(address)};
    chempi_tcp_link_hurry(fd, l->congestion); /* they inherit this, too */
    rc = chempi_pollset_add(dev->dev.params.services->pollset, &l->item,
                            EPOLLIN);
    if (rc) {
        (void)close(fd); /* never used */
        return rc;
    }
    dev->listener_count++;
    return 0;
}

static void add_entry(struct chempi_tcp_dev *dev, uint32_t network,
                      const struct chempi_address *address, uint8_t prefix,
                      uint16_t port, bool is_described)
{
    struct chempi_tcp_card *card = &dev->card;
    struct chempi_tcp_entry *e = &card->entries[card->count];

    if (card->count == CHEMPI_TCP_ENTRY_MAX)
        return; /* there are enough to choose from */
    *e = (struct chempi_tcp_entry){.network = network,
                                   .prefix = prefix,
                                   .is_described = is_described,
                                   .address = *address};
    chempi_address_set_port(&e->address, port);
    card->count++;
}

/* On all addresses (or just loopback, when the job has but this node). */
static int listen_any(struct chempi_tcp_dev *dev, uint32_t network,
                      bool is_local, const struct chempi_interface *mine,
                      size_t mine_count)
{
    struct chempi_address a = {.u.in6.sin6_family = AF_INET6};
    int rc = -EAFNOSUPPORT;

    if (!is_local)
        rc = listen_at(dev, network, &a);
    if (rc == -EAFNOSUPPORT || rc == -EADDRNOTAVAIL) {
        a = (struct chempi_address){.u.in.sin_family = AF_INET};
        if (is_local)
            a.u.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        rc = listen_at(dev, network, &a);
    }
    for (size_t i = 0; !rc && i < mine_count; i++) {
        const struct chempi_address *at = &mine[i].address;

        if (chempi_address_is_link_local(at) ||
            (is_local && !chempi_address_is_near(at, &a, 32)) ||
            (a.u.sa.sa_family == AF_INET && at->u.sa.sa_family == AF_INET6))
            continue;
        add_entry(dev, network, at, mine[i].prefix, chempi_address_port(&a),
                  false);
    }
    return rc;
}

/* The address that the description gives, or the interface's first. */
static int find_address(const struct chempi_table_attachment *a,
                        const struct chempi_interface *mine, size_t mine_count,
                        struct chempi_interface *out)
{
    int rc = -ENODEV;

    memset(out, 0, sizeof(*out));
    if (a->address && a->address[0]) {
        rc = chempi_address_parse(a->address, &out->address);
        out->prefix = out->address.u.sa.sa_family == AF_INET6 ? 128 : 32;
    }
    for (size_t i = 0; i < mine_count; i++) {
        if (rc == 0 && chempi_address_is_near(&mine[i].address, &out->address,
                                              out->prefix)) {
            out->prefix = mine[i].prefix;
            return 0;
        }
        if (rc == -ENODEV && a->interface &&
            strcmp(mine[i].name, a->interface) == 0) {
            *out = mine[i];
            return 0;
        }
    }
    return rc;
}

static int listen_network(struct chempi_tcp_dev *dev,
                          const struct chempi_table_attachment *a,
                          const struct chempi_interface *mine,
                          size_t mine_count, struct chempi_err *err)
{
    const struct chempi_services *s = dev->dev.params.services;
    const char *name = chempi_table_network(s->table, a->network)->name;
    const char *node = s->node_names[s->node];
    uint32_t network = chempi_tcp_card_network(name);
    bool has_address = a->address && a->address[0];
    struct chempi_interface at;
    int rc;

    if (!has_address && !(a->interface && a->interface[0])) {
        rc = listen_any(dev, network, false, mine, mine_count);
        return rc ? chempi_err_set(err, rc, "cannot listen: %s",
                                   chempi_err_name(rc))
                  : 0;
    }
    rc = find_address(a, mine, mine_count, &at);
    if (rc == -EINVAL)
        return chempi_err_set(err, rc,
                              "address '%s' of node %s on network %s is no "
                              "IPv4 or IPv6 address; correct the network "
                              "description",
                              a->address, node, name);
    if (!rc)
        rc = listen_at(dev, network, &at.address);
    if (rc)
        return chempi_err_set(
            err, rc,
            "cannot listen on '%s', where node %s is attached to network %s "
            "by the network description: %s",
            has_address ? a->address : a->interface, node, name,
            chempi_err_name(rc));
    add_entry(dev, network, &at.address, at.prefix,
              chempi_address_port(&at.address), has_address);
    return 0;
}

/* Does every node of the job share a listener's network with us? */
static bool is_covered(const struct chempi_tcp_dev *dev)
{
    const struct chempi_services *s = dev->dev.params.services;

    for (uint32_t n = 0; n < s->node_count; n++) {
        uint32_t at = chempi_table_find_node(s->table, s->node_names[n]);
        uint32_t count = at == CHEMPI_TABLE_NONE
                             ? 0
                             : chempi_table_attachment_count(s->table, at);
        bool is_common = false;

        for (uint32_t i = 0; i < count && !is_common; i++) {
            struct chempi_table_attachment a;
            uint32_t id;

            chempi_table_attachment(s->table, at, i, &a);
            id = chempi_tcp_card_network(
                chempi_table_network(s->table, a.network)->name);
            for (uint32_t l = 0; l < dev->listener_count; l++)
                is_common = is_common || dev->listeners[l].network == id;
        }
        if (!is_common)
            return false;
    }
    return true;
}

/* Listeners for the networks of the description that tcp serves here. */
static int listen_described(struct chempi_tcp_dev *dev,
                            const struct chempi_interface *mine,
                            size_t mine_count, struct chempi_err *err)
{
    const struct chempi_services *s = dev->dev.params.services;
    uint32_t node = chempi_table_find_node(s->table, s->node_names[s->node]);
    uint32_t count = node == CHEMPI_TABLE_NONE
                         ? 0
                         : chempi_table_attachment_count(s->table, node);
    int rc = 0;

    for (uint32_t i = 0; i < count && !rc; i++) {
        struct chempi_table_attachment a;

        chempi_table_attachment(s->table, node, i, &a);
        if (strcmp(chempi_table_network(s->table, a.network)->device,
                   dev->dev.ops->name) == 0 &&
            dev->listener_count < CHEMPI_TCP_LISTENER_MAX - 1)
            rc = listen_network(dev, &a, mine, mine_count, err);
    }
    return rc;
}

int chempi_tcp_listen_open(struct chempi_tcp_dev *dev, struct chempi_err *err)
{
    const struct chempi_services *s = dev->dev.params.services;
    struct chempi_interface mine[CHEMPI_ADDRESS_INTERFACES_MAX];
    int count = chempi_address_local(mine);
    int rc;

    if (count < 0)
        return chempi_err_set(err, count,
                              "cannot list this machine's "
                              "addresses: %s",
                              chempi_err_name(count));
    chempi_file_host(dev->card.host);
    if (s->table) {
        rc = listen_described(dev, mine, (size_t)count, err);
        if (rc)
            return rc;
    }
    if (!s->table || !dev->listener_count || !is_covered(dev)) {
        rc = listen_any(dev, CHEMPI_TCP_NETWORK_ANY,
                        s->node_count == 1 && !s->bonds, mine, (size_t)count);
        if (rc)
            return chempi_err_set(
                err, rc, "cannot listen for tcp connections: %s%s",
                chempi_err_name(rc),
                rc == -EMFILE ? "; raise the limit ('ulimit -n')" : "");
    }
    if (!dev->card.count)
        return chempi_err_set(err, -EADDRNOTAVAIL,
                              "this machine has no address that others could "
                              "connect to");
    dev->reserve_fd = chempi_sys->open("/dev/null", O_RDONLY | O_CLOEXEC, 0);
    if (dev->reserve_fd < 0)
        return chempi_err_set(err, -errno, "cannot open /dev/null: %s",
                              chempi_err_name(errno));
    return 0;
}

void chempi_tcp_listen_close(struct chempi_tcp_dev *dev)
{
    while (!chempi_list_is_empty(&dev->guests))
        close_guest(CHEMPI_CONTAINER_OF(chempi_list_first(&dev->guests),
                                        struct chempi_tcp_guest, link));
    for (uint32_t i = 0; i < dev->listener_count; i++) {
        chempi_pollset_remove(dev->dev.params.services->pollset,
                              &dev->listeners[i].item);
        (void)close(dev->listeners[i].item.fd); /* nothing is written there */
    }
    dev->listener_count = 0;
    if (dev->reserve_fd >= 0)
        (void)close(dev->reserve_fd); /* /dev/null */
    dev->reserve_fd = -1;
}
