/* SPDX-License-Identifier: BSD-3-Clause */
/* Whom the beat gives up, and whom it does not. */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chempid/peers/beat.h"
#include "chempid/peers/conn.h"

#define DETECT_S 0.05
#define IN_MAX 4096u
#define QUEUE_MAX (1u << 20)

static struct ev_loop *loop;
static struct chempi_conns conns;
static struct chempi_beat beat;
static const struct chempi_conn *first_lost;

static void on_lost(struct chempi_conn *conn, const char *text)
{
    (void)text;
    if (!first_lost)
        first_lost = conn;
    ev_break(loop, EVBREAK_ALL);
}

static const struct chempi_conn_ops ops = {.on_lost = on_lost};

/* A neighbour with which the handshake is over; *peer is its end. */
static struct chempi_conn *add_neighbour(int *peer)
{
    struct chempi_conn *c = calloc(1, sizeof(*c));
    int fds[2];

    cr_assert(c);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    c->conns = &conns;
    c->kind = CHEMPI_CONN_OUTBOUND;
    c->is_proven = c->has_link = true;
    c->fd = -1;
    chempi_list_init(&c->fellow);
    chempi_list_append(&conns.all, &c->entry);
    chempi_link_prepare(&c->link, loop, IN_MAX, QUEUE_MAX);
    chempi_link_start(&c->link, fds[0]);
    *peer = fds[1];
    return c;
}

static void owe_nothing(struct chempi_conn *conn)
{
    (void)conn;
}

/* As for lack of memory. */
static void stop_reading(struct chempi_conn *c)
{
    ev_io_stop(loop, &c->link.in);
}

Test(beat, who_has_not_read_blames_nobody, .timeout = 30)
{
    struct chempi_conn *heard;
    struct chempi_conn *silent;
    int peers[2];

    loop = ev_loop_new(EVFLAG_AUTO);
    cr_assert(loop);
    chempi_conns_init(&conns, loop, "a1", NULL, false, 1024, &ops, NULL);
    chempi_beat_init(&beat, &conns, DETECT_S, owe_nothing);
    heard = add_neighbour(&peers[0]); /* looked at first */
    silent = add_neighbour(&peers[1]);
    stop_reading(heard);
    stop_reading(silent);
    cr_assert_eq(write(peers[0], "x", 1), 1);

    chempi_beat_wake(&beat);
    (void)ev_run(loop, 0);
    cr_expect_eq(first_lost, silent);

    chempi_beat_stop(&beat);
    chempi_conns_fini(&conns);
    ev_loop_destroy(loop);
    (void)close(peers[0]);
    (void)close(peers[1]);
}
