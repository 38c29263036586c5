/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launcher's question where all ranks wait (doc/where.md): for a time
 * limit, for a daemon that passes on what a user wants to know, or for whoever
 * asks at its door.
 *
 *   Q1  there is one question at a time; who comes meanwhile gets its answer
 *   Q2  a question ends once: with what all nodes have told, or with what is
 *       known when its time is over or the job is to end
 *   Q3  a watch (deadlock.h) asks only when nobody else does; who comes
 *       meanwhile, and wants to know more than a brief question brings, has
 *       the ranks asked again
 */
#ifndef CHEMPI_CHEMPID_WAIT_QUERY_H
#define CHEMPI_CHEMPID_WAIT_QUERY_H

#include <ev.h>
#include <stdbool.h>

#include "chempid/tree/door.h"
#include "chempid/where/wait_summary.h"

struct chempi_wait_query_ops {
    /* Can the job's ranks be asked (still)? */
    bool (*can_ask)(void *arg);
    /* Send LOCATE to all nodes. */
    void (*locate)(void *arg, const void *data, size_t len);
    /* All have told, or their time is over: chempi_wait_query_end() comes
     * next. */
    void (*told)(void *arg);
    /* Lines for the launcher's own terminal. */
    void (*say)(void *arg, const char *text, size_t len);
};

/* What a watch has asked for; valid during the call. */
typedef void
chempi_wait_query_watched(void *arg, const struct chempi_wait_summary *places);

/* Of zeros: closed. */
struct chempi_wait_query {
    const struct chempi_wait_query_ops *ops;
    void *arg;
    const struct chempi_spec *spec;
    struct ev_loop *loop;
    double limit_s;
    ev_timer timer;
    struct chempi_wait_summary places; /* open while they are asked */
    struct chempi_door door;
    bool has_told;                      /* all have, or their time is over */
    bool is_said;                       /* on this terminal */
    chempi_wait_query_watched *watched; /* NULL: no watch asks (now) */
    void *watch_arg;
    enum chempi_wait_depth depth; /* of what ranks are being asked */
    enum chempi_wait_depth again; /* Q3: of what next; not less */
};

/* limit_s: what ranks get to answer. */
void chempi_wait_query_open(struct chempi_wait_query *q, struct ev_loop *loop,
                            const struct chempi_spec *spec, double limit_s,
                            const struct chempi_wait_query_ops *ops, void *arg);
void chempi_wait_query_close(struct chempi_wait_query *q);

/* Ask for this terminal. False: that is not possible. */
bool chempi_wait_query_begin(struct chempi_wait_query *q);
/* Ask for a watch, which gets the answer and nobody else; ranks that have not
 * answered after limit_s are not waited for. Nothing comes of it if ranks are
 * being asked already, or cannot be. */
void chempi_wait_query_watch(struct chempi_wait_query *q, double limit_s,
                             enum chempi_wait_depth depth,
                             chempi_wait_query_watched *watched, void *arg);
/* PLACES of a node. True: it was asked for, and `told` is the caller's to
 * decide about: chempi_wait_summary_is_ending() of the places tells more. */
bool chempi_wait_query_take(struct chempi_wait_query *q,
                            struct chempi_reader *r);
/* Say what is known (Q2). has_ended: that no rank is left. */
void chempi_wait_query_end(struct chempi_wait_query *q, bool has_ended);

#endif
