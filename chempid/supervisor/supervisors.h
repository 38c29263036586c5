/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The supervisors of this process (launcher or daemon): start one, talk to it,
 * learn how it ended. They are its children (nest.h), or those of a helper that
 * is still root; what is done with processes goes through a table.
 *
 *   B1  on_end is called once, last; afterwards the supervisor is reaped and
 *       none of its user's strays is left, but for what does not end within
 *       CHEMPI_REAP_S of being killed
 *   B2  what a supervisor has sent is taken in before its end is judged
 *   B3  nothing here waits: SIGCHLD, or the helper, says what has ended, a
 *       timer what has not
 */
#ifndef CHEMPI_CHEMPID_SUPERVISORS_H
#define CHEMPI_CHEMPID_SUPERVISORS_H

#include <ev.h>
#include <stdbool.h>
#include <sys/types.h>

#include "chempid/job/spec.h"
#include "chempid/process/nest.h"
#include "chempid/tree/link.h"
#include "common/containers/list.h"
#include "common/control/msg.h"

struct chempi_supervisor_child;
struct chempi_supervisors;

/* Whoever has the processes. Nothing here waits or calls back. */
struct chempi_supervisors_ops {
    /* Start the supervisor of a node, whose link is up_fd, which stays the
     * caller's. The supervisor_child's young is filled in. 0, -errno with
     * words. */
    int (*start)(struct chempi_supervisor_child *n,
                 const struct chempi_spec *spec, int up_fd,
                 struct chempi_err *err);
    /* SIGKILL. */
    void (*kill)(struct chempi_supervisor_child *n);
    /* Wait no more for the process and its user's strays. */
    void (*let_go)(struct chempi_supervisor_child *n);
    /* Nobody asks any more; idempotent, also after let_go. */
    void (*forget)(struct chempi_supervisor_child *n);
    /* Supervisors share no memory with us, and are told their part of the job
     * on their link (chempi_super_run_as()). */
    bool tells_part;
};

struct chempi_supervisors { /* one per process */
    const struct chempi_supervisors_ops *ops;
    void *arg; /* of ops */
    struct chempi_list children;
    struct chempi_nest nest;
    struct ev_loop *loop;
    ev_io child_io;
    int signal_fd;      /* SIGCHLD; -1: not watched */
    bool is_of_one_job; /* they share this process's session; false at first */
};

enum chempi_supervisor_child_phase {
    CHEMPI_SUPERVISOR_CHILD_RUNS,
    CHEMPI_SUPERVISOR_CHILD_DROPPED, /* shall end by itself */
    CHEMPI_SUPERVISOR_CHILD_ENDS,    /* its link is closed */
    CHEMPI_SUPERVISOR_CHILD_KILLED,
    CHEMPI_SUPERVISOR_CHILD_SWEPT /* reaped, or given up: what it has left ends
                                   */
};

struct chempi_supervisor_child {
    struct chempi_list entry;
    struct chempi_supervisors *supervisors;
    struct chempi_link link;
    struct chempi_young young;
    enum chempi_supervisor_child_phase phase;
    ev_timer limit;
    pid_t pid;       /* for words; it may have ended */
    uint32_t number; /* where a helper has it; 0: nowhere any more */
    bool is_faulty;  /* text says already how it ended */
    char text[CHEMPI_TEXT_MAX];
    uint32_t node;
    const char *node_name;      /* the caller's */
    struct chempi_purse *purse; /* the caller's, which pays for what is queued
                                   to it; NULL: none */
    int (*on_frame)(void *arg, const struct chempi_frame *frame,
                    struct chempi_err *err);
    void (*on_end)(void *arg, const char *text); /* how it ended */
    void *arg;
};

/* Become subreaper; present children are elders. 0 or -errno with words. */
int chempi_supervisors_init(struct chempi_supervisors *supervisors,
                            struct chempi_err *err);
/* Watch the ends of children. 0 or -errno with words. */
int chempi_supervisors_watch(struct chempi_supervisors *supervisors,
                             struct ev_loop *loop, struct chempi_err *err);
/* Kill and reap all that is left, for CHEMPI_REAP_S. */
void chempi_supervisors_fini(struct chempi_supervisors *supervisors);
/* One child more that is left alone. 0 or -ENOMEM. */
int chempi_supervisors_spare(struct chempi_supervisors *supervisors, pid_t pid);
/* It is a stray now, to be killed and reaped. */
void chempi_supervisors_yield(struct chempi_supervisors *supervisors,
                              pid_t pid);

/* What is known of supervisors' processes (their young) has changed, other than
 * by SIGCHLD: the loop shall look. */
void chempi_supervisors_look(struct chempi_supervisors *supervisors);

/* Start the supervisor of a node of the job. n's callbacks, arg and purse are
 * set by the caller. 0 or -errno with words. */
int chempi_supervisors_start(struct chempi_supervisors *supervisors,
                             struct chempi_supervisor_child *n,
                             struct ev_loop *loop,
                             const struct chempi_spec *spec, uint32_t node,
                             struct chempi_err *err);

/* Tell it that its job is not wanted any more (it kills its ranks and ends,
 * or is killed after CHEMPI_DROP_S); on_end follows. */
void chempi_supervisors_drop(struct chempi_supervisor_child *n);
/* No on_end for it any more; the process is left to fini. Idempotent. */
void chempi_supervisors_forget(struct chempi_supervisor_child *n);

#endif
