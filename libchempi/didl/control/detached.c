/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that is nobody's child; see detached.h. */
#define _GNU_SOURCE /* clone, __WCLONE, closing descriptors */
#include "libchempi/didl/control/detached.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/compiler.h"
#include "common/base/sys.h"
#include "common/control/dynamic.h"
#include "common/fd/file.h"
#include "libchempi/didl/locality/affinity.h"

#define STACK_BYTES (256u << 10) /* touched as far as it is used */

extern char **environ;

/* clone() by the name that ThreadSanitizer leaves alone: it takes the other one
 * for a fork, and looks after memory that it then shares. */
extern int __clone(int (*run)(void *arg), void *stack, int flags, void *arg,
                   ...);

struct start {
    char *const *argv;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int rc; /* positive, of posix_spawn() */
};

static int set_actions(struct start *s, int fd, int as)
{
    int rc = posix_spawn_file_actions_addopen(&s->actions, 0, "/dev/null",
                                              O_RDONLY, 0);

    rc = rc ? rc : posix_spawn_file_actions_adddup2(&s->actions, fd, as);
    return rc ? rc
              : posix_spawn_file_actions_addclosefrom_np(&s->actions, as + 1);
}

/* What ends our group is our affair: until it watches these they wait. */
static int set_attributes(struct start *s)
{
    static const int numbers[] = {CHEMPI_ROOT_SIGNALS};
    sigset_t held;
    sigset_t all;
    int rc;

    (void)sigemptyset(&held);
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(numbers); i++)
        (void)sigaddset(&held, numbers[i]);
    (void)sigfillset(&all);
    rc = posix_spawnattr_setsigmask(&s->attr, &held);
    rc = rc ? rc : posix_spawnattr_setsigdefault(&s->attr, &all);
    return rc ? rc
              : posix_spawnattr_setflags(&s->attr, POSIX_SPAWN_SETSIGMASK |
                                                       POSIX_SPAWN_SETSIGDEF);
}

/* The process in between: in our memory, while its maker stands still. */
static int run_between(void *arg)
{
    struct start *s = arg;
    pid_t pid;

    chempi_affinity_free_thread();
    s->rc =
        posix_spawn(&pid, s->argv[0], &s->actions, &s->attr, s->argv, environ);
    return 0;
}

/* Its end raises no signal, and who waits for children does not see it, unless
 * asked for such by __WCLONE. Handlers must not run in it, which has our
 * memory. */
static int make_between(struct start *s, char *stack)
{
    sigset_t all;
    sigset_t before;
    int cancel;
    pid_t pid;
    int rc;

    s->rc = ECHILD;
    (void)sigfillset(&all);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    pid = __clone(run_between, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK, s);
    rc = pid < 0 ? -errno : 0;
    while (pid > 0 && waitpid(pid, NULL, (int)__WCLONE) < 0 && errno == EINTR)
        ;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_setcancelstate(cancel, NULL);
    return rc ? rc : -s->rc;
}

static int start(struct start *s)
{
    char *stack =
        chempi_sys->mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    int rc;

    if (stack == MAP_FAILED)
        return -ENOMEM;
    rc = make_between(s, stack);
    (void)chempi_sys->munmap(stack, STACK_BYTES);
    return rc;
}

static int start_with(char *const *argv, int fd, int as)
{
    struct start s = {.argv = argv};
    int rc;

    if (posix_spawn_file_actions_init(&s.actions))
        return -ENOMEM;
    if (posix_spawnattr_init(&s.attr)) {
        (void)posix_spawn_file_actions_destroy(&s.actions);
        return -ENOMEM;
    }
    rc = set_actions(&s, fd, as);
    rc = rc ? rc : set_attributes(&s);
    rc = rc ? -rc : start(&s);
    (void)posix_spawnattr_destroy(&s.attr);
    (void)posix_spawn_file_actions_destroy(&s.actions);
    return rc;
}

/* Where standard streams are closed, it may be in the place of one. */
int chempi_detached_start(char *const *argv, int fd, int as)
{
    const int own =
        fd > STDERR_FILENO ? fd : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int rc = own < 0 ? -errno : start_with(argv, own, as);

    if (own != fd)
        chempi_file_close(own);
    return rc;
}
