/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parameters of every collective, once: X_ARGS is its parameter list as
 * didl functions have it, X_CALL the struct chempi_coll_call that they fill.
 * The blocking, the non-blocking and the persistent form share both.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_ARGS_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_ARGS_H

#include "libchempi/didl/coll/call.h"

#define BARRIER_ARGS struct chempi_comm *comm
#define BARRIER_CALL                                                           \
    {                                                                          \
        .kind = CHEMPI_COLL_BARRIER, .comm = comm                              \
    }

#define BCAST_ARGS                                                             \
    void *buffer, MPI_Count count, struct chempi_datatype *datatype, int root, \
        struct chempi_comm *comm
#define BCAST_CALL                                                             \
    {                                                                          \
        .kind = CHEMPI_COLL_BCAST, .root = root, .comm = comm, .rbuf = buffer, \
        .rcount = count, .rtype = datatype                                     \
    }

#define REDUCTION_ARGS                                                         \
    const void *sendbuf, void *recvbuf, MPI_Count count,                       \
        struct chempi_datatype *datatype, struct chempi_op *op
#define REDUCTION_CALL                                                         \
    .comm = comm, .sbuf = sendbuf, .rbuf = recvbuf, .rcount = count,           \
    .rtype = datatype, .op = op

#define REDUCE_ARGS REDUCTION_ARGS, int root, struct chempi_comm *comm
#define REDUCE_CALL                                                            \
    {                                                                          \
        .kind = CHEMPI_COLL_REDUCE, .root = root, REDUCTION_CALL               \
    }
#define ALLREDUCE_ARGS REDUCTION_ARGS, struct chempi_comm *comm
#define ALLREDUCE_CALL                                                         \
    {                                                                          \
        .kind = CHEMPI_COLL_ALLREDUCE, REDUCTION_CALL                          \
    }
#define SCAN_ARGS REDUCTION_ARGS, struct chempi_comm *comm
#define SCAN_CALL                                                              \
    {                                                                          \
        .kind = CHEMPI_COLL_SCAN, REDUCTION_CALL                               \
    }
#define EXSCAN_ARGS REDUCTION_ARGS, struct chempi_comm *comm
#define EXSCAN_CALL                                                            \
    {                                                                          \
        .kind = CHEMPI_COLL_EXSCAN, REDUCTION_CALL                             \
    }
#define REDUCE_SCATTER_BLOCK_ARGS                                              \
    const void *sendbuf, void *recvbuf, MPI_Count recvcount,                   \
        struct chempi_datatype *datatype, struct chempi_op *op,                \
        struct chempi_comm *comm
#define REDUCE_SCATTER_BLOCK_CALL                                              \
    {                                                                          \
        .kind = CHEMPI_COLL_REDUCE_SCATTER_BLOCK, .comm = comm,                \
        .sbuf = sendbuf, .rbuf = recvbuf, .rcount = recvcount,                 \
        .rtype = datatype, .op = op                                            \
    }
#define REDUCE_SCATTER_ARGS                                                    \
    const void *sendbuf, void *recvbuf, struct chempi_bigs recvcounts,         \
        struct chempi_datatype *datatype, struct chempi_op *op,                \
        struct chempi_comm *comm
#define REDUCE_SCATTER_CALL                                                    \
    {                                                                          \
        .kind = CHEMPI_COLL_REDUCE_SCATTER, .comm = comm, .sbuf = sendbuf,     \
        .rbuf = recvbuf, .rcounts = recvcounts, .rtype = datatype, .op = op    \
    }

#define SEND_SIDE_ARGS                                                         \
    const void *sendbuf, MPI_Count sendcount, struct chempi_datatype *sendtype
#define SEND_SIDE_CALL .sbuf = sendbuf, .scount = sendcount, .stype = sendtype
#define RECV_SIDE_ARGS                                                         \
    void *recvbuf, MPI_Count recvcount, struct chempi_datatype *recvtype
#define RECV_SIDE_CALL .rbuf = recvbuf, .rcount = recvcount, .rtype = recvtype
#define SENDV_SIDE_ARGS                                                        \
    const void *sendbuf, struct chempi_bigs sendcounts,                        \
        struct chempi_bigs sdispls, struct chempi_datatype *sendtype
#define SENDV_SIDE_CALL                                                        \
    .sbuf = sendbuf, .scounts = sendcounts, .sdispls = sdispls,                \
    .stype = sendtype
#define RECVV_SIDE_ARGS                                                        \
    void *recvbuf, struct chempi_bigs recvcounts, struct chempi_bigs rdispls,  \
        struct chempi_datatype *recvtype
#define RECVV_SIDE_CALL                                                        \
    .rbuf = recvbuf, .rcounts = recvcounts, .rdispls = rdispls,                \
    .rtype = recvtype

#define GATHER_ARGS                                                            \
    SEND_SIDE_ARGS, RECV_SIDE_ARGS, int root, struct chempi_comm *comm
#define GATHER_CALL                                                            \
    {                                                                          \
        .kind = CHEMPI_COLL_GATHER, .root = root, .comm = comm,                \
        SEND_SIDE_CALL, RECV_SIDE_CALL                                         \
    }
#define GATHERV_ARGS                                                           \
    SEND_SIDE_ARGS, RECVV_SIDE_ARGS, int root, struct chempi_comm *comm
#define GATHERV_CALL                                                           \
    {                                                                          \
        .kind = CHEMPI_COLL_GATHERV, .root = root, .comm = comm,               \
        SEND_SIDE_CALL, RECVV_SIDE_CALL                                        \
    }
#define SCATTER_ARGS                                                           \
    SEND_SIDE_ARGS, RECV_SIDE_ARGS, int root, struct chempi_comm *comm
#define SCATTER_CALL                                                           \
    {                                                                          \
        .kind = CHEMPI_COLL_SCATTER, .root = root, .comm = comm,               \
        SEND_SIDE_CALL, RECV_SIDE_CALL                                         \
    }
#define SCATTERV_ARGS                                                          \
    SENDV_SIDE_ARGS, RECV_SIDE_ARGS, int root, struct chempi_comm *comm
#define SCATTERV_CALL                                                          \
    {                                                                          \
        .kind = CHEMPI_COLL_SCATTERV, .root = root, .comm = comm,              \
        SENDV_SIDE_CALL, RECV_SIDE_CALL                                        \
    }
#define ALLGATHER_ARGS SEND_SIDE_ARGS, RECV_SIDE_ARGS, struct chempi_comm *comm
#define ALLGATHER_CALL                                                         \
    {                                                                          \
        .kind = CHEMPI_COLL_ALLGATHER, .comm = comm, SEND_SIDE_CALL,           \
        RECV_SIDE_CALL                                                         \
    }
#define ALLGATHERV_ARGS                                                        \
    SEND_SIDE_ARGS, RECVV_SIDE_ARGS, struct chempi_comm *comm
#define ALLGATHERV_CALL                                                        \
    {                                                                          \
        .kind = CHEMPI_COLL_ALLGATHERV, .comm = comm, SEND_SIDE_CALL,          \
        RECVV_SIDE_CALL                                                        \
    }
#define ALLTOALL_ARGS SEND_SIDE_ARGS, RECV_SIDE_ARGS, struct chempi_comm *comm
#define ALLTOALL_CALL                                                          \
    {                                                                          \
        .kind = CHEMPI_COLL_ALLTOALL, .comm = comm, SEND_SIDE_CALL,            \
        RECV_SIDE_CALL                                                         \
    }
#define ALLTOALLV_ARGS                                                         \
    SENDV_SIDE_ARGS, RECVV_SIDE_ARGS, struct chempi_comm *comm
#define ALLTOALLV_CALL                                                         \
    {                                                                          \
        .kind = CHEMPI_COLL_ALLTOALLV, .comm = comm, SENDV_SIDE_CALL,          \
        RECVV_SIDE_CALL                                                        \
    }
#define ALLTOALLW_ARGS                                                         \
    const void *sendbuf, struct chempi_bigs sendcounts,                        \
        struct chempi_bigs sdispls, const MPI_Datatype sendtypes[],            \
        void *recvbuf, struct chempi_bigs recvcounts,                          \
        struct chempi_bigs rdispls, const MPI_Datatype recvtypes[],            \
        struct chempi_comm *comm
#define ALLTOALLW_CALL                                                         \
    {                                                                          \
        .kind = CHEMPI_COLL_ALLTOALLW, .comm = comm, .sbuf = sendbuf,          \
        .scounts = sendcounts, .sdispls = sdispls, .stypes = sendtypes,        \
        .rbuf = recvbuf, .rcounts = recvcounts, .rdispls = rdispls,            \
        .rtypes = recvtypes                                                    \
    }

#endif
