/* SPDX-License-Identifier: BSD-3-Clause */
/* Removes the daemon's files after it; see keeper.h. */
#define _GNU_SOURCE /* closefrom */
#include "chempid/helper/keeper.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/helper/say.h"
#include "common/base/sys.h"

#define KEEPER_FD 3
#define PATH_LEN 4200

/* What the daemon tells. */
struct news {
    int index;
    struct stat file;
};

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int passing_name(const char *path, pid_t pid, char *out, size_t size)
{
    const int n = snprintf(out, size, "%s.%ld", path, (long)pid);

    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int chempi_keeper_name(const char *path, char *out, size_t size,
                       struct chempi_err *err)
{
    return passing_name(path, getpid(), out, size)
               ? chempi_err_set(err, -ENAMETOOLONG, "%s: too long a name", path)
               : 0;
}

/* Nobody is left to be told of failures. */
static void remove_files(const struct chempi_keeper *k, pid_t daemon)
{
    for (int i = 0; i < CHEMPI_KEEPER_FILES; i++) {
        char passing[PATH_LEN];
        struct stat now;

        if (passing_name(k->paths[i], daemon, passing, sizeof(passing)) == 0)
            (void)unlink(passing);
        if (k->is_known[i] && lstat(k->paths[i], &now) == 0 &&
            is_same(&now, &k->files[i]))
            (void)unlink(k->paths[i]);
    }
    chempi_cgroups_sweep(k->groups);
}

_Noreturn static void keep(struct chempi_keeper *k, pid_t daemon, int fd)
{
    struct news news;
    sigset_t all;
    ssize_t n;

    (void)setsid(); /* signals of a terminal are the daemon's business */
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    (void)prctl(PR_SET_NAME, "chempi-keeper");
    if (dup2(fd, KEEPER_FD) < 0)
        _exit(1);
    closefrom(KEEPER_FD + 1);
    if (chempi_say_leave()) /* it says nothing, and may stay long */
        (void)close(STDERR_FILENO);
    while ((n = read(KEEPER_FD, &news, sizeof(news))) > 0 ||
           (n < 0 && errno == EINTR)) {
        if (n != (ssize_t)sizeof(news) || news.index < 0 ||
            news.index >= CHEMPI_KEEPER_FILES)
            continue;
        k->files[news.index] = news.file;
        k->is_known[news.index] = true;
        if (write(KEEPER_FD, "k", 1) < 0) /* it waits for this */
            break;
    }
    remove_files(k, daemon);
    _exit(0);
}

int chempi_keeper_start(struct chempi_keeper *k, struct chempi_err *err)
{
    const pid_t self = getpid();
    int fds[2];
    int code;

    /* Whole pieces of news, so SEQPACKET. */
    if (chempi_sys->socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) <
        0)
        return chempi_err_set(err, -errno, "cannot start the keeper: %s",
                              chempi_err_name(errno));
    k->pid = chempi_sys->fork();
    code = -errno;
    if (k->pid == 0)
        keep(k, self, fds[1]);
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

int chempi_keeper_tell(struct chempi_keeper *k, int i, const char *where,
                       struct chempi_err *err)
{
    struct news news;
    char byte;
    ssize_t n;
    int code;

    memset(&news, 0, sizeof(news));
    news.index = i;
    if (lstat(where, &news.file) < 0)
        return chempi_err_set(err, -errno, "%s: %s", where,
                              chempi_err_name(errno));
    k->files[i] = news.file;
    k->is_known[i] = true;
    n = chempi_sys->send(k->fd, &news, sizeof(news), MSG_NOSIGNAL);
    while (n > 0 && (n = chempi_sys->recv(k->fd, &byte, 1, 0)) < 0 &&
           errno == EINTR)
        n = 1;
    if (n > 0)
        return 0;
    code = n < 0 ? -errno : -EPIPE;
    (void)unlink(where); /* a keeper that has ended early does not do it */
    return chempi_err_set(err, code, "the keeper cannot be told of %s: %s",
                          where,
                          n < 0 ? chempi_err_name(-code) : "it has ended");
}

/* Returns whether it has done its work. */
static bool end(struct chempi_keeper *k)
{
    int status = -1;

    if (!k->pid)
        return false;
    (void)close(k->fd); /* this is the sign */
    while (waitpid(k->pid, &status, 0) < 0 && errno == EINTR)
        ;
    k->pid = 0;
    return status == 0;
}

void chempi_keeper_forget(struct chempi_keeper *k)
{
    (void)close(k->fd); /* nothing is written there any more */
    k->pid = 0;
}

void chempi_keeper_stop(struct chempi_keeper *k)
{
    if (!end(k) && k->paths[0])
        remove_files(k, getpid());
}
