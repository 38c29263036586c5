/* SPDX-License-Identifier: BSD-3-Clause */
/* Removes the daemon's files after it; see keeper.h. */
#define _GNU_SOURCE /* closefrom */
#include "chempid/keeper.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/sys.h"

#define PATHS_MAX 4
#define KEEPER_FD 3

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

_Noreturn static void keep(const char *const *paths, const struct stat *files,
                           int fd)
{
    sigset_t all;
    char byte;

    (void)setsid(); /* signals of a terminal are the daemon's business */
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    (void)prctl(PR_SET_NAME, "chempi-keeper");
    if (dup2(fd, KEEPER_FD) < 0)
        _exit(1);
    closefrom(KEEPER_FD + 1);
    while (read(KEEPER_FD, &byte, 1) < 0 && errno == EINTR)
        ;
    for (int i = 0; paths[i]; i++) {
        struct stat now;

        if (lstat(paths[i], &now) == 0 && is_same(&now, &files[i]))
            (void)unlink(paths[i]); /* nobody is left to be told */
    }
    _exit(0);
}

int chempi_keeper_start(struct chempi_keeper *k, const char *const *paths,
                        struct chempi_err *err)
{
    struct stat files[PATHS_MAX];
    int fds[2];
    int code;

    for (int i = 0; paths[i]; i++)
        if (i == PATHS_MAX || lstat(paths[i], &files[i]) < 0)
            return chempi_err_set(err, -errno, "%s: %s", paths[i],
                                  chempi_err_name(errno));
    if (chempi_sys->socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return chempi_err_set(err, -errno, "cannot start the keeper: %s",
                              chempi_err_name(errno));
    k->pid = chempi_sys->fork();
    code = -errno;
    if (k->pid == 0)
        keep(paths, files, fds[1]);
    (void)close(fds[1]); /* the child's end */
    if (k->pid > 0) {
        k->fd = fds[0];
        return 0;
    }
    (void)close(fds[0]); /* unused */
    k->pid = 0;
    return chempi_err_set(err, code, "cannot start the keeper: %s",
                          chempi_err_name(code));
}

void chempi_keeper_stop(struct chempi_keeper *k)
{
    if (!k->pid)
        return;
    (void)close(k->fd); /* this is the sign */
    while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    k->pid = 0;
}
