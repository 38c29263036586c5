/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A control group of the kernel for each job of a daemon: what a node's ranks
 * have forked, in whatever session, is in it, can be ended at one stroke, and
 * has together no more than the administrator allows.
 *
 *   -   groups are below the daemon's own, in DIR/chempi.NODE.PID/JOB; nothing
 *       else there is touched
 *   -   the supervisor is in its group before it has any child
 *   -   a group goes with its job, and what is in it is killed before; those of
 *       a daemon that is killed go with its keeper
 *   -   where nothing can be written, jobs run without
 *
 * Of version 2 (cgroup2) if that can be written; of version 1 for limits whose
 * controllers are there, or where there is nothing else. Calls do not wait
 * for processes, except for chempi_cgroups_sweep().
 */
#ifndef CHEMPI_CHEMPID_CGROUP_H
#define CHEMPI_CHEMPID_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "chempid/job/spec.h"
#include "common/base/err.h"

#define CHEMPI_CGROUP_PATH_MAX 1024u
#define CHEMPI_CGROUP_PLACES 4u /* version 2, and three controllers */

/* Of a job on this node; 0: as much as there is. */
struct chempi_cgroup_limits {
    uint64_t memory;    /* bytes */
    uint64_t processes; /* and threads */
    double cpus;        /* processors' worth of time */
};

struct chempi_cgroup_place {
    char dir[CHEMPI_CGROUP_PATH_MAX];  /* with chempi.NODE.PID */
    char name[CHEMPI_CGROUP_PATH_MAX]; /* of dir in /proc/PID/cgroup */
    int fd; /* of dir, locked: its daemon lives, in whatever PID namespace */
    bool is_v2;
    bool has_memory; /* limits that are set there */
    bool has_processes;
    bool has_cpus;
};

/* A job's. Zeros: it has none. */
struct chempi_cgroup {
    struct chempi_cgroups *all;
    char job[CHEMPI_JOB_ID_MAX];
    int fd; /* of the directory of version 2 until the fork, or -1 */
};

/* Where the groups of a daemon's jobs go. Zeros: nowhere. */
struct chempi_cgroups {
    struct chempi_cgroup_place places[CHEMPI_CGROUP_PLACES];
    uint32_t count;
    struct chempi_cgroup_limits limits;
    struct chempi_cgroup *left; /* what has been killed there has not ended */
    size_t left_count;
    size_t left_room;
};

/* Find where groups can be, for a daemon of this node. Its words say what
 * limits cannot be kept, or why there are none: -ENOTSUP, and jobs do
 * without. */
int chempi_cgroups_open(struct chempi_cgroups *all, const char *node,
                        const struct chempi_cgroup_limits *limits,
                        struct chempi_err *err);
/* Remove what could not be removed before: for whenever a child has ended. */
void chempi_cgroups_tidy(struct chempi_cgroups *all);
/* Kill what is in the groups that are left and remove them, waiting some
 * seconds at most. */
void chempi_cgroups_sweep(const struct chempi_cgroups *all);
void chempi_cgroups_fini(struct chempi_cgroups *all);

/* Make a job's group; none where there is no place. 0 or -errno with words;
 * then there is none. */
int chempi_cgroup_make(struct chempi_cgroup *group, struct chempi_cgroups *all,
                       const char *job, struct chempi_err *err);
/* fork() into it, once; group NULL, or none: a plain one. */
pid_t chempi_cgroup_fork(struct chempi_cgroup *group);
/* In the child: enter what fork has not put it into. 0 or -errno with words. */
int chempi_cgroup_enter(const struct chempi_cgroup *group,
                        struct chempi_err *err);
/* Why the kernel may have sent a process in it this signal, or "". */
void chempi_cgroup_explain(const struct chempi_cgroup *group, int number,
                           char *text, size_t size);
/* Is the process in it? Not known: false. */
bool chempi_cgroup_has(const struct chempi_cgroup *group, pid_t pid);
/* Do these lines of /proc/PID/cgroup tell that the process is in group `job` of
 * the group `name`, or in one below? Others may give groups of theirs the same
 * last names. */
bool chempi_cgroup_tells(const char *lines, const char *name, const char *job);
/* Kill all that is in it. */
void chempi_cgroup_kill(const struct chempi_cgroup *group);
/* Kill all that is in it, and remove it, if need be later (tidy). Without
 * memory for that, it goes with the daemon. Idempotent. */
void chempi_cgroup_remove(struct chempi_cgroup *group);

#endif
