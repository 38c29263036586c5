/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two groups of processes meet, through their leaders, and become the sides of
 * an intercommunicator (MPI_Comm_accept, connect, join; spawn). See
 * doc/dynamic.md.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_MEET_H
#define CHEMPI_LIBCHEMPI_DIDL_MEET_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "libchempi/didl/proc/exchange.h"

struct chempi_comm;

/* How the root of a side finds the other one. */
struct chempi_meet {
    struct chempi_comm *comm; /* this side's, an intracommunicator */
    int root;
    int error; /* this member has failed before, and its words are noted:
                  nobody is met, and its side hears */
    /* Of the root alone: */
    /* Have an exchange that will be connected; under the lane lock. */
    int (*begin)(const struct chempi_meet *meet, struct chempi_exchange **out,
                 struct chempi_err *err);
    const char *port;  /* for begin() */
    int fd;            /* the same */
    const char *way;   /* "a caller of the port", for words */
    int error_class;   /* when the other side is not found, or is lost */
    uint64_t limit_ns; /* until it is found; 0: for ever */
    uint32_t most;     /* processes of the other side, but for as many as the
                          own job has; CHEMPI_FOREIGN_MAX: all that can be */
    /* NULL, or: is there no point in waiting for the other side any longer?
     * MPI_SUCCESS, or an error class with words. Under the lock. */
    int (*is_hopeless)(const struct chempi_meet *meet, struct chempi_err *err);
};

/* What is wrong with comm and root, if nothing else is (refused). *error: what
 * the members shall hear of in chempi_meet(); root is one of theirs then. MPI
 * error class: all know, and return it. */
int chempi_meet_check(const struct chempi_comm *comm, int *root, int refused,
                      int *error);

/* Collective in meet->comm. The new communicator has its error handler. MPI
 * error class, at all of this side if it is one of the root. */
int chempi_meet(const struct chempi_meet *meet, MPI_Comm *out);

/* begin() of ports. */
int chempi_meet_accept(const struct chempi_meet *meet,
                       struct chempi_exchange **out, struct chempi_err *err);
int chempi_meet_connect(const struct chempi_meet *meet,
                        struct chempi_exchange **out, struct chempi_err *err);

#endif
