/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The records of those members that this process has to do with, found by
 * rank: a table of buckets that grows with their number.
 */
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/services/cma.h"

/* The index of a rank among the members of this node, or -1. */
static int32_t local_index(const struct chempi_win *win, uint32_t rank)
{
    uint32_t low = 0;
    uint32_t high = win->local_count;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (win->locals[mid] == rank)
            return (int32_t)mid;
        if (win->locals[mid] < rank)
            low = mid + 1;
        else
            high = mid;
    }
    return -1;
}

struct chempi_rma_guard chempi_rma_guard(const struct chempi_win *win,
                                         uint32_t local)
{
    const bool has_line = win->is_shared && win->cards[local].at != UINT64_MAX;

    return (struct chempi_rma_guard){
        .line = has_line ? &win->lines[local] : NULL,
        .pid = (uint32_t)win->cards[win->me_local].pid,
        .win = win,
        .is_fine = win->is_fine,
        .is_same_op = win->is_same_op};
}

/* Memory of the peer that is mapped here, or in no process but this. What was
 * to be allocated and cannot be shared has an address that is not on the card:
 * it is reached by messages; so is memory of a process whose number counts in
 * another space, where it may be another one's. */
static void aim_mapped(struct chempi_win *win, struct chempi_rma_peer *peer,
                       const struct chempi_rma_card *card)
{
    bool is_self = peer->rank == (uint32_t)win->comm->rank;

    if (is_self) {
        peer->reach = CHEMPI_RMA_SELF;
        peer->is_mapped = true;
        peer->mem = win->flavor == MPI_WIN_FLAVOR_DYNAMIC ? NULL : win->base;
    } else if (win->is_shared && card->at != UINT64_MAX) {
        peer->reach = CHEMPI_RMA_NODE;
        peer->is_mapped = true;
        peer->mem = (char *)win->file + card->at;
    } else if (win->flavor != MPI_WIN_FLAVOR_ALLOCATE && card->pid > 0 &&
               card->space == win->cards[win->me_local].space &&
               chempi_cma_probe((pid_t)card->pid,
                                (const void *)(uintptr_t)card->probe,
                                card->probe_value) == 0) {
        peer->reach = CHEMPI_RMA_ATTACH;
    }
}

static void aim(struct chempi_win *win, struct chempi_rma_peer *peer)
{
    peer->reach = CHEMPI_RMA_MESSAGE;
    peer->size = (uint64_t)win->size;
    peer->unit = win->unit;
    if (peer->local >= 0) {
        const struct chempi_rma_card *card = &win->cards[peer->local];

        peer->size = card->size;
        peer->unit = card->unit;
        peer->base = card->base;
        peer->pid = card->pid;
        aim_mapped(win, peer, card);
    } else if (win->all) {
        peer->size = (uint64_t)win->all[peer->rank].size;
        peer->unit = win->all[peer->rank].unit;
    }
}

static struct chempi_rma_peer *make(struct chempi_win *win, uint32_t rank)
{
    struct chempi_rma_peer *peer = chempi_sys->calloc(1, sizeof(*peer));

    if (!peer)
        return NULL;
    peer->win = win;
    peer->rank = rank;
    peer->proc = chempi_comm_proc(win->comm, rank);
    peer->local = local_index(win, rank);
    chempi_list_init(&peer->out);
    chempi_list_init(&peer->in);
    chempi_list_init(&peer->active);
    chempi_list_init(&peer->held);
    chempi_list_init(&peer->told);
    chempi_list_init(&peer->known);
    chempi_list_init(&peer->batch.sealed);
    peer->held_by = -1;
    aim(win, peer);
    return peer;
}

/* Failure does not matter: the chains become longer. */
static void grow(struct chempi_win *win)
{
    uint32_t count = win->bucket_count ? 2 * win->bucket_count : 16;
    struct chempi_rma_peer **buckets =
        chempi_sys->calloc(count, sizeof(struct chempi_rma_peer *));

    if (!buckets)
        return;
    for (uint32_t i = 0; i < win->bucket_count; i++) {
        while (win->buckets[i]) {
            struct chempi_rma_peer *peer = win->buckets[i];

            win->buckets[i] = peer->next;
            peer->next = buckets[peer->rank & (count - 1)];
            buckets[peer->rank & (count - 1)] = peer;
        }
    }
    free(win->buckets);
    win->buckets = buckets;
    win->bucket_count = count;
}

static CHEMPI_NOINLINE struct chempi_rma_peer *add(struct chempi_win *win,
                                                   uint32_t rank)
{
    struct chempi_rma_peer *peer;
    uint32_t i;

    if (win->peer_count >= win->bucket_count)
        grow(win);
    if (!win->bucket_count)
        return NULL;
    peer = make(win, rank);
    if (!peer)
        return NULL;
    i = rank & (win->bucket_count - 1);
    peer->next = win->buckets[i];
    win->buckets[i] = peer;
    win->peer_count++;
    return peer;
}

struct chempi_rma_peer *chempi_rma_peer(struct chempi_win *win, uint32_t rank)
{
    struct chempi_rma_peer *peer = NULL;

    if (CHEMPI_LIKELY(win->bucket_count != 0))
        peer = win->buckets[rank & (win->bucket_count - 1)];
    while (peer && peer->rank != rank)
        peer = peer->next;
    return CHEMPI_LIKELY(peer != NULL) ? peer : add(win, rank);
}

int chempi_rma_find_slow(struct chempi_win *win, int rank, const char *argument,
                         struct chempi_rma_peer **out)
{
    struct chempi_rma_peer *peer;

    if (CHEMPI_UNLIKELY((uint32_t)rank >= win->comm->size))
        return chempi_error_set(
            MPI_ERR_RANK, "argument %s is %d; %s has ranks 0 to %u", argument,
            rank, chempi_rma_name(win), win->comm->size - 1);
    chempi_lane_lock(&chempi_lane_main);
    peer = chempi_rma_peer(win, (uint32_t)rank);
    chempi_lane_unlock(&chempi_lane_main);
    if (CHEMPI_UNLIKELY(!peer))
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory for rank %d of %s",
                                rank, chempi_rma_name(win));
    atomic_store_explicit(&win->recent[(uint32_t)rank % CHEMPI_RMA_RECENT],
                          peer, memory_order_release);
    *out = peer;
    return MPI_SUCCESS;
}

/* What is left of a window that was not whole, or of a lost member. */
static void drop_items(struct chempi_list *list)
{
    while (!chempi_list_is_empty(list)) {
        struct chempi_list *first = chempi_list_first(list);

        chempi_list_remove(first);
        chempi_rma_free_item(
            CHEMPI_CONTAINER_OF(first, struct chempi_rma_item, link));
    }
}

void chempi_rma_free_peers(struct chempi_win *win)
{
    chempi_lane_lock(&chempi_lane_main);
    while (win->gate.waiting.next &&
           !chempi_list_is_empty(&win->gate.waiting)) {
        struct chempi_rma_claim *claim =
            CHEMPI_CONTAINER_OF(chempi_list_first(&win->gate.waiting),
                                struct chempi_rma_claim, link);

        chempi_list_remove(&claim->link);
        chempi_list_remove(&claim->guest);
        chempi_rma_free_claim(claim);
    }
    for (uint32_t i = 0; i < win->bucket_count; i++) {
        while (win->buckets[i]) {
            struct chempi_rma_peer *peer = win->buckets[i];

            win->buckets[i] = peer->next;
            drop_items(&peer->out);
            drop_items(&peer->in);
            drop_items(&peer->batch.sealed);
            chempi_rma_free_batch(peer);
            chempi_rma_free_types(peer);
            free(peer);
        }
    }
    chempi_lane_unlock(&chempi_lane_main);
    free(win->buckets);
    win->buckets = NULL;
    win->bucket_count = 0;
}
