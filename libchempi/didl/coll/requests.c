/* SPDX-License-Identifier: BSD-3-Clause */
/* The non-blocking and persistent collectives as the MPI functions call them
 * (MPI 5.0, sections 6.12 and 6.13). */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/coll/args.h"
#include "libchempi/didl/coll/async.h"

#define NON_BLOCKING(name, NAME)                                               \
    int chempi_coll_i##name(NAME##_ARGS, MPI_Request *request)                 \
    {                                                                          \
        struct chempi_coll_call c = NAME##_CALL;                               \
                                                                               \
        return chempi_coll_start(&c, request);                                 \
    }

/* Hints about persistent collectives there are none that we know. */
#define PERSISTENT(name, NAME)                                                 \
    int chempi_coll_##name##_init(NAME##_ARGS, struct chempi_info *info,       \
                                  MPI_Request *request)                        \
    {                                                                          \
        struct chempi_coll_call c = NAME##_CALL;                               \
                                                                               \
        (void)info;                                                            \
        return chempi_coll_prepare(&c, request);                               \
    }

NON_BLOCKING(barrier, BARRIER)
PERSISTENT(barrier, BARRIER)
CHEMPI_COLL_FOR_EACH(NON_BLOCKING)
CHEMPI_COLL_FOR_EACH(PERSISTENT)
