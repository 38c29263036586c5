/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chempi-gateway: one process per job and node that takes frames from one
 * neighbour and hands them to the next; doc/gateways.md has the whole.
 *
 *   G1  a frame is held from its arrival until the next neighbour's device
 *       has it; nothing of it is remembered afterwards
 *   G2  a flow holds at most GATEWAY_FLOW_MAX bytes here for each gateway of
 *       the job: its sender's window is smaller, and each time that a gateway
 *       is lost all of it may come again, to where it is already. One that
 *       sends more breaks the rules, and ends the job
 *   G3  who asks what of an ended rank has passed here is answered once, when
 *       nothing more of that rank lies with the devices; until then the frame
 *       that asks stands in `flush` of the flow that it asks for
 *   -   nothing waits for anything else: each neighbour has a queue of its own
 *
 * One thread.
 */
#ifndef CHEMPI_GATEWAY_GATEWAY_H
#define CHEMPI_GATEWAY_GATEWAY_H

#include "common/containers/index.h"
#include "common/control/client.h"
#include "libchempi/devices/host.h"
#include "libchempi/neighbors/neighbors.h"
#include "libchempi/neighbors/route_stats.h"

#define GATEWAY_DEVICES_MAX 16
/* The largest window (setting gate_window) with headers and buffers. */
#define GATEWAY_FLOW_MAX (6u << 20)

/* What passes from one rank to another. */
struct gateway_flow {
    uint32_t src;
    uint32_t dst;
    uint32_t slot; /* where it stands, plus one; 0: free */
    uint64_t held; /* bytes here now (G2) */
    uint64_t peak; /* the most that were */
    uint64_t frames;
    uint64_t bytes;
    uint64_t taken;                    /* numbered frames from src itself, */
    uint32_t behind;                   /* the number behind the last of them */
    struct chempi_neighbor_buf *flush; /* G3, or NULL */
};

enum gateway_end {
    GATEWAY_END_NONE,
    GATEWAY_END_TOLD, /* some of it may still lie with the devices */
    GATEWAY_END_OVER
};

struct gateway_flows {
    struct gateway_flow *at;
    uint32_t count;
    uint32_t room;
    struct chempi_index index; /* by pair */
};

struct gateway {
    struct chempi_client *client; /* NULL: the supervisor is gone */
    const struct chempi_job *job;
    struct chempi_services services;
    struct chempi_dev *devices[GATEWAY_DEVICES_MAX];
    _Atomic uint64_t settings[GATEWAY_DEVICES_MAX][CHEMPI_DEV_SETTINGS_MAX];
    uint32_t device_count;
    struct chempi_neighbors neighbors;
    struct gateway_flows flows;
    uint8_t *ends;       /* [job->size], enum gateway_end */
    uint32_t end_count;  /* ranks that are TOLD */
    uint64_t settled_ns; /* when they were last looked at */
    bool is_restless; /* nothing wakes it for some of these (chempi_remains) */
    struct chempi_route_stats tally; /* is_on: chempirun --trace-routes */
    struct chempi_host host;
    struct chempi_poll_item control;
    struct chempi_poll_item wake;
    uint64_t dropped; /* frames that had nowhere to go */
    bool is_over;
};

/* flows.c: find or make; NULL: no memory. Numbers stay valid. */
struct gateway_flow *gateway_flows_get(struct gateway_flows *flows,
                                       uint32_t src, uint32_t dst);
void gateway_flows_fini(struct gateway_flows *flows);

/* answer.c: send *answer (its kind and what that needs) to the rank that *f has
 * come from, back by the same way, as if from the rank that it is for. False:
 * no memory. */
bool gateway_answer(struct gateway *g, const struct chempi_neighbor_frame *f,
                    struct chempi_neighbor_frame *answer);

/* flush.c (G3) */

/* A frame that asks for the flow has come; takes a reference. */
void gateway_flush_ask(struct gateway *g, struct gateway_flow *flow,
                       struct chempi_neighbor_buf *buf);
/* A process has ended. */
void gateway_flush_ended(struct gateway *g, uint32_t proc);
/* Take from the devices what ended ranks had sent, and answer who asks for it;
 * returns the number of ranks of which nothing more comes. Not from an upcall.
 */
int gateway_flush_settle(struct gateway *g);

/* forward.c */
extern const struct chempi_neighbors_ops gateway_neighbors_ops;
extern const struct chempi_sink gateway_sink;

/* start.c: services and devices as the tables say. 0 or -errno with words. */
int gateway_start(struct gateway *g, struct chempi_err *err);
void gateway_stop(struct gateway *g);

/* give_up.c: end the job; the words say why. */
void gateway_give_up(struct gateway *g, const char *fmt, ...)
    CHEMPI_PRINTF(2, 3);

#endif
