/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What outlives a call until its request is complete.
 *
 *   K1  items of one request stand in one bucket, under its Fortran handle
 *   K2  an item is removed before its request's handle can be used again, or
 *       a new request of that handle shows that C completed the old one
 *   K3  chempi_keep_count is the number of items
 */
#include "fortran/lib/keep.h"

#include <pthread.h>
#include <stdlib.h>

#include "fortran/lib/choice.h"

#define BUCKETS 64u

struct item {
    struct item *next;
    int request;
    bool is_persistent;
    bool is_active;
    struct chempi_held *held; /* one of these three */
    void *memory;
    MPI_Comm *cell;
    int *to;
};

_Atomic long chempi_keep_count;

static struct {
    pthread_mutex_t lock;
    struct item *bucket[BUCKETS];
} keep = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct item **bucket_of(int request)
{
    return &keep.bucket[(unsigned)request % BUCKETS];
}

static void destroy(struct item *item)
{
    if (item->held)
        chempi_choice_drop(item->held);
    free(item->memory);
    free(item->cell);
    free(item);
    atomic_fetch_sub_explicit(&chempi_keep_count, 1, memory_order_relaxed);
}

static void add(int request, const struct item *what)
{
    struct item *item = malloc(sizeof(*item));

    if (!item)
        return;
    *item = *what;
    item->request = request;
    (void)pthread_mutex_lock(&keep.lock);
    item->next = *bucket_of(request);
    *bucket_of(request) = item;
    (void)pthread_mutex_unlock(&keep.lock);
    atomic_fetch_add_explicit(&chempi_keep_count, 1, memory_order_relaxed);
}

void chempi_keep_section(int request, struct chempi_held *held,
                         bool is_persistent)
{
    add(request, &(struct item){.held = held,
                                .is_persistent = is_persistent,
                                .is_active = !is_persistent});
}

void chempi_keep_memory(int request, void *memory, bool is_persistent)
{
    add(request, &(struct item){.memory = memory,
                                .is_persistent = is_persistent,
                                .is_active = !is_persistent});
}

void chempi_keep_comm(int request, MPI_Comm *cell, int *to)
{
    add(request, &(struct item){.cell = cell, .to = to, .is_active = true});
}

void chempi_keep_start(int request)
{
    (void)pthread_mutex_lock(&keep.lock);
    for (struct item *i = *bucket_of(request); i; i = i->next) {
        if (i->request != request)
            continue;
        i->is_active = true;
        if (i->held)
            chempi_choice_fetch(i->held);
    }
    (void)pthread_mutex_unlock(&keep.lock);
}

static void finish(struct item *item)
{
    if (item->held && item->is_active)
        chempi_choice_store(item->held);
    if (item->cell)
        *item->to = chempi_out_comm(*item->cell);
    item->is_active = false;
}

static void done_locked(int request, MPI_Request after)
{
    struct item **link = bucket_of(request);

    while (*link) {
        struct item *item = *link;

        if (item->request != request) {
            link = &item->next;
            continue;
        }
        finish(item);
        if (after != MPI_REQUEST_NULL) {
            link = &item->next;
            continue;
        }
        *link = item->next;
        destroy(item);
    }
}

void chempi_keep_done(int request, MPI_Request after)
{
    (void)pthread_mutex_lock(&keep.lock);
    done_locked(request, after);
    (void)pthread_mutex_unlock(&keep.lock);
}

void chempi_keep_freed(int request)
{
    struct item **link;

    (void)pthread_mutex_lock(&keep.lock);
    link = bucket_of(request);
    while (*link) {
        struct item *item = *link;

        if (item->request != request) {
            link = &item->next;
            continue;
        }
        *link = item->next;
        if (item->is_active)
            item->held = NULL, item->memory = NULL, item->cell = NULL;
        destroy(item);
    }
    (void)pthread_mutex_unlock(&keep.lock);
}

void chempi_keep_settle(const int *before, const MPI_Request *after, int n,
                        const int *which, int n_which)
{
    int count = which ? n_which : n;

    (void)pthread_mutex_lock(&keep.lock);
    for (int k = 0; k < count; k++) {
        int i = which ? which[k] : k;

        if (i >= 0 && i < n)
            done_locked(before[i], after[i]);
    }
    (void)pthread_mutex_unlock(&keep.lock);
}
