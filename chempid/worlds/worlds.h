/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the first launcher of a job does for ranks that ask
 * (common/control/dynamic.h): it keeps their names, and starts further worlds,
 * each by a launcher of its own (above.h), whose ranks ask here as well.
 *
 *   W1  each question has one answer GRANTED or FAILED, and a world that was
 *       GRANTED one OVER, unless who has asked has ended, or its world ends
 *   W2  nothing that a rank says ends anything: it is answered FAILED
 *   W3  a world that ends badly takes those along that it has started, and
 *       these theirs; one that ends well leaves them
 *   W4  a launcher that was told to end, or whose link is closed, has END_S for
 *       it, then it is killed
 *
 * Never blocks. A world's launcher leaves to this process what it leaves behind
 * when it is killed (branches.h).
 */
#ifndef CHEMPI_CHEMPID_WORLDS_H
#define CHEMPI_CHEMPID_WORLDS_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chempid/options/options.h"
#include "chempid/supervisor/supervisors.h"
#include "chempid/worlds/published.h"
#include "common/containers/list.h"
#include "common/control/dynamic.h"

struct chempi_worlds_ops {
    /* Answer a rank of the first world. */
    void (*reply)(void *arg, uint32_t node, uint32_t rank,
                  const struct chempi_reply *reply);
    /* A sentence for the user. */
    void (*say)(void *arg, const char *text);
    /* A world has ended. */
    void (*changed)(void *arg);
};

struct chempi_worlds {
    const struct chempi_worlds_ops *ops;
    void *arg;
    struct ev_loop *loop;
    const struct chempi_options *opt;       /* what worlds inherit */
    struct chempi_supervisors *supervisors; /* whose strays they are not */
    struct chempi_published names;
    struct chempi_list worlds; /* that run */
    uint32_t count;
    uint32_t started; /* the number of the last one */
    int status;       /* exit status of the first that has ended badly, or 0 */
    bool is_closed;   /* none is started any more */
};

void chempi_worlds_init(struct chempi_worlds *worlds,
                        const struct chempi_worlds_ops *ops, void *arg);
/* From now on worlds can be started; all outlive this. */
void chempi_worlds_open(struct chempi_worlds *worlds, struct ev_loop *loop,
                        const struct chempi_options *opt,
                        struct chempi_supervisors *supervisors);
/* Launchers that are left are killed, and reaped by who has the supervisors. */
void chempi_worlds_fini(struct chempi_worlds *worlds);

/* ROOT_REQUEST of a rank of the first world, behind its node and rank. */
void chempi_worlds_take(struct chempi_worlds *worlds, uint32_t node,
                        uint32_t rank, struct chempi_reader *r);

/* All worlds but the first shall end, and none is started any more; or get a
 * signal; or are killed. */
void chempi_worlds_end(struct chempi_worlds *worlds, int status,
                       const char *text);
void chempi_worlds_signal(struct chempi_worlds *worlds, uint32_t number);
void chempi_worlds_kill(struct chempi_worlds *worlds);

#endif
