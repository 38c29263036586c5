/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An exchange over a socket of the user's (MPI_Comm_join), at whose other end
 * somebody else calls the same. Both sides greet with a fresh public key; who
 * has the smaller one is called, by the other. The pre-shared key is zeros:
 * whoever has the socket is trusted, and must have the key that was greeted
 * with. No byte is read that is not ours.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/base/sys.h"
#include "libchempi/didl/proc/hands.h"
#include "libchempi/didl/proc/internal.h"
#include "libchempi/didl/transport/progress/progress.h"

#define MAGIC "CHEMPIj1"
#define MAGIC_LEN (sizeof(MAGIC) - 1)

struct greeting {
    uint8_t magic[MAGIC_LEN];
    uint8_t key[CHEMPI_NOISE_KEY_BYTES];
};

struct join {
    struct chempi_keys *keys;
    struct greeting out;
    size_t out_done;
    struct greeting in;
    size_t in_done;
    bool is_called;
    struct chempi_hands hands;
};

static void end_join(void *making)
{
    struct join *join = making;

    chempi_hands_fini(&join->hands);
    chempi_hands_forget_keys(join->keys);
    free(join);
}

/* Who has greeted, and nobody else. */
static int is_greeter(void *arg, const uint8_t *key, struct chempi_err *err)
{
    const struct join *join = arg;

    return memcmp(key, join->in.key, sizeof(join->in.key)) == 0
               ? 0
               : chempi_err_set(err, -EACCES,
                                "it has greeted with another key");
}

/* 1: it was right, and the handshake has begun; 0: it is not here yet. */
static int read_greeting(struct join *join, int fd)
{
    int order =
        chempi_hands_recv(fd, &join->in, sizeof(join->in), &join->in_done);

    if (order != 1)
        return order;
    order = memcmp(join->out.key, join->in.key, sizeof(join->in.key));
    if (memcmp(join->in.magic, MAGIC, MAGIC_LEN) != 0 || order == 0)
        return -EPROTO; /* or it is our own */
    join->is_called = order < 0;
    order = chempi_hands_begin(&join->hands, !join->is_called, join->keys,
                               CHEMPI_HANDS_JOIN, is_greeter, join);
    return order ? order : 1;
}

/* 1: the other side is proven; 0: wait; -errno. */
static int shake(struct join *join, int fd)
{
    int rc =
        chempi_hands_send(fd, &join->out, sizeof(join->out), &join->out_done);

    if (rc == 1 && !join->hands.has_begun)
        rc = read_greeting(join, fd);
    while (rc == 1) {
        rc = chempi_hands_write(&join->hands, fd);
        if (rc != 1 || join->hands.is_over)
            return rc;
        rc = chempi_hands_read(&join->hands, fd);
    }
    return rc;
}

static void fail(struct chempi_exchange *x, int code)
{
    if (code == -ECONNRESET || code == -EPIPE)
        chempi_exchange_lose(x, -ECONNRESET,
                             "the other end of the socket has been closed");
    else if (code == -EPROTO || code == -EACCES)
        chempi_exchange_lose(x, -EPROTO,
                             "who has the other end of the socket does not "
                             "call MPI_Comm_join of this version");
    else
        chempi_exchange_lose(x, code, "the socket cannot be used: %s",
                             chempi_err_name(code));
}

static void advance(struct chempi_exchange *x)
{
    struct join *join = x->making;
    const int fd = x->item.fd;
    int rc = shake(join, fd);
    uint32_t events = EPOLLIN;

    if (rc == 1) {
        const bool is_first = join->is_called;
        struct chempi_seal *seal = chempi_hands_seal(&join->hands);

        if (!seal) {
            fail(x, -ENOMEM);
            return;
        }
        chempi_pollset_remove(chempi_exchange_pollset(), &x->item);
        chempi_exchange_open(x, fd, is_first, seal);
        return;
    }
    if (join->out_done < sizeof(join->out) ||
        join->hands.out_done < join->hands.out_len)
        events = EPOLLIN | EPOLLOUT;
    if (rc == 0)
        rc = chempi_exchange_ask(x, events);
    if (rc)
        fail(x, rc);
    else if (join->in_done > 0)
        chempi_exchange_greeted(x);
}

static void join_ready(struct chempi_poll_item *item, uint32_t events)
{
    (void)events; /* errors show in reading and writing */
    advance(CHEMPI_CONTAINER_OF(item, struct chempi_exchange, item));
}

static struct join *make_join(void)
{
    static const uint8_t nothing[CHEMPI_NOISE_KEY_BYTES];
    struct join *join = chempi_sys->calloc(1, sizeof(*join));

    if (!join)
        return NULL;
    join->keys = chempi_hands_make_keys(nothing);
    if (!join->keys) {
        free(join);
        return NULL;
    }
    memcpy(join->out.magic, MAGIC, MAGIC_LEN);
    memcpy(join->out.key, join->keys->node.public, sizeof(join->out.key));
    return join;
}

int chempi_exchange_join(int fd, struct chempi_exchange **out,
                         struct chempi_err *err)
{
    struct chempi_exchange *x;
    int type = 0;
    socklen_t len = sizeof(type);
    int rc;

    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0)
        return chempi_err_set(err, -errno, "descriptor %d is no socket: %s", fd,
                              chempi_err_name(errno));
    if (type != SOCK_STREAM)
        return chempi_err_set(err, -EPROTOTYPE,
                              "descriptor %d is no stream socket", fd);
    x = chempi_exchange_create();
    if (x)
        x->making = make_join();
    if (!x || !x->making) {
        chempi_exchange_close(x);
        return chempi_err_set(err, -ENOMEM, "out of memory to join");
    }
    x->end_making = end_join;
    x->at = CHEMPI_EXCHANGE_JOINING;
    x->is_users = true;
    x->item = (struct chempi_poll_item){.fd = fd, .ready = join_ready};
    rc = chempi_exchange_time(x);
    if (rc) {
        chempi_exchange_close(x);
        return chempi_err_set(err, rc, "cannot wait for the other end: %s",
                              chempi_err_name(rc));
    }
    *out = x;
    advance(x);
    return 0;
}
