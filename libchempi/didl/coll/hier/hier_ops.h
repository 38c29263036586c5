/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives through the hierarchy of a communicator (hier.h).
 *
 * An operation is a sequence of phases: within each node, between nodes along
 * the trees, within each node again. Each is written once. As a schedule
 * (non-blocking, persistent) all phases are messages. A blocking call runs
 * what stands between two node phases as a schedule and does the node phases
 * by the node's own communicator, which has shared memory.
 *
 *   K1  all members choose the same phases, by facts that all know
 *   K2  after a failure a member goes on through all phases, with empty
 *       messages, so that nobody waits for it for ever; so does one that has
 *       no memory for a phase's data (S4)
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_HIER_HIER_OPS_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_HIER_HIER_OPS_H

#include "libchempi/didl/coll/hier/hier.h"
#include "libchempi/didl/coll/sched.h"

struct chempi_hier_run {
    struct chempi_coll_sched *s;
    struct chempi_hier *h;
    const struct chempi_coll_call *c;
    struct chempi_comm *node_comm; /* NULL: append node phases as messages */
};

/* ---- for the files that implement it ---- */

/* The call among the members of this process's node; ranks in it (root) are
 * numbers in the node, buffers the process's own. */
void chempi_hier_in_node(struct chempi_hier_run *r,
                         struct chempi_coll_call local);

/* The schedule builder among a team, of which this process is number
 * `rank`. */
void chempi_hier_among(struct chempi_hier_run *r, chempi_coll_map_fn *team,
                       int rank, int size, chempi_coll_build_fn *build,
                       const struct chempi_coll_call *c);

/* At every leader, acc = what it and all ranks below it contribute; leaders
 * hand it on to their parents. */
void chempi_hier_reduce_up(struct chempi_hier_run *r,
                           const struct chempi_hier_tree *t, const void *in,
                           void *acc, MPI_Count count);

/* Run what has been appended so far, if phases are run one by one. */
void chempi_hier_flush(struct chempi_hier_run *r);

typedef bool chempi_hier_phases_fn(struct chempi_hier_run *r);

chempi_hier_phases_fn chempi_hier_bcast;
chempi_hier_phases_fn chempi_hier_reduce;
chempi_hier_phases_fn chempi_hier_allreduce;
chempi_hier_phases_fn chempi_hier_barrier;
chempi_hier_phases_fn chempi_hier_gather;
chempi_hier_phases_fn chempi_hier_scatter;
chempi_hier_phases_fn chempi_hier_gatherv;
chempi_hier_phases_fn chempi_hier_scatterv;
chempi_hier_phases_fn chempi_hier_allgather; /* and allgatherv */
chempi_hier_phases_fn chempi_hier_alltoall;
chempi_hier_phases_fn chempi_hier_reduce_scatter; /* and _block */
chempi_hier_phases_fn chempi_hier_scan;           /* and exscan */

/* ---- the life of a communicator's hierarchy ---- */

struct chempi_coll_state;

/* Have the state of a node's communicator made. False: out of memory. */
typedef bool chempi_hier_prepare_fn(struct chempi_comm *comm);

/* Agree on a hierarchy and make what it needs, for an intracommunicator on
 * several nodes; collective. Without reason for one, st stays as it is. MPI
 * error class. */
int chempi_hier_attach(struct chempi_comm *comm, struct chempi_coll_state *st,
                       chempi_hier_prepare_fn *prepare);
void chempi_hier_detach(struct chempi_coll_state *st);

/* Do a blocking call with its tag; false: go another way. */
bool chempi_hier_try(const struct chempi_coll_call *c, int tag, int *rc);

#endif
