/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every MPI object starts with. A user-made handle is the object's
 * address; predefined handles are the ABI's constants below 0x1000.
 *
 *   -   refs >= 1 while reachable: one for the user's handle, one for every
 *       pending operation, attribute callback or object that leans on it
 *   -   magic is the object's kind while it lives, 0 after it is freed, so a
 *       stale handle is refused as long as the memory is not reused
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_OBJECT_H
#define CHEMPI_LIBCHEMPI_DIDL_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"

#define CHEMPI_HANDLE_PREDEFINED_END 0x1000u

enum chempi_magic {
    CHEMPI_MAGIC_COMM = 0x43c0de01,
    CHEMPI_MAGIC_GROUP,
    CHEMPI_MAGIC_DATATYPE,
    CHEMPI_MAGIC_OP,
    CHEMPI_MAGIC_ERRHANDLER,
    CHEMPI_MAGIC_INFO,
    CHEMPI_MAGIC_REQUEST,
    CHEMPI_MAGIC_MESSAGE,
    CHEMPI_MAGIC_SESSION,
    CHEMPI_MAGIC_FILE,
    CHEMPI_MAGIC_WIN,
    CHEMPI_MAGIC_LAST = CHEMPI_MAGIC_WIN
};

struct chempi_object {
    uint32_t magic; /* enum chempi_magic */
    _Atomic int32_t refs;
};

/* May the handle be an object's address? Predefined ones are not, nor the
 * numbers below 0 to which a wrong int widens: processes have the lower half of
 * the addresses. */
static inline bool chempi_handle_is_address(const void *handle)
{
    return (intptr_t)handle >= (intptr_t)CHEMPI_HANDLE_PREDEFINED_END;
}

static inline void chempi_object_init(struct chempi_object *obj,
                                      enum chempi_magic magic)
{
    obj->magic = (uint32_t)magic;
    atomic_init(&obj->refs, 1);
}

static inline void chempi_object_hold(struct chempi_object *obj)
{
    atomic_fetch_add_explicit(&obj->refs, 1, memory_order_relaxed);
}

/* Told of each object that will be destroyed, once a handle has been given a
 * number (api/handles.c); NULL before. */
typedef void chempi_object_end_fn(const void *handle);
extern _Atomic(chempi_object_end_fn *) chempi_object_on_end;

/* True when the last reference is gone and the caller must destroy it. */
static inline bool chempi_object_drop(struct chempi_object *obj)
{
    chempi_object_end_fn *on_end;

    if (atomic_fetch_sub_explicit(&obj->refs, 1, memory_order_acq_rel) != 1)
        return false;
    on_end = atomic_load_explicit(&chempi_object_on_end, memory_order_acquire);
    if (CHEMPI_UNLIKELY(on_end))
        on_end(obj);
    return true;
}

#endif
