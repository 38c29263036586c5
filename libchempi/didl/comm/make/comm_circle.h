/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agreements among the members of a group, under a tag of the user's: whoever
 * waits for one of them is told when any is lost, since the others may have
 * heard of it, and left. These may take the same tag for a circle without the
 * lost one at once. In a job that survives, members that mean different groups
 * therefore wait for each other; in others they get MPI_ERR_GROUP.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COMM_CIRCLE_H
#define CHEMPI_LIBCHEMPI_DIDL_COMM_CIRCLE_H

#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/transport/loss.h"

struct chempi_comm_circle {
    struct chempi_comm_channel channel;
    struct chempi_loss_circle loss;
};

/* Member i of the group, all in comm, is rank ranks[i] there; ranks may be
 * NULL, which takes longer unless comm has all processes. Group and ranks stay
 * until it is closed. */
void chempi_comm_circle_open(struct chempi_comm_circle *circle,
                             struct chempi_comm *comm, const int *ranks,
                             const struct chempi_group *group, int tag,
                             enum chempi_context_kind kind);
void chempi_comm_circle_close(struct chempi_comm_circle *circle);

/* What members say to each other are votes, and data behind agreements. It ends
 * with its mark: for which circle it is (0: no agreement under a tag of the
 * user's), which of both, and an error class. */
enum { CHEMPI_COMM_MARK_ERROR_BITS = 31 };
#define CHEMPI_COMM_MARK_DATA (INT64_C(1) << 62)
static inline int64_t chempi_comm_mark(const struct chempi_comm_channel *ch,
                                       int error)
{
    return (int64_t)ch->circle << CHEMPI_COMM_MARK_ERROR_BITS | error;
}
static inline uint32_t chempi_comm_marked_circle(int64_t mark)
{
    return (uint32_t)(mark >> CHEMPI_COMM_MARK_ERROR_BITS) & INT32_MAX;
}
static inline int chempi_comm_marked_error(int64_t mark)
{
    return (int)(mark & INT32_MAX);
}

/* Send n words, the mark being the last, to a rank of the channel's
 * communicator, and receive the same of that circle from another one
 * (MPI_PROC_NULL: not). A vote has at most CHEMPI_COMM_VALS_MAX and the mark;
 * who has no data sends a mark with an error alone, which comes in at in[n - 1]
 * all the same. MPI error class; then `in` says nothing. */
int chempi_comm_circle_step(const struct chempi_comm_channel *ch, bool is_data,
                            int to, const int64_t *out, int from, int64_t *in,
                            int n);

#endif
