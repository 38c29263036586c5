/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives in the shared memory of a node.
 *
 * An area serves one communicator whose members all live on this node. It has
 * CHEMPI_NODE_CELLS cells (with many members fewer: their memory is for members
 * times cells), used in turn by the communicator's operations; in a cell every
 * member has a line (header and up to LINE_BYTES of data), with a slot of
 * BULK_BYTES behind it for more, and there is one line more, for what is for
 * all.
 *
 *   -   all members perform the same operations in the same order, so sequence
 *       number, cell and number of arrivals are known without asking
 *   A2  an operation that synchronises (all have arrived before any leaves) is
 *       at most CELLS - 1 operations after the one before; thus whoever
 *       starts operation s knows that all have finished operation s - CELLS
 *       and its cell is free
 *   -   a member writes only its own line and slot; the common ones only as
 *       the root, or as the last that arrived; all of them as the root of a
 *       scatter
 *   -   seq is stored last, with release; readers load it with acquire first
 *   -   what other members wrote is data: lengths are compared, never trusted
 *   -   a member whose memory others copy from or to (place) stays in the
 *       operation until they have said that they are done
 *   -   a member's boards are used in turn, in operations that synchronise;
 * thus all have read one when it comes up again
 *   -   scans and some reductions use no cell but SPSC rings from each member
 * to the next (spsc_ring.h), in which the first members run ahead of the last
 *   A9  a member has two stream boards, for chunks of large blocks and whole
 *       vectors, which all use in turn: one for each round ever, and between
 *       a round and the one after the next all meet; thus all have read a
 *       board when it comes up
 *   -   a pipe of PIECES is for broadcasts: piece number p of all that were
 *       ever sent goes to place p mod PIECES, once all others have counted
 *       themselves there as readers of the piece before it. The root says how
 *       many pieces there are, so all members count alike
 *   A11 operations that synchronise do not use the slots of their cells but
 *       two others of each member, in turn: whoever is in one knows that all
 *       have finished the one before the last. These stay in the caches, and
 *       the first operations need not make a page each. (Two members, who run
 *       side by side, are faster with slots that the other has long left.)
 *   A12 nor, where ranks outnumber cores, do gathers and reductions to a root:
 *       a member has a ring, its hand, for what it hands in, and says in its
 *       line where in that it is. What it has handed in before it met all
 *       others has been read; of the rest it hears from the roots. So it runs
 *       ahead of a root as far as the hand goes, whose memory stays in the
 *       caches, and is made once, not for each cell. A root that has collected
 *       one operation has the lines of all, who have ended all operations
 *       before: to have heard of the later one is enough. (Members that run
 *       side by side are faster with what the other has long left, as in A11.)
 *   -   non-blocking operations have cells, slots and numbers of their own
 *       (node_later.h)
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_NODE_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_NODE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "libchempi/didl/coll/call.h"
#include "libchempi/didl/coll/node/copy/way_choice.h"
#include "libchempi/didl/coll/node/cores/yield_policy.h"
#include "libchempi/didl/coll/node/ring/spsc_ring.h"
#include "libchempi/didl/coll/sched.h"

enum {
    CHEMPI_NODE_COMM_AREAS = 32, /* of communicators; behind them are those of
                                    persistent operations */
    CHEMPI_NODE_CELLS = 64,      /* powers of two */
    CHEMPI_NODE_CELLS_MANY = 16, /* with more than MANY members */
    CHEMPI_NODE_MANY = 64,
    CHEMPI_NODE_SYNC_SLOTS = 2, /* used in turn */
    /* Of non-blocking operations; none with more than MANY members. */
    CHEMPI_NODE_LATER_CELLS = 64,
    CHEMPI_NODE_HAND_BYTES = 256 << 10, /* of a hand (A12), whole pages, */
    CHEMPI_NODE_HAND_STEP = 32 << 10,   /* reserved by and by */
    CHEMPI_NODE_ALL_CELLS = CHEMPI_NODE_CELLS + CHEMPI_NODE_LATER_CELLS,
    CHEMPI_NODE_LATER_SLOTS = 8, /* of those in which all meet, in turn */
    /* Cells that come free together; and after so many operations a member of
     * more than two says which ones it has ended. Powers of two; node_later.h,
     * L3 and L7. */
    CHEMPI_NODE_LATER_GROUP = CHEMPI_NODE_LATER_CELLS / 2,
    CHEMPI_NODE_LATER_SAID = 4,
    /* Words with a bit per slot: of blocking operations, and of both. */
    CHEMPI_NODE_BLOCKING_MASKS =
        (CHEMPI_NODE_CELLS + CHEMPI_NODE_SYNC_SLOTS + 63) / 64,
    CHEMPI_NODE_MASKS =
        CHEMPI_NODE_BLOCKING_MASKS +
        (CHEMPI_NODE_LATER_CELLS + CHEMPI_NODE_LATER_SLOTS + 63) / 64,
    CHEMPI_NODE_LINE_BYTES = 48,
    CHEMPI_NODE_RANKS_MAX = 4096,   /* of a communicator that gets an area */
    CHEMPI_NODE_PAGE_BYTES = 4096,  /* of a slot, reserved when first used */
    CHEMPI_NODE_BULK_BYTES = 16384, /* the rest likewise */
    CHEMPI_NODE_BOARDS = 2,         /* of a member, used in turn */
    CHEMPI_NODE_BOARD_BYTES = 64 << 10,
    CHEMPI_NODE_STREAM_MAX = 256 << 10,  /* a stream board */
    CHEMPI_NODE_STREAM_BYTES = 1 << 20,  /* a chunk of every member */
    CHEMPI_NODE_STREAM_LEAST = 64 << 10, /* .. and of one of at most MANY */
    CHEMPI_NODE_PAIR_MAX = 64 << 10,     /* .. of two, who send no more so */
    CHEMPI_NODE_PIECES = 16,             /* of the pipe */
    CHEMPI_NODE_PIECE_BYTES = 32 << 10,
    CHEMPI_NODE_SPREAD_LEAST = 32 << 10, /* bytes that a member copies */
    CHEMPI_NODE_FOLD_FIRST = 1 << 20,    /* bytes; node_scan.c, X5 */
    /* Who has no memory has room for a task of so many bytes. */
    CHEMPI_NODE_TASK_MAX = 512
};

/* A place's `at` of data that is in no hand. */
#define CHEMPI_NODE_IN_SLOT UINT32_MAX

/* Where a member's data lies in its own memory, for others to read or write
 * (cma_copy.h). */
struct chempi_node_place {
    uint64_t in;
    uint64_t out;
    union {
        uint64_t seal;            /* of an offer */
        _Atomic uint64_t came_ns; /* when the member came, where others look
                                     at that (distance.h); of an exchange 0: it
                                     has no large blocks */
    };
    union {
        uint32_t is_few;     /* its data is in one of the few slots;
                                node_later.h, L7 */
        _Atomic uint32_t at; /* where it is in the member's hand, bytes
                                (A12) */
    };
    uint32_t last;          /* the common one: who came last to the meeting */
    uint32_t rounds;        /* around a ring (reduce_ring.h), all in all, */
    _Atomic uint32_t steps; /* and steps that are done */
    uint32_t reply;         /* 0, or in which phase a copy of its own failed */
    _Atomic uint32_t met;   /* how often it has come again, non-blocking; for
                               words. The common one: the operation in which
                               somebody has looked (distance.h) */
};

struct chempi_node_line {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t seq; /* of the operation */
    uint32_t mark; /* meaning depends on the operation */
    uint64_t len;  /* bytes */
    union {
        unsigned char data[CHEMPI_NODE_LINE_BYTES];
        struct chempi_node_place place;
    };
};
static_assert(sizeof(struct chempi_node_line) == CHEMPI_CACHE_LINE,
              "a line is a cache line");

struct chempi_node_count {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t arrived; /* ever; wraps */
    _Atomic uint32_t met;      /* arrived, when all met once more */
    _Atomic uint32_t finished; /* copies from or to the root's memory */
    _Atomic uint32_t goal;     /* of finished; the one that reaches it rouses
                                  the root, which sets both */
};

/* A place of the pipe. */
struct chempi_node_piece {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t seq;   /* 1 + its number */
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t reads; /* ever; wraps */
};

/* A12: the last operation in which a member, as the root, has read what was
 * handed in. */
struct chempi_node_taken {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t seq;
    _Atomic uint32_t waits; /* does this member wait for a root to say so? The
                               common one: how many do */
    _Atomic uint32_t goal;  /* then: of this operation, or a later one */
};

/* What this member has handed in since all met last. */
struct chempi_node_hand {
    uint64_t head;     /* bytes, with what was left free at the ring's end */
    uint64_t tail;     /* .. that are surely read */
    uint64_t reserved; /* bytes of the ring, ever */
    uint32_t count;    /* of operations */
    uint32_t first;    /* .. that are surely read */
    struct {
        uint32_t seq;
        int root;
        uint64_t end; /* head behind it */
    } ops[CHEMPI_NODE_CELLS];
};

/* What a member says of its non-blocking operations (node_later.h), and of the
 * pipe. */
struct chempi_node_ended {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t number; /* a group's last */
    _Atomic uint32_t is_starved; /* the common one: a member waits for cells */
    _Atomic uint32_t pieces;     /* it has done, ever; for words */
};

/* The same as this member counts them. */
struct chempi_node_later {
    struct chempi_node_ended *ended; /* [size + 1] */
    uint32_t unsaid;                 /* bits of a number that is not said */
    uint32_t started;                /* ever; all of them wrap */
    uint32_t begun;
    _Atomic uint32_t finished; /* under the lane lock; anybody looks */
    uint32_t all_finished;     /* by all members, as seen last */
    uint32_t last_task;        /* the last one that is a task (node_task.h) */
};

/* A member's ends of the SPSC rings of scans and reductions (node_scan.c). */
struct chempi_node_chain {
    bool is_made;    /* by all */
    bool is_off;     /* some member got no memory */
    bool is_broken;  /* X2 */
    uint64_t folded; /* bytes of reductions to a root by workers, ever (X5) */
    struct chempi_spsc_ring_writer out; /* to the next member; last to first */
    struct chempi_spsc_ring_reader in;
};

/*
 * What the operations of a state go by. Without a state, or with a new or
 * prepared one, none has begun. MPI_COMM_WORLD, whose area all know, finds out
 * at once; else it depends on the first operation:
 *
 *     none --+-- blocking (node.c, begin()) ---------------+--> MESSAGES
 *         |  +-- non-blocking --> NEWS -- heard, by all ---+--> MEMORY
 *         |                                                |
 *         +----- prepared --> PREPARED -- blocking --------+
 *
 *   -   MESSAGES and MEMORY are for ever, and of all members alike (B4): who
 *       has got there knows that all others do, or have lost a member. (A
 *       blocking call says MESSAGES while it asks: nothing is numbered then)
 *   -   PREPARED: non-blocking operations go by messages until a blocking one
 *   -   NEWS: the first operation that could go through the node's memory has
 *       number 1 (node_later.h, L8), and brings them. It ends as messages.
 *       Whoever makes progress hears them, under the lane lock, perhaps while
 *       the communicator's thread starts the next operation. So the stage is
 *       stored last, and is looked at first
 */
enum chempi_node_stage {
    CHEMPI_NODE_MESSAGES,
    CHEMPI_NODE_MEMORY,
    CHEMPI_NODE_NEWS,
    CHEMPI_NODE_PREPARED
};

/* comm->coll, or a persistent operation's own */
struct chempi_coll_state {
    const struct chempi_comm *comm;
    struct chempi_hier *hier;      /* of members on several nodes, or NULL */
    struct chempi_comm *node_comm; /* then: those on this node */
    _Atomic uint8_t stage;         /* enum chempi_node_stage */
    bool is_area_unknown;          /* there may be one that is not left yet */
    uint32_t owns; /* persistent operations that had areas of their own, ever;
                      alike at all members */
    uint32_t unknown_own; /* the number of the first one since which their
                             areas are not known, and perhaps not left yet; 0 */
    /* The kernel has refused a copy of which all members know, or one of
     * which this member knows as the root. */
    bool is_refused;
    bool is_refused_root;
    struct { /* of the last exchange whose way this member has chosen */
        struct chempi_way_exchange exchange;
        uint64_t met_ns; /* when all had come; 0: there was none */
        bool by_rings;
    } way;
    int area;
    uint32_t cells;       /* a power of two */
    uint32_t later_cells; /* behind those, or 0, as without an area; for who
                             is in a call */
    int size;             /* members = ranks of the communicator */
    int rank;
    unsigned char *scratch; /* for parts of operations; NULL: none yet */
    uint64_t scratch_len;   /* bytes */
    uint32_t seq;           /* of the last operation */
    uint32_t last_sync;     /* the last one that synchronised */
    uint32_t expected[CHEMPI_NODE_ALL_CELLS]; /* arrivals, ever */
    struct chempi_node_count *counts;         /* [all cells] */
    struct chempi_node_line *lines; /* [size + 1][all cells]; [size]: common */
    uint32_t slots;      /* of each member: cells, SYNC_SLOTS, later cells,
                            LATER_SLOTS */
    unsigned char *bulk; /* [size + 1][slots][BULK_BYTES] */
    struct chempi_node_later later;
    uint32_t syncs;                  /* operations that synchronised; wraps */
    unsigned char *hands;            /* [size][HAND_BYTES] */
    struct chempi_node_taken *taken; /* [size + 1] */
    struct chempi_node_hand hand;
    unsigned char *boards; /* [size][BOARDS][BOARD_BYTES] */
    uint32_t rows;         /* boards that this member has used, ever */
    bool is_reserved[CHEMPI_NODE_BOARDS]; /* this member's */
    uint32_t *local_ranks;                /* [size] */
    struct chempi_node_piece *pipe;       /* [PIECES] */
    unsigned char *pieces;                /* [PIECES][PIECE_BYTES] */
    uint64_t pieces_sent;                 /* ever */
    bool is_pipe_reserved;                /* by this process */
    unsigned char *streams;               /* [2][size][stream_len] */
    uint64_t stream_len;                  /* bytes of one board */
    uint64_t stream_chunk;                /* .. and of one of many chunks */
    uint32_t streamed;                    /* rounds, ever; wraps */
    uint64_t stream_reserved;    /* bytes of each of this member's boards */
    unsigned char *chain_memory; /* [size][CHEMPI_SPSC_RING_STRIDE] */
    struct chempi_node_chain chain;
    unsigned char
        *ring_memory; /* [size][CHEMPI_RINGS_STRIDE] (pairwise_rings.h) */
    struct chempi_pairwise_rings *rings; /* NULL: none yet */
    struct chempi_yield_policy yield_policy;
    struct chempi_coll_state *next_own; /* of a persistent operation that is
                                           made, or NULL */
    uint64_t reserved[]; /* [size + 1][2][MASKS]: first pages of slots, and
                            whole slots, that this process reserved, a bit
                            for each; then what local_ranks
                            and yield_policy.neighbours point to */
};

/* After all that was done before the stage was stored. */
static inline enum chempi_node_stage
chempi_coll_node_stage(const struct chempi_coll_state *st)
{
    return atomic_load_explicit(&st->stage, memory_order_acquire);
}

/* The state of a communicator, made at its first collective operation (which
 * all members are in); or wait until it is known (NEWS). NULL when out of
 * memory, or after a loss: then *rc is an error class. */
struct chempi_coll_state *chempi_coll_node_attach(struct chempi_comm *comm,
                                                  int *rc);

/* Does it wait for nobody to attach, since its area is known (B2)? */
bool chempi_coll_node_is_known(const struct chempi_comm *comm);

/* May it get an area in a non-blocking operation? All members say the same. */
bool chempi_coll_node_may_get_area(const struct chempi_comm *comm);
/* Such a communicator that has no state: its first operation is a non-blocking
 * one and brings the news. MPI error class. */
int chempi_coll_node_expect(struct chempi_comm *comm);

/* Of that operation, under the lane lock: the number that member 0 takes (-1:
 * there is none); has this member that area; do all have it? */
int32_t chempi_coll_node_take(const struct chempi_comm *comm);
bool chempi_coll_node_hear(struct chempi_comm *comm, int32_t area);
void chempi_coll_node_decide(struct chempi_comm *comm, bool is_for_all);

/* A state for a persistent operation of a communicator that has an area; NULL
 * when out of memory. At member 0 its area is the operation's, -1: there is
 * none. The others enter that, and so does member 0; false: in vain. Who has no
 * state leaves it at once (B3). Who was not told which one it is leaves it,
 * too, now or later; is_taken: member 0 has surely taken it, if there is one.
 */
struct chempi_coll_state *chempi_coll_node_make_own(struct chempi_comm *comm);
bool chempi_coll_node_enter_own(struct chempi_comm *comm,
                                struct chempi_coll_state *st, int32_t area);
void chempi_coll_node_leave_own(struct chempi_comm *comm, bool is_taken);

/* Leave its area, and free it; accepts NULL. */
void chempi_coll_node_release(struct chempi_coll_state *st);

/* Do the call through shared memory if all members can: true, and *rc is its
 * result. False: go by messages (with this tag, perhaps); all members get the
 * same answer. */
bool chempi_coll_node_run(struct chempi_coll_state *st,
                          const struct chempi_coll_call *c, int tag, int *rc);
int chempi_coll_node_barrier(struct chempi_coll_state *st);

/* Is it known what the communicator's operations go by? If not, *rc says why.
 * Who could not even begin to ask tries the call again, in which the others
 * are, and which has their tag then. */
static inline bool chempi_coll_node_is_attached(struct chempi_comm *comm,
                                                int *rc)
{
    const struct chempi_coll_state *st = comm->coll;

    if (CHEMPI_LIKELY(st && chempi_coll_node_stage(st) <= CHEMPI_NODE_MEMORY) ||
        chempi_coll_node_attach(comm, rc))
        return true;
    if (comm->coll)
        (void)chempi_coll_next_tag(comm); /* it is over */
    return false;
}

/* Begin an operation: the state is there, and its tag is drawn. False: *rc. */
static inline bool chempi_coll_node_begin(struct chempi_comm *comm, int *tag,
                                          int *rc)
{
    if (!chempi_coll_node_is_attached(comm, rc))
        return false;
    *tag = chempi_coll_next_tag(comm);
    return true;
}

/* Behind chempi_coll_node_begin(). */
static inline bool chempi_coll_node_try(const struct chempi_coll_call *c,
                                        int tag, int *rc)
{
    struct chempi_coll_state *st = c->comm->coll;

    return chempi_coll_node_stage(st) == CHEMPI_NODE_MEMORY &&
           chempi_coll_node_run(st, c, tag, rc);
}

#endif
