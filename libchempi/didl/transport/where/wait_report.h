/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this process waits for, in words, when its supervisor asks
 * (doc/where.md). Nothing is noted beforehand: whoever waits brings a function
 * that describes the wait, and the name of the MPI call is found on the stack.
 *
 * The thread that waits, or that polls for a test, answers for itself, under
 * the lane lock.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_WAIT_REPORT_H
#define CHEMPI_LIBCHEMPI_DIDL_WAIT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "common/control/client.h"

struct chempi_comm;
struct chempi_request;

struct chempi_wait_report {
    const char *call; /* "MPI_Recv", or "an MPI call" */
    size_t len;
    bool is_mute;   /* what has no room in the words still counts below */
    bool is_choice; /* one of several would do */
    bool is_moving; /* what is waited for has begun */
    uint32_t count; /* processes that are waited for, the first ones: */
    uint32_t procs[CHEMPI_HERE_FOR_MAX];
    char text[CHEMPI_HERE_MAX];
};

/* Put what follows the call's name: " of MPI_COMM_WORLD". */
typedef void chempi_wait_report_fn(struct chempi_wait_report *w,
                                   const void *object);

/* Append; what has no room is cut off. */
void chempi_wait_report_put(struct chempi_wait_report *w, const char *fmt, ...)
    CHEMPI_PRINTF(2, 3);

/* " of MPI_COMM_WORLD"; nothing for NULL. */
void chempi_wait_report_put_comm(struct chempi_wait_report *w,
                                 const struct chempi_comm *comm);

/* " of MPI_COMM_WORLD from rank 3 on node a2 with tag 5". The object is a
 * struct chempi_request, which is active. */
chempi_wait_report_fn chempi_wait_report_put_request;

/* Put one request of a call that waits for several: number `index` of those
 * that are not complete, from 0. Only the first ones are named. */
void chempi_wait_report_put_one(struct chempi_wait_report *w,
                                const struct chempi_request *req, int index);
/* After the last one of `count`. */
void chempi_wait_report_put_rest(struct chempi_wait_report *w, int count);

/* ", for rank 3 on node a2": one member of a communicator that is waited for,
 * as chempi_wait_report_put_one(). */
void chempi_wait_report_put_missing(struct chempi_wait_report *w,
                                    const struct chempi_comm *comm, int rank,
                                    int index);

/* The same of one that needs no call of its own to do its part: who waits for
 * it is in no circle with it. */
void chempi_wait_report_put_helper(struct chempi_wait_report *w,
                                   const struct chempi_comm *comm, int rank,
                                   int index);

/* " from rank 3 on node a2 with tag 5"; both may be the wildcards. */
void chempi_wait_report_put_source(struct chempi_wait_report *w,
                                   const struct chempi_comm *comm, int source,
                                   int tag);

/* Answer the supervisor. words may be NULL. */
void chempi_wait_report_tell(chempi_wait_report_fn *words, const void *object,
                             enum chempi_wait_depth depth);

#endif
