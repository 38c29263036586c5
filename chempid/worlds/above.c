/* SPDX-License-Identifier: BSD-3-Clause */
/* The link of a world's launcher to the first one; see above.h. */
#define _GNU_SOURCE /* fcntl */
#include "chempid/worlds/above.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "chempid/job/exit_status.h"
#include "common/control/dynamic.h"
#include "common/control/msg.h"
#include "common/control/wire.h"

#define FLUSH_MS 1000 /* for the last words; nothing depends on them */
/* Bytes above the link's limit that questions leave to what else is said: of
 * the ends of ranks, 33 each. */
#define RESERVE (64u << 20)

/* Nobody else has one: the descriptor is a socket by which frames come. */
int chempi_above_open(struct chempi_above *above, struct chempi_frame *first,
                      struct chempi_err *err)
{
    struct pollfd p = {.fd = CHEMPI_ABOVE_FD, .events = POLLIN};
    socklen_t len = sizeof(int);
    int type;
    int rc;

    if (getsockopt(CHEMPI_ABOVE_FD, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
        fcntl(CHEMPI_ABOVE_FD, F_SETFD, FD_CLOEXEC) < 0 ||
        fcntl(CHEMPI_ABOVE_FD, F_SETFL, O_NONBLOCK) < 0)
        return chempi_err_set(err, -EBADF,
                              CHEMPI_ABOVE_OPTION
                              " is for launchers that a launcher has started");
    *above = (struct chempi_above){0};
    chempi_channel_init(&above->ch, CHEMPI_ABOVE_FD, CHEMPI_TREE_MAX,
                        CHEMPI_QUEUE_MAX);
    while ((rc = chempi_channel_next(&above->ch, first)) == 0) {
        (void)poll(&p, 1, -1);
        rc = chempi_channel_fill(&above->ch);
        if (rc < 0)
            break;
    }
    if (rc > 0 && first->type == CHEMPI_MSG_LAUNCH)
        return 0;
    rc = rc < 0 ? rc : -EBADMSG;
    chempi_channel_fini(&above->ch);
    return chempi_err_set(err, rc, "no word from the first launcher: %s",
                          chempi_err_name(rc));
}

/* ---- what is said -------------------------------------------------------- */

static void lost(struct chempi_above *above)
{
    chempi_above_unwatch(above);
    above->ops->end(above->arg, CHEMPI_EXIT_FAILURE,
                    "the launcher of its parents is lost");
}

/* A launcher that is gone is noticed by who reads. */
static int push(struct chempi_above *above, size_t reserve)
{
    const int rc = chempi_channel_end_within(&above->ch, reserve);

    if (!rc && chempi_channel_flush(&above->ch) > 0 && above->loop)
        ev_io_start(above->loop, &above->out);
    return rc;
}

/* Few, and each is waited for: a world that cannot say them ends. */
static void push_word(struct chempi_above *above)
{
    if (push(above, RESERVE) && above->loop)
        lost(above);
}

void chempi_above_started(struct chempi_above *above, uint32_t ranks)
{
    struct chempi_writer *w;

    if (above->has_answered)
        return;
    above->has_answered = above->has_started = true;
    w = chempi_channel_begin(&above->ch, CHEMPI_MSG_STARTED, 0);
    chempi_wire_put_u32(w, ranks);
    push_word(above);
}

void chempi_above_refused(struct chempi_above *above, uint32_t app,
                          const char *text)
{
    struct chempi_writer *w;

    if (above->has_answered)
        return;
    above->has_answered = true;
    w = chempi_channel_begin(&above->ch, CHEMPI_MSG_REFUSED, 0);
    chempi_wire_put_u32(w, app);
    chempi_wire_put_str(w, text);
    push_word(above);
}

/* The answer to a question that cannot be passed on (W1). */
static void deny(struct chempi_above *above, uint32_t node, uint32_t rank,
                 uint32_t serial)
{
    const struct chempi_reply reply = {
        .serial = serial,
        .state = CHEMPI_REPLY_FAILED,
        .error = CHEMPI_REPLY_MEMORY,
        .text = "the first launcher does not take questions as fast as they "
                "come, or there is no memory to keep them"};
    uint8_t data[256];
    struct chempi_writer w;

    chempi_wire_fix(&w, data, sizeof(data));
    chempi_wire_put_u32(&w, node);
    chempi_wire_put_u32(&w, rank);
    chempi_reply_write(&reply, &w);
    above->ops->replied(above->arg, w.data, w.len);
}

void chempi_above_ask(struct chempi_above *above, const void *data, size_t len)
{
    struct chempi_writer *w =
        chempi_channel_begin(&above->ch, CHEMPI_MSG_ROOT_REQUEST, 0);
    struct chempi_reader r;
    uint32_t node;
    uint32_t rank;
    uint32_t serial;

    chempi_wire_read(&r, data, len);
    node = chempi_wire_get_u32(&r);
    rank = chempi_wire_get_u32(&r);
    serial = chempi_wire_get_u32(&r);
    chempi_wire_put_raw(w, data, len);
    if (serial == 0) /* the rank's end */
        push_word(above);
    else if (push(above, 0))
        deny(above, node, rank, serial);
}

void chempi_above_gone(struct chempi_above *above, const char *text)
{
    struct chempi_writer *w =
        chempi_channel_begin(&above->ch, CHEMPI_MSG_GONE, 0);

    chempi_wire_put_str(w, text);
    push_word(above);
}

/* ---- what is heard ------------------------------------------------------- */

static int take(struct chempi_above *above, const struct chempi_frame *frame)
{
    struct chempi_reader r;
    uint32_t number;
    const char *text;

    chempi_wire_read(&r, frame->data, frame->len);
    switch (frame->type) {
    case CHEMPI_MSG_ROOT_REPLY:
        above->ops->replied(above->arg, frame->data, frame->len);
        return 0;
    case CHEMPI_MSG_SIGNAL:
        number = chempi_wire_get_u32(&r);
        if (!chempi_wire_is_done(&r))
            return -EBADMSG;
        above->ops->signalled(above->arg, number);
        return 0;
    case CHEMPI_MSG_KILL:
        number = chempi_wire_get_u32(&r);
        text = chempi_wire_get_str(&r, CHEMPI_TEXT_MAX);
        if (!chempi_wire_is_done(&r) || number > UINT8_MAX)
            return -EBADMSG;
        above->ops->end(above->arg, (int)number, text);
        return 0;
    default:
        return -EBADMSG;
    }
}

static void is_readable(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_above *above = w->data;
    struct chempi_frame frame;
    int filled = chempi_channel_fill(&above->ch);
    int rc;

    (void)loop;
    (void)events;
    while ((rc = chempi_channel_next(&above->ch, &frame)) == 1) {
        rc = take(above, &frame);
        if (rc)
            break;
    }
    if (rc < 0 || filled < 0)
        lost(above);
}

static void is_writable(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_above *above = w->data;

    (void)events;
    if (chempi_channel_flush(&above->ch) <= 0)
        ev_io_stop(loop, w);
}

void chempi_above_watch(struct chempi_above *above, struct ev_loop *loop,
                        const struct chempi_above_ops *ops, void *arg)
{
    above->loop = loop;
    above->ops = ops;
    above->arg = arg;
    ev_io_init(&above->in, is_readable, above->ch.fd, EV_READ);
    ev_io_init(&above->out, is_writable, above->ch.fd, EV_WRITE);
    above->in.data = above->out.data = above;
    ev_io_start(loop, &above->in);
    if (chempi_channel_has_output(&above->ch))
        ev_io_start(loop, &above->out);
}

void chempi_above_unwatch(struct chempi_above *above)
{
    if (!above->loop)
        return;
    ev_io_stop(above->loop, &above->in);
    ev_io_stop(above->loop, &above->out);
    above->loop = NULL;
}

void chempi_above_close(struct chempi_above *above)
{
    struct pollfd p = {.fd = above->ch.fd, .events = POLLOUT};

    chempi_above_unwatch(above);
    while (chempi_channel_flush(&above->ch) > 0 && poll(&p, 1, FLUSH_MS) > 0)
        ;
    chempi_channel_fini(&above->ch);
}
