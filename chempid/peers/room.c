/* SPDX-License-Identifier: BSD-3-Clause */
/* Room for users on links between daemons; see room.h. */
#include "chempid/peers/room.h"

#include <errno.h>
#include <stdlib.h>

#include "chempid/tree/limits.h"
#include "common/base/sys.h"
#include "common/control/msg.h"

#define CROWDED (CHEMPI_QUEUE_MAX / 4 * 3)

_Static_assert(CHEMPI_ROOM_USERS *CHEMPI_ROOM_BYTES < CHEMPI_QUEUE_MAX / 4,
               "users do not fill it");

struct chempi_room_part {
    uid_t uid;
    uint64_t end; /* of the user's last frame, by the link's count */
    uint64_t bytes;
    uint64_t older; /* of them: of the frames up to `middle` */
    uint64_t middle;
};

void chempi_room_fini(struct chempi_room *room)
{
    free(room->parts);
    room->parts = NULL;
}

/* The user's part, when so many bytes of the link have gone out; NULL: all are
 * taken, or there is no memory. */
static struct chempi_room_part *find(struct chempi_room *room, uint64_t gone,
                                     uid_t uid)
{
    struct chempi_room_part *idle = NULL;

    if (!room->parts)
        room->parts =
            chempi_sys->calloc(CHEMPI_ROOM_USERS, sizeof(*room->parts));
    for (uint32_t i = 0; room->parts && i < CHEMPI_ROOM_USERS; i++) {
        struct chempi_room_part *part = &room->parts[i];

        if (part->end > gone && part->uid == uid) {
            if (part->middle <= gone) {
                part->bytes -= part->older;
                part->older = 0;
            }
            return part;
        }
        if (part->end <= gone)
            idle = part;
    }
    if (idle)
        *idle = (struct chempi_room_part){.uid = uid};
    return idle;
}

static bool fits(struct chempi_room *room, const struct chempi_link *link,
                 uid_t uid, size_t queued, size_t len)
{
    const struct chempi_room_part *part;

    if (queued + len <= CROWDED)
        return true;
    part = find(room, link->sent - queued, uid);
    return part && part->bytes + len <= CHEMPI_ROOM_BYTES;
}

bool chempi_room_fits(struct chempi_room *room, const struct chempi_link *link,
                      uid_t uid, size_t len)
{
    return fits(room, link, uid, chempi_link_queued(link),
                CHEMPI_FRAME_HEADER + len);
}

void chempi_room_count(struct chempi_room *room, const struct chempi_link *link,
                       uid_t uid, size_t len)
{
    const size_t queued = chempi_link_queued(link);
    struct chempi_room_part *part = NULL;

    if (queued > CROWDED)
        part = find(room, link->sent - queued, uid);
    if (!part)
        return;
    part->end = link->sent;
    part->bytes += CHEMPI_FRAME_HEADER + len;
    if (part->older)
        return;
    part->older = part->bytes;
    part->middle = part->end;
}

int chempi_room_end(struct chempi_room *room, struct chempi_link *link,
                    uid_t uid)
{
    const size_t begun = link->ch.out.len - link->ch.out_frame;
    const size_t queued = link->ch.out_frame - link->ch.out_head;
    int rc;

    if (!link->is_open || link->ch.out.error)
        return chempi_link_try_end(link);
    if (!fits(room, link, uid, queued, begun))
        link->ch.out.error = -ENOBUFS; /* the link takes the frame back */
    rc = chempi_link_try_end(link);
    if (!rc)
        chempi_room_count(room, link, uid, begun - CHEMPI_FRAME_HEADER);
    return rc;
}
