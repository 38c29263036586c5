/* SPDX-License-Identifier: BSD-3-Clause */
/* Where in the source a call is; see place.h. */
#include "libchempi/didl/base/place.h"

static chempi_place_fn *find_place;

void chempi_place_set(chempi_place_fn *find)
{
    find_place = find;
}

bool chempi_place_find(const char **call, char place[CHEMPI_PLACE_TEXT])
{
    place[0] = '\0';
    return find_place && find_place(call, place, CHEMPI_PLACE_TEXT);
}
