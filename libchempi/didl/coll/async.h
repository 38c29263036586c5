/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives as requests: non-blocking and persistent. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_ASYNC_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_ASYNC_H

#include "libchempi/didl/coll/sched.h"
#include "libchempi/didl/transport/request.h"

struct chempi_err;

/* Appends what this process does. */
typedef void chempi_coll_async_build_fn(struct chempi_coll_sched *s,
                                        const void *arg);

/*
 * A neighborhood collective: a request that runs the schedule that
 * build(s, arg) makes; build is called at once. Started, unless is_persistent.
 * The communicator and the types of all steps are held until the request is
 * gone. MPI error class.
 */
int chempi_coll_of_neighbors(const struct chempi_coll_call *c,
                             chempi_coll_async_build_fn *build, const void *arg,
                             bool is_persistent, MPI_Request *request);

/* X(kind, name behind MPI_I, name before _init) */
#define CHEMPI_COLL_NAMES(X)                                                   \
    X(CHEMPI_COLL_BARRIER, "barrier", "Barrier")                               \
    X(CHEMPI_COLL_BCAST, "bcast", "Bcast")                                     \
    X(CHEMPI_COLL_REDUCE, "reduce", "Reduce")                                  \
    X(CHEMPI_COLL_ALLREDUCE, "allreduce", "Allreduce")                         \
    X(CHEMPI_COLL_GATHER, "gather", "Gather")                                  \
    X(CHEMPI_COLL_GATHERV, "gatherv", "Gatherv")                               \
    X(CHEMPI_COLL_SCATTER, "scatter", "Scatter")                               \
    X(CHEMPI_COLL_SCATTERV, "scatterv", "Scatterv")                            \
    X(CHEMPI_COLL_ALLGATHER, "allgather", "Allgather")                         \
    X(CHEMPI_COLL_ALLGATHERV, "allgatherv", "Allgatherv")                      \
    X(CHEMPI_COLL_ALLTOALL, "alltoall", "Alltoall")                            \
    X(CHEMPI_COLL_ALLTOALLV, "alltoallv", "Alltoallv")                         \
    X(CHEMPI_COLL_ALLTOALLW, "alltoallw", "Alltoallw")                         \
    X(CHEMPI_COLL_REDUCE_SCATTER, "reduce_scatter", "Reduce_scatter")          \
    X(CHEMPI_COLL_REDUCE_SCATTER_BLOCK, "reduce_scatter_block",                \
      "Reduce_scatter_block")                                                  \
    X(CHEMPI_COLL_SCAN, "scan", "Scan")                                        \
    X(CHEMPI_COLL_EXSCAN, "exscan", "Exscan")

/* The request of an operation that is over, and came to the error class *rc,
 * which is 0 then. NULL: there is no memory to tell that later. Under the lane
 * lock. */
struct chempi_request *chempi_coll_failed(const struct chempi_coll_call *c,
                                          int *rc);

/* A request of the library's own: without checks, under the lane lock. Its
 * functions are predefined, and its messages urgent. Whoever waits for it
 * finishes and drops it. */
int chempi_coll_launch(const struct chempi_coll_call *c,
                       struct chempi_request **out);

/* At the library's start and end. The errno is always 0. */
int chempi_coll_async_init(struct chempi_err *err);
void chempi_coll_async_fini(void);

#endif
