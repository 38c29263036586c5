/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Root's helper of a daemon that serves all users: the one process that keeps
 * its privileges, while the daemon, which reads what comes from networks and
 * users, has given up its own (doc/privileges.md). It starts supervisors, kills
 * and reaps them, opens the files of keys, and has the keeper.
 *
 *   R1  no order makes it start anything as root, in root's group or as the
 *       daemon's own user, nor more of a user than a daemon may
 *   R2  it reads structs of fixed size only; a child of it reads the
 *       description of a job when it has become the user
 *   R3  it kills its own children only, and opens the files only that it was
 *       started with
 *   R4  when either of daemon and helper is gone, the other one ends, and no
 *       process of a job is left
 *
 * The helper's side is helper.c, the daemon's helped.c. Both orders and reports
 * go over a pair of sequenced-packet sockets, each in one packet; a number
 * names one supervisor, is the daemon's choice and is never used again.
 */
#ifndef CHEMPI_CHEMPID_HELPER_H
#define CHEMPI_CHEMPID_HELPER_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "chempid/helper/keeper.h"
#include "chempid/supervisor/supervisors.h"
#include "common/base/err.h"

enum chempi_helper_what {
    /* daemon -> helper */
    CHEMPI_HELPER_START = 1, /* with the supervisor's end of its link */
    CHEMPI_HELPER_KILL = 2,
    CHEMPI_HELPER_LET_GO = 3, /* chempi_nest_let_go() */
    CHEMPI_HELPER_OPEN = 4,   /* number: which of the files */

    /* helper -> daemon */
    CHEMPI_HELPER_STARTED = 16, /* value: process id */
    CHEMPI_HELPER_FAILED = 17,  /* value: -errno; of START */
    CHEMPI_HELPER_ENDED = 18,   /* value: status of wait(2) */
    CHEMPI_HELPER_CLEAR = 19,   /* nothing of its user's is left */
    CHEMPI_HELPER_FILE = 20,    /* value: 0 with a descriptor, or -errno */
};

struct chempi_helper_order {
    uint32_t what;
    uint32_t number;
    uint32_t uid; /* from here on for START, else 0 */
    uint32_t gid;
    uint32_t is_known; /* 0 or 1: umask and limits */
    uint32_t umask;
    uint32_t limit_count;             /* as in shell.h */
    uint32_t unused;                  /* 0 */
    uint64_t job;                     /* names its control group */
    uint64_t limits[RLIM_NLIMITS][2]; /* soft, hard */
};

struct chempi_helper_report {
    uint32_t what;
    uint32_t number;
    int32_t value;
};

#define CHEMPI_HELPER_FILES 3
#define CHEMPI_HELPER_OWED_MAX 8192u /* KILL and LET_GO of all jobs */

/* What the helper keeps in mind; the caller's, who is the forking daemon. */
struct chempi_helper_terms {
    const char *node;
    bool has_streams;  /* standard error is the log, not somebody's terminal */
    uid_t own;         /* of the daemon, when it has given up root */
    uint32_t user_max; /* supervisors of a user at a time */
    const char *files[CHEMPI_HELPER_FILES]; /* NULL: there is no such one */
    struct chempi_keeper *keeper;           /* runs, and is the helper's now */
    struct chempi_cgroups *groups;          /* the same; or NULL */
};

/* The daemon's side. */
struct chempi_helper {
    pid_t pid; /* 0: there is none */
    int fd;
    uint32_t next;                          /* number */
    struct chempi_supervisors *supervisors; /* NULL: the helper is lost */
    ev_io io;
    ev_timer later; /* owed orders are tried again */
    uint32_t owed_count;
    struct {
        uint32_t what, number;
    } owed[CHEMPI_HELPER_OWED_MAX]; /* for lack of the kernel's memory */
    void (*on_lost)(void *arg, const char *text); /* R4; once */
    void *arg;
};

/* ---- helped.c ------------------------------------------------------------ */

/* Fork it, from root. The supervisors's supervisors are its children from now
 * on; loop is the supervisors's. 0 or -errno with words. */
int chempi_helper_start(struct chempi_helper *h,
                        const struct chempi_helper_terms *terms,
                        struct chempi_supervisors *supervisors,
                        struct chempi_err *err);
/* A file of the terms, opened for reading: a descriptor or -errno. Waits for
 * the helper, CHEMPI_HELPER_S at most (then -ETIMEDOUT). */
int chempi_helper_open(struct chempi_helper *h, uint32_t which);
/* End it, and with it all that is left of jobs, and wait for it. */
void chempi_helper_stop(struct chempi_helper *h);

/* ---- helper.c ------------------------------------------------------------ */

/* Whether it is an order at all, with a descriptor if and only if one belongs
 * to it: every number in it that says how much there is of something, or which,
 * is one that there is. */
bool chempi_helper_is_order(const struct chempi_helper_order *o, bool has_fd);

/* The helper's life, in a fresh child of a root's; fd is its socket. */
_Noreturn void chempi_helper_run(const struct chempi_helper_terms *terms,
                                 int fd);

#endif
