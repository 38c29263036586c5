/* SPDX-License-Identifier: BSD-3-Clause */
/* A daemon's connections: who is late (conn.h). */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chempid/peers/conn.h"

static int on_greet(struct chempi_conn *conn, struct chempi_err *err)
{
    (void)conn;
    (void)err;
    return 0;
}

static int on_frame(struct chempi_conn *conn, const struct chempi_frame *frame,
                    struct chempi_err *err)
{
    (void)conn;
    (void)frame;
    (void)err;
    return 0;
}

static void on_lost(struct chempi_conn *conn, const char *text)
{
    (void)conn;
    (void)text;
}

static bool is_busy(const struct chempi_conn *conn)
{
    (void)conn;
    return false;
}

static const struct chempi_conn_ops ops = {on_greet, on_frame, on_lost,
                                           is_busy};

/* The time limit is over. Does the daemon go on with the client? */
static bool is_kept(struct ev_loop *loop, struct chempi_conn *c, int client)
{
    char words[4096];
    ssize_t n;

    ev_feed_event(loop, &c->limit, EV_TIMER);
    (void)ev_run(loop, EVRUN_NOWAIT);
    do
        n = recv(client, words, sizeof(words), MSG_DONTWAIT);
    while (n > 0);
    return n < 0 && errno == EAGAIN;
}

Test(conn, a_client_that_waits_for_the_daemon_is_not_late, .timeout = 30)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct chempi_conns conns;
    struct chempi_conn *c;
    int fds[2];

    cr_assert_eq(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
        0);
    chempi_conns_init(&conns, loop, "a1", NULL, false, 1024, &ops, NULL);
    chempi_conns_accept(&conns, fds[0], CHEMPI_CONN_LOCAL);
    cr_assert_not(chempi_list_is_empty(&conns.all));
    c = CHEMPI_CONTAINER_OF(chempi_list_first(&conns.all), struct chempi_conn,
                            entry);
    c->link.waits_since_ns = 1; /* its greeting is there, and not read yet */
    for (int i = 0; i < 3; i++)
        cr_assert(is_kept(loop, c, fds[1]), "it was refused");
    c->link.waits_since_ns = 0;
    cr_assert_not(is_kept(loop, c, fds[1]), "it has not greeted");
    chempi_conns_fini(&conns);
    (void)close(fds[1]);
    ev_loop_destroy(loop);
}
