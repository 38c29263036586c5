/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agreements among the members of a group, under a tag of the user's: whoever
 * waits for one of them is told when any is lost, since the others may have
 * heard of it, and left.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COMM_CIRCLE_H
#define CHEMPI_LIBCHEMPI_DIDL_COMM_CIRCLE_H

#include "libchempi/didl/comm/comm_make.h"
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

#endif
