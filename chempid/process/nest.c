/* SPDX-License-Identifier: BSD-3-Clause */
/* Supervisors as processes; see nest.h. */
#define _GNU_SOURCE /* O_CLOEXEC */
#include "chempid/process/nest.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/process/orphans.h"
#include "chempid/tree/limits.h"
#include "common/containers/array.h"
#include "common/fd/file.h"

int chempi_nest_init(struct chempi_nest *nest, struct chempi_err *err)
{
    int rc;

    *nest = (struct chempi_nest){0};
    chempi_list_init(&nest->young);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return chempi_err_set(err, -errno, "cannot become a subreaper: %s",
                              chempi_err_name(errno));
    rc = chempi_orphans_list(&nest->elders, &nest->elder_count);
    if (rc)
        return chempi_err_set(err, rc, "cannot read /proc: %s",
                              chempi_err_name(rc));
    return 0;
}

static bool is_elder(const struct chempi_nest *nest, pid_t pid)
{
    for (size_t i = 0; i < nest->elder_count; i++)
        if (nest->elders[i] == pid)
            return true;
    return false;
}

static bool is_elder_fn(void *arg, pid_t pid)
{
    return is_elder(arg, pid);
}

/* N1 */
static bool is_known(void *arg, pid_t pid)
{
    struct chempi_nest *nest = arg;

    CHEMPI_LIST_FOR (e, &nest->young)
        if (CHEMPI_CONTAINER_OF(e, struct chempi_young, entry)->pid == pid)
            return true;
    return is_elder(nest, pid);
}

void chempi_nest_fini(struct chempi_nest *nest)
{
    (void)chempi_orphans_end(is_elder_fn, nest,
                             (unsigned)(CHEMPI_REAP_S * 1000));
    free(nest->elders);
    free(nest->held);
    nest->elders = NULL;
    nest->held = NULL;
    nest->elder_count = nest->held_count = 0;
    nest->elder_room = nest->held_room = 0;
}

int chempi_nest_spare(struct chempi_nest *nest, pid_t pid)
{
    if (!CHEMPI_ARRAY_FIT(nest->elders, nest->elder_room,
                          nest->elder_count + 1))
        return -ENOMEM;
    nest->elders[nest->elder_count++] = pid;
    return 0;
}

void chempi_nest_yield(struct chempi_nest *nest, pid_t pid)
{
    for (size_t i = 0; i < nest->elder_count; i++)
        if (nest->elders[i] == pid)
            nest->elders[i] = nest->elders[--nest->elder_count];
}

/* ---- strays -------------------------------------------------------------- */

/* Where it stands among the held, or would. */
static size_t find_held(const struct chempi_nest *nest, pid_t pid)
{
    size_t low = 0;
    size_t high = nest->held_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (nest->held[middle].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_held(const struct chempi_nest *nest, pid_t pid)
{
    const size_t at = find_held(nest, pid);

    return at < nest->held_count && nest->held[at].pid == pid;
}

/* Without memory others wait for it, too: CHEMPI_REAP_S at most. */
static void hold(struct chempi_nest *nest, pid_t pid, uid_t uid)
{
    const size_t at = find_held(nest, pid);

    if (is_held(nest, pid) ||
        !CHEMPI_ARRAY_FIT(nest->held, nest->held_room, nest->held_count + 1))
        return;
    memmove(nest->held + at + 1, nest->held + at,
            (nest->held_count++ - at) * sizeof(*nest->held));
    nest->held[at] = (struct chempi_nest_held){pid, uid};
}

static void release(struct chempi_nest *nest, pid_t pid)
{
    const size_t at = find_held(nest, pid);

    if (!is_held(nest, pid))
        return;
    nest->held_count--;
    memmove(nest->held + at, nest->held + at + 1,
            (nest->held_count - at) * sizeof(*nest->held));
}

size_t chempi_nest_held(const struct chempi_nest *nest, uid_t uid)
{
    size_t n = 0;

    for (size_t i = 0; i < nest->held_count; i++)
        n += nest->held[i].uid == uid;
    return n;
}

/* The real user of a process; false: it is gone. */
static bool user_of(pid_t pid, uid_t *out)
{
    char path[64];
    char buf[1024]; /* the line is among the first dozen */
    const char *at;

    (void)snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
    (void)chempi_file_read(path, buf, sizeof(buf)); /* else it is empty */
    at = strstr(buf, "\nUid:");
    if (!at)
        return false;
    *out = (uid_t)strtoul(at + 5, NULL, 10);
    return true;
}

/* Has it ended? */
static void reap(struct chempi_young *young)
{
    const pid_t got = waitpid(young->pid, &young->status, WNOHANG);

    if (got == 0 || (got < 0 && errno == EINTR))
        return;
    young->has_ended = true;
    young->pid = 0;                    /* free for others */
    chempi_cgroup_kill(&young->group); /* all at once: they may fork */
}

static void reap_all(const struct chempi_nest *nest)
{
    CHEMPI_LIST_FOR (e, &nest->young) {
        struct chempi_young *young =
            CHEMPI_CONTAINER_OF(e, struct chempi_young, entry);

        if (young->pid)
            reap(young);
    }
}

/* A stray that has not ended keeps the supervisors of its user waiting; with
 * `gives_up` set, it is held instead. */
struct watchman {
    struct chempi_nest *nest;
    const struct chempi_young *gives_up;
};

static bool is_spared(void *arg, pid_t pid)
{
    const struct watchman *w = arg;

    return is_known(w->nest, pid);
}

static bool is_slow(void *arg, pid_t pid)
{
    const struct watchman *w = arg;

    return is_held(w->nest, pid);
}

/* Whether it can be what this one has left: that came here when it ended. */
static bool may_have_left(const struct watchman *w,
                          const struct chempi_young *y)
{
    return y->has_ended || y == w->gives_up;
}

/* Whose it is by its user, else by its control group; NULL: nobody's that is
 * known. Whoever has left it has ended, perhaps since that was asked last. */
static const struct chempi_young *find_origin(const struct watchman *w,
                                              pid_t pid, uid_t uid)
{
    CHEMPI_LIST_FOR (e, &w->nest->young) {
        const struct chempi_young *y =
            CHEMPI_CONTAINER_OF(e, struct chempi_young, entry);

        if (y->uid == uid)
            return y;
    }
    reap_all(w->nest);
    CHEMPI_LIST_FOR (e, &w->nest->young) {
        const struct chempi_young *y =
            CHEMPI_CONTAINER_OF(e, struct chempi_young, entry);

        if (may_have_left(w, y) && chempi_cgroup_has(&y->group, pid))
            return y;
    }
    return NULL;
}

/* Is it about to be reaped? */
static bool is_over(const struct chempi_young *y)
{
    siginfo_t info = {0};

    return y->pid &&
           waitid(P_PID, (id_t)y->pid, &info, WEXITED | WNOHANG | WNOWAIT) ==
               0 &&
           info.si_pid == y->pid;
}

/* Does one of its user's wait for a stray, or will it? What one leaves comes
 * here as it ends. */
static bool is_awaited(const struct watchman *w, uid_t uid)
{
    CHEMPI_LIST_FOR (e, &w->nest->young) {
        const struct chempi_young *y =
            CHEMPI_CONTAINER_OF(e, struct chempi_young, entry);

        if (y->uid == uid && (may_have_left(w, y) || is_over(y)))
            return true;
    }
    return false;
}

/* N3 */
static void seen(void *arg, pid_t pid, bool is_gone)
{
    struct watchman *w = arg;
    const struct chempi_young *origin;
    bool is_anybodys = false;
    uid_t uid;

    if (is_gone) {
        release(w->nest, pid);
        return;
    }
    if (is_held(w->nest, pid) || !user_of(pid, &uid))
        return;
    origin = find_origin(w, pid, uid);
    CHEMPI_LIST_FOR (e, &w->nest->young) {
        struct chempi_young *y =
            CHEMPI_CONTAINER_OF(e, struct chempi_young, entry);
        const bool is_its =
            origin ? y->uid == origin->uid : may_have_left(w, y);

        y->is_waiting |= is_its;
        is_anybodys |= is_its;
        if (is_its && y == w->gives_up)
            hold(w->nest, pid, y->uid);
    }
    if (!is_anybodys || (origin && !is_awaited(w, origin->uid)))
        hold(w->nest, pid, origin ? origin->uid : uid);
}

static void sweep(struct chempi_nest *nest, const struct chempi_young *gives_up)
{
    struct watchman w = {.nest = nest, .gives_up = gives_up};

    CHEMPI_LIST_FOR (e, &nest->young)
        CHEMPI_CONTAINER_OF(e, struct chempi_young, entry)->is_waiting = false;
    /* Without /proc nobody knows of strays, and nobody waits for them. */
    (void)chempi_orphans_sweep(is_spared, is_slow, seen, &w);
}

/* ---- supervisors --------------------------------------------------------- */

void chempi_nest_add(struct chempi_nest *nest, struct chempi_young *young)
{
    young->has_ended = young->is_waiting = false;
    chempi_list_append(&nest->young, &young->entry);
}

void chempi_nest_settle(struct chempi_nest *nest)
{
    reap_all(nest);
    sweep(nest, NULL);
    if (nest->groups)
        chempi_cgroups_tidy(nest->groups);
}

void chempi_nest_kill(struct chempi_young *young)
{
    if (young->pid)
        (void)kill(young->pid, SIGKILL); /* ours: at worst a zombie */
}

void chempi_nest_let_go(struct chempi_nest *nest, struct chempi_young *young)
{
    young->pid = 0;
    chempi_cgroup_kill(&young->group);
    sweep(nest, young);
    chempi_nest_forget(young);
}

void chempi_nest_forget(struct chempi_young *young)
{
    chempi_list_remove(&young->entry);
    chempi_cgroup_remove(&young->group);
}
