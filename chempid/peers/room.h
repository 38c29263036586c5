/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Room in the queue of a link between daemons, which users share. Three
 * quarters are for who comes first. In the last one each of CHEMPI_ROOM_USERS
 * has CHEMPI_ROOM_BYTES: who fills the queue, by however many jobs and
 * questions, keeps others from nothing.
 *
 *   -   what waits beyond three quarters is counted, with the heads of frames
 *   -   frames that have gone out leave a user's count, some together, whatever
 *       has become of the job or question meanwhile: it is what waits, or up to
 *       about twice that
 */
#ifndef CHEMPI_CHEMPID_ROOM_H
#define CHEMPI_CHEMPID_ROOM_H

#include <stdbool.h>
#include <sys/types.h>

#include "chempid/tree/link.h"

struct chempi_room_part;

/* Zeros are an empty one. */
struct chempi_room {
    struct chempi_room_part *parts; /* [CHEMPI_ROOM_USERS], or NULL: none yet */
};

void chempi_room_fini(struct chempi_room *room);

/* Does a frame of so many bytes of this user fit? */
bool chempi_room_fits(struct chempi_room *room, const struct chempi_link *link,
                      uid_t uid, size_t len);
/* It has been queued. */
void chempi_room_count(struct chempi_room *room, const struct chempi_link *link,
                       uid_t uid, size_t len);

/* chempi_link_try_end() for a frame of this user that fits. */
int chempi_room_end(struct chempi_room *room, struct chempi_link *link,
                    uid_t uid);

#endif
