/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: ordered sets of processes (MPI 5.0, chapter 7). Immutable, but for
 * what is remembered of them. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_GROUP_H
#define CHEMPI_LIBCHEMPI_DIDL_GROUP_H

#include <mpi.h>

#include "libchempi/didl/base/object.h"

/* What a group or communicator was made from. */
struct chempi_origin {
    uint64_t session; /* its serial number; 0: the world model */
    uint32_t kinds;   /* of memory that the session supports, see session.h; not
                       used without a session */
};

struct chempi_comm_plan; /* comm_plan.c */

struct chempi_group {
    struct chempi_object obj;
    uint32_t size;
    int32_t rank;          /* of this process, MPI_UNDEFINED if no member */
    const uint32_t *procs; /* [size] process index: the rank in the world, or
                              that of a process of another one (foreign.h);
                              NULL: the identity */
    bool has_foreign;      /* a member is of another world */
    struct chempi_origin origin;
    /* Of this process in agreements of all members; malloc'ed, NULL: not
     * needed yet. Set once. */
    _Atomic(struct chempi_comm_plan *) plan;
};

extern struct chempi_group chempi_group_empty;

static inline uint32_t chempi_group_proc(const struct chempi_group *group,
                                         uint32_t rank)
{
    return group->procs ? group->procs[rank] : rank;
}

/* NULL when the handle names no group. */
static inline struct chempi_group *chempi_group_lookup(MPI_Group handle)
{
    struct chempi_group *group = (struct chempi_group *)(void *)handle;

    if (chempi_handle_is_address(handle))
        return group->obj.magic == CHEMPI_MAGIC_GROUP ? group : NULL;
    return handle == MPI_GROUP_EMPTY ? &chempi_group_empty : NULL;
}

/* A new group; takes over procs (malloc'ed, [size], or NULL for identity).
 * NULL when out of memory (procs is freed). */
struct chempi_group *chempi_group_make(uint32_t size, uint32_t *procs);
/* Another one of the same processes that comes from somewhere else; NULL when
 * out of memory. */
struct chempi_group *chempi_group_copy(const struct chempi_group *group,
                                       struct chempi_origin origin);
void chempi_group_release(struct chempi_group *group); /* drops one ref */

/* The ranks in `in` of a group's members, malloc'ed; an MPI error class with
 * words when one of them is not in it. `name`: whose group `in` is. */
int chempi_group_ranks_in(const struct chempi_group *group,
                          const struct chempi_group *in, const char *name,
                          int **out);

#endif
