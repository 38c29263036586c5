/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Schedules: what one process does in one collective operation, as a list of
 * steps. Every algorithm over messages is written once, as a function that
 * appends steps; blocking, non-blocking and persistent calls run the same
 * list.
 *
 *   -   steps are begun in order; local steps (copy, reduce) are finished when
 *       the next one begins, messages when the next fence has been passed
 *   -   building moves no data and looks at no data, so that a schedule can be
 *       run more than once
 *   -   between one pair of processes, the sends of one and the receives of
 *       the other appear in the same order
 *   S4  the first failure of building sticks in `error`. From then on this
 *       member takes part at once and without data: what was appended and has
 *       not been run, and what is appended later, goes as empty messages, and
 *       what comes for it is received and dropped. So nobody waits for a member
 *       that has no memory. Temporary memory is then some address. But who is
 *       silent only notes the error
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_SCHED_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libchempi/didl/coll/call.h"

enum {
    CHEMPI_COLL_INLINE_STEPS = 12,
    CHEMPI_COLL_INLINE_BYTES = 800,
    /* At most so many messages of one process under way. */
    CHEMPI_COLL_WINDOW = 32
};

enum chempi_coll_step_kind {
    CHEMPI_COLL_SEND,
    CHEMPI_COLL_RECV,
    CHEMPI_COLL_COPY,
    CHEMPI_COLL_COMBINE, /* dst = src op dst */
    CHEMPI_COLL_NODE     /* dst is a struct chempi_node_later_op: through the
                            node's memory; of non-blocking calls only */
};

struct chempi_coll_step {
    uint8_t kind;   /* enum chempi_coll_step_kind */
    bool has_fence; /* all messages so far are finished after this step */
    uint8_t spared; /* but for the last ones, so many */
    int32_t peer;   /* rank in the communicator */
    const void *src;
    void *dst;
    MPI_Count count;
    MPI_Count dst_count; /* copy */
    struct chempi_datatype *type;
    struct chempi_datatype *dst_type; /* copy */
};

struct chempi_coll_block; /* a piece of temporary memory */

/* Team rank -> rank in comm. */
typedef int chempi_coll_map_fn(const void *arg, int rank);

struct chempi_coll_sched {
    struct chempi_comm *comm;
    struct chempi_op *op;
    chempi_coll_map_fn *map; /* NULL: identity */
    const void *map_arg;
    int rank; /* of this process in the team */
    int size; /* of the team */
    int tag;
    int error;      /* MPI error class of building (S4) */
    int failed;     /* error class of what ran before: sends are empty now */
    bool is_silent; /* S4: others have not begun, and may never */
    bool is_locked; /* who appends has the lane lock */
    uint32_t done;  /* steps that are behind it, of one that grows as it runs */
    int open;       /* messages since the last fence */
    int widest;     /* most messages between two fences */
    uint32_t count;
    uint32_t room;
    uint32_t inline_used; /* bytes of inline_bytes */
    struct chempi_coll_step *steps;
    struct chempi_coll_block *blocks; /* the last one first */
    struct chempi_coll_block *spare;  /* may be used again */
    struct chempi_coll_step inline_steps[CHEMPI_COLL_INLINE_STEPS];
    _Alignas(16) unsigned char inline_bytes[CHEMPI_COLL_INLINE_BYTES];
};

/* An empty schedule for all members of comm (the local group of an
 * intercommunicator, whose steps name remote ranks). */
void chempi_coll_sched_init(struct chempi_coll_sched *s,
                            struct chempi_comm *comm, int tag);
void chempi_coll_sched_fini(struct chempi_coll_sched *s);

/* Append steps. Peers are team ranks. Nothing is appended for count 0 copies
 * and combinations; empty messages are sent. */
void chempi_coll_send(struct chempi_coll_sched *s, const void *buf,
                      MPI_Count count, struct chempi_datatype *type, int peer);
void chempi_coll_recv(struct chempi_coll_sched *s, void *buf, MPI_Count count,
                      struct chempi_datatype *type, int peer);
void chempi_coll_copy(struct chempi_coll_sched *s, const void *src,
                      MPI_Count scount, struct chempi_datatype *stype,
                      void *dst, MPI_Count dcount,
                      struct chempi_datatype *dtype);
void chempi_coll_combine(struct chempi_coll_sched *s, const void *src,
                         void *dst, MPI_Count count,
                         struct chempi_datatype *type);
void chempi_coll_fence(struct chempi_coll_sched *s);
/* A fence that does not wait for the last so many messages (at most 255). */
void chempi_coll_fence_but(struct chempi_coll_sched *s, int spared);

void chempi_coll_append_node(struct chempi_coll_sched *s, void *op);

/* A fence if the window is full. */
void chempi_coll_throttle(struct chempi_coll_sched *s);

/* From now on this member takes part without data (S4): rc is an MPI error
 * class. */
void chempi_coll_sched_fail(struct chempi_coll_sched *s, int rc);

/* Temporary memory that lives as long as the schedule, some of which is kept
 * for later ones. S4 when there is none. */
void *chempi_coll_bytes(struct chempi_coll_sched *s, MPI_Count len);

/* The same for count elements of a type; element 0 is at the returned address
 * in the sense of a user's buffer (lower bounds may be negative). */
void *chempi_coll_temp(struct chempi_coll_sched *s, MPI_Count count,
                       struct chempi_datatype *type);

/* What was temporary memory after `kept` had been the last block (s->blocks)
 * may be used again by what is appended from now on: a fence comes before. */
void chempi_coll_reuse(struct chempi_coll_sched *s,
                       const struct chempi_coll_block *kept);

/* Free what is kept: no schedule is left. */
void chempi_coll_sched_forget(void);

/* Do all members of the team share a node? */
bool chempi_coll_is_on_one_node(const struct chempi_coll_sched *s);

/* Run it to its end on this thread. All steps are tried; the first MPI error
 * class is returned. Takes the lane lock itself. */
int chempi_coll_run(struct chempi_coll_sched *s);

/* Do a call that has been checked to its end, by whatever way is best. */
int chempi_coll_do(const struct chempi_coll_call *c);

/* The same where there is no hierarchy, as among the members of one node. */
int chempi_coll_do_flat(const struct chempi_coll_call *c);

/* The same by messages with this tag. */
int chempi_coll_do_messages(const struct chempi_coll_call *c, int tag);

/* chempi_coll_do_flat() of a member that has failed before: it takes part, so
 * that nobody waits for it, and brings nothing; whoever needs its data learns
 * that. Kinds: bcast, reduce, gather(v), scatter(v), scan, exscan. Without
 * buffers nothing is read or written. */
void chempi_coll_do_void(const struct chempi_coll_call *c, bool has_buffers);

/* The type MPI_BYTE, for packed data. */
static inline struct chempi_datatype *chempi_coll_byte(void)
{
    return &chempi_datatype_predefined[(uintptr_t)MPI_BYTE & 0xff];
}

/* Hold a type while an operation is under way, or let go of it. */
static inline void chempi_coll_hold_type(struct chempi_datatype *type,
                                         bool is_held)
{
    if (is_held)
        chempi_datatype_hold(type);
    else if (!type->is_predefined)
        chempi_datatype_release(type);
}

#define CHEMPI_COLL_TAG_MASK 0x1fffffffu
/* Keeps long-lived persistent operations apart from the others. */
#define CHEMPI_COLL_TAG_PERSISTENT 0x20000000

/* The tag of the next operation. All members start the collectives of a
 * communicator in the same order, so the counter is the same everywhere: a call
 * whose arguments are right draws it, whatever may be missing for it. */
static inline int chempi_coll_next_tag(struct chempi_comm *comm)
{
    return (int)(comm->coll_tag++ & CHEMPI_COLL_TAG_MASK);
}

/* ---- the algorithms: append what this process does ---- */

typedef void chempi_coll_build_fn(struct chempi_coll_sched *s,
                                  const struct chempi_coll_call *c);

chempi_coll_build_fn chempi_coll_build_barrier;
chempi_coll_build_fn chempi_coll_build_bcast;
chempi_coll_build_fn chempi_coll_build_reduce;
chempi_coll_build_fn chempi_coll_build_allreduce;
chempi_coll_build_fn chempi_coll_build_gather;         /* and gatherv */
chempi_coll_build_fn chempi_coll_build_scatter;        /* and scatterv */
chempi_coll_build_fn chempi_coll_build_allgather;      /* and allgatherv */
chempi_coll_build_fn chempi_coll_build_alltoall;       /* and alltoallv, w */
chempi_coll_build_fn chempi_coll_build_reduce_scatter; /* and _block */
chempi_coll_build_fn chempi_coll_build_scan;           /* and exscan */
chempi_coll_build_fn chempi_coll_build_inter; /* all on intercommunicators */

/* By the kind of call and of communicator, without the hierarchy. */
chempi_coll_build_fn chempi_coll_build_flat;
/* The same through the hierarchy, if there is one and it serves. */
void chempi_coll_build(struct chempi_coll_sched *s,
                       const struct chempi_coll_call *c);

#endif
