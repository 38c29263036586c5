/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations in a node's shared memory; see node.h for the rules.
 *
 * One wait per process and operation is the aim: the last one that arrives
 * does what there is to do for all, publishes it and rouses those who sleep.
 * On a machine with more ranks than cores that is one context switch per rank.
 */
#include <string.h>

#include "libchempi/didl/coll/node.h"
#include "libchempi/didl/coll/sched.h"
#include "libchempi/didl/ctx.h"
#include "libchempi/didl/error.h"
#include "libchempi/didl/progress.h"
#include "libchempi/didl/setting.h"

/* One operation in its cell. */
struct cell {
    struct chempi_coll_state *st;
    uint32_t seq;
    uint32_t index;
    struct chempi_node_line *lines; /* of member 0; see line_of() */
};

/* ---- waiting and waking ---- */

struct wait {
    const _Atomic uint32_t *word;
    uint32_t value;
};

static bool is_reached(void *arg)
{
    const struct wait *w = arg;

    return atomic_load_explicit(w->word, memory_order_acquire) == w->value;
}

static int wait_for(const _Atomic uint32_t *word, uint32_t value)
{
    struct wait w = {word, value};
    uint32_t spins = chempi_progress_spins();

    if (is_reached(&w))
        return MPI_SUCCESS;
    if (spins > chempi_setting(CHEMPI_SET_COLL_NODE_SPINS))
        spins = (uint32_t)chempi_setting(CHEMPI_SET_COLL_NODE_SPINS);
    while (spins-- > 0) {
        CHEMPI_CPU_RELAX();
        if (is_reached(&w))
            return MPI_SUCCESS;
    }
    return chempi_progress_wait(is_reached, &w);
}

static void rouse(const struct chempi_coll_state *st, int member)
{
    chempi_progress_rouse_local(st->local_ranks[member]);
}

static void rouse_others(const struct chempi_coll_state *st)
{
    for (int i = 0; i < st->size; i++)
        if (i != st->rank)
            rouse(st, i);
}

/* ---- cells ---- */

/* A line's len when its writer could not get the pages of the slot. */
#define NO_ROOM UINT64_MAX

static struct chempi_node_line *line_of(const struct cell *cell, int m)
{
    return cell->lines + (size_t)m * CHEMPI_NODE_CELLS;
}

static struct chempi_node_line *common(const struct cell *cell)
{
    return line_of(cell, cell->st->size);
}

static struct chempi_node_line *mine(const struct cell *cell)
{
    return line_of(cell, cell->st->rank);
}

static unsigned char *slot_of(const struct cell *cell, int m)
{
    return cell->st->bulk + ((size_t)m * CHEMPI_NODE_CELLS + cell->index) *
                                CHEMPI_NODE_BULK_BYTES;
}

/* Where member m's data is (m == size: the common data) when it has len
 * bytes, len <= BULK_BYTES. */
static const unsigned char *data_of(const struct cell *cell, int m,
                                    uint64_t len)
{
    if (len <= CHEMPI_NODE_LINE_BYTES)
        return line_of(cell, m)->data;
    return slot_of(cell, m);
}

static CHEMPI_COLD int reserve(const struct cell *cell, int m)
{
    struct chempi_err err;
    int rc = chempi_region_reserve(chempi_ctx.services.region, slot_of(cell, m),
                                   CHEMPI_NODE_BULK_BYTES, &err);

    if (rc < 0)
        return chempi_error_from(rc, &err);
    cell->st->reserved[m] |= UINT64_C(1) << cell->index;
    return MPI_SUCCESS;
}

/* The same for writing, once the line's len is set. NULL when out of shared
 * memory: then *rc is set, and len is what no reader takes for a length. */
static unsigned char *room_for(const struct cell *cell, int m, uint64_t len,
                               int *rc)
{
    int code;

    if (len <= CHEMPI_NODE_LINE_BYTES)
        return line_of(cell, m)->data;
    if (CHEMPI_UNLIKELY(!(cell->st->reserved[m] >> cell->index & 1u))) {
        code = reserve(cell, m);
        if (code) {
            line_of(cell, m)->len = NO_ROOM;
            *rc = code;
            return NULL;
        }
    }
    return slot_of(cell, m);
}

static void publish(struct chempi_node_line *line, uint32_t seq)
{
    /* Orders the line's data before its number; partner: the acquire load in
     * is_reached(). */
    atomic_store_explicit(&line->seq, seq, memory_order_release);
}

static uint32_t *expected(const struct cell *cell)
{
    return &cell->st->expected[cell->index];
}

/* One more has arrived in this cell; true: it is the last. */
static bool arrive(const struct cell *cell)
{
    _Atomic uint32_t *arrived = &cell->st->counts[cell->index].arrived;
    uint32_t before;

    before = atomic_fetch_add_explicit(arrived, 1, memory_order_acq_rel);
    return before + 1 == *expected(cell);
}

static void open_next(struct chempi_coll_state *st, struct cell *cell)
{
    cell->st = st;
    cell->seq = ++st->seq;
    cell->index = cell->seq % CHEMPI_NODE_CELLS;
    cell->lines = st->lines + cell->index;
}

/*
 * Synchronise, two members: each sees the other's line. Both have published
 * their data before, so that no third party is needed.
 */
static int meet_other(const struct cell *cell)
{
    int other = 1 - cell->st->rank;

    publish(mine(cell), cell->seq);
    rouse(cell->st, other);
    return wait_for(&line_of(cell, other)->seq, cell->seq);
}

/* Synchronise, any number; *is_last tells who has to publish() the common
 * line and rouse the others, after which everyone gets here. */
static int meet(const struct cell *cell)
{
    if (cell->st->size == 2)
        return meet_other(cell);
    *expected(cell) += (uint32_t)cell->st->size;
    if (!arrive(cell))
        return wait_for(&common(cell)->seq, cell->seq);
    publish(common(cell), cell->seq);
    rouse_others(cell->st);
    return MPI_SUCCESS;
}

static int barrier(struct chempi_coll_state *st)
{
    struct cell cell;
    int rc;

    open_next(st, &cell);
    rc = meet(&cell);
    st->last_sync = cell.seq;
    return rc;
}

/* An operation in which some may leave before others have come (A2). */
static int open_loose(struct chempi_coll_state *st, struct cell *cell)
{
    int rc = MPI_SUCCESS;

    if (st->seq + 1 - st->last_sync >= CHEMPI_NODE_CELLS - 1)
        rc = barrier(st);
    open_next(st, cell);
    return rc;
}

static void open_sync(struct chempi_coll_state *st, struct cell *cell)
{
    open_next(st, cell);
    st->last_sync = cell->seq;
}

/* ---- users' data in and out ---- */

/* Into member m's room. */
static int put(const struct cell *cell, int m, const void *buf, MPI_Count count,
               struct chempi_datatype *type, uint64_t len)
{
    int rc = MPI_SUCCESS;
    unsigned char *slot = room_for(cell, m, len, &rc);

    if (CHEMPI_UNLIKELY(!slot))
        return rc;
    if (CHEMPI_LIKELY(type->is_contiguous)) {
        memcpy(slot, chempi_coll_plus(buf, type->true_lb), (size_t)len);
        return MPI_SUCCESS;
    }
    return chempi_datatype_copy(buf, count, type, slot, (MPI_Count)len,
                                chempi_coll_byte());
}

/* len: what the sender says, at most BULK_BYTES. */
static int get(const void *slot, uint64_t len, void *buf, MPI_Count count,
               struct chempi_datatype *type)
{
    uint64_t room = (uint64_t)(count * type->size);

    if (CHEMPI_UNLIKELY(len > room))
        return chempi_error_set(
            MPI_ERR_TRUNCATE, "%llu bytes have come, there is room for %llu",
            (unsigned long long)len, (unsigned long long)room);
    if (CHEMPI_LIKELY(type->is_contiguous)) {
        memcpy(chempi_coll_plus(buf, type->true_lb), slot, (size_t)len);
        return MPI_SUCCESS;
    }
    return chempi_datatype_copy(slot, (MPI_Count)len, chempi_coll_byte(), buf,
                                count, type);
}

static int first_error(int a, int b)
{
    return a ? a : b;
}

/* What member `member` did, when its line's len is not what it should be. */
static int mismatch(const struct cell *cell, int member)
{
    if (line_of(cell, member)->len == NO_ROOM)
        return chempi_error_set(MPI_ERR_NO_MEM,
                                "another rank ran out of shared memory");
    return chempi_error_set(MPI_ERR_COUNT,
                            "the ranks take part with different amounts of "
                            "data");
}

/* ---- broadcast ---- */

enum bcast_mark { BCAST_HERE, BCAST_BY_MESSAGE };

static bool run_bcast(struct chempi_coll_state *st,
                      const struct chempi_coll_call *c, int *rc)
{
    uint64_t len = (uint64_t)(c->rcount * c->rtype->size);
    struct chempi_node_line *line;
    struct cell cell;
    uint32_t mark;

    *rc = open_loose(st, &cell);
    line = common(&cell);
    if (c->root == st->rank) {
        line->len = len;
        line->mark =
            len <= CHEMPI_NODE_BULK_BYTES ? BCAST_HERE : BCAST_BY_MESSAGE;
        mark = line->mark;
        if (mark == BCAST_HERE)
            *rc = first_error(
                *rc, put(&cell, st->size, c->rbuf, c->rcount, c->rtype, len));
        publish(line, cell.seq);
        rouse_others(st);
        return mark == BCAST_HERE;
    }
    *rc = first_error(*rc, wait_for(&line->seq, cell.seq));
    mark = line->mark;
    if (mark == BCAST_BY_MESSAGE)
        return false;
    len = line->len;
    if (len < (uint64_t)(c->rcount * c->rtype->size) ||
        len > CHEMPI_NODE_BULK_BYTES) {
        *rc = first_error(*rc, mismatch(&cell, st->size));
        return true;
    }
    *rc = first_error(*rc, get(data_of(&cell, st->size, len), len, c->rbuf,
                               c->rcount, c->rtype));
    return true;
}

/* ---- reductions ---- */

/*
 * Reductions keep elements as the user has them, with their padding, so that
 * the operation can work on the slots. 0 when that cannot be done here.
 */
static bool is_reducible(const struct chempi_coll_call *c, MPI_Count count,
                         uint64_t *len)
{
    const struct chempi_datatype *type = c->rtype;

    *len = (uint64_t)(count * type->extent);
    return (type->is_predefined || type->is_contiguous) && type->true_lb == 0 &&
           *len <= CHEMPI_NODE_BULK_BYTES;
}

static int put_raw(const struct cell *cell, int m, const void *buf,
                   uint64_t len)
{
    int rc = MPI_SUCCESS;
    void *room;

    line_of(cell, m)->len = len; /* before room_for(), which may say NO_ROOM */
    room = room_for(cell, m, len, &rc);
    if (CHEMPI_LIKELY(room))
        memcpy(room, buf, (size_t)len);
    return rc;
}

static int check_lens(const struct cell *cell, uint64_t len)
{
    for (int i = 0; i < cell->st->size; i++)
        if (CHEMPI_UNLIKELY(line_of(cell, i)->len != len))
            return mismatch(cell, i);
    return MPI_SUCCESS;
}

/* acc = the data of members [first, last] in order, from byte `at` on, count
 * elements. */
static void fold(const struct cell *cell, const struct chempi_coll_call *c,
                 uint64_t len, int first, int last, void *acc, uint64_t at,
                 MPI_Count count)
{
    memcpy(acc, data_of(cell, last, len) + at,
           (size_t)(count * c->rtype->extent));
    for (int i = last - 1; i >= first; i--)
        chempi_op_apply(c->op, data_of(cell, i, len) + at, acc, count,
                        c->rtype);
}

static const void *input(const struct chempi_coll_call *c)
{
    return c->sbuf == MPI_IN_PLACE ? c->rbuf : c->sbuf;
}

static bool run_reduce(struct chempi_coll_state *st,
                       const struct chempi_coll_call *c, int *rc)
{
    struct cell cell;
    uint64_t len;

    if (!is_reducible(c, c->rcount, &len))
        return false;
    *rc = open_loose(st, &cell);
    *rc = first_error(*rc, put_raw(&cell, st->rank, input(c), len));
    *expected(&cell) += (uint32_t)st->size - 1;
    if (st->rank != c->root) {
        if (arrive(&cell))
            rouse(st, c->root);
        return true;
    }
    *rc = first_error(
        *rc, wait_for(&st->counts[cell.index].arrived, *expected(&cell)));
    *rc = first_error(*rc, check_lens(&cell, len));
    if (!*rc && len > 0)
        fold(&cell, c, len, 0, st->size - 1, c->rbuf, 0, c->rcount);
    return true;
}

/* The last that arrives folds for all. */
static int allreduce_many(const struct cell *cell,
                          const struct chempi_coll_call *c, uint64_t len)
{
    struct chempi_coll_state *st = cell->st;
    struct chempi_node_line *line = common(cell);
    int rc;

    *expected(cell) += (uint32_t)st->size;
    if (arrive(cell)) {
        rc = check_lens(cell, len);
        if (!rc)
            fold(cell, c, len, 0, st->size - 1, c->rbuf, 0, c->rcount);
        rc = first_error(rc, put_raw(cell, st->size, c->rbuf, len));
        line->mark = (uint32_t)rc;
        publish(line, cell->seq);
        rouse_others(st);
        return rc;
    }
    rc = wait_for(&line->seq, cell->seq);
    if (!rc && line->mark != MPI_SUCCESS)
        rc = chempi_error_set(MPI_ERR_COUNT,
                              "the ranks take part with different amounts of "
                              "data");
    if (!rc)
        memcpy(c->rbuf, data_of(cell, st->size, len), (size_t)len);
    return rc;
}

static bool run_allreduce(struct chempi_coll_state *st,
                          const struct chempi_coll_call *c, int *rc)
{
    struct cell cell;
    uint64_t len;

    if (!is_reducible(c, c->rcount, &len))
        return false;
    open_sync(st, &cell);
    *rc = put_raw(&cell, st->rank, input(c), len);
    if (st->size > 2) {
        *rc = first_error(*rc, allreduce_many(&cell, c, len));
        return true;
    }
    *rc = first_error(*rc, meet_other(&cell));
    *rc = first_error(*rc, check_lens(&cell, len));
    if (!*rc && len > 0)
        fold(&cell, c, len, 0, 1, c->rbuf, 0, c->rcount);
    return true;
}

static bool run_scan(struct chempi_coll_state *st,
                     const struct chempi_coll_call *c, int *rc)
{
    int last = c->kind == CHEMPI_COLL_SCAN ? st->rank : st->rank - 1;
    struct cell cell;
    uint64_t len;

    if (!is_reducible(c, c->rcount, &len))
        return false;
    open_sync(st, &cell);
    *rc = put_raw(&cell, st->rank, input(c), len);
    *rc = first_error(*rc, meet(&cell));
    *rc = first_error(*rc, check_lens(&cell, len));
    if (!*rc && len > 0 && last >= 0)
        fold(&cell, c, len, 0, last, c->rbuf, 0, c->rcount);
    return true;
}

static MPI_Count part_count(const struct chempi_coll_call *c, int i)
{
    return c->kind == CHEMPI_COLL_REDUCE_SCATTER_BLOCK
               ? c->rcount
               : chempi_bigs_get(c->rcounts, (size_t)i);
}

static bool run_reduce_scatter(struct chempi_coll_state *st,
                               const struct chempi_coll_call *c, int *rc)
{
    MPI_Count before = 0;
    MPI_Count total = 0;
    MPI_Count own = part_count(c, st->rank);
    struct cell cell;
    uint64_t len;

    for (int i = 0; i < st->size; i++) {
        if (i == st->rank)
            before = total;
        total += part_count(c, i);
    }
    if (!is_reducible(c, total, &len))
        return false;
    open_sync(st, &cell);
    *rc = put_raw(&cell, st->rank, input(c), len);
    *rc = first_error(*rc, meet(&cell));
    *rc = first_error(*rc, check_lens(&cell, len));
    if (!*rc && own > 0)
        fold(&cell, c, len, 0, st->size - 1, c->rbuf,
             (uint64_t)(before * c->rtype->extent), own);
    return true;
}

/* ---- gather and scatter ---- */

enum block_mark { BLOCK_HERE, BLOCK_BY_MESSAGE };

/* A member's side of a gather: its block, or the word that a message comes.
 * The line is not published: arrive() orders it. */
static int put_block(const struct cell *cell, const struct chempi_coll_call *c,
                     uint64_t len)
{
    struct chempi_node_line *line = mine(cell);

    line->len = len;
    line->mark = len <= CHEMPI_NODE_BULK_BYTES ? BLOCK_HERE : BLOCK_BY_MESSAGE;
    if (line->mark == BLOCK_BY_MESSAGE)
        return MPI_SUCCESS;
    return put(cell, cell->st->rank, c->sbuf, c->scount, c->stype, len);
}

/* Where the receiver of a gather keeps member i's block. */
static void *block_place(const struct chempi_coll_call *c, int i,
                         MPI_Count *count)
{
    bool is_v =
        c->kind == CHEMPI_COLL_GATHERV || c->kind == CHEMPI_COLL_ALLGATHERV;

    *count = is_v ? chempi_bigs_get(c->rcounts, (size_t)i) : c->rcount;
    return chempi_coll_at(
        c->rbuf, is_v ? chempi_bigs_get(c->rdispls, (size_t)i) : i * c->rcount,
        c->rtype);
}

/* Take member i's block, or append its receive. */
static int get_block(const struct cell *cell, struct chempi_coll_sched *s,
                     const struct chempi_coll_call *c, int i)
{
    MPI_Count count;
    void *place = block_place(c, i, &count);
    uint64_t len = line_of(cell, i)->len;
    uint32_t mark = line_of(cell, i)->mark;

    if (mark == BLOCK_BY_MESSAGE) {
        chempi_coll_recv(s, place, count, c->rtype, i);
        chempi_coll_throttle(s);
        return MPI_SUCCESS;
    }
    if (CHEMPI_UNLIKELY(len > CHEMPI_NODE_BULK_BYTES))
        return mismatch(cell, i);
    return get(data_of(cell, i, len), len, place, count, c->rtype);
}

static int send_block(struct chempi_coll_sched *s,
                      const struct chempi_coll_call *c)
{
    chempi_coll_send(s, c->sbuf, c->scount, c->stype, c->root);
    return chempi_coll_run(s);
}

static int copy_own_block(const struct chempi_coll_call *c, int rank)
{
    MPI_Count count;
    void *place = block_place(c, rank, &count);

    if (c->sbuf == MPI_IN_PLACE || c->scount * c->stype->size == 0)
        return MPI_SUCCESS;
    return chempi_datatype_copy(c->sbuf, c->scount, c->stype, place, count,
                                c->rtype);
}

static int collect_blocks(const struct cell *cell, struct chempi_coll_sched *s,
                          const struct chempi_coll_call *c)
{
    struct chempi_coll_state *st = cell->st;
    int rc;

    rc = wait_for(&st->counts[cell->index].arrived, *expected(cell));
    for (int i = 0; i < st->size; i++)
        if (i != st->rank)
            rc = first_error(rc, get_block(cell, s, c, i));
    rc = first_error(rc, copy_own_block(c, st->rank));
    return first_error(chempi_coll_run(s), rc);
}

static bool run_gather(struct chempi_coll_state *st,
                       const struct chempi_coll_call *c, int tag, int *rc)
{
    struct chempi_coll_sched s;
    struct cell cell;
    uint64_t len;

    chempi_coll_sched_init(&s, c->comm, tag);
    *rc = open_loose(st, &cell);
    *expected(&cell) += (uint32_t)st->size - 1;
    if (st->rank == c->root) {
        *rc = first_error(collect_blocks(&cell, &s, c), *rc);
    } else {
        len = (uint64_t)(c->scount * c->stype->size);
        *rc = first_error(put_block(&cell, c, len), *rc);
        if (arrive(&cell))
            rouse(st, c->root);
        if (len > CHEMPI_NODE_BULK_BYTES)
            *rc = first_error(send_block(&s, c), *rc);
    }
    chempi_coll_sched_fini(&s);
    return true;
}

static const void *scatter_place(const struct chempi_coll_call *c, int i,
                                 MPI_Count *count)
{
    bool is_v = c->kind == CHEMPI_COLL_SCATTERV;

    *count = is_v ? chempi_bigs_get(c->scounts, (size_t)i) : c->scount;
    return chempi_coll_at(
        c->sbuf, is_v ? chempi_bigs_get(c->sdispls, (size_t)i) : i * c->scount,
        c->stype);
}

/* The root writes into the members' lines and slots, which they do not use
 * in this operation. */
static int deal_blocks(const struct cell *cell, struct chempi_coll_sched *s,
                       const struct chempi_coll_call *c)
{
    struct chempi_coll_state *st = cell->st;
    int rc = MPI_SUCCESS;

    for (int i = 0; i < st->size; i++) {
        MPI_Count count;
        const void *place = scatter_place(c, i, &count);
        uint64_t len = (uint64_t)(count * c->stype->size);

        if (i == st->rank) {
            if (c->rbuf != MPI_IN_PLACE && len > 0)
                rc = first_error(rc, chempi_datatype_copy(place, count,
                                                          c->stype, c->rbuf,
                                                          c->rcount, c->rtype));
            continue;
        }
        line_of(cell, i)->len = len;
        line_of(cell, i)->mark =
            len <= CHEMPI_NODE_BULK_BYTES ? BLOCK_HERE : BLOCK_BY_MESSAGE;
        if (len <= CHEMPI_NODE_BULK_BYTES)
            rc = first_error(rc, put(cell, i, place, count, c->stype, len));
        else
            chempi_coll_send(s, place, count, c->stype, i);
        chempi_coll_throttle(s);
        publish(line_of(cell, i), cell->seq);
        rouse(st, i);
    }
    return first_error(chempi_coll_run(s), rc);
}

static bool run_scatter(struct chempi_coll_state *st,
                        const struct chempi_coll_call *c, int tag, int *rc)
{
    struct chempi_coll_sched s;
    struct chempi_node_line *line;
    struct cell cell;
    uint64_t len;
    uint32_t mark;

    chempi_coll_sched_init(&s, c->comm, tag);
    *rc = open_loose(st, &cell);
    line = mine(&cell);
    if (st->rank == c->root) {
        *rc = first_error(deal_blocks(&cell, &s, c), *rc);
        chempi_coll_sched_fini(&s);
        return true;
    }
    *rc = first_error(wait_for(&line->seq, cell.seq), *rc);
    len = line->len;
    mark = line->mark;
    if (mark == BLOCK_BY_MESSAGE) {
        chempi_coll_recv(&s, c->rbuf, c->rcount, c->rtype, c->root);
        *rc = first_error(chempi_coll_run(&s), *rc);
    } else if (len <= CHEMPI_NODE_BULK_BYTES) {
        *rc = first_error(get(data_of(&cell, st->rank, len), len, c->rbuf,
                              c->rcount, c->rtype),
                          *rc);
    } else {
        *rc = first_error(mismatch(&cell, st->rank), *rc);
    }
    chempi_coll_sched_fini(&s);
    return true;
}

/* All know all lengths: either all blocks fit, or it goes by messages. */
static bool run_allgather(struct chempi_coll_state *st,
                          const struct chempi_coll_call *c, int *rc)
{
    struct chempi_coll_call own = *c;
    struct cell cell;
    MPI_Count count;
    void *place;

    for (int i = 0; i < st->size; i++) {
        (void)block_place(c, i, &count);
        if (count * c->rtype->size > CHEMPI_NODE_BULK_BYTES)
            return false;
        if (c->kind == CHEMPI_COLL_ALLGATHER)
            break;
    }
    if (c->sbuf == MPI_IN_PLACE) {
        place = block_place(c, st->rank, &count);
        own.sbuf = place;
        own.scount = count;
        own.stype = c->rtype;
    }
    open_sync(st, &cell);
    *rc = put_block(&cell, &own, (uint64_t)(own.scount * own.stype->size));
    *rc = first_error(meet(&cell), *rc);
    for (int i = 0; i < st->size; i++) {
        uint64_t len = line_of(&cell, i)->len;

        if (i == st->rank && c->sbuf == MPI_IN_PLACE)
            continue;
        place = block_place(c, i, &count);
        if (len > CHEMPI_NODE_BULK_BYTES)
            *rc = first_error(*rc, mismatch(&cell, i));
        else
            *rc = first_error(
                *rc, get(data_of(&cell, i, len), len, place, count, c->rtype));
    }
    return true;
}

/* Regular alltoall whose row (all blocks of a member) fits a slot. */
static bool run_alltoall(struct chempi_coll_state *st,
                         const struct chempi_coll_call *c, int *rc)
{
    MPI_Count block = c->rcount * c->rtype->size;
    bool is_in_place = c->sbuf == MPI_IN_PLACE;
    const void *from = is_in_place ? c->rbuf : c->sbuf;
    MPI_Count count = is_in_place ? c->rcount : c->scount;
    struct chempi_datatype *type = is_in_place ? c->rtype : c->stype;
    uint64_t row = (uint64_t)(block * st->size);
    struct cell cell;

    if (block > CHEMPI_NODE_BULK_BYTES || row > CHEMPI_NODE_BULK_BYTES)
        return false;
    open_sync(st, &cell);
    mine(&cell)->len = (uint64_t)(count * type->size * st->size);
    if (mine(&cell)->len == row)
        *rc = put(&cell, st->rank, from, count * st->size, type, row);
    *rc = first_error(meet(&cell), *rc);
    *rc = first_error(check_lens(&cell, row), *rc);
    for (int i = 0; !*rc && i < st->size; i++)
        *rc = get(data_of(&cell, i, row) + st->rank * block, (uint64_t)block,
                  chempi_coll_at(c->rbuf, i * c->rcount, c->rtype), c->rcount,
                  c->rtype);
    return true;
}

/* ---- which ---- */

bool chempi_coll_node_run(struct chempi_coll_state *st,
                          const struct chempi_coll_call *c, int tag, int *rc)
{
    switch (c->kind) {
    case CHEMPI_COLL_BARRIER:
        *rc = barrier(st);
        return true;
    case CHEMPI_COLL_BCAST:
        return run_bcast(st, c, rc);
    case CHEMPI_COLL_REDUCE:
        return run_reduce(st, c, rc);
    case CHEMPI_COLL_ALLREDUCE:
        return run_allreduce(st, c, rc);
    case CHEMPI_COLL_SCAN:
    case CHEMPI_COLL_EXSCAN:
        return run_scan(st, c, rc);
    case CHEMPI_COLL_REDUCE_SCATTER:
    case CHEMPI_COLL_REDUCE_SCATTER_BLOCK:
        return run_reduce_scatter(st, c, rc);
    case CHEMPI_COLL_GATHER:
    case CHEMPI_COLL_GATHERV:
        return run_gather(st, c, tag, rc);
    case CHEMPI_COLL_SCATTER:
    case CHEMPI_COLL_SCATTERV:
        return run_scatter(st, c, tag, rc);
    case CHEMPI_COLL_ALLGATHER:
    case CHEMPI_COLL_ALLGATHERV:
        return run_allgather(st, c, rc);
    case CHEMPI_COLL_ALLTOALL:
        return run_alltoall(st, c, rc);
    default:
        return false;
    }
}

int chempi_coll_node_barrier(struct chempi_coll_state *st)
{
    return barrier(st);
}
