/* SPDX-License-Identifier: BSD-3-Clause */
/* Who the aggregators are, and what they know; see cast.h. */
#include "libchempi/didl/io/cast.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/error.h"
#include "libchempi/didl/base/fatal.h"
#include "libchempi/didl/coll/sched.h"
#include "libchempi/didl/comm/p2p.h"
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
static int pack_view(const struct chempi_file *file, uint64_t **words,
                     uint64_t *count)
{
    const struct chempi_io_view *view = file->view;
    uint64_t len;

    *count = 0;
    *words = NULL;
    if (!view->is_ordered || view->tile.size == 0)
        return MPI_SUCCESS;
    len = chempi_layout_encode(view->tile.root, NULL, 0);
    if (len * sizeof(uint64_t) > words_max(file))
        return MPI_SUCCESS;
    *words = chempi_sys->malloc((WORD_HEAD + len) * sizeof(**words));
    if (!*words)
        return no_memory();
    (*words)[WORD_DISP] = (uint64_t)view->disp;
    (*words)[WORD_SIZE] = view->tile.size;
    (*words)[WORD_EXTENT] = (uint64_t)view->tile.extent;
    (void)chempi_layout_encode(view->tile.root, *words + WORD_HEAD, len);
    *count = WORD_HEAD + len;
    return MPI_SUCCESS;
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
        return chempi_error_set(MPI_ERR_INTERN,
                                "a view has arrived damaged, or there is no "
                                "memory for it");
    return MPI_SUCCESS;
}

/* After an error the other messages go on: their partners wait for them. The
 * partner of one that there is no memory for would wait for ever. */
static int begun(const struct chempi_file *file, int before, int rc)
{
    if (rc == MPI_ERR_NO_MEM)
        chempi_fatal_die(1,
                         "out of memory for a message about the view of "
                         "%.160s, which other processes wait for",
                         file->path);
    return before ? before : rc;
}

/* Everybody's words come to the aggregators. counts: of all members. */
static int exchange(struct chempi_file *file, struct chempi_io_cast *cast,
                    const uint64_t *mine, const int64_t *counts,
                    uint64_t *words, struct chempi_request **reqs)
{
    struct chempi_comm *comm = file->comm;
    int n = 0;
    uint64_t at = 0;
    int tag = chempi_io_next_tag(file);
    int rc = MPI_SUCCESS;
    int waited;

    for (uint32_t r = 0; cast->mine >= 0 && r < comm->size; r++) {
        rc = begun(file, rc,
                   chempi_p2p_irecv_on(words + at, counts[r] * 8,
                                       chempi_coll_byte(), (int)r, tag, comm,
                                       CHEMPI_CONTEXT_PT2PT, &reqs[n++]));
        at += (uint64_t)counts[r];
    }
    for (int a = 0; a < cast->count; a++)
        rc = begun(file, rc,
                   chempi_p2p_isend_on(mine, counts[comm->rank] * 8,
                                       chempi_coll_byte(), cast->ranks[a], tag,
                                       comm, CHEMPI_CONTEXT_PT2PT, &reqs[n++]));
    waited = chempi_p2p_wait_all(reqs, n);
    return rc ? rc : waited;
}

static int take_views(struct chempi_file *file, struct chempi_io_cast *cast,
                      const uint64_t *mine, const int64_t *counts,
                      uint64_t total)
{
    struct chempi_request **reqs =
        chempi_sys->calloc((size_t)cast->count + file->comm->size,
                           sizeof(struct chempi_request *));
    uint64_t *words = NULL;
    uint64_t at = 0;
    int rc = reqs ? MPI_SUCCESS : no_memory();

    if (cast->mine >= 0) {
        words = chempi_sys->malloc(total * sizeof(*words));
        cast->views =
            chempi_sys->calloc(file->comm->size, sizeof(*cast->views));
        if (!words || !cast->views)
            rc = no_memory();
    }
    rc = chempi_io_agree(file->comm, rc);
    if (!rc)
        rc = exchange(file, cast, mine, counts, words, reqs);
    for (uint32_t r = 0; !rc && cast->mine >= 0 && r < file->comm->size; r++) {
        rc = unpack_view(words + at, (uint64_t)counts[r], &cast->views[r]);
        at += (uint64_t)counts[r];
    }
    free(reqs);
    free(words);
    return chempi_io_agree(file->comm, rc);
}

/* ---- learning and forgetting ---- */

static int learn(struct chempi_file *file, struct chempi_io_cast *cast,
                 int64_t *counts)
{
    uint64_t *mine = NULL;
    uint64_t count = 0;
    uint64_t total = 0;
    int rc = choose(file, cast);

    if (!rc)
        rc = pack_view(file, &mine, &count);
    rc = chempi_io_agree(file->comm, rc);
    if (!rc)
        rc = chempi_io_gather_all(file->comm, &(int64_t){(int64_t)count}, 1,
                                  counts);
    cast->is_usable = !rc;
    for (uint32_t r = 0; !rc && r < file->comm->size; r++) {
        total += (uint64_t)counts[r];
        if (counts[r] < WORD_HEAD + 3)
            cast->is_usable = false;
    }
    if (total * sizeof(uint64_t) > words_max(file))
        cast->is_usable = false;
    if (cast->is_usable)
        rc = take_views(file, cast, mine, counts, total);
    free(mine);
    return rc;
}

int chempi_io_cast_learn(struct chempi_file *file)
{
    int64_t *counts;
    int rc;

    if (file->cast)
        return MPI_SUCCESS;
    file->cast = chempi_sys->calloc(1, sizeof(*file->cast));
    counts = chempi_sys->calloc(file->comm->size, sizeof(*counts));
    rc = chempi_io_agree(file->comm,
                         file->cast && counts ? MPI_SUCCESS : no_memory());
    if (!rc)
        rc = learn(file, file->cast, counts);
    if (rc)
        chempi_io_cast_forget(file);
    free(counts);
    return rc;
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
