/* SPDX-License-Identifier: BSD-3-Clause */
/* What users may have of a queue that others use, too. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "chempid/peers/room.h"
#include "chempid/tree/limits.h"
#include "common/control/msg.h"

#define CROWDED (CHEMPI_QUEUE_MAX / 4 * 3)

static struct chempi_room room;
static struct chempi_link link_; /* whose queue is a number */

/* A frame with so many bytes, its head included. */
static bool add(uid_t uid, size_t len)
{
    if (!chempi_room_fits(&room, &link_, uid, len - CHEMPI_FRAME_HEADER))
        return false;
    link_.sent += len;
    link_.ch.out.len += len;
    chempi_room_count(&room, &link_, uid, len - CHEMPI_FRAME_HEADER);
    return true;
}

static void fini(void)
{
    chempi_room_fini(&room);
}

Test(room, three_quarters_are_anyones, .fini = fini)
{
    cr_assert(add(1, CROWDED));
    cr_assert_not(add(1, CHEMPI_ROOM_BYTES + 1));
    cr_assert(add(1, CHEMPI_ROOM_BYTES));
}

Test(room, a_user_has_a_part_of_the_rest_however_small_its_frames, .fini = fini)
{
    uint32_t count = 0;

    cr_assert(add(1, CROWDED));
    while (add(1, CHEMPI_FRAME_HEADER))
        count++;
    cr_assert_eq(count, CHEMPI_ROOM_BYTES / CHEMPI_FRAME_HEADER);
    cr_assert(add(2, CHEMPI_ROOM_BYTES));
    cr_assert_not(add(2, CHEMPI_FRAME_HEADER));
}

Test(room, users_together_do_not_fill_the_queue, .fini = fini)
{
    cr_assert(add(0, CROWDED));
    for (uid_t uid = 0; uid < CHEMPI_ROOM_USERS; uid++)
        cr_assert(add(uid, CHEMPI_ROOM_BYTES));
    cr_assert_not(add(CHEMPI_ROOM_USERS, CHEMPI_FRAME_HEADER));
    cr_assert_leq(chempi_link_queued(&link_), CHEMPI_QUEUE_MAX);
}

Test(room, a_part_comes_back_when_it_has_gone_out, .fini = fini)
{
    cr_assert(add(1, CROWDED));
    cr_assert(add(1, CHEMPI_ROOM_BYTES));
    cr_assert(add(2, CHEMPI_ROOM_BYTES));
    link_.ch.out_head += CHEMPI_ROOM_BYTES; /* of the three quarters */
    cr_assert_not(add(1, CHEMPI_ROOM_BYTES));
    link_.ch.out_head += CROWDED;
    cr_assert(add(1, CROWDED - CHEMPI_ROOM_BYTES));
    cr_assert(add(1, CHEMPI_ROOM_BYTES));
    cr_assert_not(add(2, CHEMPI_ROOM_BYTES)); /* some is left of the last */
}

/* It always has something in the queue, which others fill again. */
Test(room, who_goes_on_is_not_charged_for_what_has_gone_out, .fini = fini)
{
    const size_t len = CHEMPI_ROOM_BYTES / 8;

    cr_assert(add(1, CROWDED));
    for (int i = 0; i < 100; i++) {
        cr_assert(add(2, len), "%d", i);
        link_.ch.out_head += CROWDED / 2;
        cr_assert(add(1, CROWDED / 2 - len));
    }
}
