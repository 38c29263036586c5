/* SPDX-License-Identifier: BSD-3-Clause */
/* Which addresses and networks the device uses, by a network description. */
#define _GNU_SOURCE /* POLLRDHUP */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/table/build.h"
#include "libchempi/devices/tcp/internal.h"
#include "libchempi/devices/tcp/tcp.h"
#include "tests/unit/tcp/ends.h"

/* A cluster of two nodes: who is attached where, and the network for small
 * and for large messages between them. */
struct plan {
    const char *devices[2];    /* of networks 0 and 1 */
    const char *address[2][2]; /* [node][network]; NULL: not attached */
    const char *interface[2][2];
    uint32_t small; /* network up to LIMIT bytes */
    uint32_t large; /* network above */
};

#define LIMIT 1000u
#define COUNT 900u /* of them are more than sockets hold */

/* One network for small messages, the other for large ones. */
static const struct plan two_networks = {
    .devices = {"tcp", "tcp"},
    .address = {{"127.0.1.1", "127.0.2.1"}, {"127.0.1.2", "127.0.2.2"}},
    .small = 1,
    .large = 0};

static struct ends ends;
static struct chempi_blob images[2];

static void build_directory(const struct plan *plan, struct chempi_blob *out)
{
    static const char *const names[] = {"fast", "slow"};
    static const char *const nodes[] = {"n0", "n1"};
    struct chempi_dir_builder *b = chempi_dir_builder_create();

    for (uint32_t n = 0; n < 2; n++)
        chempi_dir_builder_add_network(b, names[n], "ethernet",
                                       plan->devices[n]);
    for (uint32_t i = 0; i < 2; i++) {
        chempi_dir_builder_add_node(b, nodes[i], i, 1, false);
        for (uint32_t n = 0; n < 2; n++) {
            if (plan->address[i][n] || plan->interface[i][n])
                chempi_dir_builder_attach(b, n,
                                          plan->address[i][n] &&
                                                  plan->address[i][n][0]
                                              ? plan->address[i][n]
                                              : NULL,
                                          plan->interface[i][n]);
        }
    }
    cr_assert_eq(chempi_dir_builder_finish(b, out, NULL), 0);
    chempi_dir_builder_destroy(b);
}

static void build_routes(const struct plan *plan, uint32_t self,
                         struct chempi_blob *out)
{
    struct chempi_routes_builder *b = chempi_routes_builder_create(self, 2);

    chempi_routes_builder_begin(b, !self);
    chempi_routes_builder_add_range(b, LIMIT, 1, 0, 1);
    chempi_routes_builder_add_stage(b, plan->small, plan->devices[plan->small],
                                    "eager", NULL, 0);
    chempi_routes_builder_add_range(b, UINT64_MAX, 1, 0, 1);
    chempi_routes_builder_add_stage(b, plan->large, plan->devices[plan->large],
                                    "rendezvous", NULL, 0);
    cr_assert_eq(chempi_routes_builder_finish(b, out, NULL), 0);
    chempi_routes_builder_destroy(b);
}

static const _Atomic uint64_t *settings_of_planned; /* NULL: the initial ones */

/* Tables for both nodes into ends; 0 or what opening says. */
static int open_planned(const struct plan *plan)
{
    ends_default(&ends, 2);
    ends.settings = settings_of_planned;
    for (uint32_t i = 0; i < 2; i++) {
        struct chempi_blob directory;
        struct chempi_blob routes;
        struct chempi_table *table;
        struct chempi_err err;

        build_directory(plan, &directory);
        build_routes(plan, i, &routes);
        cr_assert_eq(
            chempi_table_build_image(i, i, &routes, &directory, &images[i]), 0);
        chempi_blob_fini(&directory);
        chempi_blob_fini(&routes);
        cr_assert_eq(
            chempi_table_open(images[i].data, images[i].len, &table, &err), 0,
            "%s", err.text);
        ends.end[i].services.table = table;
    }
    return ends_open_as(&ends, 2, true);
}

static void close_planned(void)
{
    ends_close(&ends);
    for (uint32_t i = 0; i < 2; i++) {
        struct chempi_table *table = NULL;

        memcpy(&table, &ends.end[i].services.table, sizeof(table));
        chempi_table_close(table);
        chempi_blob_fini(&images[i]);
    }
}

static struct chempi_tcp_ep *ep_of(uint32_t from)
{
    return (struct chempi_tcp_ep *)(void *)ends.end[from].eps[!from];
}

/* Exchange small and large messages; each must arrive. */
static void exchange(void)
{
    static uint8_t data[5000];

    for (uint32_t from = 0; from < 2; from++) {
        struct chempi_tx tx = {.iter = NULL};

        cr_assert_eq(ends_inject(&ends, from, !from, "x", 1, 1), CHEMPI_DONE,
                     "%s", ends.end[from].dev->err.text);
        cr_assert(ends_wait_arrivals(&ends, !from, 1), "%s",
                  ends.end[from].lost_why);
        cr_assert_geq(
            ends_send(&ends, from, !from, &tx, data, sizeof(data), 1, 1), 0);
        cr_assert(ends_wait_arrivals(&ends, !from, 2));
        cr_assert(ends_wait_sent(&ends, from, 1));
    }
}

static const char *peer_of(const struct chempi_tcp_link *link)
{
    static char text[CHEMPI_ADDRESS_TEXT];
    char *port;

    (void)chempi_address_format(&link->peer, text);
    port = strrchr(text, ':');
    if (port)
        *port = '\0';
    return text;
}

TestSuite(tcp_network, .timeout = 60);

Test(tcp_network, each_size_takes_the_network_of_its_route)
{
    cr_assert_eq(open_planned(&two_networks), 0, "%s", ends.end[0].err.text);
    cr_assert_eq(ep_of(0)->link_count, 2u);
    cr_assert_eq(ep_of(0)->route_count, 2u);
    exchange();
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(ep_of(i)->links[0]->state, CHEMPI_TCP_UP);
        cr_assert_eq(ep_of(i)->links[1]->state, CHEMPI_TCP_UP);
    }
    /* Both ends of a connection use the addresses of its network. */
    cr_assert_str_eq(peer_of(ep_of(0)->routes[0].link), "127.0.2.2");
    cr_assert_str_eq(peer_of(ep_of(1)->routes[0].link), "127.0.2.1");
    cr_assert_str_eq(peer_of(ep_of(0)->routes[1].link), "127.0.1.2");
    cr_assert_str_eq(peer_of(ep_of(1)->routes[1].link), "127.0.1.1");
    close_planned();
}

/* The socket of this link holds little. */
static void narrow(const struct chempi_tcp_link *link)
{
    const int bytes = 8192;

    (void)setsockopt(link->item.fd, SOL_SOCKET, SO_SNDBUF, &bytes,
                     sizeof(bytes));
    (void)setsockopt(link->item.fd, SOL_SOCKET, SO_RCVBUF, &bytes,
                     sizeof(bytes));
}

/* What waits for one network is not asked for whenever another has room. */
Test(tcp_network, room_of_one_network_is_none_of_another)
{
    static uint8_t data[400000];
    static struct chempi_tx large;
    static struct chempi_tx small[COUNT];
    struct end *from = &ends.end[0];
    int rooms;

    cr_assert_eq(open_planned(&two_networks), 0, "%s", ends.end[0].err.text);
    exchange();
    for (uint32_t i = 0; i < 4; i++)
        narrow(ep_of(i / 2)->links[i % 2]);
    cr_assert_eq(ends_send(&ends, 0, 1, &large, data, sizeof(data), 1, 0),
                 CHEMPI_PENDING);
    for (uint32_t i = 0; i < COUNT && chempi_list_is_empty(&from->waiting[1]);
         i++)
        cr_assert_geq(ends_send(&ends, 0, 1, &small[i], data, LIMIT, 1, 0), 0);
    cr_assert(!chempi_list_is_empty(&from->waiting[1]));
    rooms = from->rooms;
    for (int i = 0; i < 1000; i++)
        (void)end_poll(from);
    cr_assert_leq(from->rooms, rooms + 2);
    close_planned();
}

Test(tcp_network, one_network_for_all_sizes_is_one_connection)
{
    const struct plan plan = {
        .devices = {"tcp", "tcp"},
        .address = {{"127.0.1.1", "127.0.2.1"}, {"127.0.1.2", "127.0.2.2"}}};

    cr_assert_eq(open_planned(&plan), 0, "%s", ends.end[0].err.text);
    cr_assert_eq(ep_of(0)->link_count, 1u);
    exchange();
    close_planned();
}

Test(tcp_network, ipv6_addresses_work)
{
    const struct plan plan = {.devices = {"tcp", "tcp"},
                              .address = {{"::1", NULL}, {"::1", NULL}}};

    cr_assert_eq(open_planned(&plan), 0, "%s", ends.end[0].err.text);
    exchange();
    cr_assert_str_eq(peer_of(ep_of(0)->links[0]), "[::1]");
    close_planned();
}

Test(tcp_network, an_interface_stands_for_its_address)
{
    const struct plan plan = {.devices = {"tcp", "tcp"},
                              .interface = {{"lo", NULL}, {"lo", NULL}}};

    cr_assert_eq(open_planned(&plan), 0, "%s", ends.end[0].err.text);
    exchange();
    cr_assert_str_eq(peer_of(ep_of(0)->links[0]), "127.0.0.1");
    close_planned();
}

Test(tcp_network, without_addresses_all_of_the_machine_are_used)
{
    const struct plan plan = {.devices = {"tcp", "tcp"},
                              .address = {{"", NULL}, {"", NULL}}};

    cr_assert_eq(open_planned(&plan), 0, "%s", ends.end[0].err.text);
    exchange();
    close_planned();
}

Test(tcp_network, a_network_of_another_device_falls_back_to_any_address)
{
    const struct plan plan = {.devices = {"other", "tcp"},
                              .address = {{"1", NULL}, {"2", NULL}}};

    cr_assert_eq(open_planned(&plan), 0, "%s", ends.end[0].err.text);
    exchange();
    close_planned();
}

Test(tcp_network, what_is_no_address_is_named)
{
    const struct plan plan = {.devices = {"tcp", "tcp"},
                              .address = {{"nonsense", NULL}, {"::1", NULL}}};

    cr_assert_eq(open_planned(&plan), -EINVAL);
    cr_assert_neq(strstr(ends.end[0].err.text, "'nonsense'"), NULL);
    cr_assert_neq(strstr(ends.end[0].err.text, "fast"), NULL);
    close_planned();
}

Test(tcp_network, an_address_of_another_machine_is_named)
{
    const struct plan plan = {
        .devices = {"tcp", "tcp"},
        .address = {{"198.51.100.77", NULL}, {"127.0.0.1", NULL}}};

    cr_assert_eq(open_planned(&plan), -EADDRNOTAVAIL);
    cr_assert_neq(strstr(ends.end[0].err.text, "198.51.100.77"), NULL, "%s",
                  ends.end[0].err.text);
    close_planned();
}

Test(tcp_network, an_interface_that_is_not_there_is_named)
{
    const struct plan plan = {.devices = {"tcp", "tcp"},
                              .interface = {{"nic99", NULL}, {"lo", NULL}}};

    cr_assert_eq(open_planned(&plan), -ENODEV);
    cr_assert_neq(strstr(ends.end[0].err.text, "nic99"), NULL);
    close_planned();
}

Test(tcp_network, crossing_connections_over_two_networks_do_not_mix)
{
    static uint8_t data[5000];
    struct chempi_tx txs[2] = {{.iter = NULL}, {.iter = NULL}};

    cr_assert_eq(open_planned(&two_networks), 0);
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(ends_inject(&ends, i, !i, "x", 1, 1), CHEMPI_DONE);
        cr_assert_geq(
            ends_send(&ends, i, !i, &txs[i], data, sizeof(data), 2, 1), 0);
    }
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert(ends_wait_arrivals(&ends, i, 2));
        cr_assert(ends_wait_sent(&ends, i, 1));
        cr_assert_eq(ends.end[i].lost, 0);
    }
    close_planned();
}

Test(tcp_network, a_process_that_leaves_over_two_networks_is_not_lost)
{
    struct chempi_tcp_link *const *links;

    cr_assert_eq(open_planned(&two_networks), 0);
    exchange();
    links = ep_of(1)->links;
    chempi_tcp_ops.close(ends.end[0].dev);
    ends.end[0].dev = NULL;
    /* The farewell is read on one of them; the other one just ends. */
    for (int i = 0; i < 100000 && (links[0]->state == CHEMPI_TCP_UP ||
                                   links[1]->state == CHEMPI_TCP_UP);
         i++)
        (void)end_poll(&ends.end[1]);
    cr_assert_eq(links[0]->state, CHEMPI_TCP_ENDED);
    cr_assert_eq(links[1]->state, CHEMPI_TCP_ENDED);
    cr_assert_eq(ends.end[1].lost, 0, "%s", ends.end[1].lost_why);
    cr_assert_eq(ends_inject(&ends, 1, 0, "x", 1, 1), -EPIPE);
    close_planned();
}

Test(tcp_network, a_reset_after_the_farewell_on_another_network_is_no_loss)
{
    struct chempi_tcp_link *const *links;
    static uint8_t data[5000];
    struct chempi_tx tx = {.iter = NULL};

    cr_assert_eq(open_planned(&two_networks), 0);
    exchange();
    links = ep_of(1)->links;
    ends.end[0].wants_late = true;
    cr_assert_eq(ends_send(&ends, 1, 0, &tx, data, sizeof(data), 1, 1),
                 CHEMPI_PENDING);
    chempi_tcp_link_end(links[1]);
    chempi_tcp_link_fail(links[0], -ECONNRESET);
    (void)end_poll(&ends.end[1]);
    cr_assert_eq(links[0]->state, CHEMPI_TCP_ENDED);
    cr_assert_eq(ends.end[1].lost, 0);
    cr_assert_eq(ends.end[1].sent_failed, 1);
    close_planned();
}

/* Over one of two networks its end is heard first; what has come over the other
 * one before is heard all the same. */
Test(tcp_network, a_loss_on_one_network_leaves_what_has_come_on_the_other)
{
    for (uint32_t first = 0; first < 2; first++) {
        static uint8_t data[5000];
        struct chempi_tx tx = {.iter = NULL};
        struct chempi_tcp_link *const *links;

        cr_assert_eq(open_planned(&two_networks), 0);
        exchange();
        links = ep_of(0)->links;
        cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 7), CHEMPI_DONE);
        cr_assert_eq(ends_send(&ends, 0, 1, &tx, data, sizeof(data), 8, 0),
                     CHEMPI_DONE);
        for (uint32_t i = 0; i < 2; i++) {
            struct pollfd fd = {.fd = ep_of(1)->links[i]->item.fd,
                                .events = POLLRDHUP};

            cr_assert_eq(shutdown(links[i]->item.fd, SHUT_WR), 0);
            cr_assert_eq(poll(&fd, 1, -1), 1);
        }
        links = ep_of(1)->links;
        while (links[first]->state == CHEMPI_TCP_UP)
            (void)chempi_tcp_drain_poll(links[first]);
        cr_assert_eq(links[first]->state, CHEMPI_TCP_BROKEN);
        cr_assert(ends_wait_lost(&ends, 1));
        cr_assert_eq(end_complete(&ends.end[1]), 4);
        cr_assert_geq(links[!first]->state, CHEMPI_TCP_ENDED);
        cr_assert_eq(links[!first]->item.fd, -1);
        cr_assert_eq(ends.end[1].lost, 1);
        close_planned();
    }
}

/* The other one may be slower: more comes on it, until it has its end, too. */
Test(tcp_network, a_loss_on_one_network_leaves_what_comes_on_the_other)
{
    static uint8_t data[5000];

    for (uint32_t first = 0; first < 2; first++) {
        const bool is_small = first; /* what goes over the other one */
        struct chempi_tx txs[2] = {{.iter = NULL}, {.iter = NULL}};
        const size_t len = is_small ? 1 : sizeof(data);
        const struct end *end = &ends.end[1];
        uint32_t quick;
        uint32_t slow;

        cr_assert_eq(open_planned(&two_networks), 0);
        exchange();
        slow = ep_of(0)->routes[!is_small].link->network;
        quick = ep_of(0)->routes[is_small].link->network;
        cr_assert_neq(slow, quick);
        cr_assert_eq(
            shutdown(chempi_tcp_endpoint_link(ep_of(0), quick)->item.fd,
                     SHUT_WR),
            0);
        while (chempi_tcp_endpoint_link(ep_of(1), quick)->state ==
               CHEMPI_TCP_UP)
            (void)end_poll(&ends.end[1]);
        for (int i = 0; i < 2; i++) {
            cr_assert_eq(ends_send(&ends, 0, 1, &txs[i], data, len, 7, 0),
                         CHEMPI_DONE);
            while (end_complete(end) < 3 + (size_t)i)
                (void)end_poll(&ends.end[1]); /* the other one is dead */
        }
        cr_assert_not(chempi_tcp_ops.is_ready(end->dev));
        cr_assert_eq(chempi_tcp_ops.ended(end->dev, 0), CHEMPI_REMAINS_COMING);
        cr_assert_eq(end->lost, 0);
        cr_assert_lt(ends_inject(&ends, 1, 0, "x", 1, 1), 0);
        cr_assert_eq(shutdown(chempi_tcp_endpoint_link(ep_of(0), slow)->item.fd,
                              SHUT_WR),
                     0);
        cr_assert(ends_wait_lost(&ends, 1));
        cr_assert_eq(chempi_tcp_ops.ended(end->dev, 0), CHEMPI_REMAINS_NONE);
        close_planned();
    }
}

/* But who has broken a rule on one is not listened to on the other, where a
 * message has come, too; has_ended: also when it is known to be dead. */
static void break_a_rule(bool is_secure, bool has_ended)
{
    static const uint8_t nonsense[64] = {0xff, 0xff, 0xff, 0xff};
    static uint8_t data[5000];
    struct chempi_tx tx = {.iter = NULL};
    struct pollfd fds[2] = {{.events = POLLIN}, {.events = POLLIN}};
    struct end *end = &ends.end[1];
    uint32_t network;
    size_t len; /* of what goes over the second link */

    settings_of_planned = is_secure ? ends_secure_settings() : NULL;
    cr_assert_eq(open_planned(&two_networks), 0);
    exchange();
    for (uint32_t i = 0; i < 2; i++)
        fds[i].fd = ep_of(1)->links[i]->item.fd;
    network = ep_of(1)->links[0]->network;
    cr_assert_eq(send(chempi_tcp_endpoint_link(ep_of(0), network)->item.fd,
                      nonsense, sizeof(nonsense), MSG_NOSIGNAL),
                 sizeof(nonsense));
    len = ep_of(1)->links[1] == ep_of(1)->routes[0].link ? 1 : sizeof(data);
    cr_assert_eq(ends_send(&ends, 0, 1, &tx, data, len, 7, 0), CHEMPI_DONE);
    for (uint32_t i = 0; i < 2; i++)
        cr_assert_eq(poll(&fds[i], 1, -1), 1);
    if (has_ended)
        cr_assert_eq(chempi_tcp_ops.ended(end->dev, 0), CHEMPI_REMAINS_NONE);
    else
        (void)chempi_tcp_drain_poll(ep_of(1)->links[0]);
    for (uint32_t i = 0; i < 2; i++)
        cr_assert_eq(ep_of(1)->links[i]->item.fd, -1);
    (void)end_poll(end);
    cr_assert_eq(end->lost, 1);
    cr_assert_eq(end->arrival_count, 2);
    close_planned();
    settings_of_planned = NULL;
}

Test(tcp_network, who_breaks_a_rule_on_one_network_is_lost_at_once)
{
    break_a_rule(false, false);
    break_a_rule(false, true);
}

Test(tcp_network, whose_record_does_not_open_is_lost_at_once)
{
    break_a_rule(true, false);
    break_a_rule(true, true);
}

/* It has said BYE on one network; on the other one a message waits for a
 * connection that it was to make. */
Test(tcp_network, what_waits_for_a_connection_of_one_that_has_ended_fails)
{
    static uint8_t data[5000];
    struct chempi_tx tx = {.iter = NULL};
    struct end *end = &ends.end[1];
    struct chempi_tcp_link *link;

    cr_assert_eq(open_planned(&two_networks), 0);
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    cr_assert_geq(ends_send(&ends, 1, 0, &tx, data, sizeof(data), 1, 1), 0);
    link = ep_of(1)->routes[1].link;
    cr_assert_eq(link->state, CHEMPI_TCP_DIALING);
    link->attempt->step = CHEMPI_TCP_STEP_YIELDED;
    chempi_tcp_ops.close(ends.end[0].dev);
    ends.end[0].dev = NULL;
    while (!ep_of(1)->status)
        (void)end_poll(end);
    cr_assert_eq(chempi_tcp_ops.ended(end->dev, 0), CHEMPI_REMAINS_NONE);
    for (int i = 0; i < 2; i++)
        (void)end_poll(end);
    cr_assert_geq(link->state, CHEMPI_TCP_ENDED);
    cr_assert_eq(end->sent_failed, 1);
    cr_assert_eq(end->lost, 0);
    close_planned();
}

/* The same, and what had come on the other one waits for memory. */
Test(tcp_network, a_loss_on_one_network_leaves_what_waits_for_memory)
{
    static uint8_t data[5000];
    struct end *end = &ends.end[1];
    struct chempi_tx txs[2] = {{.iter = NULL}, {.iter = NULL}};
    struct chempi_tcp_link *const *links;
    struct pollfd fds[2] = {{.events = POLLRDHUP}, {.events = POLLIN}};
    size_t len; /* of what goes over the second link */

    cr_assert_eq(open_planned(&two_networks), 0);
    exchange();
    links = ep_of(1)->links;
    len = links[1] == ep_of(1)->routes[0].link ? 1 : sizeof(data);
    for (uint32_t i = 0; i < 2; i++)
        fds[i].fd = links[i]->item.fd;
    cr_assert_eq(ends_send(&ends, 0, 1, &txs[0], data, len, 7, 0), CHEMPI_DONE);
    cr_assert_eq(
        shutdown(chempi_tcp_endpoint_link(ep_of(0), links[0]->network)->item.fd,
                 SHUT_WR),
        0);
    for (uint32_t i = 0; i < 2; i++)
        cr_assert_eq(poll(&fds[i], 1, -1), 1);
    end->refused = 1u << 0;
    rig_fail(RIG_SEND, 1, EPIPE, 0);
    cr_assert_neq(ends_send(&ends, 1, 0, &txs[1], data, len, 7, 0),
                  CHEMPI_DONE);
    rig_reset();
    for (int i = 0; i < 3; i++) {
        (void)chempi_tcp_work((struct chempi_tcp_dev *)(void *)end->dev);
        cr_assert_eq(links[0]->state, CHEMPI_TCP_ENDED);
        cr_assert_eq(links[1]->state, CHEMPI_TCP_MUTE);
        cr_assert_eq(end->lost, 0);
    }
    end->refused = 0;
    (void)end_poll(end);
    cr_assert_eq(links[1]->state, CHEMPI_TCP_ENDED);
    cr_assert_eq(end->lost, 1);
    cr_assert_eq(end_complete(end), 3);
    close_planned();
}
