/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames over a stream socket; see channel.h. */
#define _GNU_SOURCE /* MSG_NOSIGNAL */
#include "common/control/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/auth/seal.h"
#include "common/base/sys.h"
#include "common/fd/rights.h"

#define FIRST_CAP 4096u       /* bytes of the first input buffer */
#define KEEP_CAP (128u << 10) /* bytes of a buffer that is kept */
#define FILL_BOUND (1u << 20) /* bytes taken by one fill, about */

void chempi_channel_init(struct chempi_channel *ch, int fd, uint32_t in_max,
                         size_t queue_max)
{
    *ch = (struct chempi_channel){
        .fd = fd, .in_max = in_max, .queue_max = queue_max};
}

/* The channel holds so many bytes now, or shall. */
static int pay(struct chempi_channel *ch, size_t bytes)
{
    struct chempi_purse *p = ch->purse;

    if (!p || bytes == ch->paid)
        return 0;
    if (bytes > ch->paid && bytes - ch->paid > p->max - p->used)
        return -EDQUOT;
    p->used += bytes - ch->paid; /* either way: modulo arithmetic */
    ch->paid = bytes;
    return 0;
}

void chempi_channel_fini(struct chempi_channel *ch)
{
    if (ch->fd >= 0 && ch->is_wary)
        chempi_rights_close(ch->fd);
    else if (ch->fd >= 0)
        (void)close(ch->fd); /* a socket: nothing is lost by an error here */
    ch->fd = -1;
    free(ch->in);
    ch->in = NULL;
    ch->in_cap = ch->in_head = ch->in_len = 0;
    chempi_wire_clear(&ch->out);
    ch->out_head = 0;
    (void)pay(ch, 0);
    chempi_seal_destroy(ch->seal);
    ch->seal = NULL;
}

int chempi_channel_seal(struct chempi_channel *ch,
                        const struct chempi_noise_cipher *tx,
                        const struct chempi_noise_cipher *rx)
{
    ch->seal = chempi_seal_create(tx, rx);
    return ch->seal ? 0 : -ENOMEM;
}

/* Payload length that the header at in_head announces; 0 when incomplete. */
static size_t announced(const struct chempi_channel *ch)
{
    struct chempi_reader r;

    if (ch->in_len < CHEMPI_FRAME_HEADER)
        return 0;
    chempi_wire_read(&r, ch->in + ch->in_head, CHEMPI_FRAME_HEADER);
    return chempi_wire_get_u32(&r);
}

/* As much as a frame may need. */
static size_t most(const struct chempi_channel *ch)
{
    return CHEMPI_FRAME_HEADER + (size_t)ch->in_max;
}

/* Twice the room, up to that of one frame, but for so many bytes more (C5). */
static size_t next_cap(const struct chempi_channel *ch, size_t least)
{
    size_t cap = ch->in_cap < FIRST_CAP / 2 ? FIRST_CAP : 2 * ch->in_cap;

    if (cap > most(ch))
        cap = most(ch);
    return cap > ch->in_len + least ? cap : ch->in_len + least;
}

static int make_room(struct chempi_channel *ch, size_t least)
{
    uint8_t *in;
    size_t cap;
    int rc;

    if (ch->in_head && ch->in_len)
        memmove(ch->in, ch->in + ch->in_head, ch->in_len);
    ch->in_head = 0;
    if (ch->in_len + least <= ch->in_cap)
        return 0;
    cap = next_cap(ch, least);
    rc = pay(ch, cap + ch->out.cap);
    if (rc)
        return rc;
    in = chempi_sys->realloc(ch->in, cap);
    if (!in)
        return -ENOMEM;
    ch->in = in;
    ch->in_cap = cap;
    return 0;
}

/* Read once: bytes, 0: end of stream, -errno. is_dry: the socket is empty,
 * which saves the call that says so. */
static ssize_t read_plain(struct chempi_channel *ch, bool *is_dry)
{
    size_t room;
    ssize_t n;
    int rc;

    if (ch->in_len >= most(ch)) { /* next() takes it first */
        *is_dry = true;
        return 1;
    }
    rc = make_room(ch, 1);
    if (rc)
        return rc;
    room = ch->in_cap - ch->in_len;
    n = ch->is_wary
            ? chempi_rights_recv(ch->fd, ch->in + ch->in_len, room)
            : chempi_sys->recv(ch->fd, ch->in + ch->in_len, room, MSG_DONTWAIT);
    if (n < 0)
        return -errno;
    ch->in_len += (size_t)n;
    *is_dry = (size_t)n < room;
    return n;
}

static ssize_t read_sealed(struct chempi_channel *ch, bool *is_dry)
{
    ssize_t len = chempi_seal_next(ch->seal);
    ssize_t n = 1; /* there was no memory for what waits here */
    int rc;

    if (len == 0)
        n = chempi_seal_fill(ch->seal, ch->fd, is_dry);
    if (n <= 0)
        return n;
    while (announced(ch) <= ch->in_max &&
           (len = chempi_seal_next(ch->seal)) > 0) {
        rc = make_room(ch, (size_t)len);
        if (!rc)
            rc = chempi_seal_open(ch->seal, ch->in + ch->in_len);
        if (rc)
            return rc == -EBADMSG ? -EKEYREJECTED : rc;
        ch->in_len += (size_t)len;
    }
    return len < 0 ? -EKEYREJECTED : n;
}

int chempi_channel_fill(struct chempi_channel *ch)
{
    size_t taken = 0;
    bool is_dry = false;

    while (taken < FILL_BOUND && !is_dry && announced(ch) <= ch->in_max) {
        const ssize_t n =
            ch->seal ? read_sealed(ch, &is_dry) : read_plain(ch, &is_dry);

        if (n == -EINTR)
            continue;
        if (n == -ENOMEM || n == -EKEYREJECTED || n == -EOVERFLOW ||
            n == -EDQUOT || n == -EPERM)
            return (int)n;
        if (n == 0)
            return taken ? 1 : -EPIPE;
        if (n == -EAGAIN)
            return taken ? 1 : 0;
        if (n < 0)
            return taken ? 1 : n == -ECONNRESET ? -EPIPE : (int)n;
        taken += (size_t)n;
    }
    return 1;
}

int chempi_channel_next(struct chempi_channel *ch, struct chempi_frame *out)
{
    struct chempi_frame frame;
    struct chempi_reader r;

    if (ch->in_len < CHEMPI_FRAME_HEADER)
        return 0;
    chempi_wire_read(&r, ch->in + ch->in_head, ch->in_len);
    frame.len = chempi_wire_get_u32(&r);
    frame.type = chempi_wire_get_u16(&r);
    if (chempi_wire_get_u16(&r) != CHEMPI_FRAME_MAGIC)
        return -EBADMSG;
    frame.job = chempi_wire_get_u64(&r);
    frame.data = r.next;
    if (frame.len > ch->in_max) /* C1 */
        return -EMSGSIZE;
    if (ch->in_len - CHEMPI_FRAME_HEADER < frame.len)
        return 0;
    *out = frame;
    ch->in_head += CHEMPI_FRAME_HEADER + (size_t)frame.len;
    ch->in_len -= CHEMPI_FRAME_HEADER + (size_t)frame.len;
    return 1;
}

/* What is spare stays. */
static void shrink_out(struct chempi_channel *ch)
{
    uint8_t *data;

    ch->out.len = 0;
    ch->out_head = 0;
    if (ch->out.cap <= KEEP_CAP)
        return;
    if (!ch->spare) {
        chempi_wire_clear(&ch->out);
        return;
    }
    data = chempi_sys->realloc(ch->out.data, KEEP_CAP);
    if (!data)
        return; /* it stays large */
    ch->out.data = data;
    ch->out.cap = KEEP_CAP;
}

int chempi_channel_keep(struct chempi_channel *ch)
{
    struct chempi_writer *w = &ch->out;
    int rc;

    if (!ch->spare || w->cap - w->len >= ch->spare)
        return 0;
    if (chempi_wire_reserve(w, ch->spare))
        w->len -= ch->spare;
    rc = w->error;
    w->error = 0;
    return rc;
}

void chempi_channel_rest(struct chempi_channel *ch)
{
    if (ch->in_len == 0 && ch->in_cap > KEEP_CAP) {
        free(ch->in);
        ch->in = NULL;
        ch->in_cap = ch->in_head = 0;
    }
    (void)pay(ch, ch->in_cap + ch->out.cap); /* more has been paid before */
}

/* Forget what is written, so that the queue does not creep upwards. */
static void compact(struct chempi_channel *ch)
{
    size_t left = ch->out.len - ch->out_head;

    if (left)
        memmove(ch->out.data, ch->out.data + ch->out_head, left);
    ch->out.len = left;
    ch->out_head = 0;
}

struct chempi_writer *chempi_channel_begin(struct chempi_channel *ch,
                                           uint16_t type, uint64_t job)
{
    if (ch->out_head > ch->out.len / 2)
        compact(ch);
    ch->out_frame = ch->out.len;
    chempi_wire_put_u32(&ch->out, 0); /* length: end() knows it */
    chempi_wire_put_u16(&ch->out, type);
    chempi_wire_put_u16(&ch->out, CHEMPI_FRAME_MAGIC);
    chempi_wire_put_u64(&ch->out, job);
    return &ch->out;
}

int chempi_channel_end(struct chempi_channel *ch)
{
    return chempi_channel_end_within(ch, 0);
}

int chempi_channel_end_within(struct chempi_channel *ch, size_t reserve)
{
    const size_t len = ch->out.len - ch->out_frame - CHEMPI_FRAME_HEADER;
    const size_t queued = ch->out.len - ch->out_head;
    int rc = ch->out.error;

    if (!rc && (len > UINT32_MAX || queued > ch->queue_max + reserve))
        rc = -ENOBUFS;
    if (!rc && !reserve)
        rc = chempi_channel_keep(ch);
    if (!rc)
        rc = pay(ch, ch->in_cap + ch->out.cap);
    if (rc) { /* take the half frame back: the stream stays whole */
        ch->out.len = ch->out_frame;
        ch->out.error = 0;
        return rc;
    }
    for (size_t i = 0; i < 4; i++)
        ch->out.data[ch->out_frame + i] = (uint8_t)(len >> (8 * i));
    return 0;
}

int chempi_channel_send(struct chempi_channel *ch, uint16_t type, uint64_t job,
                        const void *data, size_t len)
{
    chempi_wire_put_raw(chempi_channel_begin(ch, type, job), data, len);
    return chempi_channel_end(ch);
}

bool chempi_channel_has_output(const struct chempi_channel *ch)
{
    return ch->out.len > ch->out_head || (ch->seal && ch->seal->out.len);
}

/* Bytes of the queue that are on their way: written, or sealed. */
static ssize_t write_some(struct chempi_channel *ch)
{
    const uint8_t *data = ch->out.data + ch->out_head;
    const size_t len = ch->out.len - ch->out_head;
    ssize_t n;

    if (ch->seal) /* the queue may be empty, and what is sealed not yet */
        return len ? chempi_seal_put(ch->seal, data, len) : 0;
    n = chempi_sys->send(ch->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    return n < 0 ? -errno : n;
}

int chempi_channel_flush(struct chempi_channel *ch)
{
    while (chempi_channel_has_output(ch)) {
        ssize_t n = write_some(ch);

        if (n >= 0)
            ch->out_head += (size_t)n;
        if (n >= 0 && ch->seal)
            n = chempi_seal_flush(ch->seal, ch->fd);
        if (n == -EAGAIN || (ch->seal && n == 1))
            return 1;
        if (n < 0 && n != -EINTR)
            return n == -ECONNRESET ? -EPIPE : (int)n;
    }
    shrink_out(ch);
    return 0;
}
