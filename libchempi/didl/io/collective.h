/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective access; doc/files.md has the phases. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_COLLECTIVE_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_COLLECTIVE_H

#include "libchempi/didl/io/op.h"
#include "libchempi/didl/io/task/task.h"

/* What each member tells before an access; 64-bit words. */
enum chempi_io_told {
    CHEMPI_IO_TOLD_POSITION, /* in its view */
    CHEMPI_IO_TOLD_BYTES,
    CHEMPI_IO_TOLD_FROM, /* offsets [from, to); both 0: it has nothing */
    CHEMPI_IO_TOLD_TO,
    CHEMPI_IO_TOLD_RUN,   /* bytes of a run, on average */
    CHEMPI_IO_TOLD_BLIND, /* it is an aggregator and has not got the views */
    CHEMPI_IO_TOLD_WORDS,
    /* And if its view is not known yet: */
    CHEMPI_IO_TOLD_VIEW = CHEMPI_IO_TOLD_WORDS, /* its words; 0: it cannot
                                                   travel */
    CHEMPI_IO_TOLD_FIRST, /* those, where they are at most INLINE */
    CHEMPI_IO_TOLD_INLINE = 34,
    CHEMPI_IO_TOLD_MAX = CHEMPI_IO_TOLD_FIRST + CHEMPI_IO_TOLD_INLINE
};

struct chempi_io_exchange; /* two_phase.c */
struct chempi_io_learning; /* aggregators.c */

/* A collective access under way. */
struct chempi_io_coll {
    struct chempi_io_task task;
    struct chempi_io_op op;
    uint64_t bytes; /* what of a read lies before the end of the file */
    int64_t mine[CHEMPI_IO_TOLD_MAX]; /* what this member tells */
    uint64_t began_ns;                /* the step that is timed */
    int64_t from; /* of all members' data, where it is exchanged */
    int64_t to;
    chempi_io_stage_fn *after_access;
    struct chempi_io_exchange *exchange;
    struct chempi_io_learning *learning;
    bool has_learned;    /* views have come in this access, */
    bool has_long_views; /* some of them by messages */
    int learned;         /* MPI error class of this member */
    chempi_io_stage_fn *after_learning;
};

static inline struct chempi_io_coll *
chempi_io_coll_of(struct chempi_io_task *task)
{
    return CHEMPI_CONTAINER_OF(task, struct chempi_io_coll, task);
}

/* A blocking collective call, to its end. */
int chempi_io_collective(const struct chempi_io_call *c, MPI_Status *status);

/*
 * Begin one that goes on in progress; end() is called when it is over, and
 * then coll->op is to be closed. On failure here the others are not left
 * alone: the access goes on without this member's data. Returns the error of
 * this member's arguments: whoever gets one has no result to wait for.
 */
int chempi_io_coll_start(struct chempi_io_coll *coll,
                         const struct chempi_io_call *c,
                         void (*end)(struct chempi_io_task *t));

/* Before other collective calls on a file: no split collective is under way;
 * waits for non-blocking ones. MPI error class with words. */
int chempi_io_quiet(struct chempi_file *file);
/* The same in a call whose arguments were refused (0: they were not), which is
 * its error then. */
int chempi_io_quiet_for(struct chempi_file *file, int refused);

/* A tag for messages on the file's communicator: all members draw them in the
 * same order. */
static inline int chempi_io_next_tag(struct chempi_file *file)
{
    return file->tags++ & 0x3fffffff;
}

/* A stage: access of an operation, by exchange where that pays. The operation
 * keeps this member's error; then comes after_access. */
void chempi_io_two_phase(struct chempi_io_task *t);

#endif
