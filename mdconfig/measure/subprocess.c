/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that are started; see subprocess.h. */
#define _GNU_SOURCE /* memfd_create, pidfd_open's number */
#include "mdconfig/measure/subprocess.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/compiler.h"
#include "common/base/sys.h"
#include "common/host/beside.h"
#include "mdconfig/description/mem.h"

/* ---- finding ------------------------------------------------------------ */

int chempi_subprocess_find(const char *name, const char *folder,
                           char path[CHEMPI_SUBPROCESS_PATH_MAX],
                           struct chempi_err *err)
{
    const char *const places[] = {"/", CHEMPI_BESIDE_LIBEXEC, "/../", NULL};
    char self[CHEMPI_SUBPROCESS_PATH_MAX];

    (void)chempi_beside_folder(self, sizeof(self)); /* else none is there */
    for (size_t i = 0; places[i]; i++) {
        int len =
            snprintf(path, CHEMPI_SUBPROCESS_PATH_MAX, "%s%s%s%s%s", self,
                     places[i], i == 2 ? folder : "", i == 2 ? "/" : "", name);

        if (len > 0 && (size_t)len < CHEMPI_SUBPROCESS_PATH_MAX &&
            access(path, X_OK) == 0)
            return 0;
    }
    return chempi_err_set(err, -ENOENT,
                          "found no %s beside mdconfig (%.400s) or in "
                          "libexec/chempi; install CHEMPI as a whole",
                          name, self);
}

/* ---- running ------------------------------------------------------------ */

/* What a stream has left in a memory file, as text. */
static char *read_back(int fd)
{
    char *text = chempi_mem_get(CHEMPI_SUBPROCESS_OUTPUT_MAX + 1, 1);
    size_t len = 0;
    ssize_t n;

    while (len < CHEMPI_SUBPROCESS_OUTPUT_MAX &&
           (n = pread(fd, text + len, CHEMPI_SUBPROCESS_OUTPUT_MAX - len,
                      (off_t)len)) > 0)
        len += (size_t)n;
    return text; /* zeroed behind */
}

static void ends_us(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGHUP);
    (void)sigaddset(set, SIGCHLD);
}

/* In the child: signals as they were, streams to where they are kept. */
CHEMPI_NORETURN static void become(char *const argv[], const int fds[2],
                                   const sigset_t *before)
{
    int null = chempi_sys->open("/dev/null", 0, 0);

    (void)sigprocmask(SIG_SETMASK, before, NULL);
    if (null >= 0 && dup2(null, 0) == 0 && dup2(fds[0], 1) == 1 &&
        dup2(fds[1], 2) == 2)
        (void)execv(argv[0], argv);
    (void)dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* Wait for the child; pass on what is meant for us. */
static void wait_for(pid_t pid, int signals, struct chempi_subprocess *child)
{
    int status = 0;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        struct signalfd_siginfo info;

        if (read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info) ||
            info.ssi_signo == SIGCHLD)
            continue;
        child->interrupted = (int)info.ssi_signo;
        (void)kill(pid, child->interrupted); /* it may have ended */
    }
    child->status =
        WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run(char *const argv[], const int fds[2],
               struct chempi_subprocess *child)
{
    sigset_t set;
    sigset_t before;
    int signals;
    pid_t pid;
    int rc = 0;

    ends_us(&set);
    (void)sigprocmask(SIG_BLOCK, &set, &before);
    signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (signals < 0) {
        rc = -errno;
    } else {
        pid = chempi_sys->fork();
        if (pid == 0)
            become(argv, fds, &before);
        if (pid < 0)
            rc = -errno;
        else
            wait_for(pid, signals, child);
        (void)close(signals);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int chempi_subprocess_run(char *const argv[], struct chempi_subprocess *child,
                          struct chempi_err *err)
{
    struct chempi_subprocess made = {.status = 0};
    int fds[2] = {chempi_sys->memfd_create("out", MFD_CLOEXEC),
                  chempi_sys->memfd_create("err", MFD_CLOEXEC)};
    int rc = fds[0] < 0 || fds[1] < 0 ? -errno : run(argv, fds, &made);

    if (!rc) {
        made.out = read_back(fds[0]);
        made.err = read_back(fds[1]);
        *child = made;
    }
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0)
            (void)close(fds[i]); /* memory */
    }
    return rc ? chempi_err_set(err, rc, "cannot start %s: %s", argv[0],
                               chempi_err_name(rc))
              : 0;
}

void chempi_subprocess_fini(struct chempi_subprocess *child)
{
    free(child->out);
    free(child->err);
    *child = (struct chempi_subprocess){.out = NULL};
}
