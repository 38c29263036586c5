/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What CHEMPI keeps in MPI_Status beside the public members:
 *   MPI_internal[0..1]  payload bytes, 64 bits, low word first
 *   MPI_internal[2]     1 when the operation was cancelled
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_STATUS_H
#define CHEMPI_LIBCHEMPI_DIDL_STATUS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

static inline void chempi_status_set_bytes(MPI_Status *status, MPI_Count bytes)
{
    status->MPI_internal[0] = (int)(uint32_t)((uint64_t)bytes & 0xffffffffu);
    status->MPI_internal[1] = (int)(uint32_t)((uint64_t)bytes >> 32);
}

static inline MPI_Count chempi_status_bytes(const MPI_Status *status)
{
    return (MPI_Count)((uint64_t)(uint32_t)status->MPI_internal[0] |
                       (uint64_t)(uint32_t)status->MPI_internal[1] << 32);
}

static inline bool chempi_status_is_cancelled(const MPI_Status *status)
{
    return status->MPI_internal[2] == 1;
}

/* All but MPI_ERROR, which only the calls with many statuses may touch.
 * status may be MPI_STATUS_IGNORE. */
static inline void chempi_status_set(MPI_Status *status, int source, int tag,
                                     MPI_Count bytes, bool is_cancelled)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    status->MPI_SOURCE = source;
    status->MPI_TAG = tag;
    chempi_status_set_bytes(status, bytes);
    status->MPI_internal[2] = is_cancelled;
}

/* The empty status (MPI 5.0, section 3.7.3). */
static inline void chempi_status_set_empty(MPI_Status *status)
{
    chempi_status_set(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
}

/* The status of a receive from MPI_PROC_NULL (section 3.10). */
static inline void chempi_status_set_proc_null(MPI_Status *status)
{
    chempi_status_set(status, MPI_PROC_NULL, MPI_ANY_TAG, 0, false);
}

#endif
