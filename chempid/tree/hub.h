/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One job's place in the tree: in the launcher (the root) and in every daemon
 * that has part in the job. Below it are supervisors and further daemons. The
 * hub combines what goes up, so that no message count grows with the number
 * of nodes below, and finds the way of what is addressed to a node.
 *
 *   H1  a node belongs to one child or to none; what is not below is above
 *   H2  counts of STARTED, DONE and GONE go up once, when they are complete
 *   H3  a lost child counts as done and gone, after one NODE_LOST, or, where
 *       it has spare nodes only, one for each of them
 *   H4  fence n goes up when every child has entered it, without those whose
 *       nodes are all spare and gone
 *   H5  what goes down is no longer than its fields may be: it may wait for
 *       who does not read
 *
 * Spare nodes have no ranks, and the job may go on without them. They are the
 * last ones by number; where daemons order a job, each is a child of its own of
 * the first of them (jobs.c), so that none goes with another.
 *
 * Does no input or output itself; never blocks.
 */
#ifndef CHEMPI_CHEMPID_HUB_H
#define CHEMPI_CHEMPID_HUB_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/control/channel.h"

/* Where messages go. Neither may call back into the hub at once, except that
 * the root's up() may call chempi_hub_down(). */
struct chempi_hub_ops {
    void (*up)(void *arg, uint16_t type, const void *data, size_t len);
    void (*down)(void *arg, uint32_t child, uint16_t type, const void *data,
                 size_t len);
};

struct chempi_hub_child {
    uint32_t first_node; /* for the words when it is lost */
    uint32_t nodes;
    uint32_t started;
    uint32_t done;
    uint32_t gone;
    uint64_t fence; /* the last one entered by all below it */
    bool is_lost;
};

struct chempi_hub {
    const struct chempi_hub_ops *ops;
    void *arg;
    uint32_t node_count; /* of the whole job */
    uint32_t *next;      /* per node: child + 1; 0: above */
    struct chempi_hub_child *children;
    uint32_t child_count;
    uint32_t child_max;
    uint32_t expected; /* nodes that children will have together */
    uint32_t spare;    /* the first spare node; node_count: none */
    uint64_t fence;    /* the last one sent up */
    bool has_started, has_done, has_gone; /* sent up (H2) */
    bool has_ended;                       /* END has passed down */
};

/* 0 or -ENOMEM. At most child_max children. */
int chempi_hub_init(struct chempi_hub *hub, uint32_t node_count,
                    uint32_t child_max, const struct chempi_hub_ops *ops,
                    void *arg);
void chempi_hub_fini(struct chempi_hub *hub);
/* Of memory, of a hub with so many. */
size_t chempi_hub_bytes(uint32_t node_count, uint32_t child_max);

/* So many nodes will be below: no count is complete before they are, also if
 * the first children are lost at once. 0: no more than there are. */
void chempi_hub_expect(struct chempi_hub *hub, uint32_t nodes);

/* The nodes from this one on are spare. */
void chempi_hub_spare(struct chempi_hub *hub, uint32_t first);

/* Put nodes, at least one, below a new child. Returns its number; -ENOBUFS:
 * there are child_max children, -EINVAL: there is no such node, or one of them
 * is below a child already (H1). Then nothing has changed. */
int64_t chempi_hub_add(struct chempi_hub *hub, const uint32_t *nodes,
                       uint32_t count);

/* A message from a child, or from above. -EBADMSG with words. What a lost child
 * has sent before it heard of that is late, and dropped. */
int chempi_hub_take(struct chempi_hub *hub, uint32_t child,
                    const struct chempi_frame *frame, struct chempi_err *err);
int chempi_hub_down(struct chempi_hub *hub, uint16_t type, const void *data,
                    size_t len, struct chempi_err *err);

/* The child is no more; text says how. Idempotent. */
void chempi_hub_lose(struct chempi_hub *hub, uint32_t child, const char *text);

/* The child has left as it should, which is after END: its nodes are gone.
 * One that goes before is lost, also when it was done: a gateway's supervisor
 * is done from the start, and still needed. */
void chempi_hub_leave(struct chempi_hub *hub, uint32_t child);

/* NULL, or which of H1 to H4 does not hold (invariant.h). */
const char *chempi_hub_check(const struct chempi_hub *hub);

/* All nodes below are gone. */
bool chempi_hub_is_over(const struct chempi_hub *hub);

#endif
