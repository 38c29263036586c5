/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Standard streams of a node's ranks; see super.h.
 *
 * Output is passed on in whole lines, so that lines of different ranks never
 * mix; the beginning of a line (a prompt) is passed on when nothing has
 * completed it for a while. Input is copied to each rank that gets it; the
 * slowest one sets the pace.
 */
#define _GNU_SOURCE /* memrchr */
#include "chempid/supervisor/super.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/sys.h"

/* How long the beginning of a line is held. */
#define LINE_WAIT_NS (100 * CHEMPI_NS_PER_MS)

static void send_output(struct chempi_stream *st, const char *a, size_t a_len,
                        const char *b, size_t b_len)
{
    struct chempi_super *s = st->super;
    struct chempi_writer *w;

    if (a_len + b_len == 0)
        return;
    w = chempi_link_begin(&s->up, CHEMPI_MSG_OUTPUT, s->spec->job);
    chempi_wire_put_u32(w, s->node);
    chempi_wire_put_u32(w, st->rank);
    chempi_wire_put_u8(w, st->number);
    chempi_wire_put_u32(w, (uint32_t)(a_len + b_len));
    chempi_wire_put_raw(w, a, a_len);
    chempi_wire_put_raw(w, b, b_len);
    chempi_link_end(&s->up);
    s->unshown += (uint32_t)(a_len + b_len);
}

static void flush_held(struct chempi_stream *st)
{
    send_output(st, st->held, st->held_len, NULL, 0);
    st->held_len = 0;
}

static void wait_for_line(struct chempi_super *s, uint64_t ns)
{
    s->line_timer.repeat = (double)ns / (double)CHEMPI_NS_PER_S;
    ev_timer_again(s->loop, &s->line_timer);
}

/* Keep the beginning of a line; without memory, or when it is very long, it
 * goes as it is. */
static void hold(struct chempi_stream *st, const char *text, size_t len)
{
    struct chempi_super *s = st->super;

    if (!st->held && len)
        st->held = chempi_sys->malloc(CHEMPI_OUTPUT_CHUNK);
    if (!st->held || st->held_len + len > CHEMPI_OUTPUT_CHUNK) {
        send_output(st, st->held, st->held_len, text, len);
        st->held_len = 0;
        return;
    }
    if (len == 0)
        return;
    if (st->held_len == 0)
        st->held_ns = chempi_clock_ns();
    memcpy(st->held + st->held_len, text, len);
    st->held_len += len;
    if (!ev_is_active(&s->line_timer))
        wait_for_line(s, LINE_WAIT_NS);
}

static void take_text(struct chempi_stream *st, const char *text, size_t len)
{
    const char *nl = memrchr(text, '\n', len);
    const size_t whole = nl ? (size_t)(nl - text) + 1 : 0;

    if (whole) {
        send_output(st, st->held, st->held_len, text, whole);
        st->held_len = 0;
    }
    hold(st, text + whole, len - whole);
}

void chempi_streams_close(struct chempi_stream *st)
{
    if (st->fd < 0)
        return;
    ev_io_stop(st->super->loop, &st->io);
    (void)close(st->fd); /* the reading end of a pipe */
    st->fd = -1;
    flush_held(st);
    free(st->held);
    st->held = NULL;
}

static void pause_all(struct chempi_super *s, bool is_paused)
{
    s->is_paused = is_paused;
    for (uint32_t i = 0; i < s->local_size; i++) {
        for (int k = 0; k < 2; k++) {
            struct chempi_stream *st = &s->ranks[i].streams[k];

            if (st->fd < 0)
                continue;
            if (is_paused)
                ev_io_stop(s->loop, &st->io);
            else
                ev_io_start(s->loop, &st->io);
        }
    }
}

/* What a rank has written is not shown: its job shall not end as if it were. */
static void lose_text(const struct chempi_stream *st, int code)
{
    const struct chempi_super *s = st->super;
    char text[96];

    (void)snprintf(text, sizeof(text), "its output cannot be read: %s",
                   chempi_err_name(code));
    for (uint32_t i = 0; i < s->local_size; i++)
        if (s->ranks[i].world == st->rank)
            chempi_tell_ended(&s->ranks[i], CHEMPI_END_ABORT, 1, text);
}

/* One read; returns false when there is no more now. */
static bool take_some(struct chempi_stream *st)
{
    struct chempi_super *s = st->super;
    ssize_t n;

    do /* drain() takes "no more now" for the end */
        n = chempi_sys->read(st->fd, s->text, CHEMPI_OUTPUT_CHUNK);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n < 0)
        lose_text(st, -errno);
    if (n <= 0) {
        chempi_streams_close(st);
        return false;
    }
    take_text(st, s->text, (size_t)n);
    if (s->unshown >= CHEMPI_OUTPUT_WINDOW && !s->is_paused)
        pause_all(s, true); /* P4 */
    return true;
}

static void readable(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_stream *st = w->data;

    (void)loop;
    (void)events;
    (void)take_some(st); /* once: others want their turn */
    if (st->fd < 0)
        chempi_tell_done(st->super);
}

void chempi_streams_drain(struct chempi_super *s)
{
    for (uint32_t i = 0; i < s->local_size; i++) {
        for (int k = 0; k < 2; k++) {
            struct chempi_stream *st = &s->ranks[i].streams[k];

            while (st->fd >= 0 && !s->is_paused && take_some(st))
                ;
            if (!s->is_paused)
                chempi_streams_close(st);
        }
    }
}

void chempi_streams_credit(struct chempi_super *s, uint32_t bytes)
{
    s->unshown -= bytes < s->unshown ? bytes : s->unshown;
    if (!s->is_paused || s->unshown > CHEMPI_OUTPUT_WINDOW / 2)
        return;
    pause_all(s, false);
    if (!s->has_children)
        chempi_streams_drain(s);
    chempi_tell_done(s);
}

void chempi_streams_open(struct chempi_super *s, struct chempi_stream *st,
                         int fd, uint32_t rank, uint8_t number)
{
    *st = (struct chempi_stream){
        .super = s, .rank = rank, .number = number, .fd = fd};
    ev_io_init(&st->io, readable, fd, EV_READ);
    st->io.data = st;
    ev_io_start(s->loop, &st->io);
}

/* For how long this beginning of a line is held yet, ns. */
static uint64_t time_left(const struct chempi_stream *st, uint64_t now_ns)
{
    const uint64_t until_ns = st->held_ns + LINE_WAIT_NS;

    return until_ns > now_ns ? until_ns - now_ns : 0;
}

/* It was held for long enough; but its end may have come, and nobody has had
 * time to read it. */
static void show_late(struct chempi_stream *st)
{
    if (!st->super->is_paused)
        (void)take_some(st);
    if (time_left(st, chempi_clock_ns()) == 0)
        flush_held(st);
    if (st->fd < 0)
        chempi_tell_done(st->super);
}

/* Of one stream, at least: those of others are held for as long as it was. */
static void line_is_late(struct ev_loop *loop, ev_timer *w, int events)
{
    const uint64_t now_ns = chempi_clock_ns();
    struct chempi_super *s = w->data;
    uint64_t next_ns = UINT64_MAX;

    (void)events;
    ev_timer_stop(loop, w);
    for (uint32_t i = 0; i < s->local_size; i++)
        for (int k = 0; k < 2; k++) {
            struct chempi_stream *st = &s->ranks[i].streams[k];

            if (st->held_len && time_left(st, now_ns) == 0)
                show_late(st);
            if (st->held_len && time_left(st, now_ns) < next_ns)
                next_ns = time_left(st, now_ns);
        }
    if (next_ns != UINT64_MAX)
        wait_for_line(s, next_ns);
}

void chempi_streams_init(struct chempi_super *s)
{
    ev_timer_init(&s->line_timer, line_is_late, 0, 0);
    s->line_timer.data = s;
}

/* ---- input --------------------------------------------------------------- */

/* Bytes held for the slowest target. */
static size_t longest_feed(const struct chempi_super *s)
{
    size_t len = 0;

    for (uint32_t i = 0; i < s->local_size; i++)
        if (s->ranks[i].feed.fd >= 0 && s->ranks[i].feed.len > len)
            len = s->ranks[i].feed.len;
    return len;
}

static void say_eaten(struct chempi_super *s, size_t bytes)
{
    struct chempi_writer *w;

    if (bytes == 0)
        return;
    w = chempi_link_begin(&s->up, CHEMPI_MSG_EATEN, s->spec->job);
    chempi_wire_put_u32(w, s->node);
    chempi_wire_put_u32(w, (uint32_t)bytes);
    chempi_link_end(&s->up);
}

void chempi_streams_close_feed(struct chempi_feed *feed)
{
    if (feed->fd < 0)
        return;
    ev_io_stop(feed->super->loop, &feed->io);
    (void)close(feed->fd); /* a pipe: what it took is the rank's */
    feed->fd = -1;
    free(feed->data);
    feed->data = NULL;
    feed->len = 0;
}

/* A write to a pipe whose reader is gone fails with EPIPE (SIGPIPE is
 * ignored): the rank wants no more input, which is its right. */
static void pump(struct chempi_feed *feed)
{
    while (feed->len) {
        ssize_t n = chempi_sys->write(feed->fd, feed->data, feed->len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) {
            chempi_streams_close_feed(feed);
            return;
        }
        feed->len -= (size_t)n;
        memmove(feed->data, feed->data + n, feed->len);
    }
    if (feed->len)
        ev_io_start(feed->super->loop, &feed->io);
    else if (feed->is_last)
        chempi_streams_close_feed(feed);
    else
        ev_io_stop(feed->super->loop, &feed->io);
}

static void writable(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_feed *feed = w->data;
    struct chempi_super *s = feed->super;
    const size_t before = longest_feed(s);

    (void)loop;
    (void)events;
    pump(feed);
    say_eaten(s, before - longest_feed(s));
}

void chempi_streams_open_feed(struct chempi_super *s, struct chempi_feed *feed,
                              int fd)
{
    *feed = (struct chempi_feed){.super = s, .fd = fd};
    if (fd < 0)
        return;
    ev_io_init(&feed->io, writable, fd, EV_WRITE);
    feed->io.data = feed;
}

static int append(struct chempi_feed *feed, const void *data, size_t len)
{
    if (!feed->data)
        feed->data = chempi_sys->malloc(CHEMPI_STDIN_WINDOW);
    if (!feed->data)
        return -ENOMEM;
    memcpy(feed->data + feed->len, data, len);
    feed->len += len;
    return 0;
}

int chempi_streams_feed(struct chempi_super *s, const void *data, size_t len)
{
    const size_t before = longest_feed(s);
    int rc = 0;

    if (before + len > CHEMPI_STDIN_WINDOW)
        return -EBADMSG;
    for (uint32_t i = 0; !rc && i < s->local_size; i++) {
        struct chempi_feed *feed = &s->ranks[i].feed;

        if (feed->fd < 0)
            continue;
        if (len == 0)
            feed->is_last = true;
        else
            rc = append(feed, data, len);
        if (!rc)
            pump(feed);
    }
    say_eaten(s, before + len - longest_feed(s));
    return rc;
}
