/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Light handles: requests of sends that were over when their call returned. The
 * handle itself says which message it was, and there is no request behind it:
 *
 *   bits 63..61  5: no address, nor a number that no object has (handles.c),
 *                nor an int below 0 that was widened
 *   bits 60..58  lane, one that there is: not as memory is filled by tools
 *   bits 57..38  process
 *   bits 37..1   serial number in that lane, modulo 2^37
 *   bit  0       0
 *
 *   -   all calls know one as chempi_request_over of its lane, until it is
 *       cancelled; then it has a request (`recalled`), and keeps its value:
 *       MPI_Cancel may not change it, and there may be copies
 *   -   a handle that was used up, or that nobody made, is taken for one that
 *       is over: to see that would cost memory for each message. MPI_Cancel
 *       refuses one that names no message
 *   H1  lane->lights are neither given back nor cancelled: only threads of the
 *       application change it, since MPI_Wait has no lock. While there are any,
 *       or some that are recalled, no new communicator gets the context of one
 *       that was freed (context_id.h): its messages may be under way, and be
 *       cancelled
 *   -   there are none while a checker wants to know of each message, and after
 *       one was turned into an integer: that one has a number for ever
 *       (handles.c, T1). No more are made, until none is left, when many
 *       contexts wait for that
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_LIGHT_H
#define CHEMPI_LIBCHEMPI_DIDL_LIGHT_H

#include <assert.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "libchempi/didl/transport/lane.h"

struct chempi_request;

#define CHEMPI_LIGHT_KIND_SHIFT 61u
#define CHEMPI_LIGHT_KIND UINT64_C(5)
#define CHEMPI_LIGHT_LANE_SHIFT 58u
#define CHEMPI_LIGHT_PROC_SHIFT 38u
#define CHEMPI_LIGHT_PROCS (1u << 20) /* in larger jobs there are none */
#define CHEMPI_LIGHT_SERIAL_SHIFT 1u
#define CHEMPI_LIGHT_SERIAL_MASK ((UINT64_C(1) << 37) - 1)

static_assert(CHEMPI_LANES_MAX <=
                  1u << (CHEMPI_LIGHT_KIND_SHIFT - CHEMPI_LIGHT_LANE_SHIFT),
              "a light handle has room for each lane");

/* Why none is made. */
enum { CHEMPI_LIGHT_NEVER = 1, CHEMPI_LIGHT_NOT_NOW = 2 };

extern struct chempi_light {
    _Atomic uint32_t refused;
    _Atomic uint32_t recalled; /* handles that have a request */
} chempi_light;

/* What MPI_Cancel makes of a handle. */
struct chempi_light_message {
    uint32_t lane;
    uint32_t proc;
    uint64_t serial; /* modulo 2^37 */
};

static inline bool chempi_light_is(MPI_Request handle)
{
    const uint64_t value = (uint64_t)(uintptr_t)handle;
    const uint64_t first = CHEMPI_LIGHT_KIND << (CHEMPI_LIGHT_KIND_SHIFT -
                                                 CHEMPI_LIGHT_LANE_SHIFT);

    return (value >> CHEMPI_LIGHT_LANE_SHIFT) - first < chempi_lane_count &&
           value % 2 == 0;
}

static inline uint32_t chempi_light_lane(MPI_Request handle)
{
    return (uint32_t)((uint64_t)(uintptr_t)handle >> CHEMPI_LIGHT_LANE_SHIFT) %
           CHEMPI_LANES_MAX;
}

/* A light handle is over, and has no request. Any thread. */
static inline bool chempi_light_is_plain(void)
{
    return CHEMPI_LIKELY(atomic_load_explicit(&chempi_light.recalled,
                                              memory_order_acquire) == 0);
}

/* 0: one may be made. */
static inline uint32_t chempi_light_refused(void)
{
    return atomic_load_explicit(&chempi_light.refused, memory_order_relaxed);
}

/* H1. A thread of the application: others may do the same if they lock. The
 * order is for one that is recalled: it is counted there before. */
static inline void chempi_light_count(struct chempi_lane *lane, int64_t more)
{
    if (CHEMPI_UNLIKELY(lane->is_locking))
        atomic_fetch_add_explicit(&lane->lights, more, memory_order_release);
    else
        atomic_store_explicit(
            &lane->lights,
            atomic_load_explicit(&lane->lights, memory_order_relaxed) + more,
            memory_order_release); /* partner: chempi_light_is_none() */
}

/* The user has it no longer, and it was not cancelled. */
static inline void chempi_light_give_back(MPI_Request handle)
{
    chempi_light_count(chempi_lanes[chempi_light_lane(handle)], -1);
}

/* H1: is there none that is out, nor recalled? Any thread. */
bool chempi_light_is_none(void);

static inline MPI_Request chempi_light_handle(uint32_t lane, uint32_t proc,
                                              uint64_t serial)
{
    return (MPI_Request)(uintptr_t)(CHEMPI_LIGHT_KIND
                                        << CHEMPI_LIGHT_KIND_SHIFT |
                                    (uint64_t)lane << CHEMPI_LIGHT_LANE_SHIFT |
                                    (uint64_t)proc << CHEMPI_LIGHT_PROC_SHIFT |
                                    (serial & CHEMPI_LIGHT_SERIAL_MASK)
                                        << CHEMPI_LIGHT_SERIAL_SHIFT);
}

struct chempi_light_message chempi_light_message(MPI_Request handle);

/* Make no more of them; or until that is taken back. Any thread. */
void chempi_light_refuse(void);
void chempi_light_pause(bool is_paused);

/* The program has left MPI, and will not give back what it still has: forget
 * it, and what is recalled and was not freed. */
void chempi_light_forget(void);

/* The request of a light handle, or NULL. Any thread. */
struct chempi_request *chempi_light_find(MPI_Request handle);

/* Recall a handle by giving it a request, which is not NULL; and take that from
 * it before it goes. Under the lock of its lane. */
void chempi_light_add(MPI_Request handle, struct chempi_request *req);
void chempi_light_remove(struct chempi_request *req);

#endif
