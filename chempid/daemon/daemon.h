/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon of one node: its connections, the jobs that have part in it, the
 * questions under way. One thread, one event loop; see doc/daemon.md.
 *
 *   D1  a job is known from its LAUNCH until all nodes below are gone
 *   D2  a job whose order came over a connection ends with that connection
 *   D3  a question is answered once, also when daemons below do not answer
 *   D4  the files in the directory vanish with the daemon (keeper.h)
 *   D5  what is wrong with a message of one job or question ends that one; a
 *       link between daemons, which others use, ends only with its peer or
 *       its network, and for bytes that are no frames
 *   D6  a job that its owner has ordered to end ends, whether its launcher and
 *       other daemons do their part or stand still
 *
 * daemon.c has the frame and the beginning, nodes.c the nodes, news.c what
 * others say of them, requests.c the orders, jobs.c and launch.c the jobs,
 * query.c the questions.
 */
#ifndef CHEMPI_CHEMPID_DAEMON_H
#define CHEMPI_CHEMPID_DAEMON_H

#include <ev.h>

#include "chempid/daemon/orders.h"
#include "chempid/daemon/ready.h"
#include "chempid/daemon/rivals.h"
#include "chempid/helper/groups.h"
#include "chempid/helper/helper.h"
#include "chempid/helper/keeper.h"
#include "chempid/peers/beat.h"
#include "chempid/peers/conn.h"
#include "chempid/peers/users.h"
#include "chempid/process/signals.h"
#include "chempid/supervisor/supervisors.h"
#include "chempid/tree/nodes/budget.h"
#include "chempid/tree/nodes/members.h"
#include "chempid/tree/nodes/pieces.h"
#include "chempid/tree/nodes/status.h"

#define CHEMPI_NO_ADDRESS "-" /* of a daemon without TCP, in its ready file */

struct chempi_daemon_options {
    const char *name;
    const char *dir;
    const char *tables;     /* directory of connection tables, or NULL */
    const char *listen;     /* address, or NULL: no TCP */
    const char *key;        /* file, or NULL */
    const char *node_key;   /* file, or NULL: a key for this run */
    const char *trust;      /* file, or NULL: all that have the key */
    const char *cluster;    /* file, or NULL */
    const char *job_limits; /* file, or NULL: none but the node's own */
    const char *join;       /* address of a daemon, or NULL */
    const char *user;       /* whom one that serves all becomes, or NULL */
    uint32_t slots;         /* 0: processors of the host */
    enum chempi_serve serve;
    uint64_t registrable; /* bytes of the node; 0: the default of budget.h */
    double detect_s; /* until one that does not answer is given up (beat.h) */
    bool is_background;
};

struct chempi_daemon {
    const struct chempi_daemon_options *opt;
    struct ev_loop *loop;
    struct chempi_conns conns;
    struct chempi_beat beat;
    struct chempi_supervisors supervisors;
    struct chempi_keeper keeper; /* its helper's, if it has one */
    struct chempi_helper helper; /* of one that serves all users */
    struct chempi_helper_terms terms;
    struct chempi_cgroups groups; /* of jobs; the same */
    struct chempi_budget budget;  /* registrable memory; grants.h */
    ev_timer budget_timer;
    ev_timer budget_settle;  /* runs: it is to be divided anew */
    uint64_t budget_rest_ns; /* not before */
    struct chempi_list jobs;
    uint32_t job_count;
    struct chempi_list queries;
    uint32_t query_count;
    uint64_t next_query;
    struct chempi_orders orders;
    struct chempi_rivals rivals;
    struct chempi_ready ready;
    struct chempi_members members; /* file and news; no ready files */
    struct chempi_secrets secrets; /* keys NULL: no TCP */
    uint32_t slots;
    char address[CHEMPI_ADDR_MAX]; /* ours, "" without TCP */
    char socket_path[4096];
    char ready_path[4096];
    int unix_fd;
    int tcp_fd;
    ev_io unix_io;
    ev_io tcp_io;
    struct chempi_signals signals;
    ev_io keeper_io;
    ev_timer rest; /* from listening, for lack of descriptors */
    ev_tstamp complained;
    ev_timer recheck;  /* of all links, when keys were read again */
    bool serves_users; /* users.h; then it is not root any more (drop.h) */
    const char *dir;   /* opt->dir, as we find it */
    uid_t owner;       /* who has started it, and is obeyed as root is */
    bool is_drained;   /* the gateways here are spared, whichever job's */
    bool is_stopping;
    struct chempi_conn *joining; /* --join: until there is an answer */
    ev_timer join_timer;
    int ready_fd; /* who waits for us to serve, or -1 */
    int status;   /* of the exit */
};

/* Run until told to stop; returns the exit status. ready_fd gets a byte when
 * the daemon serves and has joined those that it shall (-1: nobody waits). */
int chempi_daemon_run(const struct chempi_daemon_options *opt, int ready_fd);

/* ---- between the daemon's files ------------------------------------------ */

/* A frame of a connection that has greeted. An error with words ends it; there
 * is none for a daemon's (D5). */
int chempi_daemon_take(struct chempi_conn *conn,
                       const struct chempi_frame *frame,
                       struct chempi_err *err);

/* requests.c: REQUEST, for this node or for another; then it is passed on, once
 * only. -EBADMSG with words. */
int chempi_requests_take(struct chempi_daemon *d, struct chempi_conn *from,
                         const struct chempi_frame *frame,
                         struct chempi_err *err);

/* launch.c */
int chempi_jobs_launch(struct chempi_daemon *d, struct chempi_conn *from,
                       const struct chempi_frame *frame,
                       struct chempi_err *err);

/* jobs.c */

/* A frame of a job from above or below; frames of unknown jobs are late and
 * dropped. */
int chempi_jobs_take(struct chempi_daemon *d, struct chempi_conn *from,
                     const struct chempi_frame *frame, struct chempi_err *err);
/* Has this connection ordered a job that is under way? */
bool chempi_jobs_has(const struct chempi_daemon *d,
                     const struct chempi_conn *conn);
void chempi_jobs_lose(struct chempi_daemon *d, struct chempi_conn *conn,
                      const char *text);
/* Spare the gateways here, of one job or ("") of all that the user may order
 * about, or use them again. 0, -ESRCH: there is none, -EPERM. */
int chempi_jobs_drain(struct chempi_daemon *d, const char *id, uint32_t uid,
                      bool is_drained);
/* End a job by order of a user: its launcher is told, and when it has not ended
 * the job within the detection time, the daemons end it without. Who has asked
 * by the number `asked` hears of the end. 0, -ESRCH, -EPERM, or as
 * chempi_orders_await(), with words: then nothing is done. */
int chempi_jobs_order_end(struct chempi_daemon *d, struct chempi_conn *from,
                          const char *id, uint32_t uid, uint64_t asked,
                          struct chempi_err *err);
/* Have its launcher print where the ranks wait. 0, -ESRCH, -EPERM. */
int chempi_jobs_seek(struct chempi_daemon *d, const char *id, uint32_t uid);
/* This node's record, if asked for with shares of memory; what it points to is
 * in the pool or the daemon. */
int chempi_jobs_status(struct chempi_daemon *d, bool with_memory,
                       struct chempi_pool *pool, struct chempi_status *out);
void chempi_jobs_fini(struct chempi_daemon *d);

/* query.c */
int chempi_query_ask(struct chempi_daemon *d, struct chempi_conn *from,
                     const struct chempi_frame *frame, struct chempi_err *err);
int chempi_query_answer(struct chempi_daemon *d, struct chempi_conn *from,
                        const struct chempi_frame *frame,
                        struct chempi_err *err);
/* The daemon there cannot be asked now. */
int chempi_query_refused(struct chempi_daemon *d, struct chempi_conn *from,
                         const struct chempi_frame *frame,
                         struct chempi_err *err);
void chempi_query_lose(struct chempi_daemon *d, struct chempi_conn *conn,
                       const char *text);
void chempi_query_fini(struct chempi_daemon *d);

#endif
