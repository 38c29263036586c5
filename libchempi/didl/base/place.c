/* SPDX-License-Identifier: BSD-3-Clause */
/* Where in the source a call is; see place.h. */
#include "libchempi/didl/base/place.h"

static chempi_place_fn *find_place;
static chempi_place_moves_fn *count_moves;
static chempi_place_site_fn *number_site;
static chempi_place_words_fn *put_words;

void chempi_place_set(chempi_place_fn *find, chempi_place_moves_fn *moves,
                      chempi_place_site_fn *site, chempi_place_words_fn *words)
{
    find_place = find;
    count_moves = moves;
    number_site = site;
    put_words = words;
}

bool chempi_place_is_known(void)
{
    return number_site != NULL;
}

uint16_t chempi_place_site(void)
{
    return number_site ? number_site() : 0;
}

void chempi_place_words(uint16_t site, char text[CHEMPI_PLACE_TEXT])
{
    text[0] = '\0';
    if (put_words)
        put_words(site, text, CHEMPI_PLACE_TEXT);
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
