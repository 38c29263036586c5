/* SPDX-License-Identifier: BSD-3-Clause */
/* Where in the source a call is; see place.h. */
#include "libchempi/didl/base/place.h"

static chempi_place_fn *find_place;
static chempi_place_moves_fn *count_moves;

void chempi_place_set(chempi_place_fn *find, chempi_place_moves_fn *moves)
{
    find_place = find;
    count_moves = moves;
}

bool chempi_place_find(const char **call, char place[CHEMPI_PLACE_TEXT])
{
    place[0] = '\0';
    return find_place && find_place(call, place, CHEMPI_PLACE_TEXT);
}

bool chempi_place_call(const char **call)
{
    return find_place && find_place(call, NULL, 0);
}

uint64_t chempi_place_moves(void)
{
    return count_moves ? count_moves() : 0;
}
