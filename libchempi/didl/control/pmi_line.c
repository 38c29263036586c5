/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket to a PMI server; see pmi_line.h. */
#define _GNU_SOURCE /* getaddrinfo */
#include "libchempi/didl/control/pmi_line.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/number.h"
#include "libchempi/didl/control/store.h"

#define FRAME_DIGITS 6u

static struct {
    int fd;
    size_t len;   /* bytes that wait in `in` */
    size_t taken; /* of these, bytes of the message handed out last */
    char in[CHEMPI_PMI_MESSAGE_MAX];
} line = {.fd = -1};

bool chempi_pmi_line_variable(const char *name, uint32_t *out)
{
    const char *text = getenv(name);

    return text && chempi_number_parse32(text, 0, INT32_MAX, out);
}

int chempi_pmi_line_inherit(struct chempi_err *err)
{
    socklen_t len = sizeof(int);
    uint32_t fd = 0;
    int type;

    if (!chempi_pmi_line_variable("PMI_FD", &fd) ||
        getsockopt((int)fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
        type != SOCK_STREAM)
        return chempi_err_set(
            err, -EBADF,
            "PMI_FD=%.32s is not the connection to the "
            "launcher: a wrapper closed or replaced it; start "
            "the program directly, or use chempirun",
            getenv("PMI_FD") ? getenv("PMI_FD") : "");
    (void)fcntl((int)fd, F_SETFD, FD_CLOEXEC); /* it is open */
    line.fd = (int)fd;
    line.len = line.taken = 0;
    return 0;
}

/* The first address that answers. */
static int dial(const char *host, const char *port)
{
    const struct addrinfo wish = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int fd = -1;
    int rc = -EHOSTUNREACH;

    if (getaddrinfo(host, port, &wish, &list) != 0)
        return rc;
    for (const struct addrinfo *at = list; at && rc; at = at->ai_next) {
        fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, 0);
        rc = fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0 ? 0
                                                                      : -errno;
        if (rc && fd >= 0)
            (void)close(fd); /* nothing was written to it */
    }
    freeaddrinfo(list);
    return rc ? rc : fd;
}

int chempi_pmi_line_connect(struct chempi_err *err)
{
    const char *text = getenv("PMI_PORT");
    char host[256];
    char *colon;
    int fd;

    (void)snprintf(host, sizeof(host), "%s", text ? text : "");
    colon = strrchr(host, ':');
    if (!colon)
        return chempi_err_set(err, -EINVAL,
                              "PMI_PORT=%.64s: expected HOST:PORT", host);
    *colon = '\0';
    fd = dial(host, colon + 1);
    if (fd < 0)
        return chempi_err_set(err, fd,
                              "the launcher at %.64s (from PMI_PORT) cannot be "
                              "reached: %s",
                              text, chempi_err_name(fd));
    line.fd = fd;
    line.len = line.taken = 0;
    return 0;
}

void chempi_pmi_line_close(void)
{
    if (line.fd >= 0)
        (void)close(line.fd); /* what had to be heard was answered */
    line.fd = -1;
}

int chempi_pmi_line_fd(void)
{
    return line.fd;
}

int chempi_pmi_line_look(void)
{
    char byte;
    const ssize_t n = recv(line.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)) ? 0 : -EPIPE;
}

int chempi_pmi_line_send(const char *text, size_t len)
{
    while (len) {
        const ssize_t n = send(line.fd, text, len, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR)
            return -EPIPE;
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

/* Bytes of the whole message at the beginning, with what frames it: 0: it is
 * not there yet. *head: bytes before it. */
static int measure(bool is_framed, size_t *head, size_t *body)
{
    char digits[FRAME_DIGITS + 1] = "";
    const char *end;
    char *rest;
    unsigned long v;

    *head = 0;
    if (!is_framed) {
        end = memchr(line.in, '\n', line.len);
        *body = end ? (size_t)(end - line.in) : 0;
        return end ? (int)*body + 1 : 0;
    }
    if (line.len < FRAME_DIGITS)
        return 0;
    memcpy(digits, line.in, FRAME_DIGITS);
    v = strtoul(digits, &rest, 10);
    if (rest == digits || strspn(rest, " ") != strlen(rest) ||
        strspn(digits, " 0123456789") != FRAME_DIGITS)
        return -EBADMSG;
    if (v + FRAME_DIGITS >= sizeof(line.in))
        return -EMSGSIZE;
    *head = FRAME_DIGITS;
    *body = v;
    return line.len >= v + FRAME_DIGITS ? (int)(v + FRAME_DIGITS) : 0;
}

/* One byte stays free, for a zero behind a message that fills all. */
static int fill(void)
{
    const size_t room = sizeof(line.in) - 1 - line.len;
    ssize_t n;

    if (room == 0)
        return -EMSGSIZE;
    n = recv(line.fd, line.in + line.len, room, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n <= 0)
        return -EPIPE;
    line.len += (size_t)n;
    return 0;
}

/* What follows the message handed out last moves to the beginning; where its
 * zero was put is the byte before. */
static void forget(void)
{
    line.len -= line.taken;
    memmove(line.in, line.in + line.taken, line.len);
    line.taken = 0;
}

/* Words of the frame that follows may stand where the zero goes: shift the
 * message over its own head, or over its line end. */
static char *hand_out(size_t head, size_t body)
{
    if (head) {
        memmove(line.in + head - 1, line.in + head, body);
        line.in[head - 1 + body] = '\0';
        return line.in + head - 1;
    }
    line.in[body] = '\0';
    return line.in;
}

int chempi_pmi_line_next(bool is_framed, int timeout_ms, char **message)
{
    const uint64_t deadline_ns =
        chempi_clock_ns() + (uint64_t)timeout_ms * CHEMPI_NS_PER_MS;
    struct pollfd p = {.fd = line.fd, .events = POLLIN};

    forget();
    for (;;) {
        size_t head;
        size_t body;
        int n = measure(is_framed, &head, &body);
        uint64_t now;

        if (n > 0) {
            *message = hand_out(head, body);
            line.taken = (size_t)n;
            return 1;
        }
        if (n < 0)
            return n;
        now = chempi_clock_ns();
        n = poll(&p, 1,
                 now < deadline_ns
                     ? (int)((deadline_ns - now) / CHEMPI_NS_PER_MS) + 1
                     : 0);
        if (n == 0 || (n < 0 && now >= deadline_ns))
            return 0;
        n = n > 0 ? fill() : 0;
        if (n < 0)
            return n;
    }
}

bool chempi_pmi_line_value(const char *message, char end, const char *key,
                           char *value, size_t room)
{
    const size_t len = strlen(key);
    const char *at = message;

    while (*at) {
        const char *stop = strchr(at, end);
        const size_t word = stop ? (size_t)(stop - at) : strlen(at);

        if (word > len && strncmp(at, key, len) == 0 && at[len] == '=') {
            if (word - len > room)
                return false;
            memcpy(value, at + len + 1, word - len - 1);
            value[word - len - 1] = '\0';
            return true;
        }
        at += word + (stop ? 1 : 0);
    }
    return false;
}

bool chempi_pmi_line_is(const char *message, char end, const char *command)
{
    char word[64];

    return chempi_pmi_line_value(message, end, "cmd", word, sizeof(word)) &&
           strcmp(word, command) == 0;
}

uint32_t chempi_pmi_line_number(const char *message, char end, const char *key,
                                uint32_t other)
{
    char value[16];
    uint32_t number;

    return chempi_pmi_line_value(message, end, key, value, sizeof(value)) &&
                   chempi_number_parse32(value, 0, INT32_MAX, &number)
               ? number
               : other;
}
