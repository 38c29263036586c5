/* SPDX-License-Identifier: BSD-3-Clause */
/* Info objects (MPI 5.0, chapter 10). */
#ifndef CHEMPI_LIBCHEMPI_DIDL_INFO_H
#define CHEMPI_LIBCHEMPI_DIDL_INFO_H

#include <mpi.h>

#include "libchempi/didl/base/object.h"

struct chempi_info_pair {
    char *key;
    char *value;
};

struct chempi_info {
    struct chempi_object obj;
    uint32_t count;
    uint32_t room;
    struct chempi_info_pair *pairs; /* [count], in order of insertion */
};

/* MPI_INFO_ENV, which is filled before anybody has it, and never changes then.
 * Any thread. */
struct chempi_info *chempi_info_of_env(void);

/* NULL for MPI_INFO_NULL and for handles that name no info object; tell the
 * two apart with the handle. */
static inline struct chempi_info *chempi_info_lookup(MPI_Info handle)
{
    struct chempi_info *info = (struct chempi_info *)(void *)handle;

    if (chempi_handle_is_address(handle))
        return info->obj.magic == CHEMPI_MAGIC_INFO ? info : NULL;
    return handle == MPI_INFO_ENV ? chempi_info_of_env() : NULL;
}

/* The kinds of memory that an object's calls accept. */
#define CHEMPI_SESSION_KINDS_KEY "mpi_memory_alloc_kinds"

/* Internal use: value of a key or NULL; a copy; drop a reference. */
const char *chempi_info_find(const struct chempi_info *info, const char *key);
struct chempi_info *chempi_info_copy(const struct chempi_info *info);
void chempi_info_release(struct chempi_info *info);

#endif
