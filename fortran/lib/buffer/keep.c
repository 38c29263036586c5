/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What outlives a call until its request is complete.
 *
 *   K1  items of one request stand in one bucket, under its Fortran handle
 *   K2  items of a request are claimed before its handle can be used again, or
 *       a new request of that handle shows that C completed the old one
 *   K3  chempi_keep_count is the number of items
 *   K4  nothing is kept for an operation that is over when its call returns:
 *       requests of these may have one handle
 */
#include "fortran/lib/buffer/keep.h"

#include <pthread.h>
#include <stdlib.h>

#include "fortran/lib/binding.h"

#define BUCKETS 64u

_Atomic long chempi_keep_count;

static struct {
    pthread_mutex_t lock;
    struct chempi_keep_item *bucket[BUCKETS];
} keep = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct chempi_keep_item **bucket_of(int request)
{
    return &keep.bucket[(unsigned)request % BUCKETS];
}

/* Has its operation ended in the call that made it? */
static bool is_over(int request)
{
    int flag = 0;

    return PMPI_Request_get_status(chempi_in_request(request), &flag,
                                   MPI_STATUS_IGNORE) == MPI_SUCCESS &&
           flag;
}

void chempi_keep_add(int request, struct chempi_keep_item *item,
                     bool is_persistent)
{
    if (!is_persistent && is_over(request)) { /* K4 */
        item->verbs->finish(item);
        item->verbs->drop(item);
        return;
    }
    item->request = request;
    item->claimer = NULL;
    item->is_active = !is_persistent;
    (void)pthread_mutex_lock(&keep.lock);
    item->next = *bucket_of(request);
    *bucket_of(request) = item;
    (void)pthread_mutex_unlock(&keep.lock);
    atomic_fetch_add_explicit(&chempi_keep_count, 1, memory_order_relaxed);
}

/* Take *link out of its bucket. */
static struct chempi_keep_item *take_out(struct chempi_keep_item **link)
{
    struct chempi_keep_item *item = *link;

    *link = item->next;
    atomic_fetch_sub_explicit(&chempi_keep_count, 1, memory_order_relaxed);
    return item;
}

/* ---- two things ---- */

struct room {
    struct chempi_keep_item item;
    _Alignas(max_align_t) char bytes[];
};

struct cell {
    struct chempi_keep_item item;
    MPI_Comm comm;
    int *to;
};

static struct room *room_of(void *bytes)
{
    return CHEMPI_CONTAINER_OF(bytes, struct room, bytes);
}

static struct cell *cell_of(struct chempi_keep_item *item)
{
    return CHEMPI_CONTAINER_OF(item, struct cell, item);
}

static void do_nothing(struct chempi_keep_item *item)
{
    (void)item;
}

static void drop_room(struct chempi_keep_item *item)
{
    free(CHEMPI_CONTAINER_OF(item, struct room, item));
}

static void finish_cell(struct chempi_keep_item *item)
{
    *cell_of(item)->to = chempi_out_comm(cell_of(item)->comm);
}

static void drop_cell(struct chempi_keep_item *item)
{
    free(cell_of(item));
}

static const struct chempi_keep_verbs room_verbs = {do_nothing, do_nothing,
                                                    drop_room};
static const struct chempi_keep_verbs cell_verbs = {do_nothing, finish_cell,
                                                    drop_cell};

void *chempi_keep_room(size_t size)
{
    struct room *room =
        size <= SIZE_MAX - sizeof(*room) ? malloc(sizeof(*room) + size) : NULL;

    if (!room)
        return NULL;
    room->item.verbs = &room_verbs;
    return room->bytes;
}

void chempi_keep_memory(int request, void *room, bool is_persistent)
{
    chempi_keep_add(request, &room_of(room)->item, is_persistent);
}

void chempi_keep_room_free(void *room)
{
    if (room)
        free(room_of(room));
}

MPI_Comm *chempi_keep_new_comm(int *to)
{
    struct cell *cell = malloc(sizeof(*cell));

    if (!cell)
        return NULL;
    cell->item.verbs = &cell_verbs;
    cell->comm = MPI_COMM_NULL;
    cell->to = to;
    return &cell->comm;
}

void chempi_keep_comm(int request, MPI_Comm *cell)
{
    chempi_keep_add(request,
                    &CHEMPI_CONTAINER_OF(cell, struct cell, comm)->item, false);
}

void chempi_keep_comm_free(MPI_Comm *cell)
{
    if (cell)
        free(CHEMPI_CONTAINER_OF(cell, struct cell, comm));
}

/* ---- what becomes of requests ---- */

void chempi_keep_start(int request)
{
    struct chempi_keep_item *i;

    (void)pthread_mutex_lock(&keep.lock);
    for (i = *bucket_of(request); i; i = i->next) {
        if (i->request != request)
            continue;
        i->is_active = true;
        i->verbs->fetch(i);
    }
    (void)pthread_mutex_unlock(&keep.lock);
}

static bool belongs(const struct chempi_keep_item *item, int request,
                    const int *claimer)
{
    return item->request == request && item->claimer == claimer;
}

static void done_locked(int request, MPI_Request after, const int *claimer)
{
    struct chempi_keep_item **link = bucket_of(request);

    while (*link) {
        struct chempi_keep_item *item = *link;

        if (belongs(item, request, claimer) && item->is_active) {
            item->verbs->finish(item);
            item->is_active = false;
        }
        if (belongs(item, request, claimer) && after == MPI_REQUEST_NULL) {
            (void)take_out(link);
            item->verbs->drop(item);
        } else {
            link = &item->next;
        }
    }
}

/* An active item is left to the operation, which may still use it. */
static void freed(int request, const int *claimer)
{
    struct chempi_keep_item **link;

    (void)pthread_mutex_lock(&keep.lock);
    link = bucket_of(request);
    while (*link) {
        struct chempi_keep_item *item = *link;

        if (!belongs(item, request, claimer)) {
            link = &item->next;
            continue;
        }
        (void)take_out(link);
        if (!item->is_active)
            item->verbs->drop(item);
    }
    (void)pthread_mutex_unlock(&keep.lock);
}

void chempi_keep_freed(const int *request)
{
    freed(*request, request);
}

void chempi_keep_forget(int request)
{
    freed(request, NULL);
}

/* Pass what is one claimer's on to another. */
static void pass(const int *requests, int n, const int *from, const int *to)
{
    (void)pthread_mutex_lock(&keep.lock);
    for (int k = 0; k < n; k++)
        for (struct chempi_keep_item *i = *bucket_of(requests[k]); i;
             i = i->next)
            if (belongs(i, requests[k], from))
                i->claimer = to;
    (void)pthread_mutex_unlock(&keep.lock);
}

void chempi_keep_claim(const int *requests, int n)
{
    pass(requests, n, NULL, requests);
}

void chempi_keep_release(const int *requests, int n)
{
    pass(requests, n, requests, NULL);
}

void chempi_keep_settle(const int *requests, const MPI_Request *after, int n,
                        const int *which, int n_which)
{
    int count = which ? n_which : n;

    (void)pthread_mutex_lock(&keep.lock);
    for (int k = 0; k < count; k++) {
        int i = which ? which[k] : k;

        if (i >= 0 && i < n)
            done_locked(requests[i], after[i], requests);
    }
    (void)pthread_mutex_unlock(&keep.lock);
}
