/* SPDX-License-Identifier: BSD-3-Clause */
/* Where in the source a call is; see call_site.h. */
#include "libchempi/didl/base/call_site.h"

static chempi_call_site_find_fn *find_place;
static chempi_call_site_moves_fn *count_moves;
static chempi_call_site_number_fn *number_site;
static chempi_call_site_words_fn *put_words;

void chempi_call_site_set(chempi_call_site_find_fn *find,
                          chempi_call_site_moves_fn *moves,
                          chempi_call_site_number_fn *site,
                          chempi_call_site_words_fn *words)
{
    find_place = find;
    count_moves = moves;
    number_site = site;
    put_words = words;
}

bool chempi_call_site_is_known(void)
{
    return number_site != NULL;
}

uint16_t chempi_call_site_number(void)
{
    return number_site ? number_site() : 0;
}

void chempi_call_site_words(uint16_t site, char text[CHEMPI_CALL_SITE_TEXT])
{
    text[0] = '\0';
    if (put_words)
        put_words(site, text, CHEMPI_CALL_SITE_TEXT);
}

bool chempi_call_site_find(const char **call, char place[CHEMPI_CALL_SITE_TEXT])
{
    place[0] = '\0';
    return find_place && find_place(call, place, CHEMPI_CALL_SITE_TEXT);
}

bool chempi_call_site_function(const char **call)
{
    return find_place && find_place(call, NULL, 0);
}

uint64_t chempi_call_site_moves(void)
{
    return count_moves ? count_moves() : 0;
}
