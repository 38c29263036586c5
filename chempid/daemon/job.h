/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job at a daemon; private to jobs.c and launch.c. Its place in the tree
 * (hub.h) has as children this node's supervisor, if the job has ranks or a
 * gateway here, up to CHEMPI_DAEMON_FANOUT daemons that pass the job on to the
 * other nodes, and the daemon of each spare node by itself, so that nothing
 * takes a gateway along with another one.
 *
 * LAUNCH: count n, n x u32 node (those below), then what ranks have of their
 * submitter (shell.h; of a local client not known), then the description
 * (spec.h).
 */
#ifndef CHEMPI_CHEMPID_JOB_H
#define CHEMPI_CHEMPID_JOB_H

#include "chempid/daemon/daemon.h"
#include "chempid/daemon/grants.h"
#include "chempid/tree/hub.h"

#define CHEMPI_TROUBLE_TEXT 256

struct job;

/* What a job has queued on a connection that it shares with others. */
struct load {
    uint64_t end;   /* of its last frame there, by the link's count */
    uint64_t bytes; /* since none of it was left there: at least what waits */
};

/* One child of the hub. */
struct limb {
    struct job *job;
    struct chempi_supervisor_child
        supervisor_child;     /* used when conn is NULL and it runs */
    struct chempi_conn *conn; /* a daemon */
    struct load load;         /* towards it */
    bool is_supervisor;
    struct chempi_grant grant; /* of the ranks here */
    uint32_t node;             /* that is here, in the job */
};

struct job {
    struct chempi_list entry;
    struct chempi_daemon *daemon;
    struct chempi_spec spec;
    struct chempi_hub hub;
    struct chempi_conn *up; /* NULL: gone (D2) */
    struct load up_load;
    ev_timer doom;                     /* since it was ordered to end */
    ev_timer mend;                     /* settles it, once there is trouble */
    char trouble[CHEMPI_TROUBLE_TEXT]; /* why it has to end, or "" */
    struct limb *limbs;                /* [hub.child_max] */
    uint32_t *nodes;                   /* below, in the order of LAUNCH */
    uint32_t node_count;
    uint32_t own_node;         /* CHEMPI_NODE_ANY: it only passes through */
    uint32_t local_size;       /* ranks there */
    const uint8_t *spec_bytes; /* of LAUNCH, while it is worked on */
    size_t spec_len;
    enum chempi_status_fate *fates; /* [gateways]; NULL: all are UP */
    uint32_t gateway_pid; /* of the one here; 0: there is none, or none yet */
    bool is_drained;      /* the one here, as we have told */
    struct chempi_user *user;
    size_t paid; /* bytes of the user's purse */
};

static inline uint32_t chempi_job_child(const struct limb *limb)
{
    return (uint32_t)(limb - limb->job->limbs);
}

/* ---- jobs.c -------------------------------------------------------------- */

/* What a job's hub does, and what its supervisor here says. */
extern const struct chempi_hub_ops chempi_job_hub_ops;
void chempi_job_watch(struct limb *limb);
void chempi_job_ready_timers(struct job *j);

struct job *chempi_job_find(struct chempi_daemon *d, uint64_t number);
void chempi_job_send_up(void *job, uint16_t type, const void *data, size_t len);
/* Tell all that the gateway here is spared, or used again. */
void chempi_job_tell_drained(struct job *j, uint32_t node, bool is_drained);
/* May a frame of so many bytes of this job wait on a connection that it shares?
 */
bool chempi_job_fits(const struct job *j, struct chempi_conn *conn,
                     struct load *load, size_t len);
/* It does. */
void chempi_job_count(const struct job *j, struct chempi_conn *conn,
                      struct load *load, size_t len);
/* D2: tell those below, forget those beside. It may destroy the job. */
void chempi_job_drop(struct job *j);
/* It may destroy the job, but not within its supervisor's on_frame (L3): as
 * long as that is not gone, the job is not over. */
void chempi_job_settle(struct job *j);
void chempi_job_destroy(struct job *j);

#endif
