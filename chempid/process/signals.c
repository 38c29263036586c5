/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals as events of a loop; see signals.h. */
#define _GNU_SOURCE /* sigset_t and friends */
#include "chempid/process/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void signalled(struct ev_loop *loop, ev_io *w, int events)
{
    const struct chempi_signals *signals = w->data;
    struct signalfd_siginfo info;

    (void)loop;
    (void)events;
    while (read(signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        signals->fn(signals->arg, info.ssi_signo);
}

int chempi_signals_watch(struct chempi_signals *signals, struct ev_loop *loop,
                         const int *numbers, size_t count,
                         chempi_signals_fn *fn, void *arg,
                         struct chempi_err *err)
{
    sigset_t set;
    int fd;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&set);
    for (size_t i = 0; i < count; i++)
        (void)sigaddset(&set, numbers[i]);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return chempi_err_set(err, -errno, "cannot watch signals: %s",
                              chempi_err_name(errno));
    *signals =
        (struct chempi_signals){.loop = loop, .fn = fn, .arg = arg, .fd = fd};
    ev_io_init(&signals->io, signalled, fd, EV_READ);
    signals->io.data = signals;
    ev_io_start(loop, &signals->io);
    return 0;
}

void chempi_signals_unwatch(struct chempi_signals *signals)
{
    if (!signals->loop)
        return;
    ev_io_stop(signals->loop, &signals->io);
    (void)close(signals->fd); /* nothing is written there */
    signals->loop = NULL;
}
