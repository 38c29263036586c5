/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles as integers: MPI_X_toint and MPI_X_fromint of the ABI, and the
 * c2f/f2c family beside it. A predefined handle is its own value; an object's
 * address gets an index from 0x1000 upwards the first time that it is asked
 * for.
 *
 *   T1  an address has at most one index, for ever: when the memory is used
 *       for another object, the index names that one, as the address does
 *   T2  addresses lie in chunks, each twice as large as the one before, that
 *       are neither moved nor freed; what lies below `count` never changes
 *   T3  the first chunk is always there, and NULL above `count`: looking into
 *       it is one load
 *   T4  the number of an object that is gone names nothing: its address has
 *       GONE set until a new object there asks for a number, and from_int()
 *       does not look at the memory. A communicator, datatype, file, session or
 *       window that is freed and still in use names nothing, either: who asks
 *       about a handle before it is used sees that without an error
 *   T5  a light handle (light.h) has a place like an address, and keeps it for
 *       ever: after the first one no more are made
 *
 * So a number is turned into a handle without the lock: Fortran programs do
 * that in every call.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "common/containers/index.h"
#include "libchempi/api/alias.h"
#include "libchempi/didl/base/object.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/comm/session/session.h"
#include "libchempi/didl/datatype/datatype.h"
#include "libchempi/didl/io/file.h"
#include "libchempi/didl/rma/win.h"
#include "libchempi/didl/transport/light.h"

#define FIRST CHEMPI_HANDLE_PREDEFINED_END
#define CHUNKS 19u
#define CHUNK_BITS 9u /* log2 of the places in the first chunk */
#define FIRST_CHUNK (1u << CHUNK_BITS)
/* Places in all chunks: bounds the memory; more fail as invalid. */
#define MAX_INDICES ((1u << (CHUNK_BITS + CHUNKS)) - (1u << CHUNK_BITS))

#define GONE ((uintptr_t)1) /* in an address; T4 */

typedef _Atomic(uintptr_t) address;

struct table {
    pthread_mutex_t lock;
    struct chempi_index index; /* by address: index - FIRST */
    atomic_uint count;         /* written under the lock */
    address *chunk[CHUNKS];    /* by index - FIRST; NULL above count */
};

static address first_chunk[FIRST_CHUNK];
static struct table table = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .chunk = {first_chunk},
};

static uint32_t chunk_of(uint32_t place)
{
    return CHEMPI_HIGHEST_BIT((uint64_t)place + (1u << CHUNK_BITS)) -
           CHUNK_BITS;
}

/* A place whose chunk is there. */
static address *address_at(uint32_t place)
{
    uint32_t k = chunk_of(place);

    return &table.chunk[k]
                       [place + (1u << CHUNK_BITS) - (1u << (CHUNK_BITS + k))];
}

static bool has_address(const void *elements, uint32_t number, const void *key)
{
    (void)elements;
    return (atomic_load_explicit(address_at(number), memory_order_relaxed) &
            ~GONE) == (uintptr_t)key;
}

static uint32_t find_locked(const void *handle)
{
    return chempi_index_find(&table.index,
                             chempi_index_hash_number((uintptr_t)handle),
                             has_address, NULL, handle);
}

static void forget(const void *handle)
{
    uint32_t place;

    (void)pthread_mutex_lock(&table.lock);
    place = find_locked(handle);
    if (place != CHEMPI_INDEX_NONE)
        atomic_store_explicit(address_at(place), (uintptr_t)handle | GONE,
                              memory_order_release);
    (void)pthread_mutex_unlock(&table.lock);
}

/* Room for one more address. */
static bool make_room_locked(uint32_t count)
{
    uint32_t k = chunk_of(count);

    if (count >= MAX_INDICES)
        return false;
    if (!table.chunk[k])
        table.chunk[k] = chempi_sys->calloc((size_t)1 << (CHUNK_BITS + k),
                                            sizeof(*table.chunk[k]));
    return table.chunk[k] != NULL;
}

/* Its place, which it gets if need be; CHEMPI_INDEX_NONE: no memory. */
static uint32_t place_locked(const void *handle)
{
    const uint32_t hash = chempi_index_hash_number((uintptr_t)handle);
    const uint32_t known = find_locked(handle);
    const uint32_t count =
        atomic_load_explicit(&table.count, memory_order_relaxed);
    const uint32_t place = known == CHEMPI_INDEX_NONE ? count : known;

    if (known == CHEMPI_INDEX_NONE &&
        (!make_room_locked(count) ||
         !chempi_index_add(&table.index, hash, count)))
        return CHEMPI_INDEX_NONE;
    if (count == 0)
        atomic_store_explicit(&chempi_object_on_end, forget,
                              memory_order_release);
    atomic_store_explicit(address_at(place), (uintptr_t)handle,
                          memory_order_release);
    if (place == count) {
        atomic_store_explicit(&table.count, count + 1, memory_order_release);
        (void)make_room_locked(count + 1); /* or when it is needed */
    }
    return place;
}

/* 0, which is never valid, when out of memory. */
static int to_int(const void *handle)
{
    const bool is_light = chempi_light_is((MPI_Request)(uintptr_t)handle);
    uint32_t place;

    if (!chempi_handle_is_address(handle) && !is_light)
        return (int)(uintptr_t)handle;
    if (is_light)
        chempi_light_refuse(); /* T5 */
    (void)pthread_mutex_lock(&table.lock);
    place = place_locked(handle);
    (void)pthread_mutex_unlock(&table.lock);
    return place == CHEMPI_INDEX_NONE ? 0 : (int)(FIRST + place);
}

/* A number that nobody was given: an invalid handle that still says it. */
static void *no_object(int value)
{
    return (void *)(uintptr_t)(INTPTR_MIN | (intptr_t)(uint32_t)value);
}

static void *from_int(int value)
{
    const uint32_t place = (uint32_t)value - FIRST;
    uintptr_t found = 0;

    if (CHEMPI_LIKELY(place < FIRST_CHUNK)) /* T3 */
        found = atomic_load_explicit(&first_chunk[place], memory_order_acquire);
    else if ((uint32_t)value < FIRST)
        return (void *)(uintptr_t)value;
    else if (place < atomic_load_explicit(&table.count, memory_order_acquire))
        found = atomic_load_explicit(address_at(place), memory_order_acquire);
    return CHEMPI_LIKELY(found && !(found & GONE)) ? (void *)found
                                                   : no_object(value);
}

#define ANY(handle) ((handle) != NULL)

#define CONVERT(type, lookup, toint, fromint, c2f, f2c)                        \
    CHEMPI_EXPORT int P##toint(type handle)                                    \
    {                                                                          \
        return to_int(handle);                                                 \
    }                                                                          \
    CHEMPI_API_ALIAS(int, toint, (type));                                      \
    CHEMPI_EXPORT type P##fromint(int value)                                   \
    {                                                                          \
        type handle = (type)from_int(value);                                   \
                                                                               \
        if (CHEMPI_LIKELY(!chempi_handle_is_address(handle) ||                 \
                          lookup(handle)))                                     \
            return handle;                                                     \
        return (type)no_object(value);                                         \
    }                                                                          \
    CHEMPI_API_ALIAS(type, fromint, (int));                                    \
    CHEMPI_EXPORT MPI_Fint P##c2f(type handle)                                 \
    {                                                                          \
        return to_int(handle);                                                 \
    }                                                                          \
    CHEMPI_API_ALIAS(MPI_Fint, c2f, (type));                                   \
    CHEMPI_EXPORT type P##f2c(MPI_Fint value)                                  \
    {                                                                          \
        return P##fromint(value);                                              \
    }                                                                          \
    CHEMPI_API_ALIAS(type, f2c, (MPI_Fint))

CONVERT(MPI_Comm, chempi_comm_lookup, MPI_Comm_toint, MPI_Comm_fromint,
        MPI_Comm_c2f, MPI_Comm_f2c);
CONVERT(MPI_Datatype, chempi_datatype_lookup, MPI_Type_toint, MPI_Type_fromint,
        MPI_Type_c2f, MPI_Type_f2c);
CONVERT(MPI_Errhandler, ANY, MPI_Errhandler_toint, MPI_Errhandler_fromint,
        MPI_Errhandler_c2f, MPI_Errhandler_f2c);
CONVERT(MPI_File, chempi_file_lookup, MPI_File_toint, MPI_File_fromint,
        MPI_File_c2f, MPI_File_f2c);
CONVERT(MPI_Group, ANY, MPI_Group_toint, MPI_Group_fromint, MPI_Group_c2f,
        MPI_Group_f2c);
CONVERT(MPI_Info, ANY, MPI_Info_toint, MPI_Info_fromint, MPI_Info_c2f,
        MPI_Info_f2c);
CONVERT(MPI_Message, ANY, MPI_Message_toint, MPI_Message_fromint,
        MPI_Message_c2f, MPI_Message_f2c);
CONVERT(MPI_Op, ANY, MPI_Op_toint, MPI_Op_fromint, MPI_Op_c2f, MPI_Op_f2c);
CONVERT(MPI_Request, ANY, MPI_Request_toint, MPI_Request_fromint,
        MPI_Request_c2f, MPI_Request_f2c);
CONVERT(MPI_Session, chempi_session_lookup, MPI_Session_toint,
        MPI_Session_fromint, MPI_Session_c2f, MPI_Session_f2c);
CONVERT(MPI_Win, chempi_win_lookup, MPI_Win_toint, MPI_Win_fromint, MPI_Win_c2f,
        MPI_Win_f2c);
