/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's side of a daemon's Unix socket; see local.h. */
#define _GNU_SOURCE /* struct ucred */
#include "chempid/tree/local.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chempid/tree/addr.h"
#include "chempid/tree/nodes/members.h"
#include "common/base/clock.h"
#include "common/control/msg.h"
#include "common/fd/file.h"

int chempi_local_dir(char *dir, size_t size)
{
    const char *set = getenv(CHEMPI_DIR_ENV);
    const char *run = getenv("XDG_RUNTIME_DIR");
    int n;

    if (set && *set)
        n = snprintf(dir, size, "%s", set);
    else if (geteuid() == 0)
        n = snprintf(dir, size, CHEMPI_LOCAL_ROOT_DIR);
    else if (run && *run)
        n = snprintf(dir, size, "%s/chempi", run);
    else
        n = snprintf(dir, size, "/tmp/chempi-%ld", (long)geteuid());
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static bool is_socket_name(const char *name)
{
    const size_t len = strlen(name);
    const size_t end = strlen(CHEMPI_SOCKET_SUFFIX);

    return len > end && len - end < CHEMPI_NODE_NAME_MAX &&
           strcmp(name + len - end, CHEMPI_SOCKET_SUFFIX) == 0;
}

/* The host's own daemon, else the first in the order of names. */
static int choose(const char *dir, char name[CHEMPI_NODE_NAME_MAX])
{
    char host[CHEMPI_NODE_NAME_MAX] = "";
    DIR *d = opendir(dir);
    struct dirent *e;

    name[0] = '\0';
    if (!d)
        return -ENOENT;
    (void)gethostname(host, sizeof(host) - 1); /* "" matches nothing */
    host[strcspn(host, ".")] = '\0';
    while ((e = readdir(d))) {
        char one[CHEMPI_NODE_NAME_MAX];

        if (!is_socket_name(e->d_name))
            continue;
        (void)snprintf(one, sizeof(one), "%.*s",
                       (int)(strlen(e->d_name) - strlen(CHEMPI_SOCKET_SUFFIX)),
                       e->d_name);
        if (strcmp(one, host) == 0 || (strcmp(name, host) != 0 &&
                                       (!name[0] || strverscmp(one, name) < 0)))
            memcpy(name, one, sizeof(one));
    }
    (void)closedir(d); /* read only */
    return name[0] ? 0 : -ENOENT;
}

static int check_server(int fd, const char *path, struct chempi_err *err)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
        (cred.uid == 0 || cred.uid == geteuid()))
        return 0;
    (void)close(fd); /* nothing was said */
    return chempi_err_set(err, -EPERM, "%s belongs to another user's daemon",
                          path);
}

/* Whoever has made it, the link to it or what is in it, in a place that is
 * everybody's, could keep us there. What passes stays: nobody else may replace
 * it. */
static int check_dir(const char *dir, struct chempi_err *err)
{
    struct stat link;
    struct stat st;

    if (lstat(dir, &link) < 0 || stat(dir, &st) < 0)
        return chempi_err_set(err, -ENOENT, "no daemon has a socket in %s",
                              dir);
    if (!chempi_file_is_ours(&link) || !chempi_file_is_ours(&st))
        return chempi_err_set(err, -EPERM, "%s belongs to another user", dir);
    if (!chempi_file_is_safe(&st)) /* no daemon would serve there */
        return chempi_err_set(err, -EPERM, "%s can be written by others", dir);
    return 0;
}

static int connect_in(const char *dir, const char *via, char *path,
                      struct chempi_err *err)
{
    char name[CHEMPI_NODE_NAME_MAX];
    int n = check_dir(dir, err);
    int fd;

    if (n)
        return n;
    if (!via && choose(dir, name))
        return chempi_err_set(err, -ENOENT, "no daemon has a socket in %s",
                              dir);
    n = snprintf(path, CHEMPI_LOCAL_PATH_MAX, "%s/%s" CHEMPI_SOCKET_SUFFIX, dir,
                 via ? via : name);
    if (n < 0 || (size_t)n >= CHEMPI_LOCAL_PATH_MAX)
        return chempi_err_set(err, -ENAMETOOLONG, "%s: too long", dir);
    fd = chempi_addr_connect_unix(path, CHEMPI_LOCAL_LIMIT_MS, err);
    if (fd < 0) {
        (void)chempi_err_prefix(err, "cannot reach the daemon");
        return fd;
    }
    n = check_server(fd, path, err);
    return n ? n : fd;
}

/* Where nothing is said, one's own daemon comes before root's. */
static int connect_to(const char *dir, const char *via, char *path,
                      struct chempi_err *err)
{
    const char *set = getenv(CHEMPI_DIR_ENV);
    char own[CHEMPI_LOCAL_PATH_MAX];
    struct chempi_err why;
    int rc;

    if (dir)
        return connect_in(dir, via, path, err);
    if (chempi_local_dir(own, sizeof(own)))
        return chempi_err_set(err, -ENAMETOOLONG,
                              "the default directory's name is too long");
    rc = connect_in(own, via, path, err);
    if (rc >= 0 || (set && *set) || strcmp(own, CHEMPI_LOCAL_ROOT_DIR) == 0)
        return rc;
    rc = connect_in(CHEMPI_LOCAL_ROOT_DIR, via, path, &why);
    if (rc < 0)
        (void)snprintf(err->text + strlen(err->text),
                       sizeof(err->text) - strlen(err->text), ", and %s",
                       why.text);
    return rc < 0 ? err->code : rc;
}

/* Wait for the socket until the deadline. */
static int wait_for(const struct chempi_channel *ch, short events,
                    uint64_t deadline, struct chempi_err *err)
{
    struct pollfd p = {.fd = ch->fd, .events = events};
    const uint64_t now = chempi_clock_ns();

    if (now >= deadline)
        return chempi_err_set(err, -ETIMEDOUT,
                              "the daemon does not answer (waited %d s)",
                              CHEMPI_LOCAL_LIMIT_MS / 1000);
    (void)poll(&p, 1, (int)((deadline - now) / CHEMPI_NS_PER_MS) + 1);
    return 0;
}

static uint64_t deadline_from_now(void)
{
    return chempi_clock_ns() + CHEMPI_LOCAL_LIMIT_MS * CHEMPI_NS_PER_MS;
}

static int fail(struct chempi_err *err, int code)
{
    return chempi_err_set(err, code,
                          code == -EPIPE ? "the daemon closed the connection"
                                         : "the daemon cannot be talked to: "
                                           "%s",
                          chempi_err_name(code));
}

static int send_queued(struct chempi_channel *ch, struct chempi_err *err)
{
    const uint64_t deadline = deadline_from_now();
    int rc;

    while ((rc = chempi_channel_flush(ch)) == 1) {
        rc = wait_for(ch, POLLOUT, deadline, err);
        if (rc)
            return rc;
    }
    return rc ? fail(err, rc) : 0;
}

/* The daemon says why it will not go on. */
static int refused(const struct chempi_frame *frame, struct chempi_err *err)
{
    struct chempi_reader r;

    chempi_wire_read(&r, frame->data, frame->len);
    (void)chempi_wire_get_u32(&r);
    return chempi_err_set(err, -EINVAL, "the daemon refuses: %s",
                          chempi_wire_get_str(&r, CHEMPI_TEXT_MAX));
}

int chempi_local_await(struct chempi_channel *ch, uint16_t type,
                       struct chempi_frame *out, struct chempi_err *err)
{
    const uint64_t deadline = deadline_from_now();
    int rc = send_queued(ch, err);

    if (rc == -EPIPE)
        rc = 0; /* why it has closed may be there to be read */
    while (!rc) {
        while ((rc = chempi_channel_next(ch, out)) == 1) {
            if (out->type == type)
                return 0;
            if (out->type == CHEMPI_MSG_REPLY)
                return refused(out, err);
        }
        if (!rc)
            rc = chempi_channel_fill(ch);
        if (rc < 0)
            return fail(err, rc);
        rc = rc ? 0 : wait_for(ch, POLLIN, deadline, err);
    }
    return rc;
}

int chempi_local_open(struct chempi_channel *ch, const char *dir,
                      const char *via, struct chempi_local_daemon *daemon,
                      struct chempi_err *err)
{
    const char *name;
    struct chempi_frame frame;
    struct chempi_reader r;
    struct chempi_writer *w;
    int rc = connect_to(dir, via, daemon->path, err);

    if (rc < 0)
        return rc;
    chempi_channel_init(ch, rc, CHEMPI_TREE_MAX, CHEMPI_QUEUE_MAX);
    w = chempi_channel_begin(ch, CHEMPI_MSG_GREET, 0);
    chempi_wire_put_u32(w, CHEMPI_CONTROL_VERSION);
    chempi_wire_put_str(w, "");
    rc = chempi_channel_end(ch);
    rc = rc ? fail(err, rc)
            : chempi_local_await(ch, CHEMPI_MSG_GREET, &frame, err);
    if (!rc) {
        chempi_wire_read(&r, frame.data, frame.len);
        if (chempi_wire_get_u32(&r) != CHEMPI_CONTROL_VERSION)
            rc = chempi_err_set(err, -EPROTO,
                                "the daemon is of another version");
        name = chempi_wire_get_str(&r, CHEMPI_NODE_NAME_MAX);
        memcpy(daemon->node, name, strlen(name) + 1);
    }
    if (rc)
        chempi_channel_fini(ch);
    return rc;
}

static int send_query(struct chempi_channel *ch, char *const *names,
                      bool with_memory, struct chempi_err *err)
{
    struct chempi_writer *w = chempi_channel_begin(ch, CHEMPI_MSG_QUERY, 1);
    uint32_t n = 0;
    int rc;

    while (names && names[n])
        n++;
    chempi_wire_put_u32(w, (uint32_t)geteuid());
    chempi_wire_put_u32(w, n);
    for (uint32_t i = 0; i < n; i++)
        chempi_wire_put_str(w, names[i]);
    chempi_wire_put_u32(w, with_memory);
    chempi_wire_put_u32(w, 0); /* the daemon's own limit */
    rc = chempi_channel_end(ch);
    return rc && rc != -EPIPE ? fail(err, rc) : 0; /* the answer says why */
}

int chempi_local_query(struct chempi_channel *ch, char *const *names,
                       bool with_memory, struct chempi_pool *pool,
                       struct chempi_status **out, uint32_t *count,
                       struct chempi_err *err)
{
    struct chempi_status *list = NULL;
    struct chempi_frame frame;
    struct chempi_reader r;
    uint32_t n = 0;
    uint32_t cap = 0;
    int rc = send_query(ch, names, with_memory, err);

    rc = rc ? rc : chempi_local_await(ch, CHEMPI_MSG_STATUS, &frame, err);
    if (rc)
        return rc;
    chempi_wire_read(&r, frame.data, frame.len);
    while (!r.is_bad && r.next < r.end) {
        if (!CHEMPI_POOL_FIT(pool, list, cap, n + 1))
            return chempi_err_set(err, -ENOMEM, "out of memory");
        chempi_status_read(&r, pool, &list[n++]);
    }
    if (r.is_bad)
        return fail(err, -EBADMSG);
    *out = list;
    *count = n;
    return 0;
}
