/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the members of a file know of each other for two-phase access: who the
 * aggregators are and, at aggregators, everybody's view. Short views of few
 * members travel when they are set, those of many with what members tell
 * before an access; long ones are fetched when an exchange pays. What has
 * changed, or did not come, travels before the next access.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_EXCHANGE_AGGREGATORS_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_EXCHANGE_AGGREGATORS_H

#include "libchempi/didl/io/collective.h"
#include "libchempi/didl/io/file.h"

struct chempi_io_aggregators {
    bool is_known;       /* aggregators have the views of all members, but who
                            tells that it is blind */
    bool is_blind;       /* this member has not got them */
    int count;           /* of aggregators */
    int *ranks;          /* [count] of the aggregators, in ascending order */
    int mine;            /* this member's place in ranks, or -1 */
    bool *is_aggregator; /* [comm->size] */
    uint32_t *places;    /* [comm->size]: members of lower rank on its node */
    struct chempi_io_view *views; /* [comm->size], at aggregators; no types */
    int64_t *told; /* what each member has told, `stride` words each */
    int stride;
};

static inline const int64_t *
chempi_io_told_by(const struct chempi_io_aggregators *agg, uint32_t rank)
{
    return agg->told + (size_t)rank * (size_t)agg->stride;
}

/* What a file of several members knows of them: made with its communicator;
 * aggregators are chosen when it is there, and anew when the hint cb_nodes has
 * changed (collective); views are forgotten when one or another hint has
 * changed. */
int chempi_io_aggregators_make(struct chempi_file *file);
int chempi_io_aggregators_choose(struct chempi_file *file);
void chempi_io_aggregators_forget(struct chempi_file *file);
/* A view was set (collective): short ones travel now where an exchange may
 * pay. MPI error class of a communication that failed. */
int chempi_io_aggregators_meet(struct chempi_file *file);
void chempi_io_aggregators_drop(struct chempi_file *file);

/* This member's view, with what it tells; after that agg->stride words are
 * what all members tell. */
void chempi_io_aggregators_tell(struct chempi_io_coll *coll);

/* From what all have told: are all views ordered and small enough to travel?
 * The same answer for all. */
bool chempi_io_aggregators_can_travel(const struct chempi_file *file);

/* A stage: aggregators learn the views, unless they know them. `after` runs
 * with this member's error in rc; is_known is set by whoever knows that all
 * have succeeded. */
void chempi_io_aggregators_learn(struct chempi_io_coll *coll,
                                 chempi_io_stage_fn *after);

#endif
