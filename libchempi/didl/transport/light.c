/* SPDX-License-Identifier: BSD-3-Clause */
/* Light handles that have a request, and whether there are any; see light.h. */
#include "libchempi/didl/transport/light.h"

#include <stdlib.h>

#include "common/base/sys.h"
#include "common/containers/index.h"
#include "libchempi/didl/transport/request.h"

struct chempi_light chempi_light;

#define LOAD 4u /* requests of a bucket, in the mean, before there are more */

static struct chempi_list first = {&first, &first};
static struct chempi_list forgotten = {&forgotten, &forgotten};

/* chempi_request.match_link, by its lock; the last of all. There are as many
 * as sends are being cancelled, in buckets by the hash of the handle; the lists
 * are longer where memory for more buckets is refused. Nobody looks for those
 * that are forgotten. */
static struct {
    struct chempi_list *buckets; /* the first; on the heap while there are
                                    more, until the last request goes */
    uint32_t room;               /* a power of two */
} recalled = {&first, 1};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct chempi_light_message chempi_light_message(MPI_Request handle)
{
    const uint64_t value = (uint64_t)(uintptr_t)handle;

    return (struct chempi_light_message){
        .lane = chempi_light_lane(handle),
        .proc =
            (uint32_t)(value >> CHEMPI_LIGHT_PROC_SHIFT) % CHEMPI_LIGHT_PROCS,
        .serial = value >> CHEMPI_LIGHT_SERIAL_SHIFT & CHEMPI_LIGHT_SERIAL_MASK,
    };
}

bool chempi_light_is_none(void)
{
    int64_t left = 0;

    for (uint32_t i = 0; i < chempi_lane_count; i++)
        left |= atomic_load_explicit(&chempi_lanes[i]->lights,
                                     memory_order_acquire);
    return left == 0 && chempi_light_is_plain(); /* in this order, H1 */
}

void chempi_light_refuse(void)
{
    (void)atomic_fetch_or(&chempi_light.refused, CHEMPI_LIGHT_NEVER);
}

void chempi_light_pause(bool is_paused)
{
    if (is_paused)
        (void)atomic_fetch_or(&chempi_light.refused, CHEMPI_LIGHT_NOT_NOW);
    else
        (void)atomic_fetch_and(&chempi_light.refused,
                               ~(uint32_t)CHEMPI_LIGHT_NOT_NOW);
}

static struct chempi_list *bucket_of(uint64_t handle)
{
    return &recalled.buckets[chempi_index_hash_number(handle) &
                             (recalled.room - 1)];
}

static uint32_t count_recalled(void)
{
    return atomic_load_explicit(&chempi_light.recalled, memory_order_relaxed);
}

static void set_buckets(struct chempi_list *buckets, uint32_t room)
{
    if (recalled.buckets != &first)
        free(recalled.buckets);
    recalled.buckets = buckets;
    recalled.room = room;
}

static struct chempi_request *request_of(struct chempi_list *pos)
{
    return CHEMPI_CONTAINER_OF(pos, struct chempi_request, match_link);
}

static void grow(void)
{
    const uint32_t room = 2 * recalled.room;
    struct chempi_list *buckets = chempi_sys->calloc(room, sizeof(*buckets));
    struct chempi_list all;

    if (!buckets)
        return;
    chempi_list_init(&all);
    for (uint32_t i = 0; i < recalled.room; i++)
        chempi_list_splice(&all, &recalled.buckets[i]);
    for (uint32_t i = 0; i < room; i++)
        chempi_list_init(&buckets[i]);
    set_buckets(buckets, room);
    CHEMPI_LIST_FOR_SAFE (pos, &all) {
        chempi_list_remove(pos);
        chempi_list_append(bucket_of(request_of(pos)->stamp), pos);
    }
}

struct chempi_request *chempi_light_find(MPI_Request handle)
{
    const uint64_t value = (uint64_t)(uintptr_t)handle;
    struct chempi_request *found = NULL;

    (void)pthread_mutex_lock(&lock);
    CHEMPI_LIST_FOR (pos, bucket_of(value)) {
        if (request_of(pos)->stamp != value)
            continue;
        found = request_of(pos);
        break;
    }
    (void)pthread_mutex_unlock(&lock);
    return found;
}

void chempi_light_add(MPI_Request handle, struct chempi_request *req)
{
    req->stamp = (uint64_t)(uintptr_t)handle;
    (void)pthread_mutex_lock(&lock);
    if (count_recalled() / LOAD >= recalled.room)
        grow();
    chempi_list_append(bucket_of(req->stamp), &req->match_link);
    atomic_fetch_add_explicit(&chempi_light.recalled, 1, memory_order_release);
    (void)pthread_mutex_unlock(&lock);
    chempi_light_count(req->lane, -1); /* behind that, H1 */
}

void chempi_light_remove(struct chempi_request *req)
{
    (void)pthread_mutex_lock(&lock);
    chempi_list_remove(&req->match_link);
    atomic_fetch_sub_explicit(&chempi_light.recalled, 1, memory_order_release);
    if (count_recalled() == 0)
        set_buckets(&first, 1);
    (void)pthread_mutex_unlock(&lock);
}

/* Holder of its lane. Nobody waits for the answer, which peers that have left
 * MPI do not give. */
static void end(struct chempi_request *req)
{
    if (!chempi_request_is_complete(req)) {
        chempi_list_remove(&req->outgoing.link);
        req->is_cancelling = false;
        chempi_request_progress(req, MPI_SUCCESS);
    }
    chempi_request_drop(req);
}

/* Holder of the first lane. What was freed goes by itself. */
static void forget(struct chempi_request *req)
{
    struct chempi_lane *lane = req->lane;
    const bool is_other = lane->number > 0 && lane->is_locking;

    if (is_other)
        chempi_lane_lock(lane);
    if (!req->is_freed)
        end(req);
    if (is_other)
        chempi_lane_drop(lane);
}

void chempi_light_forget(void)
{
    chempi_lane_lock(&chempi_lane_main); /* else its agent may be at them */
    for (uint32_t i = 0; i < chempi_lane_count; i++)
        atomic_store_explicit(&chempi_lanes[i]->lights, 0,
                              memory_order_relaxed);
    (void)pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < recalled.room; i++)
        chempi_list_splice(&forgotten, &recalled.buckets[i]);
    (void)pthread_mutex_unlock(&lock);
    CHEMPI_LIST_FOR_SAFE (pos, &forgotten)
        forget(request_of(pos));
    chempi_lane_unlock(&chempi_lane_main);
}
