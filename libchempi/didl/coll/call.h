/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arguments of one collective call, whatever it is; which members are
 * significant follows from the kind and MPI 5.0, chapter 6. Whoever fills it
 * in uses designated initialisers.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_CALL_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_CALL_H

#include <mpi.h>
#include <stdbool.h>

#include "libchempi/didl/base/count_array.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/datatype/datatype.h"
#include "libchempi/didl/datatype/op.h"

enum chempi_coll_kind {
    CHEMPI_COLL_BARRIER,
    CHEMPI_COLL_BCAST,
    CHEMPI_COLL_REDUCE,
    CHEMPI_COLL_ALLREDUCE,
    CHEMPI_COLL_GATHER,
    CHEMPI_COLL_GATHERV,
    CHEMPI_COLL_SCATTER,
    CHEMPI_COLL_SCATTERV,
    CHEMPI_COLL_ALLGATHER,
    CHEMPI_COLL_ALLGATHERV,
    CHEMPI_COLL_ALLTOALL,
    CHEMPI_COLL_ALLTOALLV,
    CHEMPI_COLL_ALLTOALLW,
    CHEMPI_COLL_REDUCE_SCATTER,
    CHEMPI_COLL_REDUCE_SCATTER_BLOCK,
    CHEMPI_COLL_SCAN,
    CHEMPI_COLL_EXSCAN,
    CHEMPI_COLL_KIND_COUNT
};

struct chempi_coll_call {
    enum chempi_coll_kind kind;
    int root;
    struct chempi_comm *comm;
    const void *sbuf; /* bcast: unused */
    void *rbuf;       /* bcast: the buffer */
    MPI_Count scount;
    MPI_Count rcount; /* bcast and reductions: the count */
    struct chempi_datatype *stype;
    struct chempi_datatype *rtype; /* bcast and reductions: the type */
    struct chempi_op *op;
    struct chempi_count_array scounts;
    struct chempi_count_array sdispls;
    struct chempi_count_array rcounts;
    struct chempi_count_array rdispls;
    const MPI_Datatype *stypes;
    const MPI_Datatype *rtypes;
    bool is_void; /* this member only goes through the motions (K2) */
};

/* Address of element `index` of a typed buffer. Arithmetic on integers, since
 * MPI_BOTTOM plus an address is legal in MPI and not in C. */
static inline void *chempi_coll_at(const void *buf, MPI_Count index,
                                   const struct chempi_datatype *type)
{
    return (void *)((uintptr_t)buf + (uintptr_t)(index * type->extent));
}

/* Address at a displacement in bytes. */
static inline void *chempi_coll_plus(const void *buf, MPI_Count bytes)
{
    return (void *)((uintptr_t)buf + (uintptr_t)bytes);
}

struct chempi_coll_place {
    void *buf; /* of its first element */
    MPI_Count count;
};

/* Where rank i's block of an allgather(v) lies. */
static inline struct chempi_coll_place
chempi_coll_result_of(const struct chempi_coll_call *c, int i)
{
    bool is_v = c->kind == CHEMPI_COLL_ALLGATHERV;
    MPI_Count at =
        is_v ? chempi_count_array_get(c->rdispls, (size_t)i) : i * c->rcount;

    return (struct chempi_coll_place){
        chempi_coll_at(c->rbuf, at, c->rtype),
        is_v ? chempi_count_array_get(c->rcounts, (size_t)i) : c->rcount};
}

/* count elements of total cut into `parts` nearly equal parts: where part i
 * starts (part `parts` starts at the end). */
static inline MPI_Count chempi_coll_cut(MPI_Count total, int parts, int i)
{
    MPI_Count rest = total % parts;

    return total / parts * i + (i < rest ? i : rest);
}

#endif
