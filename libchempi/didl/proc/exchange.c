/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of leaders over a sealed stream; see exchange.h and internal.h. A
 * message is a u32, little-endian, and so many bytes. What it holds of them is
 * wiped: they have secrets of bonds.
 */
#define _GNU_SOURCE /* TCP_KEEPIDLE */
#include "libchempi/didl/proc/exchange.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/invariant.h"
#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/proc/internal.h"
#include "libchempi/didl/transport/progress/progress.h"

_Static_assert(CHEMPI_EXCHANGE_LEN_MAX <= UINT32_MAX, "a length fits");

#define FIRST_CAP 4096u  /* bytes for the beginning of a message */
#define TURN (4ul << 20) /* bytes written or read at a time */
#define PACE                                                                   \
    (64ul << 10)            /* bytes that move in time, or a message ends (X6) \
                             */
#define TURNS 10            /* that a message has, moving (X6) */
#define TICK_NS 250000000L  /* how often that is looked at */
#define KEEPALIVE_IDLE_S 30 /* a host that is silent for so long is asked, */
#define KEEPALIVE_EVERY_S 10
#define KEEPALIVE_COUNT 6 /* so many times */

/* Without a tick for so long this process has not looked. */
#define ABSENCE_NS (UINT64_C(2) * TICK_NS)

/* ---- life ------------------------------------------------------------ */

struct chempi_pollset *chempi_exchange_pollset(void)
{
    return chempi_ctx.services.pollset;
}

struct chempi_exchange *chempi_exchange_create(void)
{
    struct chempi_exchange *x = chempi_sys->calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->item.fd = -1;
    x->timer.fd = -1;
    x->in_most = CHEMPI_EXCHANGE_LEN_MAX;
    chempi_list_init(&x->link);
    return x;
}

void chempi_exchange_set_options(int fd)
{
    static const struct {
        int level;
        int name;
        int value;
    } all[] = {{IPPROTO_TCP, TCP_NODELAY, 1},
               {SOL_SOCKET, SO_KEEPALIVE, 1},
               {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
               {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EVERY_S},
               {IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT}};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(all); i++) /* works without */
        (void)setsockopt(fd, all[i].level, all[i].name, &all[i].value,
                         sizeof(all[i].value));
}

static void forget(uint8_t *data, size_t len)
{
    if (data)
        sodium_memzero(data, len);
    free(data);
}

static void forget_out(struct chempi_exchange *x)
{
    forget(x->out, x->out_len);
    x->out = NULL;
    x->out_len = 0;
    x->out_done = 0;
}

/* It is made, or will not be (X5). */
static void end_waiting(struct chempi_exchange *x)
{
    chempi_list_remove(&x->link);
    if (x->making)
        x->end_making(x->making);
    x->making = NULL;
}

/* Whatever it waits for or has, but for a message that has come. */
static void let_go(struct chempi_exchange *x)
{
    end_waiting(x);
    chempi_pollset_untick(chempi_exchange_pollset(), &x->timer);
    chempi_pollset_remove(chempi_exchange_pollset(), &x->item);
    x->events = 0;
    x->is_owed = false;
    if (x->item.fd >= 0 && !x->is_users)
        (void)close(x->item.fd); /* what matters has been said */
    x->item.fd = -1;
    chempi_seal_destroy(x->seal);
    x->seal = NULL;
    forget_out(x);
    forget(x->plain, CHEMPI_SEAL_PLAIN_MAX);
    x->plain = NULL;
    x->plain_len = 0;
}

void chempi_exchange_lose(struct chempi_exchange *x, int code, const char *fmt,
                          ...)
{
    char text[CHEMPI_ERR_TEXT_MAX];
    va_list args;

    if (x->at == CHEMPI_EXCHANGE_LOST)
        return; /* the first reason counts */
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    x->at = CHEMPI_EXCHANGE_LOST;
    (void)chempi_err_set(&x->err, code, "%s", text);
    let_go(x);
    chempi_progress_notify();
}

void chempi_exchange_close(struct chempi_exchange *x)
{
    if (!x)
        return;
    let_go(x);
    forget(x->in, x->in_len);
    free(x);
}

const char *chempi_exchange_check(const struct chempi_exchange *x)
{
    const bool has_fd =
        x->at == CHEMPI_EXCHANGE_JOINING || x->at == CHEMPI_EXCHANGE_OPEN;

    if (has_fd != (x->item.fd >= 0))
        return "exchange X1: a descriptor without a use, or none";
    if ((x->events != 0) != (x->item.slot != 0))
        return "exchange X1: events that nobody waits for";
    if ((x->at == CHEMPI_EXCHANGE_OPEN) != (x->seal != NULL))
        return "exchange X2: a seal without a use, or none";
    if (x->at >= CHEMPI_EXCHANGE_OPEN &&
        (x->making || !chempi_list_is_empty(&x->link)))
        return "exchange X5: it waits, and does not";
    if (x->is_owed && (!x->is_accepted || x->timer.fd < 0))
        return "exchange X6: nobody looks how long it waits";
    return NULL;
}

static void fail(struct chempi_exchange *x, int code)
{
    if (code == -ECONNRESET || code == -EPIPE)
        chempi_exchange_lose(x, -ECONNRESET,
                             "the process that leads the other side has ended "
                             "or hung up");
    else if (code == -EMSGSIZE)
        chempi_exchange_lose(x, -EPROTO,
                             "what the process that leads the other side says "
                             "is too long: it breaks the rules, or brings "
                             "more processes than are met at a time "
                             "(CHEMPI_MEET_PROCESSES_MAX)");
    else if (code == -EBADMSG)
        chempi_exchange_lose(x, -EPROTO,
                             "what the process that leads the other side says "
                             "was changed on its way, or breaks the rules");
    else
        chempi_exchange_lose(x, code,
                             "the connection to the process that leads the "
                             "other side failed: %s",
                             chempi_err_name(code));
}

/* ---- patience -------------------------------------------------------- */

bool chempi_exchange_is_drained(const struct chempi_exchange *x)
{
    return x->out_done == x->out_len && (!x->seal || !x->seal->out.len);
}

/* X6 */
static void note_owed(struct chempi_exchange *x)
{
    const bool is_owed = x->is_accepted && (x->at == CHEMPI_EXCHANGE_JOINING ||
                                            (x->is_wanted && !x->has_message) ||
                                            !chempi_exchange_is_drained(x));

    if (is_owed == x->is_owed)
        return;
    x->is_owed = is_owed;
    x->since_ns = chempi_clock_ns();
    x->tick_ns = x->since_ns;
    x->moved = 0;
    x->turns = 0;
    chempi_pollset_pace(&x->timer, is_owed ? TICK_NS : 0);
}

/* ---- reading --------------------------------------------------------- */

static size_t take_plain(struct chempi_exchange *x, uint8_t *to, size_t want)
{
    const size_t n = want < x->plain_len ? want : x->plain_len;

    memcpy(to, x->plain + x->plain_head, n);
    x->plain_head += n;
    x->plain_len -= n;
    return n;
}

static int begin_message(struct chempi_exchange *x)
{
    x->in_need = (size_t)x->head[0] | (size_t)x->head[1] << 8 |
                 (size_t)x->head[2] << 16 | (size_t)x->head[3] << 24;
    if (x->in_need > x->in_most)
        return -EMSGSIZE;
    x->in_cap = x->in_need < FIRST_CAP ? x->in_need : FIRST_CAP;
    x->in_len = 0;
    x->in = chempi_sys->malloc(x->in_cap ? x->in_cap : 1);
    return x->in ? 0 : -ENOMEM;
}

/* More room, as much as there is already (X4). */
static int grow(struct chempi_exchange *x)
{
    const size_t cap =
        x->in_need - x->in_cap < x->in_cap ? x->in_need : 2 * x->in_cap;
    uint8_t *in = chempi_sys->malloc(cap);

    if (!in)
        return -ENOMEM;
    memcpy(in, x->in, x->in_len);
    forget(x->in, x->in_len);
    x->in = in;
    x->in_cap = cap;
    return 0;
}

/* Put what was opened where it belongs. */
static int parse(struct chempi_exchange *x)
{
    int rc = 0;

    while (rc == 0 && !x->has_message &&
           (x->plain_len || (x->in && x->in_len == x->in_need))) {
        if (!x->in) {
            x->head_len += take_plain(x, x->head + x->head_len,
                                      sizeof(x->head) - x->head_len);
            if (x->head_len == sizeof(x->head))
                rc = begin_message(x);
        } else if (x->in_len == x->in_need) {
            x->has_message = true;
            x->head_len = 0;
            x->moved += PACE;
            x->turns = 0;
        } else if (x->in_len == x->in_cap) {
            rc = grow(x);
        } else {
            x->in_len +=
                take_plain(x, x->in + x->in_len, x->in_cap - x->in_len);
        }
    }
    return rc;
}

/* Open the next record; its bytes, 0: it is not here yet, or -errno. */
static ssize_t open_record(struct chempi_exchange *x)
{
    ssize_t n;
    int rc;

    while ((n = chempi_seal_next(x->seal)) == 0) {
        n = chempi_seal_fill_record(x->seal, x->item.fd);
        if (n == -EAGAIN)
            return 0;
        if (n == 0)
            return -ECONNRESET;
        if (n < 0 && n != -EINTR)
            return n;
        if (n > 0) {
            x->moved += (size_t)n;
            x->is_accepted = true;
        }
    }
    if (n < 0)
        return n;
    if (!x->plain)
        x->plain = chempi_sys->malloc(CHEMPI_SEAL_PLAIN_MAX);
    if (!x->plain)
        return -ENOMEM;
    rc = chempi_seal_open(x->seal, x->plain);
    if (rc)
        return rc;
    x->plain_head = 0;
    x->plain_len = (size_t)n;
    return n;
}

static int read_some(struct chempi_exchange *x)
{
    size_t done = 0;
    int rc = parse(x);

    while (rc == 0 && !x->has_message && done < TURN) { /* X3 */
        const ssize_t n = open_record(x);

        if (n <= 0)
            return (int)n;
        done += (size_t)n;
        rc = parse(x);
    }
    return rc;
}

/* ---- writing --------------------------------------------------------- */

static int write_some(struct chempi_exchange *x)
{
    size_t done = 0;

    while (done < TURN) {
        const int rc = chempi_seal_flush(x->seal, x->item.fd);
        ssize_t n;

        if (rc)
            return rc < 0 ? rc : 0;
        if (x->out_done == x->out_len) {
            forget_out(x);
            return 0;
        }
        n = chempi_seal_put(x->seal, x->out + x->out_done,
                            x->out_len - x->out_done);
        if (n < 0)
            return (int)n;
        x->out_done += (size_t)n;
        x->moved += (size_t)n;
        done += (size_t)n;
    }
    return 0;
}

/* What can be used now (X3). */
static uint32_t useful_events(const struct chempi_exchange *x)
{
    const uint32_t out = chempi_exchange_is_drained(x) ? 0 : (uint32_t)EPOLLOUT;

    if (x->has_message)
        return out;
    if (x->is_wanted)
        return out | (uint32_t)EPOLLIN;
    return x->is_users ? out : out | (uint32_t)EPOLLRDHUP;
}

int chempi_exchange_ask(struct chempi_exchange *x, uint32_t events)
{
    struct chempi_pollset *set = chempi_exchange_pollset();
    int rc = 0;

    if (events == x->events)
        return 0;
    if (!events)
        chempi_pollset_remove(set, &x->item);
    else if (x->events)
        rc = chempi_pollset_modify(set, &x->item, events);
    else
        rc = chempi_pollset_add(set, &x->item, events);
    if (rc == 0)
        x->events = events;
    return rc;
}

/* Write what can be, and read if that is wanted. */
static void advance(struct chempi_exchange *x, bool may_read)
{
    const bool had_message = x->has_message;
    const bool was_drained = chempi_exchange_is_drained(x);
    int rc = may_read ? read_some(x) : 0;

    if (rc == 0)
        rc = write_some(x);
    if (rc == 0)
        rc = chempi_exchange_ask(x, useful_events(x));
    if (rc)
        fail(x, rc);
    else
        note_owed(x);
    if (x->has_message != had_message ||
        chempi_exchange_is_drained(x) != was_drained)
        chempi_progress_notify();
    CHEMPI_CHECK(chempi_exchange_check(x));
}

static void stream_ready(struct chempi_poll_item *item, uint32_t events)
{
    struct chempi_exchange *x =
        CHEMPI_CONTAINER_OF(item, struct chempi_exchange, item);

    advance(x, x->is_wanted ||
                   (events & ~(uint32_t)(EPOLLIN | EPOLLOUT) && !x->is_users));
}

/* This process may not have looked for long: that is no silence of the other
 * side, which could say no more than what buffers hold. */
static void note_tick(struct chempi_exchange *x, uint64_t now)
{
    const uint64_t gap = now - x->tick_ns;

    if (gap > ABSENCE_NS)
        x->since_ns += gap - (uint64_t)TICK_NS;
    x->tick_ns = now;
}

/* X6 */
static void ticked(struct chempi_poll_item *item, uint32_t events)
{
    struct chempi_exchange *x =
        CHEMPI_CONTAINER_OF(item, struct chempi_exchange, timer);
    const uint64_t limit_ms = chempi_setting(CHEMPI_SET_MEET_PATIENCE);
    const uint64_t now = chempi_clock_ns();

    chempi_pollset_ticked(item, events);
    note_tick(x, now);
    if (!x->is_owed || !limit_ms ||
        now - x->since_ns < limit_ms * CHEMPI_NS_PER_MS)
        return;
    x->item.ready(&x->item, 0);
    if (!x->is_owed)
        return;
    if (x->moved < PACE) {
        chempi_exchange_lose(x, -ETIMEDOUT,
                             "the process that leads the other side is silent "
                             "(for %llu ms, CHEMPI_MEET_PATIENCE_MS)",
                             (unsigned long long)limit_ms);
        return;
    }
    if (++x->turns == TURNS) {
        chempi_exchange_lose(x, -ETIMEDOUT,
                             "the process that leads the other side takes too "
                             "long for a message (%u times %llu ms, "
                             "CHEMPI_MEET_PATIENCE_MS)",
                             (unsigned)TURNS, (unsigned long long)limit_ms);
        return;
    }
    x->since_ns = now;
    x->moved = 0;
}

int chempi_exchange_time(struct chempi_exchange *x)
{
    const int rc = chempi_pollset_tick(chempi_exchange_pollset(), &x->timer,
                                       ticked, TICK_NS);

    if (!rc)
        chempi_pollset_pace(&x->timer, 0);
    x->is_owed = false;
    return rc;
}

void chempi_exchange_greeted(struct chempi_exchange *x)
{
    x->is_accepted = true;
    note_owed(x);
}

void chempi_exchange_open(struct chempi_exchange *x, int fd, bool is_first,
                          struct chempi_seal *seal)
{
    int rc;

    end_waiting(x);
    x->at = CHEMPI_EXCHANGE_OPEN;
    x->is_first = is_first;
    x->seal = seal;
    x->events = 0;
    x->item = (struct chempi_poll_item){.fd = fd, .ready = stream_ready};
    x->is_accepted = is_first || x->is_users;
    chempi_progress_notify();
    rc = chempi_exchange_time(x);
    if (rc)
        fail(x, rc);
    else
        advance(x, false);
}

/* ---- what it is for -------------------------------------------------- */

int chempi_exchange_state(const struct chempi_exchange *x,
                          struct chempi_err *err)
{
    if (x->at == CHEMPI_EXCHANGE_LOST)
        return chempi_err_set(err, x->err.code, "%s", x->err.text);
    return x->at == CHEMPI_EXCHANGE_OPEN;
}

const uint8_t *chempi_exchange_hash(const struct chempi_exchange *x)
{
    return x->seal ? x->seal->hash : NULL;
}

void chempi_exchange_limit(struct chempi_exchange *x, size_t len)
{
    x->in_most = len;
}

bool chempi_exchange_is_first(const struct chempi_exchange *x)
{
    return x->is_first;
}

int chempi_exchange_send(struct chempi_exchange *x, const void *data,
                         size_t len, struct chempi_err *err)
{
    const size_t waiting = x->out_len - x->out_done;
    uint8_t *out;

    if (x->at != CHEMPI_EXCHANGE_OPEN)
        return chempi_exchange_state(x, err) < 0
                   ? x->err.code
                   : chempi_err_set(err, -ENOTCONN, "nobody has answered yet");
    if (len > CHEMPI_EXCHANGE_LEN_MAX)
        return chempi_err_set(err, -EMSGSIZE,
                              "%zu bytes are more than leaders tell each other",
                              len);
    out = chempi_sys->malloc(waiting + 4 + len);
    if (!out)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    if (waiting)
        memcpy(out, x->out + x->out_done, waiting);
    for (unsigned i = 0; i < 4; i++)
        out[waiting + i] = (uint8_t)(len >> 8 * i);
    if (len)
        memcpy(out + waiting + 4, data, len);
    forget(x->out, x->out_len);
    x->out = out;
    x->out_done = 0;
    x->out_len = waiting + 4 + len;
    advance(x, x->is_wanted);
    return x->at == CHEMPI_EXCHANGE_OPEN ? 0 : chempi_exchange_state(x, err);
}

int chempi_exchange_take(struct chempi_exchange *x, void **data, size_t *len,
                         struct chempi_err *err)
{
    if (!x->has_message && !x->is_wanted) {
        x->is_wanted = true;
        if (x->at == CHEMPI_EXCHANGE_OPEN)
            advance(x, true);
    }
    if (!x->has_message)
        return x->at == CHEMPI_EXCHANGE_LOST ? chempi_exchange_state(x, err)
                                             : -EAGAIN;
    *data = x->in;
    *len = x->in_len;
    x->in = NULL;
    x->has_message = false;
    x->is_wanted = false;
    if (x->at == CHEMPI_EXCHANGE_OPEN)
        advance(x, false);
    return 0;
}
