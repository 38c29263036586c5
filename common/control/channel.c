/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames over a stream socket; see channel.h. */
#define _GNU_SOURCE /* MSG_NOSIGNAL */
#include "common/control/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/sys.h"

#define FIRST_CAP 4096u       /* bytes of the first input buffer */
#define FILL_BOUND (1u << 20) /* bytes taken by one fill, about */

void chempi_channel_init(struct chempi_channel *ch, int fd, uint32_t in_max,
                         size_t queue_max)
{
    *ch = (struct chempi_channel){
        .fd = fd, .in_max = in_max, .queue_max = queue_max};
}

void chempi_channel_fini(struct chempi_channel *ch)
{
    if (ch->fd >= 0)
        (void)close(ch->fd); /* a socket: nothing is lost by an error here */
    ch->fd = -1;
    free(ch->in);
    ch->in = NULL;
    ch->in_cap = ch->in_head = ch->in_len = 0;
    chempi_wire_clear(&ch->out);
    ch->out_head = 0;
}

static uint64_t load_le(const uint8_t *at, size_t len)
{
    uint64_t v = 0;

    for (size_t i = 0; i < len; i++)
        v |= (uint64_t)at[i] << (8 * i);
    return v;
}

/* Payload length that the header at in_head announces; 0 when incomplete. */
static size_t announced(const struct chempi_channel *ch)
{
    if (ch->in_len < CHEMPI_FRAME_HEADER)
        return 0;
    return (size_t)load_le(ch->in + ch->in_head, 4);
}

/* Room for at least one byte, better for the whole frame under way. */
static int make_room(struct chempi_channel *ch)
{
    size_t want = announced(ch);
    size_t cap = ch->in_cap;
    uint8_t *in;

    if (want > ch->in_max) /* C1; next() will say so */
        want = 0;
    want += CHEMPI_FRAME_HEADER;
    if (ch->in_head && ch->in_len)
        memmove(ch->in, ch->in + ch->in_head, ch->in_len);
    ch->in_head = 0;
    if (ch->in_len < cap && want <= cap)
        return 0;
    cap = cap ? cap : FIRST_CAP;
    while (cap <= ch->in_len || cap < want)
        cap *= 2;
    in = chempi_sys->realloc(ch->in, cap);
    if (!in)
        return -ENOMEM;
    ch->in = in;
    ch->in_cap = cap;
    return 0;
}

int chempi_channel_fill(struct chempi_channel *ch)
{
    size_t taken = 0;
    ssize_t n;
    int rc;

    while (taken < FILL_BOUND) {
        size_t room;

        rc = make_room(ch);
        if (rc)
            return rc;
        room = ch->in_cap - ch->in_len;
        n = chempi_sys->recv(ch->fd, ch->in + ch->in_len, room, MSG_DONTWAIT);
        if (n == 0)
            return taken ? 1 : -EPIPE;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return taken ? 1 : 0;
        if (n < 0)
            return taken ? 1 : errno == ECONNRESET ? -EPIPE : -errno;
        ch->in_len += (size_t)n;
        taken += (size_t)n;
        if ((size_t)n < room)
            return 1; /* the socket is empty: save the call that says so */
        if (announced(ch) > ch->in_max)
            return 1;
    }
    return 1;
}

int chempi_channel_next(struct chempi_channel *ch, struct chempi_frame *out)
{
    size_t len = announced(ch);
    const uint8_t *at;

    if (ch->in_len < CHEMPI_FRAME_HEADER)
        return 0;
    at = ch->in + ch->in_head;
    if (load_le(at + 6, 2) != CHEMPI_FRAME_MAGIC)
        return -EBADMSG;
    if (len > ch->in_max) /* C1 */
        return -EMSGSIZE;
    if (ch->in_len < CHEMPI_FRAME_HEADER + len)
        return 0;
    *out = (struct chempi_frame){
        .job = load_le(at + 8, 8),
        .type = (uint16_t)load_le(at + 4, 2),
        .len = (uint32_t)len,
        .data = at + CHEMPI_FRAME_HEADER,
    };
    ch->in_head += CHEMPI_FRAME_HEADER + len;
    ch->in_len -= CHEMPI_FRAME_HEADER + len;
    return 1;
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
    size_t len = ch->out.len - ch->out_frame - CHEMPI_FRAME_HEADER;
    int rc = ch->out.error;

    if (!rc && (len > UINT32_MAX || ch->out.len - ch->out_head > ch->queue_max))
        rc = -ENOBUFS;
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

int chempi_channel_flush(struct chempi_channel *ch)
{
    while (chempi_channel_has_output(ch)) {
        ssize_t n = chempi_sys->send(ch->fd, ch->out.data + ch->out_head,
                                     ch->out.len - ch->out_head,
                                     MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n >= 0) {
            ch->out_head += (size_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return 1;
        } else if (errno != EINTR) {
            return errno == ECONNRESET ? -EPIPE : -errno;
        }
    }
    ch->out.len = 0;
    ch->out_head = 0;
    return 0;
}
