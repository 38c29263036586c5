/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said of a collective request; see async_words.h. */
#include "libchempi/didl/coll/async_words.h"

#include "libchempi/didl/comm/message_request.h"

CHEMPI_COLD int chempi_coll_async_explain(const struct async *a, int error)
{
    if (a->mismatch.rank < 0 || error == MPI_ERR_PROC_ABORTED)
        return error;
    if (error == MPI_ERR_TRUNCATE)
        return chempi_message_note_too_much(a->mismatch.rank, a->mismatch.len,
                                            a->mismatch.room);
    return chempi_message_note_too_little(a->mismatch.rank, a->mismatch.len,
                                          a->mismatch.room);
}

static bool is_awaited(const struct async *a, int child, int32_t peer)
{
    return !chempi_request_is_complete(a->children[child]) &&
           a->children[child]->peer_rank == peer;
}

void chempi_coll_async_put_awaits(struct chempi_wait_report *w,
                                  const struct chempi_request *req)
{
    const struct async *a = (const void *)req; /* its first member */
    int count = 0;

    w->is_moving |= a->is_busy;
    for (int i = a->finished; i < a->open && !w->is_mute; i++) {
        const int32_t peer = a->children[i]->peer_rank;
        int k = a->finished;

        while (!is_awaited(a, k, peer) && k < i)
            k++;
        if (k == i &&
            is_awaited(a, i, peer)) /* it is told for the first time */
            chempi_wait_report_put_helper(w, a->sched.comm, peer, count++);
    }
    if (chempi_coll_async_node_step(a) && !w->is_mute)
        count = chempi_node_later_put(chempi_coll_async_node_step(a), w, count);
    chempi_wait_report_put_rest(w, count);
}
