/* SPDX-License-Identifier: BSD-3-Clause */
/* Sealed records over a stream socket; see seal.h. */
#define _GNU_SOURCE /* MSG_NOSIGNAL */
#include "common/auth/seal.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/secret.h"
#include "common/base/sys.h"

#define HEADER 2u /* bytes before a sealed message */
#define RECORD_MAX (HEADER + CHEMPI_SEAL_PLAIN_MAX + CHEMPI_NOISE_TAG_BYTES)
#define FIRST_CAP 2048u /* bytes of a buffer for small messages */

_Static_assert(RECORD_MAX - HEADER <= CHEMPI_NOISE_MSG_MAX, "a Noise message");
_Static_assert(RECORD_MAX <= CHEMPI_SEAL_BUFFER, "a record fits");

struct chempi_seal *chempi_seal_create(const struct chempi_noise_cipher *tx,
                                       const struct chempi_noise_cipher *rx)
{
    struct chempi_seal *s = chempi_secret_create(sizeof(*s));

    if (!s)
        return NULL;
    *s = (struct chempi_seal){.tx = *tx, .rx = *rx};
    return s;
}

static void drop(struct chempi_seal_buffer *b)
{
    free(b->data);
    *b = (struct chempi_seal_buffer){0};
}

void chempi_seal_destroy(struct chempi_seal *s)
{
    if (!s)
        return;
    drop(&s->out);
    drop(&s->in);
    chempi_secret_destroy(s, sizeof(*s));
}

/* Bytes that may be added, of `want`; the buffer grows to its bound (S3). */
static size_t make_room(struct chempi_seal_buffer *b, size_t want)
{
    size_t cap = b->cap ? b->cap : FIRST_CAP;
    uint8_t *data;

    if (b->head && b->len)
        memmove(b->data, b->data + b->head, b->len);
    b->head = 0;
    while (cap < b->len + want && cap < CHEMPI_SEAL_BUFFER)
        cap *= 2;
    if (cap > b->cap) {
        data = chempi_sys->realloc(b->data, cap);
        if (!data)
            return b->cap - b->len;
        b->data = data;
        b->cap = cap;
    }
    return b->cap - b->len;
}

static void consume(struct chempi_seal_buffer *b, size_t len)
{
    b->head += len;
    b->len -= len;
    if (b->len == 0)
        drop(b); /* an idle link holds none */
}

/* ---- out ----------------------------------------------------------------- */

static int put_record(struct chempi_seal *s, const uint8_t *data, size_t len)
{
    uint8_t *at = s->out.data + s->out.head + s->out.len;
    const size_t sealed = len + CHEMPI_NOISE_TAG_BYTES;
    int rc = chempi_noise_seal(&s->tx, data, len, at + HEADER);

    if (rc)
        return rc;
    at[0] = (uint8_t)sealed;
    at[1] = (uint8_t)(sealed >> 8);
    s->out.len += HEADER + sealed;
    return 0;
}

ssize_t chempi_seal_put(struct chempi_seal *s, const uint8_t *data, size_t len)
{
    const size_t extra = HEADER + CHEMPI_NOISE_TAG_BYTES;
    size_t taken = 0;

    while (taken < len) {
        const size_t rest = len - taken;
        const size_t n =
            rest < CHEMPI_SEAL_PLAIN_MAX ? rest : CHEMPI_SEAL_PLAIN_MAX;
        int rc;

        if (make_room(&s->out, extra + n) < extra + n)
            return taken || s->out.len ? (ssize_t)taken : -ENOMEM;
        rc = put_record(s, data + taken, n);
        if (rc)
            return rc;
        taken += n;
    }
    return (ssize_t)taken;
}

/* Standard streams may be pipes. */
static ssize_t write_to(int fd, const uint8_t *data, size_t len)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    const ssize_t n =
        chempi_sys->send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n >= 0 || errno != ENOTSOCK)
        return n;
    if (poll(&p, 1, 0) <= 0) {
        errno = EAGAIN;
        return -1;
    }
    return chempi_sys->write(fd, data, len < PIPE_BUF ? len : PIPE_BUF);
}

static ssize_t read_from(int fd, uint8_t *data, size_t len)
{
    const ssize_t n = chempi_sys->recv(fd, data, len, MSG_DONTWAIT);

    return n < 0 && errno == ENOTSOCK ? chempi_sys->read(fd, data, len) : n;
}

int chempi_seal_flush(struct chempi_seal *s, int fd)
{
    while (s->out.len) {
        const ssize_t n = write_to(fd, s->out.data + s->out.head, s->out.len);

        if (n >= 0)
            consume(&s->out, (size_t)n);
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return 1;
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

/* ---- in ------------------------------------------------------------------ */

/* There is room for len bytes. */
static ssize_t fill(struct chempi_seal *s, int fd, size_t len)
{
    ssize_t n = read_from(fd, s->in.data + s->in.len, len);

    if (n < 0)
        n = -errno;
    else
        s->in.len += (size_t)n;
    if (s->in.len == 0)
        drop(&s->in);
    return n;
}

ssize_t chempi_seal_fill(struct chempi_seal *s, int fd, bool *is_dry)
{
    const size_t room = make_room(&s->in, RECORD_MAX);
    ssize_t n;

    if (room == 0)
        return -ENOMEM;
    n = fill(s, fd, room);
    *is_dry = n >= 0 && (size_t)n < room;
    return n;
}

static size_t sealed_bytes(const struct chempi_seal *s)
{
    const uint8_t *at = s->in.data + s->in.head;

    return (size_t)at[0] | (size_t)at[1] << 8;
}

static bool is_possible(size_t sealed)
{
    return sealed > CHEMPI_NOISE_TAG_BYTES && sealed <= RECORD_MAX - HEADER;
}

ssize_t chempi_seal_fill_record(struct chempi_seal *s, int fd)
{
    size_t want = HEADER;

    if (s->in.len >= HEADER) {
        want += sealed_bytes(s);
        if (!is_possible(want - HEADER) || s->in.len >= want)
            return -EBADMSG;
    }
    want -= s->in.len;
    return make_room(&s->in, want) < want ? -ENOMEM : fill(s, fd, want);
}

ssize_t chempi_seal_next(const struct chempi_seal *s)
{
    size_t sealed;

    if (s->in.len < HEADER)
        return 0;
    sealed = sealed_bytes(s);
    if (!is_possible(sealed))
        return -EBADMSG;
    return s->in.len < HEADER + sealed
               ? 0
               : (ssize_t)(sealed - CHEMPI_NOISE_TAG_BYTES);
}

int chempi_seal_open(struct chempi_seal *s, uint8_t *out)
{
    const size_t sealed = sealed_bytes(s);
    int rc = chempi_noise_open(&s->rx, s->in.data + s->in.head + HEADER, sealed,
                               out);

    if (!rc)
        consume(&s->in, HEADER + sealed);
    return rc;
}
