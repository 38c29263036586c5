/* SPDX-License-Identifier: BSD-3-Clause */
/* Who the aggregators are, and what they know; see aggregators.h. */
#include "libchempi/didl/io/exchange/aggregators.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/coll/sched.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/io/agree.h"
#include "libchempi/didl/io/collective.h"
#include "libchempi/didl/locality/locality.h"
#include "libchempi/didl/transport/worlds/foreign.h"
#include "libchempi/services/layout/layout_order.h"

/* Where cb_nodes does not say: file systems rarely have more to gain from one
 * node. */
#define AGGREGATORS_PER_NODE 4

/* Nodes are compared by messages of this size. */
#define COST_BYTES (UINT64_C(1) << 20)
/* Words of short views that are gathered when views are set: a slot's. */
#define MEET_BYTES_MAX (UINT64_C(16) << 10)
/* More than any message of it takes, and its sums are no overflow. */
#define COST_MAX (INT64_C(1) << 40)

/* How a view travels: these, then the words of its layout. A view without bytes
 * is of no use to anybody, and has no words of a layout. */
enum { WORD_DISP, WORD_SIZE, WORD_EXTENT, WORD_HEAD };

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM,
                            "no memory for the views of the others");
}

/* ---- aggregators ---- */

static uint32_t node_of(const struct chempi_comm *comm, uint32_t rank)
{
    return chempi_ctx.services.node_of_proc[chempi_comm_proc(comm, rank)];
}

/* How many members of lower rank are on each one's node. Worlds number nodes
 * differently: among several of them each member counts as alone on its. */
static int find_places(const struct chempi_comm *comm, uint32_t *places)
{
    uint32_t *counts =
        chempi_sys->calloc(chempi_ctx.services.node_count, sizeof(*counts));

    if (!counts)
        return no_memory();
    for (uint32_t r = 0; r < comm->size; r++)
        places[r] = comm->has_foreign ? 0 : counts[node_of(comm, r)]++;
    free(counts);
    return MPI_SUCCESS;
}

static uint64_t node_count(const struct chempi_file *file)
{
    uint64_t count = 0;

    for (uint32_t r = 0; r < file->comm->size; r++)
        count += file->aggregators->places[r] == 0;
    return count;
}

/* The first members of all nodes, then the second ones, and so on, as long as
 * there are not enough. */
static void mark(const struct chempi_file *file, uint64_t wanted,
                 bool *is_marked)
{
    uint32_t size = file->comm->size;
    uint32_t levels = file->hints.nodes ? size : (uint32_t)AGGREGATORS_PER_NODE;
    uint64_t count = 0;

    for (uint32_t level = 0; level < levels && count < wanted; level++) {
        uint64_t before = count;

        for (uint32_t r = 0; r < size && count < wanted; r++) {
            if (file->aggregators->places[r] != level)
                continue;
            is_marked[r] = true;
            count++;
        }
        if (count == before)
            break;
    }
}

static int64_t cost_of_way(uint32_t proc)
{
    int64_t cost;

    if (chempi_ctx_is_here(proc))
        return 0;
    if (chempi_foreign_is(proc))
        return COST_MAX; /* no table says it */
    cost = chempi_locality_cost_ns(chempi_ctx.services.node_of_proc[proc],
                                   COST_BYTES);
    return cost < COST_MAX ? cost : COST_MAX;
}

/* What it takes to bring data from this node to all members, by the connection
 * table; ways back are alike. */
static int64_t cost_of_ways(const struct chempi_file *file)
{
    const struct chempi_comm *comm = file->comm;
    int64_t sum = 0;

    for (uint32_t r = 0; r < comm->size; r++)
        sum += cost_of_way(chempi_comm_proc(comm, r));
    return sum;
}

/* The first members of the nodes to which the ways of all are cheapest. */
static int mark_cheapest(struct chempi_file *file, uint64_t wanted,
                         bool *is_marked)
{
    const struct chempi_comm *comm = file->comm;
    int64_t *costs = file->aggregators->told;
    int64_t mine = cost_of_ways(file);
    struct chempi_coll_call c = {.kind = CHEMPI_COLL_ALLGATHER,
                                 .comm = file->comm,
                                 .send.buf = &mine,
                                 .recv.buf = costs,
                                 .send.count = sizeof(mine),
                                 .recv.count = sizeof(mine),
                                 .send.type = chempi_coll_byte(),
                                 .recv.type = chempi_coll_byte()};
    int rc = chempi_io_agree(file, chempi_coll_do(&c));

    if (rc) {
        mark(file, wanted, is_marked); /* there are always some */
        return rc;
    }
    for (uint64_t i = 0; i < wanted; i++) {
        uint32_t best = comm->size;

        for (uint32_t r = 0; r < comm->size; r++)
            if (!is_marked[r] && file->aggregators->places[r] == 0 &&
                (best == comm->size || costs[r] < costs[best]))
                best = r;
        is_marked[best] = true;
    }
    return rc;
}

/* As many nodes as there are aggregators have one each; which ones matters
 * only where some are left out. */
static int choose_members(struct chempi_file *file, bool *is_marked)
{
    uint64_t wanted = file->hints.nodes ? file->hints.nodes : file->comm->size;

    if (wanted < node_count(file))
        return mark_cheapest(file, wanted, is_marked);
    mark(file, wanted, is_marked);
    return MPI_SUCCESS;
}

int chempi_io_aggregators_choose(struct chempi_file *file)
{
    struct chempi_io_aggregators *agg = file->aggregators;
    uint32_t size = file->comm->size;
    int rc;

    chempi_io_aggregators_forget(file);
    memset(agg->is_aggregator, 0, size * sizeof(bool));
    rc = choose_members(file, agg->is_aggregator);
    agg->count = 0;
    agg->mine = -1;
    for (uint32_t r = 0; r < size; r++) {
        if (!agg->is_aggregator[r])
            continue;
        if ((int)r == file->comm->rank)
            agg->mine = agg->count;
        agg->ranks[agg->count++] = (int)r;
    }
    return rc;
}

/* ---- what is kept ---- */

int chempi_io_aggregators_make(struct chempi_file *file)
{
    uint32_t size = file->comm->size;
    struct chempi_io_aggregators *agg = chempi_sys->calloc(1, sizeof(*agg));

    file->aggregators = agg;
    if (!agg)
        return no_memory();
    agg->ranks = chempi_sys->malloc(size * sizeof(*agg->ranks));
    agg->is_aggregator = chempi_sys->malloc(size * sizeof(bool));
    agg->places = chempi_sys->malloc(size * sizeof(*agg->places));
    agg->told = chempi_sys->calloc((size_t)size * CHEMPI_IO_TOLD_MAX,
                                   sizeof(*agg->told));
    if (!agg->ranks || !agg->is_aggregator || !agg->places || !agg->told)
        return no_memory();
    return find_places(file->comm, agg->places);
}

void chempi_io_aggregators_forget(struct chempi_file *file)
{
    struct chempi_io_aggregators *agg = file->aggregators;

    for (uint32_t r = 0; agg->views && r < file->comm->size; r++) {
        chempi_layout_release(agg->views[r].tile.root);
        agg->views[r].tile.root = NULL;
    }
    agg->is_known = false;
    agg->is_blind = false;
}

void chempi_io_aggregators_drop(struct chempi_file *file)
{
    struct chempi_io_aggregators *agg = file->aggregators;

    if (!agg)
        return;
    chempi_io_aggregators_forget(file);
    free(agg->views);
    free(agg->ranks);
    free(agg->is_aggregator);
    free(agg->places);
    free(agg->told);
    free(agg);
    file->aggregators = NULL;
}

/* ---- views on their way ---- */

/* Views of more pieces would take more memory than the data they describe. */
static uint64_t words_max(const struct chempi_file *file)
{
    return 4 * file->hints.cb_buffer / sizeof(uint64_t);
}

static void encode(const struct chempi_io_view *view, uint64_t *words,
                   uint64_t count)
{
    words[WORD_DISP] = (uint64_t)view->disp;
    words[WORD_SIZE] = view->tile.size;
    words[WORD_EXTENT] = (uint64_t)view->tile.extent;
    if (view->tile.size > 0)
        (void)chempi_layout_encode(view->tile.root, words + WORD_HEAD,
                                   count - WORD_HEAD);
}

/* The words of a view, among those that a member tells. */
static void tell_view(const struct chempi_file *file,
                      const struct chempi_io_view *view, int64_t *mine)
{
    uint64_t count = WORD_HEAD;

    memset(mine + CHEMPI_IO_TOLD_WORDS, 0,
           (CHEMPI_IO_TOLD_MAX - CHEMPI_IO_TOLD_WORDS) * sizeof(*mine));
    if (view->tile.size > 0 && !view->is_ordered)
        return;
    if (view->tile.size > 0)
        count += chempi_layout_encode(view->tile.root, NULL, 0);
    if (count > words_max(file))
        return;
    mine[CHEMPI_IO_TOLD_VIEW] = (int64_t)count;
    if (count <= CHEMPI_IO_TOLD_INLINE)
        encode(view, (uint64_t *)mine + CHEMPI_IO_TOLD_FIRST, count);
}

void chempi_io_aggregators_tell(struct chempi_io_coll *coll)
{
    struct chempi_io_aggregators *agg = coll->op.file->aggregators;

    coll->mine[CHEMPI_IO_TOLD_BLIND] = agg->is_blind;
    agg->stride = CHEMPI_IO_TOLD_WORDS;
    if (agg->is_known)
        return;
    agg->stride = CHEMPI_IO_TOLD_MAX;
    tell_view(coll->op.file, coll->op.view, coll->mine);
}

/* Words of the view of member r. */
static uint64_t words_of(const struct chempi_io_aggregators *agg, uint32_t r)
{
    return (uint64_t)chempi_io_told_by(agg, r)[CHEMPI_IO_TOLD_VIEW];
}

bool chempi_io_aggregators_can_travel(const struct chempi_file *file)
{
    const struct chempi_io_aggregators *agg = file->aggregators;
    uint64_t max = words_max(file);
    uint64_t total = 0;

    for (uint32_t r = 0; !agg->is_known && r < file->comm->size; r++) {
        uint64_t count = words_of(agg, r);

        if (count < WORD_HEAD || count > max || total > max)
            return false;
        total += count;
    }
    return total <= max;
}

static int damaged(void)
{
    return chempi_error_set(MPI_ERR_INTERN,
                            "a view has arrived damaged, or there is no "
                            "memory for it");
}

static int first(int before, int rc)
{
    return before ? before : rc;
}

static int unpack_view(const uint64_t *words, uint64_t count,
                       struct chempi_io_view *view)
{
    view->disp = (MPI_Offset)words[WORD_DISP];
    view->tile.size = words[WORD_SIZE];
    view->tile.extent = (int64_t)words[WORD_EXTENT];
    if (count == WORD_HEAD && view->tile.size == 0)
        return MPI_SUCCESS;
    view->tile.root =
        chempi_layout_decode(words + WORD_HEAD, count - WORD_HEAD);
    if (!view->tile.root || view->tile.root->size != view->tile.size ||
        view->disp < 0 || chempi_io_view_settle(view) || !view->is_ordered)
        return MPI_ERR_INTERN;
    return MPI_SUCCESS;
}

/* ---- learning ---- */

/* What there is while long views travel. */
struct chempi_io_learning {
    int rc; /* of this member */
    uint64_t *mine;
    uint64_t *words; /* of all members, at aggregators */
    struct chempi_io_messages messages;
};

static struct chempi_io_learning *learning_of(struct chempi_io_task *t)
{
    return chempi_io_coll_of(t)->learning;
}

static struct chempi_file *file_of(struct chempi_io_task *t)
{
    return chempi_io_coll_of(t)->op.file;
}

static void drop_learning(struct chempi_io_task *t)
{
    struct chempi_io_learning *l = learning_of(t);

    if (!l)
        return;
    free(l->mine);
    free(l->words);
    free(l->messages.reqs);
    free(l);
    chempi_io_coll_of(t)->learning = NULL;
}

/* The last stage. What went wrong before was perhaps noted on another
 * thread. */
static void end_learning(struct chempi_io_task *t)
{
    t->rc = chempi_io_coll_of(t)->learned;
    if (t->rc == MPI_ERR_INTERN)
        (void)damaged();
    if (t->rc == MPI_ERR_NO_MEM)
        (void)no_memory();
    drop_learning(t);
    chempi_io_coll_of(t)->after_learning(t);
}

/* words: of all members, one behind the other, or NULL: they came inline. */
static int unpack_all(const struct chempi_file *file, const uint64_t *words)
{
    struct chempi_io_aggregators *agg = file->aggregators;
    int rc = MPI_SUCCESS;

    for (uint32_t r = 0; !rc && r < file->comm->size; r++) {
        const int64_t *told = chempi_io_told_by(agg, r);
        uint64_t count = words_of(agg, r);

        rc = unpack_view(words ? words
                               : (const uint64_t *)told + CHEMPI_IO_TOLD_FIRST,
                         count, &agg->views[r]);
        words = words ? words + count : NULL;
    }
    return rc;
}

/* Work, at aggregators. */
static void unpack_views(struct chempi_io_task *t)
{
    chempi_io_coll_of(t)->learned =
        unpack_all(file_of(t), learning_of(t)->words);
}

static void take_views(struct chempi_io_task *t)
{
    struct chempi_io_coll *coll = chempi_io_coll_of(t);
    struct chempi_io_aggregators *agg = coll->op.file->aggregators;

    /* Of what could not be posted, too. */
    coll->learned = first(learning_of(t)->rc, t->rc);
    t->next = end_learning;
    if (!coll->learned && agg->mine >= 0)
        chempi_io_task_work(t, unpack_views);
}

/* Everybody's words come to the aggregators. */
static void exchange_views(struct chempi_io_task *t)
{
    struct chempi_io_coll *coll = chempi_io_coll_of(t);
    struct chempi_io_learning *l = learning_of(t);
    struct chempi_file *file = file_of(t);
    struct chempi_io_aggregators *agg = file->aggregators;
    int tag = chempi_io_next_tag(file);
    uint64_t mine = (uint64_t)coll->mine[CHEMPI_IO_TOLD_VIEW];
    uint64_t at = 0;
    int rc = MPI_SUCCESS;

    if (t->rc) {
        drop_learning(t);
        chempi_io_op_note(&coll->op, t->rc);
        t->next = chempi_io_coll_of(t)->after_access;
        return;
    }
    for (uint32_t r = 0; agg->mine >= 0 && r < file->comm->size; r++) {
        uint64_t count = words_of(agg, r);

        rc = first(rc, chempi_io_task_post(t, &l->messages, l->words + at,
                                           count * 8, (int)r, tag, false));
        at += count;
    }
    for (int a = 0; a < agg->count; a++)
        rc = first(rc, chempi_io_task_post(t, &l->messages, l->mine, mine * 8,
                                           agg->ranks[a], tag, true));
    l->rc = rc;
    t->next = take_views;
    chempi_io_task_await(t, &l->messages);
}

/* This member's own view in words, and room for those of the others. */
static int prepare_long(struct chempi_io_coll *coll,
                        struct chempi_io_learning *l)
{
    const struct chempi_file *file = coll->op.file;
    struct chempi_io_aggregators *agg = file->aggregators;
    uint64_t mine = (uint64_t)coll->mine[CHEMPI_IO_TOLD_VIEW];
    uint64_t total = 0;

    for (uint32_t r = 0; r < file->comm->size; r++)
        total += words_of(agg, r);
    l->messages.reqs = chempi_sys->calloc((size_t)agg->count + file->comm->size,
                                          sizeof(struct chempi_request *));
    l->mine = chempi_sys->malloc(mine * sizeof(*l->mine));
    if (agg->mine >= 0)
        l->words = chempi_sys->malloc(total * sizeof(*l->words));
    if (!l->messages.reqs || !l->mine || (agg->mine >= 0 && !l->words))
        return no_memory();
    encode(coll->op.view, l->mine, mine);
    return MPI_SUCCESS;
}

static bool is_any_long(const struct chempi_file *file)
{
    for (uint32_t r = 0; r < file->comm->size; r++)
        if (words_of(file->aggregators, r) > CHEMPI_IO_TOLD_INLINE)
            return true;
    return false;
}

/* At aggregators. */
static bool has_room(const struct chempi_file *file)
{
    struct chempi_io_aggregators *agg = file->aggregators;

    if (agg->mine >= 0 && !agg->views)
        agg->views = chempi_sys->calloc(file->comm->size, sizeof(*agg->views));
    return agg->mine < 0 || agg->views;
}

static int begin_learning(struct chempi_io_coll *coll)
{
    coll->learning = chempi_sys->calloc(1, sizeof(*coll->learning));
    if (!coll->learning || !has_room(coll->op.file))
        return no_memory();
    return coll->has_long_views ? prepare_long(coll, coll->learning)
                                : MPI_SUCCESS;
}

void chempi_io_aggregators_learn(struct chempi_io_coll *coll,
                                 chempi_io_stage_fn *after)
{
    struct chempi_io_task *t = &coll->task;
    const struct chempi_file *file = coll->op.file;

    coll->after_learning = after;
    coll->learned = MPI_SUCCESS;
    coll->has_learned = !file->aggregators->is_known;
    coll->has_long_views = coll->has_learned && is_any_long(file);
    if (!coll->has_learned) {
        end_learning(t);
        return;
    }
    coll->learned = begin_learning(coll);
    if (coll->has_long_views) {
        chempi_io_task_agree(t, coll->learned, NULL, exchange_views);
        return;
    }
    t->next = end_learning;
    if (!coll->learned && file->aggregators->mine >= 0)
        chempi_io_task_work(t, unpack_views);
}

/* ---- when views are set ---- */

int chempi_io_aggregators_meet(struct chempi_file *file)
{
    struct chempi_io_aggregators *agg = file->aggregators;
    int64_t mine[CHEMPI_IO_TOLD_MAX] = {0};
    struct chempi_io_task t;

    if (!file->has_short_runs ||
        file->comm->size * sizeof(mine) > MEET_BYTES_MAX ||
        (file->hints.cb_read == CHEMPI_IO_DISABLE &&
         file->hints.cb_write == CHEMPI_IO_DISABLE))
        return MPI_SUCCESS;
    tell_view(file, file->view, mine);
    agg->stride = CHEMPI_IO_TOLD_MAX;
    chempi_io_task_init(&t, file->comm, NULL);
    chempi_io_task_gather(&t, mine, agg->stride, agg->told);
    if (t.rc || !chempi_io_aggregators_can_travel(file) || is_any_long(file))
        return t.rc;
    agg->is_known = true;
    agg->is_blind =
        !has_room(file) || (agg->mine >= 0 && unpack_all(file, NULL));
    chempi_error_forget();
    return MPI_SUCCESS;
}
