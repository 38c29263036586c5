/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Supervisors as processes: who is there, who has ended, and what the ended
 * ones have left behind. That comes to this process, which is a subreaper, and
 * is killed here. The links to supervisors are another matter (supervisors.h),
 * and may be another process's.
 *
 *   N1  a child that is neither a supervisor nor an elder is a stray: it is
 *       killed at each settling until it is reaped
 *   -   nothing here waits, except in fini: the owner settles at SIGCHLD
 *   N3  a stray counts for the user whose job it comes from: its own one, or,
 *       if it has become another one, that of its control group, or else each
 *       of those whose supervisors have ended and wait; with none of these,
 *       the one that it is
 *
 * A killed process does not end while another one traces it, or while it is in
 * an uninterruptible call. Such strays are held: killed and reaped when it can
 * be done, while nobody waits for them any more. A supervisor waits for strays
 * of its own user only, so that no user delays the ends of others' jobs.
 */
#ifndef CHEMPI_CHEMPID_NEST_H
#define CHEMPI_CHEMPID_NEST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "chempid/process/cgroup.h"
#include "common/base/err.h"
#include "common/containers/list.h"

struct chempi_nest_held {
    pid_t pid;
    uid_t uid;
};

struct chempi_nest { /* one per process */
    struct chempi_list young;
    pid_t *elders; /* children that are not ours to kill */
    size_t elder_count;
    size_t elder_room;
    struct chempi_nest_held *held; /* strays that nobody waits for, by pid */
    size_t held_count;
    size_t held_room;
    struct chempi_cgroups *groups; /* the caller's, or NULL */
};

struct chempi_young {
    struct chempi_list entry;
    pid_t pid; /* 0: it is reaped, or was let go */
    uid_t uid;
    struct chempi_cgroup group; /* made by the caller, or zeros */
    int status;                 /* of wait(2), when it has ended */
    bool has_ended;
    bool is_waiting; /* for strays of its user, as of the last settling */
};

/* Become subreaper; present children are elders. 0 or -errno with words. */
int chempi_nest_init(struct chempi_nest *nest, struct chempi_err *err);
/* Kill and reap all that is left (N1 and supervisors), for CHEMPI_REAP_S. */
void chempi_nest_fini(struct chempi_nest *nest);
/* One child more that is left alone. 0 or -ENOMEM. */
int chempi_nest_spare(struct chempi_nest *nest, pid_t pid);
/* It is a stray now, to be killed and reaped. */
void chempi_nest_yield(struct chempi_nest *nest, pid_t pid);

/* A forked child, whose pid and uid are set, is a supervisor. */
void chempi_nest_add(struct chempi_nest *nest, struct chempi_young *young);
/* Reap who has ended, sweep: has_ended and is_waiting tell the rest. */
void chempi_nest_settle(struct chempi_nest *nest);
/* SIGKILL, if it runs. */
void chempi_nest_kill(struct chempi_young *young);
/* How many strays of a user are held. */
size_t chempi_nest_held(const struct chempi_nest *nest, uid_t uid);
/* It, if it still runs, and what its user has left are held. */
void chempi_nest_let_go(struct chempi_nest *nest, struct chempi_young *young);
/* It is not among the young any more; if it still runs, it is a stray. Its
 * group is removed. */
void chempi_nest_forget(struct chempi_young *young);

#endif
