/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher's standard streams; see console.h. */
#define _GNU_SOURCE /* tcgetpgrp, memrchr */
#include "chempid/launcher/console.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "common/control/msg.h"

#define CHUNK 4096u             /* bytes a writable pipe takes, all or none */
#define CREDIT_STEP (64u << 10) /* bytes owed before credit is sent */
#define GONE UINT32_MAX         /* instead of what a target has not eaten */

/* ---- output -------------------------------------------------------------- */

static void send_credit(struct chempi_console *c)
{
    for (uint32_t i = 0; i < c->node_count; i++) {
        const uint32_t owed = c->owed[i];

        if (owed < CREDIT_STEP)
            continue;
        c->owed[i] = 0;
        c->ops->credit(c->arg, i, owed);
    }
}

static void break_outlet(struct chempi_outlet *o, int code)
{
    struct chempi_console *c = o->console;

    o->is_broken = true;
    o->head = o->queue.len = 0;
    ev_io_stop(c->loop, &o->io);
    c->ops->broken(c->arg, o->number, code);
}

static bool is_ready(const struct chempi_outlet *o)
{
    struct pollfd p = {.fd = o->fd, .events = POLLOUT};

    return o->is_regular || poll(&p, 1, 0) > 0;
}

static ssize_t put(const struct chempi_outlet *o, const void *data, size_t len)
{
    if (o->is_socket)
        return chempi_sys->send(o->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    return chempi_sys->write(o->fd, data, len);
}

/* What is written at once: whole lines, if there are any. */
static size_t next_len(const struct chempi_outlet *o)
{
    const uint8_t *data = o->queue.data + o->head;
    const size_t len = o->queue.len - o->head;
    const uint8_t *end;

    if (o->is_regular || len <= CHUNK)
        return len;
    end = memrchr(data, '\n', CHUNK);
    return end ? (size_t)(end - data) + 1 : CHUNK;
}

/* Write what goes without waiting; true when the queue is empty. */
static bool pump(struct chempi_outlet *o)
{
    while (o->head < o->queue.len && is_ready(o)) {
        const ssize_t n = put(o, o->queue.data + o->head, next_len(o));

        if (n > 0) {
            o->head += (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            break;
        } else if (n < 0 && errno != EINTR) {
            break_outlet(o, -errno);
            return true;
        }
    }
    if (o->head < o->queue.len)
        return false;
    o->head = o->queue.len = o->words = 0;
    return true;
}

static void flush(struct chempi_outlet *o)
{
    struct chempi_console *c = o->console;

    if (!pump(o)) {
        ev_io_start(c->loop, &o->io);
        return;
    }
    ev_io_stop(c->loop, &o->io);
    if (chempi_console_is_empty(c))
        send_credit(c); /* O2 */
}

static void writable(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_outlet *o = w->data;
    struct chempi_console *c = o->console;

    (void)loop;
    (void)events;
    flush(o);
    if (chempi_console_is_empty(c))
        c->ops->empty(c->arg);
}

/* The day's time here, with milliseconds. */
static size_t put_time(char *text, size_t size)
{
    struct timespec now;
    struct tm day;

    if (clock_gettime(CLOCK_REALTIME, &now) < 0 ||
        !localtime_r(&now.tv_sec, &day))
        return 0;
    return (size_t)snprintf(text, size, "%02d:%02d:%02d.%03ld ", day.tm_hour,
                            day.tm_min, day.tm_sec, now.tv_nsec / 1000000);
}

static void append_label(struct chempi_outlet *o, uint32_t rank)
{
    char label[64];
    size_t n = 0;

    if (o->console->has_time)
        n = put_time(label, sizeof(label));
    if (o->console->has_label && o->console->world)
        n += (size_t)snprintf(label + n, sizeof(label) - n, "[%u.%u] ",
                              o->console->world, rank);
    else if (o->console->has_label)
        n += (size_t)snprintf(label + n, sizeof(label) - n, "[%u] ", rank);
    chempi_wire_put_raw(&o->queue, label, n);
}

static void append_labelled(struct chempi_outlet *o, uint32_t rank,
                            const char *text, size_t len)
{
    if (o->open_rank != CHEMPI_NODE_ANY && o->open_rank != rank) {
        chempi_wire_put_raw(&o->queue, "\n", 1);
        o->open_rank = CHEMPI_NODE_ANY;
    }
    while (len) {
        const char *nl = memchr(text, '\n', len);
        const size_t n = nl ? (size_t)(nl - text) + 1 : len;

        if (o->open_rank != rank)
            append_label(o, rank);
        chempi_wire_put_raw(&o->queue, text, n);
        o->open_rank = nl ? CHEMPI_NODE_ANY : rank;
        text += n;
        len -= n;
    }
}

/* Write as much as goes now. */
static void set_off(struct chempi_outlet *o)
{
    if (o->queue.error) { /* out of memory: this stream is lost */
        chempi_wire_clear(&o->queue);
        break_outlet(o, -ENOMEM);
        return;
    }
    if (!ev_is_active(&o->io))
        flush(o);
}

void chempi_console_show(struct chempi_console *c, uint32_t node, uint32_t rank,
                         int number, const void *data, size_t len)
{
    struct chempi_outlet *o = &c->out[number - 1];

    c->owed[node] += (uint32_t)len;
    if (o->is_broken) {
        send_credit(c);
        return;
    }
    if (c->has_label || c->has_time)
        append_labelled(o, rank, data, len);
    else
        chempi_wire_put_raw(&o->queue, data, len);
    set_off(o);
}

/* Behind what is queued, and not in the line of a rank. */
static void append_words(struct chempi_outlet *o, const char *text, size_t len)
{
    if (o->open_rank != CHEMPI_NODE_ANY)
        chempi_wire_put_raw(&o->queue, "\n", 1);
    o->open_rank = CHEMPI_NODE_ANY;
    chempi_wire_put_raw(&o->queue, text, len);
    set_off(o);
}

void chempi_console_say(struct chempi_console *c, const char *text, size_t len)
{
    struct chempi_outlet *o = &c->out[1];

    if (o->is_broken || len > CHEMPI_CONSOLE_WORDS - o->words)
        return;
    o->words += len;
    append_words(o, text, len);
}

void chempi_console_say_whole(struct chempi_console *c, const char *text,
                              size_t len)
{
    if (!c->out[1].is_broken && len > 0)
        append_words(&c->out[1], text, len);
}

/* Behind what is dropped there, if standard error takes it now. */
static void say_dropped(struct chempi_outlet *o, size_t bytes, bool is_open)
{
    char text[128];
    const int n = snprintf(text, sizeof(text),
                           "%schempirun: nobody reads the output: %zu bytes of "
                           "it are dropped at the third signal\n",
                           is_open ? "\n" : "", bytes);

    if (is_ready(o))
        (void)!put(o, text, (size_t)n); /* CHUNK at most */
}

void chempi_console_drop(struct chempi_console *c)
{
    const bool is_open = c->out[1].open_rank != CHEMPI_NODE_ANY ||
                         c->out[1].head < c->out[1].queue.len;
    const bool can_say = !c->out[1].is_broken;
    size_t bytes = 0;

    for (int k = 0; k < 2; k++) {
        struct chempi_outlet *o = &c->out[k];

        bytes += o->queue.len - o->head;
        o->is_broken = true; /* what comes is not kept */
        o->head = o->queue.len = o->words = 0;
        ev_io_stop(c->loop, &o->io);
    }
    if (bytes > 0 && can_say)
        say_dropped(&c->out[1], bytes, is_open);
}

bool chempi_console_is_empty(const struct chempi_console *c)
{
    return c->out[0].queue.len == 0 && c->out[1].queue.len == 0;
}

/* O3 */
static int open_own(int number, mode_t mode)
{
    char path[32];
    int fd = -1;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", number);
    if (S_ISFIFO(mode) || isatty(number))
        fd = chempi_sys->open(path,
                              O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    return fd < 0 ? number : fd;
}

static void init_outlet(struct chempi_console *c, int k)
{
    struct chempi_outlet *o = &c->out[k];
    struct stat st;

    if (fstat(k + 1, &st))
        st.st_mode = 0;
    o->console = c;
    o->number = k + 1;
    o->fd = open_own(o->number, st.st_mode);
    o->open_rank = CHEMPI_NODE_ANY;
    o->is_regular = S_ISREG(st.st_mode);
    o->is_socket = S_ISSOCK(st.st_mode);
    ev_io_init(&o->io, writable, o->fd, EV_WRITE);
    o->io.data = o;
}

/* ---- input --------------------------------------------------------------- */

static uint32_t most_fed(const struct chempi_console *c)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < c->target_count; i++)
        if (c->fed[i] != GONE && c->fed[i] > most)
            most = c->fed[i];
    return most;
}

static void watch_input(struct chempi_console *c)
{
    if (c->has_input && !c->is_background && most_fed(c) < CHEMPI_STDIN_WINDOW)
        ev_io_start(c->loop, &c->in);
    else
        ev_io_stop(c->loop, &c->in);
}

static void readable(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_console *c = w->data;
    const size_t room = CHEMPI_STDIN_WINDOW - most_fed(c);
    char text[CHUNK];
    ssize_t n =
        chempi_sys->read(0, text, room < sizeof(text) ? room : sizeof(text));

    (void)loop;
    (void)events;
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        c->has_input = false;
        n = 0;
    }
    for (uint32_t i = 0; i < c->target_count; i++)
        c->fed[i] += c->fed[i] == GONE ? 0 : (uint32_t)n;
    watch_input(c);
    c->ops->input(c->arg, text, (size_t)n);
}

static bool reads_from_background(void)
{
    return isatty(0) && tcgetpgrp(0) != getpgrp();
}

void chempi_console_eaten(struct chempi_console *c, uint32_t target,
                          uint32_t bytes)
{
    if (target >= c->target_count || c->fed[target] == GONE)
        return;
    c->fed[target] -= bytes < c->fed[target] ? bytes : c->fed[target];
    watch_input(c);
}

void chempi_console_lose(struct chempi_console *c, uint32_t target)
{
    if (target >= c->target_count)
        return;
    c->fed[target] = GONE;
    watch_input(c);
}

void chempi_console_resume(struct chempi_console *c)
{
    c->is_background = reads_from_background();
    watch_input(c);
}

void chempi_console_start_input(struct chempi_console *c)
{
    c->has_input = c->target_count > 0 && !c->has_stopped;
    chempi_console_resume(c);
}

void chempi_console_stop_input(struct chempi_console *c)
{
    c->has_stopped = true;
    c->has_input = false;
    watch_input(c);
}

/* ---- both ---------------------------------------------------------------- */

int chempi_console_init(struct chempi_console *c, struct ev_loop *loop,
                        uint32_t node_count, uint32_t targets, bool has_label,
                        bool has_time, const struct chempi_console_ops *ops,
                        void *arg)
{
    *c = (struct chempi_console){
        .loop = loop,
        .ops = ops,
        .arg = arg,
        .node_count = node_count,
        .has_label = has_label,
        .has_time = has_time,
        .target_count = targets,
    };
    c->owed = chempi_sys->calloc(node_count, sizeof(*c->owed));
    c->fed = chempi_sys->calloc(targets ? targets : 1, sizeof(*c->fed));
    if (!c->owed || !c->fed) {
        free(c->owed);
        free(c->fed);
        c->owed = c->fed = NULL;
        return -ENOMEM;
    }
    init_outlet(c, 0);
    init_outlet(c, 1);
    ev_io_init(&c->in, readable, 0, EV_READ);
    c->in.data = c;
    return 0;
}

void chempi_console_fini(struct chempi_console *c)
{
    ev_io_stop(c->loop, &c->in);
    for (int k = 0; k < 2; k++) {
        struct chempi_outlet *o = &c->out[k];

        ev_io_stop(c->loop, &o->io);
        chempi_wire_clear(&o->queue);
        if (o->fd > 2)
            (void)close(o->fd); /* nothing waits there */
    }
    free(c->owed);
    free(c->fed);
}
