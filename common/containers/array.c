/* SPDX-License-Identifier: BSD-3-Clause */
/* Growing arrays; see array.h. */
#include "common/containers/array.h"

#include <stdint.h>
#include <string.h>

#include "common/base/sys.h"

#define FIRST_LEN 128u /* bytes of the smallest array, or four elements */

/* A power of two, if `room` is one or 0; 0: more than `max`. */
static size_t next_room(size_t room, size_t need, size_t size, size_t max)
{
    size_t next = room ? room : 4;

    while (next < need || next == room || next < FIRST_LEN / size) {
        if (next > max / 2)
            return 0;
        next *= 2;
    }
    return next;
}

bool chempi_array_grow(void *list, size_t size, void *room, size_t room_size,
                       size_t need)
{
    const size_t most = SIZE_MAX / 2 / size;
    uint64_t wide;
    uint32_t narrow;
    size_t next;
    void *at;

    /* By copying, as the types of the variables are not known here. */
    if (room_size == sizeof(narrow)) {
        memcpy(&narrow, room, sizeof(narrow));
        next =
            next_room(narrow, need, size, most < INT32_MAX ? most : INT32_MAX);
    } else {
        memcpy(&wide, room, sizeof(wide));
        next = next_room((size_t)wide, need, size, most);
    }
    if (!next)
        return false;
    memcpy(&at, list, sizeof(at));
    at = chempi_sys->realloc(at, next * size);
    if (!at)
        return false;
    memcpy(list, &at, sizeof(at));
    wide = next;
    narrow = (uint32_t)next;
    if (room_size == sizeof(narrow))
        memcpy(room, &narrow, sizeof(narrow));
    else
        memcpy(room, &wide, sizeof(wide));
    return true;
}
