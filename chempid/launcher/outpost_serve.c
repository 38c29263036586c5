/* SPDX-License-Identifier: BSD-3-Clause */
/* The other end of an outpost; see outpost.h. */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/launcher/outpost.h"
#include "chempid/launcher/outpost_mark.h"
#include "chempid/launcher/verdict.h"
#include "chempid/supervisor/orphans.h"
#include "chempid/supervisor/super.h"
#include "chempid/tree/limits.h"
#include "common/base/sys.h"
#include "common/control/channel.h"

#define CHUNK 65536u /* bytes moved at a time */

static int fail(const char *what, int code)
{
    (void)fprintf(stderr, "chempirun " CHEMPI_OUTPOST_OPTION ": %s: %s\n", what,
                  chempi_err_name(code));
    return CHEMPI_EXIT_FAILURE;
}

static int write_all(int fd, const void *data, size_t len)
{
    const char *at = data;

    while (len) {
        const ssize_t n = write(fd, at, len);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

/* ---- the launch ---------------------------------------------------------- */

static int read_some(struct chempi_writer *in)
{
    uint8_t buf[4096];
    ssize_t n;

    do
        n = read(0, buf, sizeof(buf));
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return -EPIPE;
    chempi_wire_put_raw(in, buf, (size_t)n);
    return in->error;
}

static uint32_t number_at(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

/* Bytes of the first frame with its head once they are there. */
static int read_frame(struct chempi_writer *in, size_t *whole)
{
    int rc = 0;

    *whole = CHEMPI_FRAME_HEADER;
    while (!rc && in->len < *whole) {
        rc = read_some(in);
        if (!rc && in->len >= CHEMPI_FRAME_HEADER) {
            const uint32_t len = number_at(in->data);

            if (len > CHEMPI_TREE_MAX ||
                (in->data[4] | in->data[5] << 8) != CHEMPI_MSG_LAUNCH ||
                (in->data[6] | in->data[7] << 8) != CHEMPI_FRAME_MAGIC)
                return -EBADMSG;
            *whole = CHEMPI_FRAME_HEADER + (size_t)len;
        }
    }
    return rc;
}

static int parse(const struct chempi_writer *in, size_t whole,
                 struct chempi_spec *spec, uint32_t *node)
{
    struct chempi_shell shell;
    struct chempi_reader r;
    int rc;

    chempi_wire_read(&r, in->data + CHEMPI_FRAME_HEADER,
                     whole - CHEMPI_FRAME_HEADER);
    if (chempi_wire_get_u32(&r) != 1)
        return -EBADMSG;
    *node = chempi_wire_get_u32(&r);
    rc = chempi_shell_take(&shell, &r);
    rc = rc ? rc : chempi_spec_read(spec, &r);
    if (rc == 0) { /* whoever has logged in, whatever the launcher is there */
        spec->shell = shell;
        spec->uid = geteuid();
        spec->gid = getegid();
    }
    return !rc && (!chempi_wire_is_done(&r) || *node >= spec->node_count)
               ? -EBADMSG
               : rc;
}

/* ---- the relay ----------------------------------------------------------- */

/* What is there goes on; -EPIPE: the end. */
static int move(int from, int to)
{
    static char buf[CHUNK];
    const ssize_t n = read(from, buf, sizeof(buf));

    if (n < 0 && errno == EINTR)
        return 0;
    return n <= 0 ? -EPIPE : write_all(to, buf, (size_t)n);
}

/* Until the supervisor has ended; when the launcher is lost it hears so. */
static void relay(int fd)
{
    struct pollfd p[2] = {{.fd = 0, .events = POLLIN},
                          {.fd = fd, .events = POLLIN}};

    for (;;) {
        if (poll(p, 2, -1) < 0)
            continue;
        if (p[1].revents && move(fd, 1))
            return;
        if (p[0].fd >= 0 && p[0].revents && move(0, fd)) {
            (void)shutdown(fd, SHUT_WR);
            p[0].fd = -1;
        }
    }
}

_Noreturn static void supervise(const struct chempi_spec *spec, uint32_t node,
                                int fd, pid_t parent)
{
    const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || null_fd < 0 || dup2(null_fd, 0) < 0 ||
        dup2(null_fd, 1) < 0)
        _exit(1);
    chempi_super_run(spec, node, fd);
}

static int serve(const struct chempi_spec *spec, uint32_t node,
                 const void *rest, size_t rest_len)
{
    const pid_t self = getpid();
    int fds[2];
    pid_t pid;

    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ||
        chempi_sys->socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return fail("cannot start a supervisor", -errno);
    pid = chempi_sys->fork();
    if (pid == 0)
        supervise(spec, node, fds[1], self);
    (void)close(fds[1]); /* the child's end */
    if (pid < 0)
        return fail("cannot start a supervisor", -errno);
    if (write_all(fds[0], rest, rest_len) == 0)
        relay(fds[0]);
    (void)close(fds[0]); /* nobody reads it any more */
    (void)chempi_orphans_end(NULL, NULL, (unsigned)(CHEMPI_REAP_S * 1000));
    return 0;
}

int chempi_outpost_serve(void)
{
    struct chempi_writer in = {0};
    struct chempi_spec spec = {0};
    size_t whole;
    uint32_t node = 0;
    int rc;

    (void)signal(SIGPIPE, SIG_IGN);
    rc = write_all(1, CHEMPI_OUTPOST_MARK, sizeof(CHEMPI_OUTPOST_MARK) - 1);
    rc = rc ? rc : read_frame(&in, &whole);
    rc = rc ? rc : parse(&in, whole, &spec, &node);
    if (rc) {
        chempi_wire_clear(&in);
        return rc == -EPIPE ? CHEMPI_EXIT_FAILURE
                            : fail("a malformed launch", rc);
    }
    rc = serve(&spec, node, in.data + whole, in.len - whole);
    chempi_wire_clear(&in);
    chempi_spec_fini(&spec);
    return rc;
}
