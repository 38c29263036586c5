/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The window's struct (MPI 5.0, chapter 12), apart from the operations on it.
 * doc/one-sided.md tells how the parts work together.
 *
 *   -   comm is the window's own: no message of the user's has its contexts
 *   W2  access and the peers' locks change only by the calls that open and
 *       close epochs, and by the first operation at a target under lock_all;
 *       operations look at them and set fence_used
 *   -   a peer's record exists from the first operation in either direction
 *       until the window is freed
 *   W4  lines[i] and cards[i] belong to member locals[i] of this node; the
 *       lines lie in memory that all of them share, if is_shared
 *   -   everything but the lines is guarded by the lane lock
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_RMA_WIN_H
#define CHEMPI_LIBCHEMPI_DIDL_RMA_WIN_H

#include <mpi.h>
#include <stdatomic.h>

#include "common/containers/list.h"
#include "libchempi/didl/base/object.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/rma/count.h"
#include "libchempi/didl/transport/progress/progress.h"

struct chempi_attrs;
struct chempi_datatype;
struct chempi_errhandler;
struct chempi_op;
struct chempi_request;
struct chempi_win;

struct chempi_rma_side {
    char *buf;
    MPI_Count count;
    struct chempi_datatype *type;
};

/* The arguments of a communication call, filled in by the API (api_impl.h);
 * what the call does not have is 0. */
struct chempi_rma_call {
    struct chempi_win *win;
    struct chempi_rma_side origin;
    struct chempi_rma_side result;
    const void *compare;
    struct chempi_op *op;
    int rank; /* the target's */
    MPI_Aint disp;
    MPI_Count count;
    struct chempi_datatype *type;
};

/* How operations get to a target. */
enum chempi_rma_reach {
    CHEMPI_RMA_SELF,
    CHEMPI_RMA_NODE,    /* its memory is mapped here */
    CHEMPI_RMA_ATTACH,  /* put and get by cross-memory attach */
    CHEMPI_RMA_MESSAGE, /* the target's process executes them */
};

/* What a member tells the others of its node. */
struct chempi_rma_card {
    uint64_t base;  /* address in its process */
    uint64_t size;  /* bytes */
    int64_t unit;   /* bytes */
    uint64_t at;    /* offset in the node's file, if it is there */
    uint64_t probe; /* address of a byte ... */
    uint64_t space; /* of process numbers and births, 0: not known */
    uint64_t born;  /* when the process was (proc_stat.h), 0: not known */
    int32_t pid;
    uint8_t probe_value; /* ... that has this value */
    bool is_fine;        /* wants accumulates to exclude each other by words */
};

struct chempi_rma_extent {
    int64_t size; /* bytes */
    int64_t unit; /* bytes */
};

#define CHEMPI_RMA_WRITER 0x80000000u

/*
 * What belongs to one member in the node's file.
 *
 * The lock: `inside` is the number of readers, or a writer. Who finds nobody in
 * the line enters if it may; else it draws `next` and waits until `turn` is its
 * ticket, which who enters from the line advances, and until it may enter. Who
 * makes room calls who is first in the line.
 *
 * Who is in lock_all, or has a lock already, must not wait for writers that
 * only wait: they may wait for what it has, or for one that waits for it. For a
 * shared lock it is a guest: it enters past the line as soon as no writer is
 * inside. Guests have no place in the line; so no other writer enters while any
 * wait, or a few in turn could keep them out. All others take turns, so that
 * nobody starves who takes one lock at a time.
 */
struct chempi_rma_line {
    _Alignas(64) _Atomic uint32_t next;
    _Atomic uint32_t turn;
    _Atomic uint32_t inside; /* readers, or CHEMPI_RMA_WRITER */
    _Atomic uint32_t guests; /* that wait, and are marked so */
    /* Process that accumulates without atomics, by its number; 0: none. */
    _Alignas(64) _Atomic uint32_t busy;
};

/* MPI_Win_lock, granted by the target's process: for windows of several nodes,
 * by the rules of struct chempi_rma_line. */
struct chempi_rma_gate {
    struct chempi_list waiting; /* struct chempi_rma_claim.link */
    struct chempi_list guests;  /* of these: struct chempi_rma_claim.guest */
    uint32_t readers;
    bool is_exclusive;
    bool is_mine;    /* this process has entered */
    bool is_open;    /* a member is away: nobody is excluded */
    bool is_pumping; /* who leaves meanwhile grants nothing by himself */
};

/* The access epochs of this process. */
enum chempi_rma_epoch {
    CHEMPI_RMA_NO_ACCESS,
    CHEMPI_RMA_STARTED,   /* MPI_Win_start */
    CHEMPI_RMA_LOCKED,    /* MPI_Win_lock of one target or more */
    CHEMPI_RMA_LOCKED_ALL /* MPI_Win_lock_all */
};

/* What flushes and unlocks are answered with: the first request that was
 * refused since the last answer. */
struct chempi_rma_verdict {
    int32_t error;     /* class; MPI_SUCCESS: none was */
    int32_t is_placed; /* disp and len say which it was */
    int64_t disp;      /* as the origin gave it */
    uint64_t len;      /* bytes */
};

struct chempi_rma_item;
struct chempi_rma_claim;

/* Requests to a peer that are not on their way (batch.c). */
struct chempi_rma_batch {
    struct chempi_list sealed; /* struct chempi_rma_item: full ones */
    unsigned char *data;       /* [room] of the one that is being filled */
    uint32_t len;
    uint32_t room;
    struct chempi_rma_item *proof; /* the last answer that it asks for */
    /* enum chempi_rma_lock, 0 for none: */
    uint8_t lazy;  /* to be put before the next request */
    uint8_t lock;  /* that this batch begins with */
    uint8_t asked; /* under way: nothing is sent before the grant */
};

/* Another member, as origin of operations here and as target of ours. */
struct chempi_rma_peer {
    struct chempi_rma_peer *next; /* in its hash bucket */
    struct chempi_win *win;
    uint32_t rank;
    uint32_t proc;
    int32_t local;        /* index among the node's members, or -1 */
    uint8_t reach;        /* enum chempi_rma_reach, of put and get */
    bool is_mapped;       /* accumulates, too, go to `mem` from here */
    _Atomic uint8_t lock; /* 0, or what is held: CHEMPI_RMA_... below; threads
                             look at it without the lane lock */
    uint8_t wanted;       /* the same, while a thread takes it */
    bool is_started;      /* member of the group of MPI_Win_start */
    bool is_dirty;        /* only a flush tells when what was sent is done */
    /* What the next synchronization reports; the same of what the peer has
     * asked for. */
    struct chempi_rma_verdict error;
    struct chempi_rma_verdict in_error;
    uint8_t granted; /* enum chempi_rma_lock: by our gate, to the peer */
    int32_t held_by; /* a rank with the lock that was asked for, or -1 */
    struct chempi_rma_claim *claim; /* on our gate, not granted yet, or NULL */
    struct chempi_rma_batch batch;
    uint32_t answers; /* that are expected from the peer */
    char *mem;        /* NULL: absolute addresses (dynamic) */
    uint64_t base;    /* of attach: address in the target */
    uint64_t size;    /* bytes */
    int64_t unit;     /* bytes */
    int32_t pid;
    struct chempi_list out;    /* struct chempi_rma_item: of ours */
    struct chempi_list in;     /* struct chempi_rma_item: of the other's */
    struct chempi_list active; /* on win->active while one is not empty */
    struct chempi_list held;   /* on win->held while lock is not 0 */
    struct chempi_list told;   /* layouts that the peer knows of us */
    struct chempi_list known;  /* layouts that the peer has told */
    uint32_t told_count;
    uint32_t known_count;
    uint32_t in_count;
    uint64_t in_bytes;    /* copies in answers that have not left */
    uint64_t known_bytes; /* of descriptions */
};

/* Kinds of lock that a peer's record has. */
enum chempi_rma_lock {
    CHEMPI_RMA_UNLOCKED,
    CHEMPI_RMA_SHARED,
    CHEMPI_RMA_EXCLUSIVE,
    CHEMPI_RMA_UNCHECKED, /* MPI_MODE_NOCHECK: nothing is held */
    CHEMPI_RMA_OVERTAKING /* wanted: a shared one, past those who wait */
};

struct chempi_rma_region { /* attached to a dynamic window */
    struct chempi_list link;
    uint64_t base;
    uint64_t size;
};

struct chempi_rma_slot; /* a posted receive for requests; wire.c */

enum { CHEMPI_RMA_RECENT = 8 }; /* a power of two */
enum { CHEMPI_RMA_SPARES = 8 };

struct chempi_win {
    struct chempi_object obj;
    MPI_Win handle;
    struct chempi_comm *comm;
    struct chempi_errhandler *errhandler; /* held */
    struct chempi_attrs *attrs;
    struct chempi_list link; /* on chempi_rma_windows */
    uint64_t counts[CHEMPI_RMA_COUNTERS];
    uint64_t told[CHEMPI_RMA_COUNTERS]; /* of these, stand under its name */
    uint64_t bound;                     /* for performance variables, or 0 */
    /* What attributes show. */
    void *base;
    MPI_Aint size; /* bytes */
    MPI_Aint unit; /* bytes */
    int unit_shown;
    int flavor;
    int model;
    /* Hints. */
    bool no_locks;
    bool same_size;
    bool same_unit;
    bool noncontig;
    char ordering[20];
    char ops[16];
    bool is_unordered; /* by `ordering` a write may overtake what is before */
    bool is_same_op;   /* by `ops` no other operation meets MPI_NO_OP */
    int granularity;   /* 0: not given */
    bool knows_dead;   /* all members of the node are in one space */
    bool is_fine;      /* it was a word or less at creation, at all members of
                          the node */
    /* The others. */
    struct chempi_rma_peer **buckets; /* [bucket_count], a power of two */
    uint32_t bucket_count;
    uint32_t peer_count;
    /* Of targets used lately, by rank; read without the lane lock. */
    struct chempi_rma_peer *_Atomic recent[CHEMPI_RMA_RECENT];
    /* [comm->size] where sizes or units differ between nodes, else NULL. */
    struct chempi_rma_extent *all;
    uint32_t *locals; /* [local_count] ranks of this node, ascending */
    uint32_t local_count;
    uint32_t me_local;
    struct chempi_rma_card *cards;
    /* The node's file. */
    bool is_shared;
    bool has_shared_locks; /* all members are here: locks are tickets */
    bool is_served;        /* requests that come as messages are taken */
    bool is_owing;         /* and the agent serves them (lane.h, L4) */
    void *file;
    uint64_t file_len;
    struct chempi_rma_line *lines; /* W4 */
    _Atomic uint32_t *seats; /* [local_count][seat_count]: who has a ticket */
    uint32_t seat_count;     /* power of two >= local_count */
    /* [local_count][local_count]: who has whose lock, or waits as a guest. */
    _Atomic uint8_t *marks;
    unsigned char probe;
    void *heap; /* memory of our own that is in no file */
    struct chempi_list regions;
    /* Epochs (W2). */
    _Atomic uint8_t access; /* enum chempi_rma_epoch */
    bool is_fenced;
    _Atomic bool fence_used;
    bool is_posted;
    bool is_null_locked; /* MPI_Win_lock of MPI_PROC_NULL */
    bool is_unchecked;   /* MPI_Win_lock_all with MPI_MODE_NOCHECK */
    bool is_queried;     /* memory of others may be accessed without calls */
    uint32_t lock_count; /* targets locked by MPI_Win_lock */
    struct chempi_group *start_group;
    struct chempi_group *post_group;
    int post_assert;
    struct chempi_request **awaited; /* [post_group->size] of MPI_Win_post */
    /* Messages. */
    struct chempi_rma_gate gate;
    struct chempi_progress_hook hook;
    struct chempi_list active; /* struct chempi_rma_peer.active */
    struct chempi_list held;   /* struct chempi_rma_peer.held */
    struct chempi_rma_slot *slots;
    struct chempi_rma_slot *notice; /* for CHEMPI_RMA_TOKEN_NONE; NULL where
                                       nobody can be lost alone */
    unsigned char *slot_data;
    unsigned char *spares[CHEMPI_RMA_SPARES]; /* of batches (batch.c) */
    uint32_t spare_count;
    unsigned char *scratch; /* results of accumulates; made at first use */
    uint32_t slot_next;
    uint32_t next_id;
    _Atomic uint32_t breaths; /* sync/flush.c */
    _Atomic bool has_stored;  /* directly, without an atomic operation, since
                                 the last flush */
    _Atomic uint32_t turns;   /* chempi_rma_take_turns() */
    uint32_t next_serial;     /* of layouts that peers are told */
    /* 1 + rank of a member that is away, 0 (loss.c). Written in the lane, and
     * read without it. */
    _Atomic uint32_t lost;
    uint64_t missing;   /* chempi_conn_missing_count(), seen last */
    uint64_t out_bytes; /* payload that waits for room */
    char name[MPI_MAX_OBJECT_NAME];
};

static inline uint32_t chempi_rma_lost(const struct chempi_win *win)
{
    return atomic_load_explicit(&win->lost, memory_order_relaxed);
}

/* Count n of something at a window. */
static inline void chempi_rma_count(struct chempi_win *win,
                                    enum chempi_rma_counter which, uint64_t n)
{
    chempi_rma_counts[which] += n;
    win->counts[which] += n;
}

/* All windows of the process that are whole; under the lane lock. */
extern struct chempi_list chempi_rma_windows;

/* NULL when the handle names no window. */
static inline struct chempi_win *chempi_win_lookup(MPI_Win handle)
{
    struct chempi_win *win = (struct chempi_win *)(void *)handle;

    if (CHEMPI_UNLIKELY(!chempi_handle_is_address(handle)))
        return NULL;
    return win->obj.magic == CHEMPI_MAGIC_WIN ? win : NULL;
}

/* Make windows known to whoever raises errors; before the library is up. */
void chempi_win_prepare(void);

#endif
