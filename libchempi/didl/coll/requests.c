/* SPDX-License-Identifier: BSD-3-Clause */
/* The non-blocking and persistent collectives as the MPI functions call them
 * (MPI 5.0, sections 6.12 and 6.13). */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/coll/args.h"
#include "libchempi/didl/coll/async.h"

#define NON_BLOCKING(name, NAME)                                               \
    int name(NAME##_ARGS, MPI_Request *request)                                \
    {                                                                          \
        struct chempi_coll_call c = NAME##_CALL;                               \
                                                                               \
        return chempi_coll_start(&c, request);                                 \
    }

/* Hints about persistent collectives there are none that we know. */
#define PERSISTENT(name, NAME)                                                 \
    int name(NAME##_ARGS, struct chempi_info *info, MPI_Request *request)      \
    {                                                                          \
        struct chempi_coll_call c = NAME##_CALL;                               \
                                                                               \
        (void)info;                                                            \
        return chempi_coll_prepare(&c, request);                               \
    }

NON_BLOCKING(chempi_coll_ibarrier, BARRIER)
NON_BLOCKING(chempi_coll_ibcast, BCAST)
NON_BLOCKING(chempi_coll_ireduce, REDUCE)
NON_BLOCKING(chempi_coll_iallreduce, ALLREDUCE)
NON_BLOCKING(chempi_coll_igather, GATHER)
NON_BLOCKING(chempi_coll_igatherv, GATHERV)
NON_BLOCKING(chempi_coll_iscatter, SCATTER)
NON_BLOCKING(chempi_coll_iscatterv, SCATTERV)
NON_BLOCKING(chempi_coll_iallgather, ALLGATHER)
NON_BLOCKING(chempi_coll_iallgatherv, ALLGATHERV)
NON_BLOCKING(chempi_coll_ialltoall, ALLTOALL)
NON_BLOCKING(chempi_coll_ialltoallv, ALLTOALLV)
NON_BLOCKING(chempi_coll_ialltoallw, ALLTOALLW)
NON_BLOCKING(chempi_coll_ireduce_scatter, REDUCE_SCATTER)
NON_BLOCKING(chempi_coll_ireduce_scatter_block, REDUCE_SCATTER_BLOCK)
NON_BLOCKING(chempi_coll_iscan, SCAN)
NON_BLOCKING(chempi_coll_iexscan, EXSCAN)

PERSISTENT(chempi_coll_barrier_init, BARRIER)
PERSISTENT(chempi_coll_bcast_init, BCAST)
PERSISTENT(chempi_coll_reduce_init, REDUCE)
PERSISTENT(chempi_coll_allreduce_init, ALLREDUCE)
PERSISTENT(chempi_coll_gather_init, GATHER)
PERSISTENT(chempi_coll_gatherv_init, GATHERV)
PERSISTENT(chempi_coll_scatter_init, SCATTER)
PERSISTENT(chempi_coll_scatterv_init, SCATTERV)
PERSISTENT(chempi_coll_allgather_init, ALLGATHER)
PERSISTENT(chempi_coll_allgatherv_init, ALLGATHERV)
PERSISTENT(chempi_coll_alltoall_init, ALLTOALL)
PERSISTENT(chempi_coll_alltoallv_init, ALLTOALLV)
PERSISTENT(chempi_coll_alltoallw_init, ALLTOALLW)
PERSISTENT(chempi_coll_reduce_scatter_init, REDUCE_SCATTER)
PERSISTENT(chempi_coll_reduce_scatter_block_init, REDUCE_SCATTER_BLOCK)
PERSISTENT(chempi_coll_scan_init, SCAN)
PERSISTENT(chempi_coll_exscan_init, EXSCAN)
