/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Areas of shared memory for the communicators of a node: who has which; see
 * node.h. The first page of the extension says which areas are taken, and
 * pages behind it who still uses each. Areas have their place in the region's
 * file; a process maps of those that its communicators get what they need. The
 * lines' pages are reserved by the first member (rank 0) of the communicator,
 * those of a slot by whoever writes it first. What lies behind the slots goes
 * back to the kernel with a communicator that used much of it.
 *
 *   B1  who changes owners from 0 has the area in its hand, and says so there,
 *       until it is in use. Who finds that no member uses it any more (or B6)
 *       takes it into its hand again, after which nobody else touches it, and
 *       frees it. No use of an area has the number of another one
 *   B2  the first area is MPI_COMM_WORLD's: nobody needs to be told, and it is
 *       not left. Its lines are new memory, reserved by whoever comes first
 *   B3  `members` has a bit for each process that uses an area, which it clears
 *       once: when it releases its communicator, or when it could not learn
 *       over messages which area it is. It is one word that says so: whoever
 *       ends before it uses the area, whoever ends behind it does not
 *   B4  members use an area only if all of them have it: who hears its number
 *       (from member 0) may have no addresses for it, so all ask each other
 *       then, and leave it if one has not. MPI_COMM_WORLD's they do not ask
 *       for: there a call fails that has none, and is made again
 *   B5  a communicator of the library's own (is_own) does without a hierarchy,
 *       too, if one of its members has none
 *   B6  in a job that survives, who finds no free area takes back those whose
 *       members have all left or ended, and those in the hand of one that has.
 *       Ended means: the launcher says so, and the kernel has dropped its mark
 *       on the region, as it does when the process has no memory any more (the
 *       launcher knows only the process that it started, perhaps a shell)
 *   B7  a member that has never used its communicator's area, or did not get to
 *       know it, leaves it when the communicator is gone (buried, loss.h). The
 *       first member may take one even later: whoever begins to use another
 *       communicator looks again
 *   B8  the number that a member hears from another one is that of an area
 *       which was taken for its communicator, else none
 *   -   each persistent operation that goes through the node's memory has an
 *       area and a state of its own, since members may start such ones in any
 *       order; those areas are others than the communicators'. Its members
 *       agree on it when they make the operation
 */
#include "libchempi/didl/coll/node/node.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/coll/hier/hier_ops.h"
#include "libchempi/didl/coll/node/copy/cma_copy.h"
#include "libchempi/didl/coll/node/ring/pairwise_rings.h"
#include "libchempi/didl/coll/node/shm_slot.h"
#include "libchempi/didl/coll/sched.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/loss.h"

enum {
    AREAS = 64, /* with those of persistent operations */
    WORLD_AREA = 0,
    HAND_BITS = 20,
    PAGE = 4096
};
static_assert((CHEMPI_NODE_CELLS & (CHEMPI_NODE_CELLS - 1)) == 0 &&
                  (CHEMPI_NODE_CELLS_MANY & (CHEMPI_NODE_CELLS_MANY - 1)) == 0,
              "numbers of cells are powers of two");

struct control {
    _Atomic uint64_t uses;            /* numbers that were drawn */
    _Atomic uint32_t is_world_ready;  /* B2 */
    _Atomic uint32_t is_large[AREAS]; /* some member has rings or streams */
    _Atomic uint32_t numbers[AREAS];  /* of persistent operations: which one of
                                         its communicator; else 0 */
    _Atomic uint64_t owners[AREAS];   /* number of its use << HAND_BITS, and who
                                         has it in its hand: 1 + local rank. 0:
                                         it is free */
    _Atomic uint64_t names[AREAS];    /* name_of() its communicator */
    _Atomic uint32_t sizes[AREAS];    /* members of that */
    _Atomic uint32_t distance;        /* points (distance.h) */
};
static_assert(sizeof(struct control) <= PAGE, "control is one page");

/* Stays mapped for the next communicator that gets the area. */
struct mapping {
    unsigned char *start; /* NULL: none */
    size_t len;           /* bytes, whole pages */
};

static struct {
    struct control *control;   /* NULL: no areas; then what cma_copy.c shares */
    _Atomic uint64_t *members; /* [AREAS][words] B3 */
    struct mapping areas[AREAS];
    uint64_t areas_at;       /* the first one in the region's file */
    size_t area_len;         /* bytes, whole pages */
    pthread_mutex_t unknown; /* who looks for areas that this process is to
                                leave, of all communicators */
} node = {.unknown = PTHREAD_MUTEX_INITIALIZER};

static size_t pages(size_t len)
{
    return (len + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static size_t cells(int size)
{
    return size <= CHEMPI_NODE_MANY ? CHEMPI_NODE_CELLS
                                    : CHEMPI_NODE_CELLS_MANY;
}

static size_t later_cells(int size)
{
    return size <= CHEMPI_NODE_MANY ? CHEMPI_NODE_LATER_CELLS : 0;
}

static size_t all_cells(int size)
{
    return cells(size) + later_cells(size);
}

/* The pipe's places, who is there, what has ended, counts and lines of all
 * cells. */
static size_t head_len(int size)
{
    size_t all = (size_t)size + 1;

    return CHEMPI_NODE_PIECES * sizeof(struct chempi_node_piece) +
           (size_t)size * sizeof(struct chempi_yield_policy_presence) +
           all * sizeof(struct chempi_node_taken) +
           (later_cells(size) ? all * sizeof(struct chempi_node_ended) : 0) +
           all_cells(size) * (sizeof(struct chempi_node_count) +
                              all * sizeof(struct chempi_node_line));
}

/* Of a member. */
static size_t slots(int size)
{
    size_t later = later_cells(size);

    return cells(size) + CHEMPI_NODE_SYNC_SLOTS +
           (later > 0 ? later + CHEMPI_NODE_LATER_SLOTS : 0);
}

static size_t bulk_len(int size)
{
    return slots(size) * (size_t)(size + 1) * CHEMPI_NODE_BULK_BYTES;
}

static size_t hands_len(int size)
{
    return (size_t)size * CHEMPI_NODE_HAND_BYTES;
}

static size_t boards_len(int size)
{
    return (size_t)size * CHEMPI_NODE_BOARDS * CHEMPI_NODE_BOARD_BYTES;
}

/* Whole pages; 0: so many members have none. What many chunks go through in
 * turn stays in the caches. */
static size_t stream_chunk(int size)
{
    size_t len = CHEMPI_NODE_STREAM_BYTES / (size_t)size;

    if (size == 2)
        return CHEMPI_NODE_PAIR_MAX;
    if (size <= CHEMPI_NODE_MANY && len < CHEMPI_NODE_STREAM_LEAST)
        len = CHEMPI_NODE_STREAM_LEAST;
    return (len < CHEMPI_NODE_STREAM_MAX ? len : CHEMPI_NODE_STREAM_MAX) &
           ~(size_t)(PAGE - 1);
}

static size_t stream_len(int size)
{
    return size <= CHEMPI_NODE_MANY ? CHEMPI_NODE_STREAM_MAX
                                    : stream_chunk(size);
}

/* Both stream boards of all members. */
static size_t streams_len(int size)
{
    return 2 * (size_t)size * stream_len(size);
}

/* Larger communicators have none. */
static size_t rings_len(int size)
{
    int most = size < CHEMPI_RINGS_RANKS_MAX ? size : CHEMPI_RINGS_RANKS_MAX;

    return (size_t)most * CHEMPI_RINGS_STRIDE;
}

/* Whole pages: all parts but the first one are. */
static size_t area_len(int size)
{
    return pages(head_len(size)) + bulk_len(size) + hands_len(size) +
           boards_len(size) + (size_t)size * CHEMPI_SPSC_RING_STRIDE +
           CHEMPI_NODE_PIECES * CHEMPI_NODE_PIECE_BYTES + streams_len(size) +
           rings_len(size);
}

/* Words with a bit for each process of this node. */
static size_t words(void)
{
    return (chempi_ctx.services.local_size + 63) / 64;
}

static size_t members_len(void)
{
    return AREAS * words() * sizeof(*node.members);
}

static void leave_buried(void);

int chempi_coll_init(void)
{
    const struct chempi_services *s = &chempi_ctx.services;
    struct chempi_err err;
    int most = s->local_size < CHEMPI_NODE_RANKS_MAX ? (int)s->local_size
                                                     : CHEMPI_NODE_RANKS_MAX;
    void *start;
    size_t marks = PAGE + pages(chempi_coll_cma_copy_len(s->local_size));
    size_t front = marks + pages(members_len());
    int rc;

    chempi_coll_count_anew();
    if (s->local_size < 2)
        return MPI_SUCCESS;
    /* Of a smaller one with more cells, too. */
    node.area_len = area_len(most);
    if (most > CHEMPI_NODE_MANY && node.area_len < area_len(CHEMPI_NODE_MANY))
        node.area_len = area_len(CHEMPI_NODE_MANY);
    rc = chempi_region_extend(s->region, front, &start, &err);
    if (rc == 0)
        rc = chempi_region_reserve(s->region, start, front, &err);
    if (rc == 0)
        rc = chempi_region_lay_out(s->region, AREAS * (uint64_t)node.area_len,
                                   &node.areas_at, &err);
    if (rc < 0)
        return chempi_error_from(rc, &err);
    node.control = start;
    node.members = (void *)((unsigned char *)start + marks);
    if (chempi_ctx.job->survives) {
        rc = chempi_region_mark(s->region, s->local_rank, &err);
        if (rc < 0)
            return chempi_error_from(rc, &err);
    }
    chempi_coll_cma_copy_init((unsigned char *)start + PAGE, s->local_size,
                              s->local_rank);
    chempi_loss_on_burial(leave_buried);
    return MPI_SUCCESS;
}

void chempi_coll_fini(void)
{
    chempi_coll_cma_copy_fini();
    node.control = NULL;
    node.members = NULL;
    for (int i = 0; i < AREAS; i++)
        if (node.areas[i].start)
            chempi_region_hide(chempi_ctx.services.region, node.areas[i].start);
    memset(node.areas, 0, sizeof(node.areas));
}

/* The area's memory for so many members, NULL when out of addresses. */
static unsigned char *map(int area, int size, struct chempi_err *err)
{
    struct chempi_region *region = chempi_ctx.services.region;
    struct mapping *m = &node.areas[area];
    size_t len = area_len(size);
    void *start;

    if (m->start && m->len >= len)
        return m->start;
    if (m->start)
        chempi_region_hide(region, m->start);
    m->start = NULL;
    if (chempi_region_show(region,
                           node.areas_at + (uint64_t)area * node.area_len, len,
                           &start, err) < 0)
        return NULL;
    *m = (struct mapping){start, len};
    return m->start;
}

/* Names the communicator while it lives: its context, which no two
 * communicators of its first member have at a time, and that member. */
static uint64_t name_of(const struct chempi_comm *comm)
{
    return (uint64_t)comm->send_context << 32 | chempi_comm_proc(comm, 0);
}

/* ---- who uses an area (B3) ---- */

static _Atomic uint64_t *word_of(int area, uint32_t local_rank)
{
    return node.members + (size_t)area * words() + local_rank / 64;
}

static bool is_used_by(int area, uint32_t local_rank)
{
    return atomic_load(word_of(area, local_rank)) >> local_rank % 64 & 1u;
}

static bool is_used(int area)
{
    for (uint32_t rank = 0; rank < words() * 64; rank += 64)
        if (atomic_load(word_of(area, rank)))
            return true;
    return false;
}

static void note_members(int area, const struct chempi_comm *comm)
{
    for (uint32_t i = 0; i < comm->size; i++) {
        uint32_t rank =
            chempi_ctx.services.local_rank_of_proc[chempi_comm_proc(comm, i)];

        atomic_fetch_or(word_of(area, rank), UINT64_C(1) << rank % 64);
    }
}

static void note_left(int area)
{
    uint32_t rank = chempi_ctx.services.local_rank;

    atomic_fetch_and(word_of(area, rank), ~(UINT64_C(1) << rank % 64));
}

/* From here on after all that those in this process did who had the area before
 * (partner: note_left()). */
static void follow(int area)
{
    (void)is_used_by(area, chempi_ctx.services.local_rank);
}

/* ---- whose it is (B1) ---- */

static uint64_t next_use(void)
{
    return (atomic_fetch_add(&node.control->uses, 1) + 1) << HAND_BITS;
}

/* Into this process's hand. False: it was not in that state. */
static bool take(int area, uint64_t owner)
{
    return atomic_compare_exchange_strong(
        &node.control->owners[area], &owner,
        next_use() | (chempi_ctx.services.local_rank + 1));
}

static void put_back(int area)
{
    atomic_store(&node.control->owners[area], 0);
}

/* ---- areas of those who have ended (B6) ---- */

static bool is_gone(uint32_t proc)
{
    const struct chempi_services *s = &chempi_ctx.services;

    return chempi_conn_has_ended(proc) &&
           !chempi_region_is_marked(s->region, s->local_rank_of_proc[proc]);
}

/* Whoever has not left it has ended. */
static bool is_deserted(int area)
{
    const struct chempi_services *s = &chempi_ctx.services;

    for (uint32_t proc = 0; proc < s->rank_count; proc++)
        if (chempi_ctx_is_here(proc) &&
            is_used_by(area, s->local_rank_of_proc[proc]) && !is_gone(proc))
            return false;
    return true;
}

/* It had just taken the area, or was about to free it. */
static bool is_hand_gone(uint32_t local_rank)
{
    const struct chempi_services *s = &chempi_ctx.services;

    for (uint32_t proc = 0; proc < s->rank_count; proc++)
        if (chempi_ctx_is_here(proc) &&
            s->local_rank_of_proc[proc] == local_rank)
            return is_gone(proc);
    return false;
}

/* Whether there is a free one now. */
static CHEMPI_COLD bool take_back(void)
{
    bool is_done = false;

    if (!chempi_conn_missing_count())
        return false;
    for (int area = WORLD_AREA + 1; area < AREAS; area++) {
        uint64_t owner = atomic_load(&node.control->owners[area]);
        uint32_t hand = owner & ((UINT32_C(1) << HAND_BITS) - 1);

        if (!owner || !(hand ? is_hand_gone(hand - 1) : is_deserted(area)) ||
            !take(area, owner))
            continue; /* the last of its members frees it, perhaps */
        for (uint32_t rank = 0; rank < words() * 64; rank += 64)
            atomic_store(word_of(area, rank), 0);
        put_back(area);
        is_done = true;
    }
    return is_done;
}

/* ---- taking and leaving ---- */

/* One of [first, end) into this process's hand; end: none is free. */
static int take_free(int first, int end)
{
    while (first < end &&
           (atomic_load(&node.control->owners[first]) || !take(first, 0)))
        first++;
    return first;
}

/* Take a free one of the areas [first, end) for a communicator's members and
 * make its pages; -1 when there is none or no memory for it. */
static int claim(const struct chempi_comm *comm, uint32_t number, int first,
                 int end)
{
    const int size = (int)comm->size;
    unsigned char *start;
    int area;

    if (!node.control)
        return -1;
    area = take_free(first, end);
    if (CHEMPI_UNLIKELY(area == end && take_back()))
        area = take_free(first, end);
    if (area == end)
        return -1;
    follow(area);
    start = map(area, size, NULL);
    if (!start || chempi_region_reserve(chempi_ctx.services.region, start,
                                        head_len(size), NULL) < 0) {
        put_back(area);
        return -1;
    }
    memset(start, 0, head_len(size));
    note_members(area, comm);
    atomic_store(&node.control->names[area], name_of(comm));
    atomic_store(&node.control->sizes[area], comm->size);
    atomic_store(&node.control->numbers[area], number);
    atomic_store(&node.control->owners[area], next_use());
    return area;
}

/* What lies behind lines and slots, which every communicator needs: new pages
 * take longer than all the rest of its beginning and end. In vain: it stays
 * reserved for who gets the area next. */
static CHEMPI_COLD void give_back(int area, int size)
{
    size_t kept = pages(head_len(size)) + bulk_len(size) + hands_len(size);

    if (!node.areas[area].start || node.areas[area].len < area_len(size))
        return; /* this member has not mapped all of it */
    (void)chempi_region_release(chempi_ctx.services.region,
                                node.areas[area].start + kept,
                                area_len(size) - kept);
}

static void leave(int area, uint32_t size)
{
    uint64_t owner;

    if (area == WORLD_AREA)
        return;
    owner = atomic_load(&node.control->owners[area]);
    note_left(area);
    if (is_used(area) || !take(area, owner))
        return; /* somebody else frees it */
    /* Nobody touches it any more, and nobody can get it yet. */
    if (atomic_exchange(&node.control->is_large[area], 0))
        give_back(area, (int)size);
    put_back(area);
}

/* Does this process use it, as others see it? */
static bool is_in_use(int area)
{
    uint64_t owner = atomic_load(&node.control->owners[area]);

    return owner && owner % (UINT64_C(1) << HAND_BITS) == 0 &&
           is_used_by(area, chempi_ctx.services.local_rank);
}

/* Has the communicator's first member taken it for one of these numbers, for
 * this process among others? */
static bool is_taken_for(const struct chempi_comm *comm, uint32_t first,
                         uint32_t last, int area)
{
    return is_in_use(area) &&
           atomic_load(&node.control->names[area]) == name_of(comm) &&
           atomic_load(&node.control->numbers[area]) - first <= last - first;
}

/* The message that names the area did not come through, for one of these
 * numbers. False: its first member has taken none yet. */
static CHEMPI_COLD bool leave_unknown(const struct chempi_comm *comm,
                                      uint32_t first, uint32_t last)
{
    bool is_left = false;

    (void)pthread_mutex_lock(&node.unknown);
    for (int area = WORLD_AREA + 1; node.control && area < AREAS; area++)
        if (is_taken_for(comm, first, last, area)) {
            leave(area, comm->size);
            is_left = true;
        }
    (void)pthread_mutex_unlock(&node.unknown);
    return is_left;
}

static CHEMPI_COLD void leave_unknown_own(const struct chempi_coll_state *st)
{
    (void)leave_unknown(st->comm, st->unknown_own, st->owns);
}

/* B7 */
static CHEMPI_COLD void leave_buried(void)
{
    (void)pthread_mutex_lock(&node.unknown);
    for (int area = WORLD_AREA + 1; node.control && area < AREAS; area++)
        if (is_in_use(area) &&
            chempi_loss_is_buried(
                (uint32_t)(atomic_load(&node.control->names[area]) >> 32)))
            leave(area, atomic_load(&node.control->sizes[area]));
    (void)pthread_mutex_unlock(&node.unknown);
}

void chempi_coll_node_release(struct chempi_coll_state *st)
{
    if (!st)
        return;
    if (chempi_coll_node_stage(st) == CHEMPI_NODE_MEMORY && node.control) {
        if (st->stream_reserved > 0 || st->chain.is_made ||
            chempi_coll_pairwise_rings_are_made(st))
            atomic_store(&node.control->is_large[st->area], 1);
        leave(st->area, (uint32_t)st->size);
    }
    if (CHEMPI_UNLIKELY(st->is_area_unknown))
        (void)leave_unknown(st->comm, 0, 0);
    if (CHEMPI_UNLIKELY(st->unknown_own))
        leave_unknown_own(st);
    chempi_hier_detach(st);
    chempi_coll_node_release(st->next_own);
    free(st->scratch);
    free(st->rings);
    free(st);
}

/* A communicator is being destroyed: give its part of shared memory back and
 * free comm->coll. Does not communicate; accepts a NULL comm->coll. */
static void release_area_of(struct chempi_comm *comm)
{
    chempi_coll_node_release(comm->coll);
    comm->coll = NULL;
}

static bool are_all_here(const struct chempi_comm *comm)
{
    for (uint32_t i = 0; i < comm->size; i++)
        if (!chempi_ctx_is_here(chempi_comm_proc(comm, i)))
            return false;
    return true;
}

/* B2. Several may do it at a time. */
static int open_world(int size)
{
    struct chempi_err err;
    unsigned char *start = map(WORLD_AREA, size, &err);
    int rc = start ? 0 : err.code;

    if (start && !atomic_load(&node.control->is_world_ready)) {
        rc = chempi_region_reserve(chempi_ctx.services.region, start,
                                   head_len(size), &err);
        if (rc == 0)
            atomic_store(&node.control->is_world_ready, 1);
    }
    return rc < 0 ? chempi_error_from(rc, &err) : MPI_SUCCESS;
}

/* Rank 0 tells all which area it is, over messages. */
static int agree(struct chempi_comm *comm, int32_t *area)
{
    struct chempi_coll_sched s;
    struct chempi_coll_call c = {
        .kind = CHEMPI_COLL_BCAST,
        .comm = comm,
        .recv.buf = area,
        .recv.count = sizeof(*area),
        .recv.type = chempi_coll_byte(),
    };
    int rc;

    chempi_coll_sched_init(&s, comm, chempi_coll_next_tag(comm));
    chempi_coll_build_bcast(&s, &c);
    rc = chempi_coll_run(&s);
    chempi_coll_sched_fini(&s);
    return rc;
}

static void set_places(struct chempi_coll_state *st, unsigned char *start)
{
    size_t all = all_cells(st->size);

    st->cells = (uint32_t)cells(st->size);
    st->yield_policy.distance = &node.control->distance;
    st->pipe = (void *)start;
    st->yield_policy.presence = (void *)(st->pipe + CHEMPI_NODE_PIECES);
    st->taken = (void *)(st->yield_policy.presence + st->size);
    st->later.ended = (void *)(st->taken + st->size + 1);
    st->later.unsaid =
        (st->size > 2 ? CHEMPI_NODE_LATER_SAID : CHEMPI_NODE_LATER_GROUP) - 1;
    st->counts = (void *)(st->later.ended +
                          (later_cells(st->size) ? (size_t)st->size + 1 : 0));
    st->lines = (void *)(st->counts + all);
    st->slots = (uint32_t)slots(st->size);
    st->bulk = start + pages(head_len(st->size));
    st->hands = st->bulk + bulk_len(st->size);
    st->boards = st->hands + hands_len(st->size);
    st->chain_memory = st->boards + boards_len(st->size);
    st->pieces = st->chain_memory + (size_t)st->size * CHEMPI_SPSC_RING_STRIDE;
    st->streams = st->pieces + CHEMPI_NODE_PIECES * CHEMPI_NODE_PIECE_BYTES;
    st->stream_len = stream_len(st->size);
    st->stream_chunk = stream_chunk(st->size);
    st->ring_memory = st->streams + streams_len(st->size);
}

/* An empty state. */
static struct chempi_coll_state *make_state(const struct chempi_comm *comm)
{
    /* What is for an area; members on several nodes have none. */
    size_t members = comm->is_inter || !are_all_here(comm) ? 0 : comm->size;
    size_t masks = (members + 1) * 2 * CHEMPI_NODE_MASKS;
    struct chempi_coll_state *st = chempi_sys->calloc(
        1, sizeof(*st) + masks * sizeof(st->reserved[0]) +
               members * (sizeof(st->local_ranks[0]) +
                          sizeof(st->yield_policy.neighbours[0])));

    if (!st)
        return NULL;
    st->comm = comm;
    st->size = (int)comm->size;
    st->rank = comm->rank;
    st->area = -1;
    st->local_ranks = (uint32_t *)(st->reserved + masks);
    st->yield_policy.neighbours = (uint16_t *)(st->local_ranks + members);
    st->yield_policy.size = st->size;
    st->yield_policy.rank = st->rank;
    return st;
}

/* Orders what is known of the area before; partner: chempi_coll_node_stage().
 */
static void set_stage(struct chempi_coll_state *st,
                      enum chempi_node_stage stage)
{
    atomic_store_explicit(&st->stage, (uint8_t)stage, memory_order_release);
}

/* The communicator's. */
static struct chempi_coll_state *make(struct chempi_comm *comm)
{
    struct chempi_coll_state *st = make_state(comm);

    if (st) {
        set_stage(st, CHEMPI_NODE_PREPARED);
        comm->coll = st;
        comm->fini_coll = release_area_of;
    }
    return st;
}

bool chempi_coll_node_is_known(const struct chempi_comm *comm)
{
    return comm == &chempi_comm_world && node.control && are_all_here(comm);
}

/* B8: what member 0 has told. */
static bool is_told_well(const struct chempi_comm *comm, uint32_t number,
                         int32_t area)
{
    return node.control && area > WORLD_AREA && area < AREAS &&
           is_taken_for(comm, number, number, area);
}

/* False: it has no addresses for it. */
static bool enter(const struct chempi_comm *comm, struct chempi_coll_state *st,
                  int area)
{
    const struct chempi_services *s = &chempi_ctx.services;
    unsigned char *start;

    st->area = area;
    follow(area);
    start = map(area, st->size, NULL);
    if (!start)
        return false;
    for (uint32_t i = 0; i < comm->size; i++)
        st->local_ranks[i] = s->local_rank_of_proc[chempi_comm_proc(comm, i)];
    set_places(st, start);
    return true;
}

/* B4: has everybody entered it? */
static void decide(struct chempi_coll_state *st, bool is_for_all)
{
    if (!is_for_all) {
        if (st->area >= 0)
            leave(st->area, (uint32_t)st->size);
        st->area = -1;
        /* B1: those that have numbers (NEWS) end in no word of it. */
        st->later.unsaid = UINT32_MAX;
    } else {
        st->later_cells = (uint32_t)later_cells(st->size);
    }
    set_stage(st, is_for_all ? CHEMPI_NODE_MEMORY : CHEMPI_NODE_MESSAGES);
}

/* B2 */
static int enter_world(struct chempi_comm *comm, struct chempi_coll_state *st)
{
    const int rc = open_world(st->size);

    if (rc) {
        /* It waits for this member where it is. */
        comm->coll = NULL;
        free(st);
        return rc;
    }
    decide(st, enter(comm, st, WORLD_AREA));
    return MPI_SUCCESS;
}

/* Member 0's number; -1: there is none. */
static int32_t find_area(struct chempi_comm *comm, struct chempi_coll_state *st)
{
    int32_t area = chempi_coll_node_take(comm);

    if (agree(comm, &area) == MPI_SUCCESS)
        return area;
    /* Others may wait for this member for ever: say so. */
    st->is_area_unknown = !leave_unknown(comm, 0, 0);
    return -1;
}

/* B4. What it fails for is only that nobody can be asked. */
static int enter_together(struct chempi_comm *comm,
                          struct chempi_coll_state *st)
{
    int64_t is_missing = !chempi_coll_node_hear(comm, find_area(comm, st));
    const struct chempi_comm_channel ch = chempi_comm_channel(comm);
    int rc = chempi_comm_max(&ch, MPI_SUCCESS, &is_missing, 1);

    decide(st, !rc && !is_missing);
    return rc;
}

static bool prepare(struct chempi_comm *comm)
{
    return make(comm) != NULL;
}

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM,
                            "no memory for collective operations");
}

/* What the first operation finds out; its area, among others. */
static int begin(struct chempi_comm *comm, struct chempi_coll_state *st)
{
    int rc;

    set_stage(st, CHEMPI_NODE_MESSAGES);
    if (comm->is_inter || comm->size < 2)
        return MPI_SUCCESS;
    if (!are_all_here(comm)) {
        rc = chempi_hier_attach(comm, st, prepare);
        return comm->is_own && rc == MPI_ERR_NO_MEM ? MPI_SUCCESS : rc;
    }
    if (comm->size > CHEMPI_NODE_RANKS_MAX)
        return MPI_SUCCESS;
    return chempi_coll_node_is_known(comm) ? enter_world(comm, st)
                                           : enter_together(comm, st);
}

/* ---- heard with the first operation (NEWS) ---- */

bool chempi_coll_node_may_get_area(const struct chempi_comm *comm)
{
    return node.control && !comm->is_inter && !comm->is_own && !comm->serves &&
           comm->size > 1 && comm->size <= CHEMPI_NODE_MANY &&
           are_all_here(comm);
}

int chempi_coll_node_expect(struct chempi_comm *comm)
{
    struct chempi_coll_state *st;

    if (CHEMPI_UNLIKELY(chempi_conn_missing_count()))
        leave_buried(); /* B7 */
    st = make(comm);
    if (!st)
        return no_memory();
    st->is_area_unknown = true;
    st->later.unsaid = UINT32_MAX; /* there is no word to say it in */
    set_stage(st, CHEMPI_NODE_NEWS);
    return MPI_SUCCESS;
}

int32_t chempi_coll_node_take(const struct chempi_comm *comm)
{
    return comm->rank == 0
               ? claim(comm, 0, WORLD_AREA + 1, CHEMPI_NODE_COMM_AREAS)
               : -1;
}

bool chempi_coll_node_hear(struct chempi_comm *comm, int32_t area)
{
    return is_told_well(comm, 0, area) && enter(comm, comm->coll, area);
}

void chempi_coll_node_decide(struct chempi_comm *comm, bool is_for_all)
{
    struct chempi_coll_state *st = comm->coll;

    if (st->area >= 0 || leave_unknown(comm, 0, 0))
        st->is_area_unknown = false;
    decide(st, is_for_all);
    chempi_progress_notify(); /* of another thread's has_heard() */
}

static bool has_heard(void *arg)
{
    return chempi_coll_node_stage(arg) != CHEMPI_NODE_NEWS;
}

bool chempi_coll_own(struct chempi_comm *comm)
{
    comm->is_own = true;
    return prepare(comm);
}

/* MPI error class. */
static int find_out(struct chempi_comm *comm, struct chempi_coll_state *st)
{
    switch (chempi_coll_node_stage(st)) {
    case CHEMPI_NODE_PREPARED:
        return begin(comm, st);
    case CHEMPI_NODE_NEWS:
        return chempi_coll_shm_slot_await(st, has_heard, st);
    default:
        return MPI_SUCCESS; /* they have come since it was asked last */
    }
}

struct chempi_coll_state *chempi_coll_node_attach(struct chempi_comm *comm,
                                                  int *rc)
{
    struct chempi_coll_state *st = comm->coll ? comm->coll : make(comm);

    if (!st) {
        *rc = no_memory();
        return NULL;
    }
    if (CHEMPI_UNLIKELY(chempi_conn_missing_count()))
        leave_buried();
    *rc = find_out(comm, st);
    return *rc ? NULL : st;
}

/* ---- persistent operations ---- */

struct chempi_coll_state *chempi_coll_node_make_own(struct chempi_comm *comm)
{
    struct chempi_coll_state *st = make_state(comm);

    if (CHEMPI_UNLIKELY(comm->coll->unknown_own))
        leave_unknown_own(comm->coll);
    if (CHEMPI_UNLIKELY(chempi_conn_missing_count()))
        leave_buried();
    comm->coll->owns++;
    if (st && comm->rank == 0)
        st->area = claim(comm, comm->coll->owns, CHEMPI_NODE_COMM_AREAS, AREAS);
    return st;
}

bool chempi_coll_node_enter_own(struct chempi_comm *comm,
                                struct chempi_coll_state *st, int32_t area)
{
    if (!is_told_well(comm, comm->coll->owns, area))
        return false;
    if (!st) {
        leave(area, comm->size);
        return false;
    }
    if (CHEMPI_UNLIKELY(comm->coll->unknown_own)) {
        /* The first member has come by all before this one. */
        (void)leave_unknown(comm, comm->coll->unknown_own,
                            comm->coll->owns - 1);
        comm->coll->unknown_own = 0;
    }
    decide(st, enter(comm, st, area));
    return chempi_coll_node_stage(st) == CHEMPI_NODE_MEMORY;
}

void chempi_coll_node_leave_own(struct chempi_comm *comm, bool is_taken)
{
    struct chempi_coll_state *st = comm->coll;

    if (!leave_unknown(comm, st->owns, st->owns) && !is_taken &&
        !st->unknown_own)
        st->unknown_own = st->owns;
}
