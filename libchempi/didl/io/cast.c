/* SPDX-License-Identifier: BSD-3-Clause */
/* Who the aggregators are, and what they know; see cast.h. */
#include "libchempi/didl/io/cast.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/error.h"
#include "libchempi/didl/io/collective.h"
#include "libchempi/services/layout_order.h"

/* Where cb_nodes does not say: file systems rarely have more to gain from one
 * node. */
#define AGGREGATORS_PER_NODE 4

/* How a view travels: these, then the words of its layout. */
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

/* How many members of lower rank are on the same node. */
static uint32_t place_on_node(const struct chempi_comm *comm, uint32_t rank,
                              uint32_t max)
{
    uint32_t before = 0;

    for (uint32_t r = 0; r < rank && before < max; r++)
        before += node_of(comm, r) == node_of(comm, rank);
    return before;
}

/* The first members of all nodes, then the second ones, and so on, as long as
 * there are not enough; marks them. Returns how many. */
static uint64_t mark(const struct chempi_file *file, bool *is_marked)
{
    const struct chempi_comm *comm = file->comm;
    uint64_t wanted = file->hints.nodes ? file->hints.nodes : comm->size;
    uint32_t levels =
        file->hints.nodes ? comm->size : (uint32_t)AGGREGATORS_PER_NODE;
    uint64_t count = 0;

    for (uint32_t level = 0; level < levels && count < wanted; level++) {
        uint64_t before = count;

        for (uint32_t r = 0; r < comm->size && count < wanted; r++) {
            if (place_on_node(comm, r, level + 1) != level)
                continue;
            is_marked[r] = true;
            count++;
        }
        if (count == before)
            break;
    }
    return count;
}

uint64_t chempi_io_aggregators(const struct chempi_file *file)
{
    bool *is_marked = chempi_sys->calloc(file->comm->size, sizeof(bool));
    uint64_t count = is_marked ? mark(file, is_marked) : 1;

    free(is_marked);
    return count;
}

static int choose(const struct chempi_file *file, struct chempi_io_cast *cast)
{
    uint32_t size = file->comm->size;
    bool *is_marked = chempi_sys->calloc(size, sizeof(bool));

    cast->ranks = chempi_sys->malloc(size * sizeof(int));
    cast->told = chempi_sys->calloc((size_t)size * CHEMPI_IO_TOLD_WORDS,
                                    sizeof(*cast->told));
    cast->mine = -1;
    if (!is_marked || !cast->ranks || !cast->told) {
        free(is_marked);
        return no_memory();
    }
    (void)mark(file, is_marked);
    for (uint32_t r = 0; r < size; r++) {
        if (!is_marked[r])
            continue;
        if ((int)r == file->comm->rank)
            cast->mine = cast->count;
        cast->ranks[cast->count++] = (int)r;
    }
    free(is_marked);
    return MPI_SUCCESS;
}

/* ---- views on their way ---- */

/* Views of more pieces would take more memory than the data they describe. */
static uint64_t words_max(const struct chempi_file *file)
{
    return 4 * file->hints.cb_buffer;
}

/* The words of this member's view; *count 0 if it cannot travel. */
static int pack_view(const struct chempi_io_view *view, uint64_t max,
                     uint64_t **words, int64_t *count)
{
    uint64_t len;

    *count = 0;
    *words = NULL;
    if (!view->is_ordered || view->tile.size == 0)
        return MPI_SUCCESS;
    len = chempi_layout_encode(view->tile.root, NULL, 0);
    if (len * sizeof(uint64_t) > max)
        return MPI_SUCCESS;
    *words = chempi_sys->malloc((WORD_HEAD + len) * sizeof(**words));
    if (!*words)
        return no_memory();
    (*words)[WORD_DISP] = (uint64_t)view->disp;
    (*words)[WORD_SIZE] = view->tile.size;
    (*words)[WORD_EXTENT] = (uint64_t)view->tile.extent;
    (void)chempi_layout_encode(view->tile.root, *words + WORD_HEAD, len);
    *count = (int64_t)(WORD_HEAD + len);
    return MPI_SUCCESS;
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
    view->tile.root =
        chempi_layout_decode(words + WORD_HEAD, count - WORD_HEAD);
    if (!view->tile.root || view->tile.root->size != view->tile.size ||
        view->disp < 0 || chempi_io_view_settle(view) || !view->is_ordered)
        return MPI_ERR_INTERN;
    return MPI_SUCCESS;
}

/* ---- learning ---- */

/* What there is while it is learned. */
struct chempi_io_learning {
    int rc; /* of this member */
    uint64_t *mine;
    int64_t count;   /* words of mine; 0: it cannot travel */
    int64_t *counts; /* of all members */
    uint64_t total;
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
    free(l->counts);
    free(l->words);
    free(l->messages.reqs);
    free(l);
    chempi_io_coll_of(t)->learning = NULL;
}

/* The last stage: rc of the task is the error, if any. */
static void end_learning(struct chempi_io_task *t)
{
    if (t->rc)
        chempi_io_cast_forget(file_of(t));
    drop_learning(t);
    t->next = chempi_io_coll_of(t)->after_learning;
}

static void unpack_views(struct chempi_io_task *t)
{
    struct chempi_io_learning *l = learning_of(t);
    const struct chempi_file *file = file_of(t);
    uint64_t at = 0;

    if (file->cast->mine < 0)
        return;
    for (uint32_t r = 0; !l->rc && r < file->comm->size; r++) {
        l->rc = unpack_view(l->words + at, (uint64_t)l->counts[r],
                            &file->cast->views[r]);
        at += (uint64_t)l->counts[r];
    }
}

static void agree_on_views(struct chempi_io_task *t)
{
    struct chempi_io_learning *l = learning_of(t);

    if (l->rc == MPI_ERR_INTERN)
        (void)damaged(); /* the words were noted on another thread */
    chempi_io_task_agree(t, l->rc, NULL, end_learning);
}

static void take_views(struct chempi_io_task *t)
{
    struct chempi_io_learning *l = learning_of(t);

    l->rc = first(l->rc, t->rc); /* of what could not be posted, too */
    t->next = agree_on_views;
    if (!l->rc)
        chempi_io_task_work(t, unpack_views);
}

/* Everybody's words come to the aggregators. */
static void exchange_views(struct chempi_io_task *t)
{
    struct chempi_io_learning *l = learning_of(t);
    struct chempi_file *file = file_of(t);
    struct chempi_io_cast *cast = file->cast;
    int tag = chempi_io_next_tag(file);
    uint64_t at = 0;
    int rc = t->rc;

    if (rc) {
        end_learning(t);
        return;
    }
    for (uint32_t r = 0; cast->mine >= 0 && r < file->comm->size; r++) {
        rc = first(rc, chempi_io_task_post(t, &l->messages, l->words + at,
                                           (uint64_t)l->counts[r] * 8, (int)r,
                                           tag, false));
        at += (uint64_t)l->counts[r];
    }
    for (int a = 0; a < cast->count; a++)
        rc = first(rc, chempi_io_task_post(t, &l->messages, l->mine,
                                           (uint64_t)l->count * 8,
                                           cast->ranks[a], tag, true));
    l->rc = rc;
    t->next = take_views;
    chempi_io_task_await(t, &l->messages);
}

static int get_room_for_views(struct chempi_io_learning *l,
                              const struct chempi_file *file)
{
    struct chempi_io_cast *cast = file->cast;

    l->messages.reqs =
        chempi_sys->calloc((size_t)cast->count + file->comm->size,
                           sizeof(struct chempi_request *));
    if (cast->mine >= 0) {
        l->words = chempi_sys->malloc(l->total * sizeof(*l->words));
        cast->views =
            chempi_sys->calloc(file->comm->size, sizeof(*cast->views));
    }
    return l->messages.reqs && (cast->mine < 0 || (l->words && cast->views))
               ? MPI_SUCCESS
               : no_memory();
}

/* Are all views there, and not too long? */
static void judge_counts(struct chempi_io_task *t)
{
    struct chempi_io_learning *l = learning_of(t);
    const struct chempi_file *file = file_of(t);

    t->next = end_learning;
    if (t->rc)
        return;
    file->cast->is_usable = true;
    for (uint32_t r = 0; r < file->comm->size; r++) {
        l->total += (uint64_t)l->counts[r];
        if (l->counts[r] < WORD_HEAD + 3)
            file->cast->is_usable = false;
    }
    if (l->total * sizeof(uint64_t) > words_max(file))
        file->cast->is_usable = false;
    if (file->cast->is_usable)
        chempi_io_task_agree(t, get_room_for_views(l, file), NULL,
                             exchange_views);
}

static void gather_counts(struct chempi_io_task *t)
{
    struct chempi_io_learning *l = learning_of(t);

    t->next = end_learning;
    if (t->rc)
        return;
    t->next = judge_counts;
    chempi_io_task_gather(t, &l->count, 1, l->counts);
}

static int begin_learning(struct chempi_io_coll *a)
{
    struct chempi_file *file = a->op.file;
    struct chempi_io_learning *l = chempi_sys->calloc(1, sizeof(*l));

    a->learning = l;
    file->cast = chempi_sys->calloc(1, sizeof(*file->cast));
    if (!l || !file->cast)
        return no_memory();
    l->counts = chempi_sys->calloc(file->comm->size, sizeof(*l->counts));
    if (!l->counts || choose(file, file->cast))
        return no_memory();
    return pack_view(a->op.view, words_max(file), &l->mine, &l->count);
}

void chempi_io_cast_learn(struct chempi_io_coll *a, chempi_io_stage_fn *after)
{
    struct chempi_io_task *t = &a->task;

    a->after_learning = after;
    t->rc = MPI_SUCCESS;
    t->next = after;
    if (!a->op.file->cast)
        chempi_io_task_agree(t, begin_learning(a), NULL, gather_counts);
}

void chempi_io_cast_forget(struct chempi_file *file)
{
    struct chempi_io_cast *cast = file->cast;

    if (!cast)
        return;
    for (uint32_t r = 0; cast->views && r < file->comm->size; r++)
        chempi_layout_release(cast->views[r].tile.root);
    free(cast->views);
    free(cast->ranks);
    free(cast->told);
    free(cast);
    file->cast = NULL;
}
