/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of hosts; see resolve.h. */
#define _GNU_SOURCE /* closefrom, pipe2 */
#include "chempid/peers/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "chempid/tree/limits.h"
#include "common/base/sys.h"

#define ANSWER_FD 3

/* What the child writes at once: less than a pipe takes whole. */
struct answer {
    struct chempi_addr addr;
    int code;
    char text[CHEMPI_RESOLVE_TEXT];
};

static unsigned under_way; /* of this process */

_Noreturn static void look_up(const char *text, int fd, pid_t parent)
{
    struct chempi_err err = {0};
    struct answer a;
    sigset_t none;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ||
        dup2(fd, ANSWER_FD) < 0)
        _exit(1);
    (void)prctl(PR_SET_NAME, "chempi-resolve");
    closefrom(ANSWER_FD + 1);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    memset(&a, 0, sizeof(a));
    a.code = chempi_addr_parse(text, &a.addr, &err);
    if (a.code)
        (void)snprintf(a.text, sizeof(a.text), "%.*s", (int)sizeof(a.text) - 1,
                       err.text);
    _exit(write(ANSWER_FD, &a, sizeof(a)) != (ssize_t)sizeof(a));
}

static void answered(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_resolve *r = w->data;
    struct chempi_err err = {0};
    struct answer a;
    const ssize_t n = chempi_sys->read(r->fd, &a, sizeof(a));

    (void)loop;
    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    chempi_resolve_stop(r);
    if (n != (ssize_t)sizeof(a)) {
        (void)chempi_err_set(&err, -EIO, "the look-up of its name has failed");
        r->done(r->arg, NULL, &err);
    } else if (a.code) {
        a.text[sizeof(a.text) - 1] = '\0';
        (void)chempi_err_set(&err, a.code, "%s", a.text);
        r->done(r->arg, NULL, &err);
    } else {
        r->done(r->arg, &a.addr, &err);
    }
}

static int fork_child(struct chempi_resolve *r, const char *text,
                      const int fds[2])
{
    const pid_t self = getpid();

    r->pid = chempi_sys->fork();
    if (r->pid == 0)
        look_up(text, fds[1], self);
    if (r->pid < 0)
        return -errno;
    if (chempi_supervisors_spare(r->supervisors, r->pid)) {
        chempi_supervisors_yield(r->supervisors, r->pid); /* which kills it */
        return -ENOMEM;
    }
    return 0;
}

int chempi_resolve_start(struct chempi_resolve *r, const char *text,
                         struct chempi_err *err)
{
    int fds[2];
    int rc;

    r->fd = -1;
    if (under_way >= CHEMPI_RESOLVE_MAX)
        return chempi_err_set(err, -EAGAIN,
                              "%s: too many names are being looked up (limit: "
                              "%u); say addresses instead of names",
                              text, CHEMPI_RESOLVE_MAX);
    rc = chempi_sys->pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0 ? -errno : 0;
    if (!rc) {
        rc = fork_child(r, text, fds);
        (void)close(fds[1]); /* the child's end */
        if (rc)
            (void)close(fds[0]); /* nobody writes */
    }
    if (rc)
        return chempi_err_set(err, rc, "cannot look up %s: %s", text,
                              chempi_err_name(rc));
    r->fd = fds[0];
    under_way++;
    ev_io_init(&r->io, answered, r->fd, EV_READ);
    r->io.data = r;
    ev_io_start(r->loop, &r->io);
    return 0;
}

void chempi_resolve_stop(struct chempi_resolve *r)
{
    if (r->fd < 0)
        return;
    ev_io_stop(r->loop, &r->io);
    (void)close(r->fd); /* read only */
    r->fd = -1;
    under_way--;
    chempi_supervisors_yield(r->supervisors, r->pid);
}
