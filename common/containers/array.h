/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Growing arrays: a list, a count and a room (elements that fit), each in a
 * variable or member of the caller, who frees the list with free().
 *
 *   if (!CHEMPI_ARRAY_FIT(names->list, names->room, names->count + 1))
 *       return -ENOMEM;
 *   names->list[names->count++] = name;
 */
#ifndef CHEMPI_COMMON_CONTAINERS_ARRAY_H
#define CHEMPI_COMMON_CONTAINERS_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * True: `list` has room for `need` elements. It may have moved; what is new is
 * not initialised. The room is a power of two and at least doubles, so
 * appending costs constant time. False: out of memory, and all is as it was.
 * `list` and `room` are evaluated more than once; `room` is an integer of 32
 * (at most INT32_MAX elements) or 64 bits. Not thread-safe.
 */
#define CHEMPI_ARRAY_FIT(list, room, need)                                     \
    ((size_t)(need) <= (size_t)(room) ||                                       \
     chempi_array_grow((void *)&(list), sizeof(*(list)), &(room),              \
                       sizeof(room), (size_t)(need)))

/* What CHEMPI_ARRAY_FIT() does when the room is too small: `list` points at a
 * pointer to elements of `size` bytes, `room` at an integer of `room_size`. */
bool chempi_array_grow(void *list, size_t size, void *room, size_t room_size,
                       size_t need);

#endif
