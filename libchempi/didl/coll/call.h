/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arguments of one collective call, whatever it is; which members are
 * significant follows from the kind and MPI 5.0, chapter 6. Whoever fills it
 * in uses designated initialisers.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_CALL_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_CALL_H

#include <assert.h>
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
    struct chempi_datatype *type;
};

static inline MPI_Count
chempi_coll_place_bytes(const struct chempi_coll_place *p)
{
    return p->count > 0 ? p->count * p->type->size : 0;
}

/* Block i of a buffer: one of many of the same count, one of its own count, or
 * one of its own datatype, too. */
static inline struct chempi_coll_place
chempi_coll_block_of_many(const void *buf, MPI_Count count,
                          struct chempi_datatype *type, int i)
{
    return (struct chempi_coll_place){chempi_coll_at(buf, i * count, type),
                                      count, type};
}

static inline struct chempi_coll_place
chempi_coll_block_of_count(const void *buf, struct chempi_count_array counts,
                           struct chempi_count_array displs,
                           struct chempi_datatype *type, int i)
{
    return (struct chempi_coll_place){
        chempi_coll_at(buf, chempi_count_array_get(displs, (size_t)i), type),
        chempi_count_array_get(counts, (size_t)i), type};
}

static inline struct chempi_coll_place
chempi_coll_block_of_type(const void *buf, struct chempi_count_array counts,
                          struct chempi_count_array displs,
                          const MPI_Datatype *types, int i)
{
    const MPI_Count count = chempi_count_array_get(counts, (size_t)i);

    /* The type of nothing may be any, or one that is freed by now. */
    return (struct chempi_coll_place){
        chempi_coll_plus(buf, chempi_count_array_get(displs, (size_t)i)), count,
        chempi_datatype_lookup(count > 0 ? types[i] : MPI_BYTE)};
}

/* Does each block have its own count? Such forms of an operation stand behind
 * the regular one. */
static inline bool chempi_coll_has_counts(const struct chempi_coll_call *c)
{
    static_assert(CHEMPI_COLL_GATHERV % 2 && CHEMPI_COLL_SCATTERV % 2 &&
                      CHEMPI_COLL_ALLGATHERV % 2 && CHEMPI_COLL_ALLTOALLV % 2,
                  "blocks of many counts have odd kinds, others even ones");
    return (unsigned)c->kind % 2;
}

/* What goes from this process to process i, of a scatter or an exchange. */
static inline struct chempi_coll_place
chempi_coll_sent(const struct chempi_coll_call *c, int i)
{
    if (chempi_coll_has_counts(c))
        return chempi_coll_block_of_count(c->sbuf, c->scounts, c->sdispls,
                                          c->stype, i);
    if (c->kind == CHEMPI_COLL_ALLTOALLW)
        return chempi_coll_block_of_type(c->sbuf, c->scounts, c->sdispls,
                                         c->stypes, i);
    return chempi_coll_block_of_many(c->sbuf, c->scount, c->stype, i);
}

/* What it sends in a gather: the same to all. */
static inline struct chempi_coll_place
chempi_coll_sent_to_all(const struct chempi_coll_call *c)
{
    return (struct chempi_coll_place){(void *)(uintptr_t)c->sbuf, c->scount,
                                      c->stype};
}

/* Where goes what comes from process i, of a gather or an exchange. */
static inline struct chempi_coll_place
chempi_coll_received(const struct chempi_coll_call *c, int i)
{
    if (chempi_coll_has_counts(c))
        return chempi_coll_block_of_count(c->rbuf, c->rcounts, c->rdispls,
                                          c->rtype, i);
    if (c->kind == CHEMPI_COLL_ALLTOALLW)
        return chempi_coll_block_of_type(c->rbuf, c->rcounts, c->rdispls,
                                         c->rtypes, i);
    return chempi_coll_block_of_many(c->rbuf, c->rcount, c->rtype, i);
}

/* Where goes what comes from the root of a scatter. */
static inline struct chempi_coll_place
chempi_coll_received_from_root(const struct chempi_coll_call *c)
{
    return (struct chempi_coll_place){c->rbuf, c->rcount, c->rtype};
}

/* count elements of total cut into `parts` nearly equal parts: where part i
 * starts (part `parts` starts at the end). */
static inline MPI_Count chempi_coll_cut(MPI_Count total, int parts, int i)
{
    MPI_Count rest = total % parts;

    return total / parts * i + (i < rest ? i : rest);
}

#endif
