/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of daemons; see addr.h. */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "chempid/tree/addr.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "common/fd/rights.h"

#define BACKLOG 128
#define BACKLOG_TCP 4096 /* those that say nothing wait there */
#define DEFER_S 1        /* until one that says nothing is taken */
#define LOOK_MS 1000     /* for a place with a daemon that may be there */

/* Cut "[host]:port" or "host:port" in two; a bare "::1" is all host. */
static int split(const char *text, char *host, size_t size, const char **port)
{
    const char *end;
    size_t len;

    *port = "0";
    if (text[0] == '[') {
        text++;
        end = strchr(text, ']');
        if (!end || (end[1] && end[1] != ':'))
            return -EINVAL;
        if (end[1])
            *port = end + 2;
    } else {
        end = strchr(text, ':');
        if (end && !strchr(end + 1, ':'))
            *port = end + 1;
        else
            end = text + strlen(text);
    }
    len = (size_t)(end - text);
    if (len == 0 || len >= size)
        return -EINVAL;
    memcpy(host, text, len);
    host[len] = '\0';
    return 0;
}

static int parse(const char *text, int flags, struct chempi_addr *out,
                 struct chempi_err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV | flags};
    struct addrinfo *list;
    char host[256];
    const char *port;
    int rc;

    if (split(text, host, sizeof(host), &port) || !*port ||
        port[strspn(port, "0123456789")] || strlen(port) > 5 ||
        atol(port) > UINT16_MAX)
        return chempi_err_set(err, -EINVAL,
                              "'%s' is no address; expected host:port, "
                              "1.2.3.4:port or [ipv6]:port",
                              text);
    rc = getaddrinfo(host, port, &hints, &list);
    if (rc && flags)
        return -ENOENT;
    if (rc)
        return chempi_err_set(err, -ENOENT, "cannot find host '%s': %s", host,
                              gai_strerror(rc));
    memset(out, 0, sizeof(*out));
    memcpy(&out->storage, list->ai_addr, list->ai_addrlen);
    out->len = list->ai_addrlen;
    freeaddrinfo(list);
    return 0;
}

int chempi_addr_parse(const char *text, struct chempi_addr *out,
                      struct chempi_err *err)
{
    return parse(text, 0, out, err);
}

int chempi_addr_parse_number(const char *text, struct chempi_addr *out,
                             struct chempi_err *err)
{
    return parse(text, AI_NUMERICHOST, out, err);
}

bool chempi_addr_is_any(const char *text)
{
    struct chempi_addr addr;
    const struct sockaddr_in *v4 = (const void *)&addr.storage;
    const struct sockaddr_in6 *v6 = (const void *)&addr.storage;

    if (parse(text, AI_NUMERICHOST, &addr, NULL))
        return false;
    return addr.storage.ss_family == AF_INET
               ? v4->sin_addr.s_addr == htonl(INADDR_ANY)
               : IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
}

void chempi_addr_format(const struct chempi_addr *addr, char *text, size_t size)
{
    char host[256];
    char port[32];

    if (getnameinfo((const struct sockaddr *)&addr->storage, addr->len, host,
                    sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV))
        (void)snprintf(text, size, "?");
    else
        (void)snprintf(text, size,
                       addr->storage.ss_family == AF_INET6 ? "[%s]:%s"
                                                           : "%s:%s",
                       host, port);
}

static int fail(int fd, struct chempi_err *err, const char *verb,
                const struct chempi_addr *addr)
{
    const int code = errno;
    char text[CHEMPI_ADDR_MAX];

    if (fd >= 0)
        (void)close(fd); /* never used */
    chempi_addr_format(addr, text, sizeof(text));
    return chempi_err_set(err, -code, "cannot %s %s: %s", verb, text,
                          chempi_err_name(code));
}

static int new_socket(int family)
{
    return chempi_sys->socket(family,
                              SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int chempi_addr_listen(const struct chempi_addr *addr,
                       struct chempi_addr *bound, struct chempi_err *err)
{
    const int on = 1;
    const int fd = new_socket(addr->storage.ss_family);

    if (fd < 0)
        return fail(fd, err, "make a socket for", addr);
    /* Both only widen what works; bind says whether it does. */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (addr->storage.ss_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){0}, sizeof(int));
    if (chempi_sys->bind(fd, (const struct sockaddr *)&addr->storage,
                         addr->len) < 0)
        return fail(fd, err, "use address", addr);
    /* Who calls says the first word. Without this all are taken at once. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &(int){DEFER_S},
                     sizeof(int));
    if (chempi_sys->listen(fd, BACKLOG_TCP) < 0)
        return fail(fd, err, "listen on", addr);
    memset(bound, 0, sizeof(*bound));
    bound->len = sizeof(bound->storage);
    if (getsockname(fd, (struct sockaddr *)&bound->storage, &bound->len) < 0)
        return fail(fd, err, "ask for the port of", addr);
    return fd;
}

int chempi_addr_connect(const struct chempi_addr *addr, struct chempi_err *err)
{
    const int on = 1;
    const int fd = new_socket(addr->storage.ss_family);

    if (fd < 0)
        return fail(fd, err, "make a socket for", addr);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    if (chempi_sys->connect(fd, (const struct sockaddr *)&addr->storage,
                            addr->len) < 0 &&
        errno != EINPROGRESS)
        return fail(fd, err, "connect to", addr);
    return fd;
}

int chempi_addr_result(int fd)
{
    socklen_t len = sizeof(int);
    int code = 0;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0)
        return -errno;
    return -code;
}

static int unix_name(const char *path, struct sockaddr_un *name,
                     struct chempi_err *err)
{
    memset(name, 0, sizeof(*name));
    name->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof(name->sun_path))
        return chempi_err_set(err, -ENAMETOOLONG,
                              "%s: a socket's path has at most %zu characters;"
                              " choose a shorter --dir",
                              path, sizeof(name->sun_path) - 1);
    memcpy(name->sun_path, path, strlen(path) + 1);
    return 0;
}

static int fail_unix(int fd, const char *path, struct chempi_err *err)
{
    const int code = errno;

    if (fd >= 0)
        (void)close(fd); /* never used */
    return chempi_err_set(err, -code, "%s: %s", path, chempi_err_name(code));
}

int chempi_addr_connect_unix(const char *path, unsigned limit_ms,
                             struct chempi_err *err)
{
    const struct timeval limit = {limit_ms / 1000, limit_ms % 1000 * 1000};
    struct sockaddr_un name;
    int rc = unix_name(path, &name, err);
    int fd;

    if (rc)
        return rc;
    fd = chempi_sys->socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    chempi_rights_refuse(fd); /* whoever answers there */
    /* Where too many wait to be accepted, for a place among them. */
    if (fd < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
        chempi_sys->connect(fd, (const struct sockaddr *)&name, sizeof(name)) <
            0)
        rc = fail_unix(fd, path, err);
    if (rc == -EAGAIN)
        return chempi_err_set(err, rc,
                              "%s: it takes no connection (waited %u ms)", path,
                              limit_ms);
    return rc ? rc : fd;
}

/* A socket file that refuses connections belonged to a daemon that is dead. */
int chempi_addr_clear_unix(const char *path, struct chempi_err *err)
{
    struct stat st;
    int fd;

    if (lstat(path, &st) < 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return chempi_err_set(err, -EEXIST, "%s is in the way", path);
    fd = chempi_addr_connect_unix(path, LOOK_MS, NULL);
    if (fd >= 0)
        (void)close(fd); /* it was only to see */
    if (fd >= 0 || fd == -EAGAIN)
        return chempi_err_set(err, -EADDRINUSE,
                              "a daemon of this name is already running (%s)",
                              path);
    if (fd == -ECONNREFUSED && unlink(path) < 0)
        return fail_unix(-1, path, err);
    return 0;
}

int chempi_addr_listen_unix(const char *path, unsigned mode,
                            struct chempi_err *err)
{
    struct sockaddr_un name;
    int rc = unix_name(path, &name, err);
    int fd;

    if (rc)
        return rc;
    fd = new_socket(AF_UNIX);
    chempi_rights_refuse(fd);
    if (fd < 0 ||
        chempi_sys->bind(fd, (const struct sockaddr *)&name, sizeof(name)) < 0)
        return fail_unix(fd, path, err);
    if (chmod(path, mode) < 0 || chempi_sys->listen(fd, BACKLOG) < 0) {
        rc = fail_unix(fd, path, err);
        (void)unlink(path); /* ours, and of no use */
        return rc;
    }
    return fd;
}
