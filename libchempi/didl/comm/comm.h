/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communicator's struct, apart from the operations on it.
 *
 *   C1  contexts are multiples of CHEMPI_CONTEXT_STEP, agreed by all members;
 *       0 belongs to system messages, and to nobody's both contexts until
 *       MPI_Comm_idup has agreed
 *   C2  for an intracommunicator send_context == recv_context and
 *       remote == local
 *   C3  what has a member of another world receives in an open context, and an
 *       intercommunicator sends in one, too
 *   -   a freed communicator lives until its last pending operation is done
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COMM_H
#define CHEMPI_LIBCHEMPI_DIDL_COMM_H

#include <mpi.h>

#include "common/containers/list.h"
#include "libchempi/didl/base/object.h"
#include "libchempi/didl/comm/group.h"

/* Offsets that keep traffic of one communicator apart. */
enum chempi_context_kind {
    CHEMPI_CONTEXT_PT2PT = 0,
    CHEMPI_CONTEXT_COLL = 1,
    CHEMPI_CONTEXT_INTERNAL = 2, /* context agreement and the like */
    CHEMPI_CONTEXT_PARTITIONED = 3,
    /* Making communicators under a tag of the user's, which may be any. */
    CHEMPI_CONTEXT_GROUP = 4,  /* MPI_Comm_create_group */
    CHEMPI_CONTEXT_INTER = 5,  /* leaders in MPI_Intercomm_create */
    CHEMPI_CONTEXT_STRING = 6, /* of MPI_COMM_WORLD: out of groups */
    CHEMPI_CONTEXT_STEP = 8
};

/* From here on processes of other worlds may have a say (context_id.h). */
#define CHEMPI_CONTEXT_OPEN (1u << 30)

static inline bool chempi_context_is_open(uint32_t context)
{
    return context >= CHEMPI_CONTEXT_OPEN && context < 2 * CHEMPI_CONTEXT_OPEN;
}

/* Can it be one in which another side says that it receives? */
static inline bool chempi_context_is_others(uint32_t context)
{
    return chempi_context_is_open(context) &&
           context % CHEMPI_CONTEXT_STEP == 0;
}

struct chempi_attrs;      /* attr.c */
struct chempi_errhandler; /* error.h */
struct chempi_info;       /* info.h */
struct chempi_lane;       /* lane.h */
struct chempi_coll_state; /* coll/: per communicator, NULL until needed */
struct chempi_topology;   /* topology; NULL when none */

struct chempi_comm {
    struct chempi_object obj;
    uint32_t send_context;
    uint32_t recv_context;
    struct chempi_lane *lane;    /* chempi_comm_choose_lane() */
    int32_t rank;                /* of this process in the local group */
    uint32_t size;               /* local group */
    uint32_t remote_size;        /* processes that ranks of messages name */
    const uint32_t *procs;       /* remote rank -> process; NULL: identity */
    struct chempi_group *local;  /* held */
    struct chempi_group *remote; /* held; == local for an intracommunicator */
    bool is_inter;
    bool has_foreign; /* a member of either group is of another world */
    bool is_partial;  /* others may have it, but not this process */
    bool is_freed;    /* MPI_Comm_free was called */
    /* A bit per rank: it is there, but has no part in this one, and says so
     * (chempi_loss_note_absent()). NULL: none can be. */
    _Atomic uint64_t *absent;
    struct chempi_errhandler *errhandler; /* held */
    struct chempi_attrs *attrs;
    struct chempi_info *info;
    struct chempi_coll_state *coll;
    /* Set together with coll: frees it when the communicator dies; may be
     * called with or without the lane lock, and must not communicate. */
    void (*fini_coll)(struct chempi_comm *comm);
    /* Set by who has attached a buffer for its sends; as fini_coll. */
    void (*fini_buffer)(struct chempi_comm *comm);
    /* Set by who keeps votes that have come early in it; as fini_coll. */
    void (*fini_votes)(struct chempi_comm *comm);
    struct chempi_topology *topology;
    void (*fini_topology)(struct chempi_comm *comm); /* as fini_coll */
    /* Give `to`, a duplicate of `from`, the same topology. MPI class. */
    int (*copy_topology)(const struct chempi_comm *from,
                         struct chempi_comm *to);
    struct chempi_comm *local_comm; /* intercommunicators: the local group's
                                       private intracommunicator, or NULL */
    uint32_t coll_tag;              /* advances with every collective started */
    _Atomic uint32_t internal_tag;  /* likewise with every agreement; of
                                       MPI_COMM_SELF by any thread */
    MPI_Comm handle;                /* what the user calls it */
    struct chempi_origin origin;
    /* Requests that share one of obj.refs (CHEMPI_REQUEST_SHARES): a locked
     * instruction would wait for all stores before it. Under the lane lock. */
    uint32_t requests;
    struct chempi_comm *next_gone; /* in chempi_lane.gone */
    struct chempi_list link;       /* all communicators of the process */
    struct chempi_comm *next_open; /* in its bucket of `listening` */
    /* Of a private one, such as local_comm: whose operations it is for. */
    const struct chempi_comm *serves;
    bool is_own;    /* a window's or a file's: the library has no operation made
                       again that has failed at one member */
    bool is_unseen; /* a checker's: its operations are not the program's */
    char name[MPI_MAX_OBJECT_NAME];
};

/* Whoever has an object's address has its struct chempi_object. */
_Static_assert(offsetof(struct chempi_comm, obj) == 0, "begins as an object");

/* They exist while the library is in use, for its own purposes too. */
extern struct chempi_comm chempi_comm_world;
extern struct chempi_comm chempi_comm_self;

/* The same two for the user: NULL but between MPI_Init and MPI_Finalize. */
extern struct chempi_comm *chempi_comm_shown_world;
extern struct chempi_comm *chempi_comm_shown_self;

/* NULL when the handle names no communicator. */
static inline struct chempi_comm *chempi_comm_lookup(MPI_Comm handle)
{
    struct chempi_comm *comm = (struct chempi_comm *)(void *)handle;

    if (CHEMPI_LIKELY(handle == MPI_COMM_WORLD))
        return chempi_comm_shown_world;
    if (chempi_handle_is_address(handle))
        return comm->obj.magic == CHEMPI_MAGIC_COMM && !comm->is_freed ? comm
                                                                       : NULL;
    return handle == MPI_COMM_SELF ? chempi_comm_shown_self : NULL;
}

static inline uint32_t chempi_comm_remote_size(const struct chempi_comm *comm)
{
    return comm->remote_size;
}

/* The process that `rank` names as destination or source. */
static inline uint32_t chempi_comm_proc(const struct chempi_comm *comm,
                                        uint32_t rank)
{
    return comm->procs ? comm->procs[rank] : rank;
}

/* Set up / tear down MPI_COMM_WORLD and MPI_COMM_SELF (called by env; objects
 * of this module; 0 or MPI error class). Attribute callbacks of COMM_SELF run
 * first in fini, as MPI_Finalize requires. */
int chempi_comm_init(uint32_t rank, uint32_t size);
void chempi_comm_run_self_deleters(void);
void chempi_comm_show_world(bool is_shown);
void chempi_comm_fini(void);

/* Drop one reference; destroys at the last (no attribute callbacks). */
void chempi_comm_release(struct chempi_comm *comm);
/* The same for one that serves another, which is about to go. May be NULL. */
void chempi_comm_release_servant(struct chempi_comm *comm);

/* The same by who holds the lock of a lane that is not the first: the last
 * reference is left to the one who lets go of it. */
void chempi_comm_leave(struct chempi_comm *comm, struct chempi_lane *lane);

/* Of the point-to-point messages of an intracommunicator whose context is
 * agreed: all members choose the same lane. */
void chempi_comm_choose_lane(struct chempi_comm *comm);

/* What MPI_Comm_get_parent() gives from now on, as long as the world is shown.
 */
void chempi_comm_set_parent(MPI_Comm parent);

#endif
