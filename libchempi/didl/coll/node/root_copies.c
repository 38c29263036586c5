/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies from and to a root's memory; see root_copies.h. */
#include "libchempi/didl/coll/node/root_copies.h"

void chempi_coll_root_copies_expect(const struct cell *cell)
{
    struct chempi_node_count *count = cell_count(cell);

    atomic_store_explicit(&count->finished, 0, memory_order_relaxed);
    atomic_store_explicit(&count->goal, UINT32_MAX, memory_order_relaxed);
}

void chempi_coll_root_copies_set_goal(const struct cell *cell, uint32_t goal)
{
    /* Sequentially consistent, as in .._say(): either the last to finish sees
     * the goal or the root, who looks next, sees that it is reached. */
    atomic_store(&cell_count(cell)->goal, goal);
    atomic_thread_fence(memory_order_seq_cst);
}

void chempi_coll_root_copies_say(const struct cell *cell, int root,
                                 enum chempi_root_reply reply)
{
    struct chempi_node_count *count = cell_count(cell);

    cell_mine(cell)->place.reply = (uint32_t)reply;
    atomic_store_explicit(&cell_mine(cell)->place.met, 1, memory_order_relaxed);
    if (reply == REPLY_REFUSED)
        cell->st->is_refused_root = true;
    if (atomic_fetch_add(&count->finished, 1) + 1 == atomic_load(&count->goal))
        cell_rouse(cell, root);
}

bool chempi_coll_root_copies_has_refused(const struct cell *cell, int i)
{
    uint32_t reply = cell_line(cell, i)->place.reply;

    if (reply == REPLY_REFUSED)
        cell->st->is_refused_root = true;
    return reply != REPLY_COPIED;
}
