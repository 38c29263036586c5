/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the collectives owe the rest of the library. The MPI functions
 * themselves are declared in "libchempi/api/api_impl.h".
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_COLL_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_COLL_H

#include <stdbool.h>
#include <stdint.h>

struct chempi_comm;

/* After the region, the devices and MPI_COMM_WORLD are there: lay out the
 * node's areas. All local ranks call it at the same point of their sequence
 * of region extensions. 0 or MPI error class. Does not communicate. */
int chempi_coll_init(void);

/* Before the region and the communicators go. */
void chempi_coll_fini(void);

/* A communicator of the library's own (is_own), before its members agree that
 * all have it: the memory that its first operation would want. False: there is
 * none. That operation finds out by itself, with the others, whether it goes
 * through shared memory. */
bool chempi_coll_own(struct chempi_comm *comm);

/* Ways whose use is counted, for performance variables. */
enum chempi_coll_way {
    CHEMPI_COLL_WAY_RINGS,  /* exchanges through rings */
    CHEMPI_COLL_WAY_CHAIN,  /* reductions to a root through SPSC rings */
    CHEMPI_COLL_WAY_BOARDS, /* reductions of inputs on boards */
    CHEMPI_COLL_WAY_PAST,   /* data for far cores past this one's caches */
    CHEMPI_COLL_WAYS
};

/* From nothing, at the library's start. */
void chempi_coll_count_anew(void);

/* One more; any thread. */
void chempi_coll_count(enum chempi_coll_way way);

/* Since then. */
uint64_t chempi_coll_counted(enum chempi_coll_way way);

#endif
