/* SPDX-License-Identifier: BSD-3-Clause */
/* Light handles that have a request, and whether there are any; see light.h. */
#include "libchempi/didl/transport/light.h"

#include "libchempi/didl/transport/request.h"

struct chempi_light chempi_light;

/* chempi_request.match_link, by its lock; the last of all. There are as many
 * as sends are being cancelled. */
static struct chempi_list recalled = {&recalled, &recalled};
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
                                     memory_order_relaxed);
    return left == 0;
}

void chempi_light_refuse(void)
{
    atomic_store_explicit(&chempi_light.is_refused, true, memory_order_relaxed);
}

struct chempi_request *chempi_light_find(MPI_Request handle)
{
    struct chempi_request *found = NULL;

    (void)pthread_mutex_lock(&lock);
    CHEMPI_LIST_FOR (pos, &recalled) {
        struct chempi_request *req =
            CHEMPI_CONTAINER_OF(pos, struct chempi_request, match_link);

        if (req->stamp != (uint64_t)(uintptr_t)handle)
            continue;
        found = req;
        break;
    }
    (void)pthread_mutex_unlock(&lock);
    return found;
}

void chempi_light_add(MPI_Request handle, struct chempi_request *req)
{
    req->stamp = (uint64_t)(uintptr_t)handle;
    (void)pthread_mutex_lock(&lock);
    chempi_list_append(&recalled, &req->match_link);
    atomic_fetch_add_explicit(&chempi_light.recalled, 1, memory_order_release);
    (void)pthread_mutex_unlock(&lock);
}

void chempi_light_remove(struct chempi_request *req)
{
    (void)pthread_mutex_lock(&lock);
    chempi_list_remove(&req->match_link);
    atomic_fetch_sub_explicit(&chempi_light.recalled, 1, memory_order_release);
    (void)pthread_mutex_unlock(&lock);
}
