/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partitioned communication (MPI 5.0, chapter 4); doc/partitioned.md has the
 * flow of messages and the reasons.
 *
 *   W1  the sender reserves one wire tag per partition for as long as its
 *       request lives; no two live requests of a process share a tag
 *   -   MPI_Psend_init sends one hello, MPI_Precv_init posts one receive for
 *       it, with the user's tag and a context of their own: they match in the
 *       order of initialization, and with nothing else
 *   -   after the hello, both sides know the wire tags: partition k of the
 *       sender travels as one message with tag `first + k`, in each round
 *   W4  a receive side that was started posts its receives when it knows the
 *       hello; until then it stands in the list of those that wait
 *   W5  missing[p] is the number of the sender's partitions that cover the
 *       receiver's partition p and have not arrived in this round
 *
 * Everything is guarded by the lane lock.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_PARTITIONED_H
#define CHEMPI_LIBCHEMPI_DIDL_PARTITIONED_H

#include "libchempi/didl/transport/request.h"

/* What the sender tells; all 64-bit integers of the job's representation. */
struct chempi_partitioned_hello {
    int64_t first;      /* wire tag of partition 0, counted from the lowest */
    int64_t partitions; /* of the sender */
    int64_t len;        /* bytes of each */
};

/* Wire tags are negative, so that no user's tag is one; those near zero are
 * left out, since MPI gives some of them a meaning. */
#define CHEMPI_PARTITIONED_TAGS (INT64_C(0x80000000) - 0x10000)

static inline int chempi_partitioned_tag(int64_t index)
{
    return (int)(INT32_MIN + index);
}

/* Arguments of both init calls beyond what the API checks; *len becomes the
 * bytes of one partition. MPI error class. */
int chempi_partitioned_check(int partitions, MPI_Count count,
                             const struct chempi_datatype *type,
                             MPI_Count *len);

/* Start a child that tells `parent` when it is complete; `ops`, if any, replace
 * its own. On failure it is destroyed by them. Under the lock. */
int chempi_partitioned_launch(struct chempi_request *child,
                              struct chempi_request *parent,
                              int (*start)(struct chempi_request *child),
                              const struct chempi_request_ops *ops);

#endif
