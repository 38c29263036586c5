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
#include "libchempi/didl/op/op.h"

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

/* What goes out of a process, or what comes into it: one block for all other
 * processes, or one for each. */
struct chempi_coll_side {
    void *buf;
    MPI_Count count;
    struct chempi_datatype *type;
    struct chempi_count_array counts;
    struct chempi_count_array displs;
    const MPI_Datatype *types;
};

struct chempi_coll_call {
    enum chempi_coll_kind kind;
    int root;
    struct chempi_comm *comm;
    struct chempi_coll_side send; /* its buffer is only read */
    /* bcast: the buffer, count and type; reductions: count and type of both */
    struct chempi_coll_side recv;
    struct chempi_op *op;
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

/* Does each block have its own count? Such forms of an operation stand behind
 * the regular one. */
static inline bool chempi_coll_has_counts(const struct chempi_coll_call *c)
{
    static_assert(CHEMPI_COLL_GATHERV % 2 && CHEMPI_COLL_SCATTERV % 2 &&
                      CHEMPI_COLL_ALLGATHERV % 2 && CHEMPI_COLL_ALLTOALLV % 2,
                  "blocks of many counts have odd kinds, others even ones");
    return (unsigned)c->kind % 2;
}

/* Block i of a side: one of many of the same count, one of its own count, or
 * one of its own datatype, too. */
static inline struct chempi_coll_place
chempi_coll_block_of(const struct chempi_coll_call *c,
                     const struct chempi_coll_side *side, int i)
{
    const bool has_types = c->kind == CHEMPI_COLL_ALLTOALLW;
    MPI_Count count;
    MPI_Count displ;

    if (!has_types && !chempi_coll_has_counts(c))
        return (struct chempi_coll_place){
            chempi_coll_at(side->buf, i * side->count, side->type), side->count,
            side->type};
    count = chempi_count_array_get(side->counts, (size_t)i);
    displ = chempi_count_array_get(side->displs, (size_t)i);
    if (!has_types)
        return (struct chempi_coll_place){
            chempi_coll_at(side->buf, displ, side->type), count, side->type};
    /* The type of nothing may be any, or one that is freed by now. */
    return (struct chempi_coll_place){
        chempi_coll_plus(side->buf, displ), count,
        chempi_datatype_lookup(count > 0 ? side->types[i] : MPI_BYTE)};
}

/* What goes from this process to process i, of a scatter or an exchange. */
static inline struct chempi_coll_place
chempi_coll_sent(const struct chempi_coll_call *c, int i)
{
    return chempi_coll_block_of(c, &c->send, i);
}

/* Where goes what comes from process i, of a gather or an exchange. */
static inline struct chempi_coll_place
chempi_coll_received(const struct chempi_coll_call *c, int i)
{
    return chempi_coll_block_of(c, &c->recv, i);
}

/* A side of one block: what is sent to all in a gather, what comes from the
 * root of a scatter. */
static inline struct chempi_coll_place
chempi_coll_whole(const struct chempi_coll_side *side)
{
    return (struct chempi_coll_place){side->buf, side->count, side->type};
}

/* count elements of total cut into `parts` nearly equal parts: where part i
 * starts (part `parts` starts at the end). */
static inline MPI_Count chempi_coll_cut(MPI_Count total, int parts, int i)
{
    MPI_Count rest = total % parts;

    return total / parts * i + (i < rest ? i : rest);
}

#endif
