/* SPDX-License-Identifier: BSD-3-Clause */
/* Sweeps of children: bounded, and gone on with at the next SIGCHLD. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/process/orphans.h"

#define MANY 600

static bool has_signal(int fd)
{
    struct signalfd_siginfo info;

    return read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info);
}

Test(orphans, many_take_several_sweeps, .timeout = 60)
{
    int sweeps = 0;
    sigset_t set;
    int fd;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    cr_assert_geq(fd, 0);
    for (int i = 0; i < MANY; i++) {
        const pid_t pid = fork();
        siginfo_t info;

        cr_assert_geq(pid, 0);
        if (pid == 0)
            _exit(0);
        cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    }
    while (has_signal(fd))
        ;

    cr_expect_gt(chempi_orphans_sweep(NULL, NULL, NULL, NULL), 0,
                 "some are left");
    cr_expect(has_signal(fd), "it is to be called again");
    while (chempi_orphans_sweep(NULL, NULL, NULL, NULL) > 0)
        cr_assert_lt(++sweeps, MANY);
    cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "none is left");
    (void)close(fd);
}
