/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stands below the root of a job's tree, or below an inner node of it on
 * another host: a supervisor of our own for each node, one on another host for
 * each, or the one daemon that has the job.
 *
 *   -   branch i is child i of the hub
 *   -   a branch that was lost is told to the hub once, with its words
 *   B3  after fini() no supervisor of ours is left, nor what it started
 */
#ifndef CHEMPI_CHEMPID_BRANCHES_H
#define CHEMPI_CHEMPID_BRANCHES_H

#include <ev.h>
#include <stddef.h>
#include <stdint.h>

#include "chempid/job/spec.h"
#include "chempid/supervisor/supervisors.h"
#include "chempid/tree/hub.h"
#include "chempid/tree/link.h"
#include "common/base/err.h"

struct chempi_branches;
struct chempi_remote;

struct chempi_branch {
    struct chempi_branches *all;
    struct chempi_link *link;                        /* to one of these: */
    struct chempi_supervisor_child supervisor_child; /* a supervisor of ours, */
    struct chempi_link stream;    /* a daemon, or a supervisor of */
    struct chempi_remote *remote; /* this host */
};

struct chempi_branches {
    struct ev_loop *loop;
    struct chempi_hub *hub;
    const struct chempi_spec *spec;
    const char *from; /* this node, where it is no root; or NULL */
    /* Called after what a branch has said, or its loss; NULL: not. */
    void (*changed)(void *arg);
    void *arg;
    struct chempi_branch *items;
    uint32_t count; /* how many of them are there */
    struct chempi_supervisors supervisors;
    const char *daemon;            /* node of the daemon that has the job */
    char refusal[CHEMPI_TEXT_MAX]; /* why it will not, or "" */
};

/* Of none yet, and of `most` at the most. `hub` is told what they say and when
 * they are lost; it and `spec` must outlive this. Call before `loop` exists,
 * for descendants to be ours from the first. 0 or a negative errno value, with
 * words in err; then, too, fini() is called, and needs no loop. */
int chempi_branches_init(struct chempi_branches *all, struct chempi_hub *hub,
                         const struct chempi_spec *spec, uint32_t most,
                         struct chempi_err *err);

/* From now on events come by this loop. 0 or a negative errno value. */
int chempi_branches_watch(struct chempi_branches *all, struct ev_loop *loop,
                          struct chempi_err *err);

/* Start a supervisor for that node of the description, on this host. 0 or a
 * negative errno value. */
int chempi_branches_start(struct chempi_branches *all, uint32_t node,
                          struct chempi_err *err);

/* Give the supervisor remotes[at] of `count`, which answers already, its part
 * of the description; its connection is taken over. 0 or a negative errno
 * value.
 */
int chempi_branches_start_far(struct chempi_branches *all,
                              struct chempi_remote *remotes, uint32_t count,
                              uint32_t at, struct chempi_err *err);

/* Give the whole job to the daemon of that node, at the other end of fd, which
 * is taken over on success. 0 or a negative errno value. */
int chempi_branches_order(struct chempi_branches *all, int fd,
                          const char *daemon, struct chempi_err *err);

void chempi_branches_send(struct chempi_branches *all, uint32_t child,
                          uint16_t type, const void *data, size_t len);

/* Wait for none of them any longer: nothing has come for `seconds`. Supervisors
 * of ours are killed if they do not leave; a daemon that loses us ends what it
 * has of the job. say(arg) is told of each that is left although all ranks
 * have ended. */
void chempi_branches_leave(struct chempi_branches *all, double seconds,
                           void (*say)(void *arg, const char *text), void *arg);

void chempi_branches_fini(struct chempi_branches *all); /* B3 */

#endif
