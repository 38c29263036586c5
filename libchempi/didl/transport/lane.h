/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locking. A lane has its own queues, lock and device endpoints; every
 * communicator has one for its point-to-point messages. All else is the first
 * one's: devices of networks, hooks, the daemon's news, sleeping, the agent.
 *
 * The lock costs one predicted branch unless MPI_THREAD_MULTIPLE was asked
 * for. It is never held while sleeping and never while user code (attribute
 * callbacks, user reduction functions, error handlers) runs.
 *
 * Without that lock the lane belongs to the application, and is lent to its
 * agent (agent.h) while the application is away and owes progress.
 *
 *   L1  is_locking changes only while no other thread can be in MPI
 *   L2  wanted counts threads that are blocked in lock; a thread that polls
 *       in a loop lets go of the lock whenever it is not 0
 *   L3  holder is the thread that has locked; 0 while the lock is free, and at
 *       the end of a wait for the lock. Only its own thread can find itself
 *       there
 *   L4  owed counts what others wait for that this process must do: exposed
 *       memory, unfinished large transfers. on_unlock has OWES if it is not 0
 *   L5  on_lock and on_unlock have LOCKS if is_locking; on_lock has LENT from
 *       when the lane was lent until the application has taken it back
 *   L6  keeps: devices keep messages that were posted one after the other
 *       (CHEMPI_KEPT) until they are advanced; counted as owed meanwhile
 *   L7  is_visited: the application is in a lane that stays lent, for a few
 *       instructions; it touches neither devices nor hooks, and owes nothing
 *       new. The agent stays out meanwhile, and leaves if it is in
 *   L8  is_held is 1 while a thread has locked. Who lets go stores 0 and looks
 *       at sleepers, without a locked instruction between; who will sleep
 *       counts itself there, has the kernel order all threads of the process,
 *       and tries once more. Where the kernel refuses (is_ordered is false)
 *       each sleep is bounded instead
 *   L9  the lock of the first lane is taken before that of another one, and
 *       no two others at a time. What happens in another lane and is the first
 *       one's business is deferred: noted there, and has_deferred set. Who lets
 *       go of that lane then clears it, takes the first one's lock and this
 *       one's again, and runs all that is noted (`run_deferred`). Who has both
 *       may run it before
 *  L10  is_owing: the first lane owes for this one. It does before `owed` is
 *       found to be more than 0 by who has both locks, and until somebody polls
 *       this lane with both and finds 0: large messages one after the other are
 *       one debt
 *   -   pollers and joined are read without the lock, but changed under it only
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_LANE_H
#define CHEMPI_LIBCHEMPI_DIDL_LANE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "common/containers/list.h"
#include "libchempi/services/shortage.h"

struct chempi_comm;
struct chempi_dev;
struct chempi_match;
struct chempi_peer;
struct chempi_request;
struct chempi_sysmsg_lane;

#define CHEMPI_LANE_DEVICES_MAX 16u

enum {
    CHEMPI_LANE_LOCKS = 1,
    CHEMPI_LANE_LENT = 2, /* in on_lock */
    CHEMPI_LANE_OWES = 2  /* in on_unlock */
};

struct chempi_lane;

/* Who the lane is lent to. */
struct chempi_lane_lender {
    /* The application, before it enters a lane that is lent. */
    void (*retake)(struct chempi_lane *lane);
    /* Whoever has the lane and owes, before it leaves; has_posted: what
     * devices keep may stay there for a moment. */
    void (*leave)(struct chempi_lane *lane, bool has_posted);
    /* The same, after it has left. */
    void (*left)(struct chempi_lane *lane);
};

struct chempi_lane {
    _Atomic uint32_t is_held; /* L8; a futex */
    _Atomic uint32_t sleepers;
    _Atomic uint32_t wanted;  /* L2 */
    uint32_t number;          /* 0: the first */
    _Atomic pthread_t holder; /* L3 */
    uint8_t on_lock;          /* L5: what locking has to do, 0: nothing */
    uint8_t on_unlock;
    bool is_locking;
    bool is_ordered;         /* L8 */
    _Atomic bool keeps;      /* L6 */
    _Atomic bool is_visited; /* L7 */
    _Atomic bool has_agent;  /* in it (agent.h, A2) */
    _Atomic uint32_t leaves; /* of an application that has an agent; it wraps */
    _Atomic int64_t lights;  /* light.h, H1 */
    bool is_on_duty;         /* its agent is (agent.h, A8); the holder's */
    uint32_t owed;           /* L4 */
    const struct chempi_lane_lender *lender; /* NULL: nobody */
    /* What the transport keeps, each part under the lock: */
    struct chempi_match *match;
    struct chempi_sysmsg_lane *system;
    struct {                      /* engine.c */
        struct chempi_list dirty; /* struct chempi_peer.dirty */
        uint64_t waiting;         /* entries on all waiting lists */
        uint64_t early;           /* messages that came before their turn */
        bool is_settling;         /* a peer is on no list meanwhile */
        bool misses;              /* chempi_loss_note_miss() */
        bool may_be_vain;         /* a held message, since the last look */
        uint32_t changes;         /* of contexts that the last look knew */
        bool is_wary;             /* that, or there are other worlds */
        bool
            has_vain; /* posted receives, since what had come may be for them */
        struct chempi_list starved; /* chempi_peer.dirty: they miss memory for
                                       what is due; dirty in the next settle */
        struct chempi_list awaited; /* chempi_peer.dirty: their end is awaited,
                                       and something wakes who sleeps; of the
                                       first lane (chempi_engine_look()) */
        uint64_t looked_ns;
        struct chempi_shortage shortage; /* of memory for messages that come, */
        struct chempi_peer *first_poor;  /* since this one of this peer */
        uint32_t poor_serial;
    } engine;
    struct {                         /* request.c */
        struct chempi_request *free; /* chained through u.tx.ep */
        uint32_t free_count;
        uint32_t orphans;
        struct chempi_list all;   /* Q5 */
        struct chempi_list lulls; /* struct chempi_request_lull.link */
    } requests;
    struct {                       /* conn.c */
        struct chempi_peer *peers; /* by index, zero until they are made */
        struct chempi_peer *made;  /* the last one, see next_made */
        uint32_t device_count;
        bool has_fds; /* one of them sleeps on descriptors */
        struct chempi_dev *devices[CHEMPI_LANE_DEVICES_MAX];
    } conn;
    /* Of lanes but the first; L9. */
    _Atomic uint32_t pollers; /* threads that poll it in a wait of theirs */
    _Atomic uint32_t joined;  /* waits in the first lane that look at it; */
    struct chempi_list waits; /* chempi_others_wait: those for it alone */
    uint32_t polls;           /* by others than the owner; it wraps */
    uint64_t spins;           /* as in struct chempi_progress_stats */
    uint64_t yields;
    bool has_deferred;        /* L9 */
    bool is_owing;            /* L10; changed under both locks */
    struct chempi_peer *lost; /* through next_lost: it has found so itself */
    struct chempi_comm *gone; /* communicators to be released */
    void (*run_deferred)(struct chempi_lane *lane);
};

extern struct chempi_lane chempi_lane_main;

#define CHEMPI_LANES_MAX 8u

/* All, the first one first; they change only while no other thread is in MPI
 * (chempi_lanes_add()). */
extern struct chempi_lane *chempi_lanes[CHEMPI_LANES_MAX];
extern uint32_t chempi_lane_count;

/* Make one more, of less than CHEMPI_LANES_MAX; NULL: no memory. And destroy
 * all but the first `left` ones. */
struct chempi_lane *chempi_lanes_add(void);
void chempi_lanes_close(uint32_t left);

/* Others than the first. */
#define CHEMPI_LANES_FOR_OTHERS(lane_)                                         \
    for (uint32_t lane_i_ = 1; lane_i_ < chempi_lane_count; lane_i_++)         \
        for (struct chempi_lane *lane_ = chempi_lanes[lane_i_]; lane_;         \
             lane_ = NULL)

void chempi_lane_lock_slow(struct chempi_lane *lane);
void chempi_lane_unlock_slow(struct chempi_lane *lane, bool has_posted);
/* Let go of the lock. */
void chempi_lane_release(struct chempi_lane *lane);
/* The same by who has the first lane's lock, and runs what this one defers. */
void chempi_lane_drop(struct chempi_lane *lane);
/* While the agent is in the lane: after a while the core is given away. */
void chempi_lane_relax(uint32_t *relaxes);

static inline void chempi_lane_lock(struct chempi_lane *lane)
{
    if (CHEMPI_UNLIKELY(lane->on_lock))
        chempi_lane_lock_slow(lane);
}

static inline void chempi_lane_unlock(struct chempi_lane *lane)
{
    if (CHEMPI_UNLIKELY(lane->on_unlock))
        chempi_lane_unlock_slow(lane, false);
}

/* The same at the end of a call that only posts: others are likely to follow,
 * so what devices keep is left there. */
static inline void chempi_lane_unlock_posted(struct chempi_lane *lane)
{
    if (CHEMPI_UNLIKELY(lane->on_unlock))
        chempi_lane_unlock_slow(lane, true);
}

/*
 * Enter a lane that is lent, for a visit (L7): the wake word stays as it is, so
 * this costs no locked instruction, and the agent goes on to watch for what
 * arrives. False: lock it.
 */
static inline bool chempi_lane_visit(struct chempi_lane *lane)
{
    uint32_t relaxes = 0;

    if (lane->on_lock != CHEMPI_LANE_LENT)
        return false;
    atomic_store_explicit(&lane->is_visited, true, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* partner: its membarrier */
    while (CHEMPI_UNLIKELY(
        atomic_load_explicit(&lane->has_agent, memory_order_acquire)))
        chempi_lane_relax(&relaxes);
    return true;
}

/* The application has left once more, for an agent that lingers. */
static inline void chempi_lane_count_leave(struct chempi_lane *lane)
{
    atomic_store_explicit(
        &lane->leaves,
        atomic_load_explicit(&lane->leaves, memory_order_relaxed) + 1,
        memory_order_relaxed);
}

static inline void chempi_lane_end_visit(struct chempi_lane *lane)
{
    chempi_lane_count_leave(lane);
    atomic_store_explicit(&lane->is_visited, false, memory_order_release);
}

/* A visit if that is possible, else the lock; what exit is told. */
static inline bool chempi_lane_enter(struct chempi_lane *lane)
{
    const bool is_visit = chempi_lane_visit(lane);

    if (!is_visit)
        chempi_lane_lock(lane);
    return is_visit;
}

static inline void chempi_lane_exit(struct chempi_lane *lane, bool is_visit)
{
    if (is_visit)
        chempi_lane_end_visit(lane);
    else
        chempi_lane_unlock(lane);
}

/* Lock it, if nobody has. */
bool chempi_lane_try(struct chempi_lane *lane);

/* Unlock in the middle of a call, or before sleeping: it is not lent. */
static inline void chempi_lane_pause(struct chempi_lane *lane)
{
    if (CHEMPI_UNLIKELY(lane->is_locking))
        chempi_lane_release(lane);
}

/* Begin or cease to owe something (L4). Holder of the lane. */
static inline void chempi_lane_owe(struct chempi_lane *lane)
{
    if (CHEMPI_UNLIKELY(lane->number > 0) && !lane->is_owing)
        lane->has_deferred = true;
    lane->owed++;
    if (lane->lender)
        lane->on_unlock |= CHEMPI_LANE_OWES;
}

static inline void chempi_lane_repay(struct chempi_lane *lane)
{
    if (--lane->owed == 0)
        lane->on_unlock &= (uint8_t)~CHEMPI_LANE_OWES;
}

/* A device keeps a message, and all devices have been advanced (L6). Holder of
 * the lane. */
static inline void chempi_lane_keep(struct chempi_lane *lane)
{
    if (atomic_load_explicit(&lane->keeps, memory_order_relaxed))
        return;
    /* Before the lane is lent: the agent looks here before it sleeps. */
    atomic_store_explicit(&lane->keeps, true, memory_order_seq_cst);
    chempi_lane_owe(lane);
}

/* Does a device keep a message? Then who waits lets it go. Any thread. */
static inline bool chempi_lane_has_kept(void)
{
    return atomic_load_explicit(&chempi_lane_main.keeps, memory_order_relaxed);
}

static inline void chempi_lane_let_go(struct chempi_lane *lane)
{
    if (CHEMPI_LIKELY(
            !atomic_load_explicit(&lane->keeps, memory_order_relaxed)))
        return;
    atomic_store_explicit(&lane->keeps, false, memory_order_relaxed);
    chempi_lane_repay(lane);
}

/* Lock from now on, or no longer (L1); the lane is not lent. */
void chempi_lane_set_locking(struct chempi_lane *lane, bool is_locking);

/* Have the lock, if that is possible within so many milliseconds, whether the
 * lane locks or not. False: it is not. */
bool chempi_lane_lock_within(struct chempi_lane *lane, int limit_ms);

/* Have the kernel order the accesses of all threads of this process, as a fence
 * in each; who relies on that registers before. False: it refuses. */
bool chempi_lane_register_barrier(void);
void chempi_lane_barrier(void);

/* Who has locked it, for the holder itself; 0 while it does not lock. */
static inline pthread_t chempi_lane_holder(const struct chempi_lane *lane)
{
    return atomic_load_explicit(&lane->holder, memory_order_relaxed);
}

/* Has the calling thread locked it? */
bool chempi_lane_is_mine(struct chempi_lane *lane);

/* NULL, or which of L4 and L5 does not hold (invariant.h). Holder of the lane.
 */
const char *chempi_lane_check(const struct chempi_lane *lane);

/* Holder of the lock: let others in if they want to. */
void chempi_lane_yield_slow(struct chempi_lane *lane);
static inline void chempi_lane_yield(struct chempi_lane *lane)
{
    if (CHEMPI_UNLIKELY(lane->is_locking))
        chempi_lane_yield_slow(lane);
}

#endif
