/* SPDX-License-Identifier: BSD-3-Clause */
/* From return addresses to lines of the source, each of which is looked for
 * once. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/symbol/source_line.h"
#include "common/symbol/symbol.h"
#include "programs/libchempi-check/check.h"

enum { PLACES = 256 };

static struct {
    pthread_mutex_t lock; /* of all below; none is taken inside */
    uint32_t count;
    struct {
        const void *from;
        char words[CHECK_PLACE_TEXT];
    } all[PLACES]; /* of the first ones only */
} places = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void find_place(const void *from, char out[CHECK_PLACE_TEXT])
{
    /* Where the call is, not what follows it. */
    const void *call = (const char *)from - 1;
    struct chempi_symbol symbol;

    if (!chempi_symbol_find(call, &symbol) || symbol.address == 0 ||
        !chempi_source_line(symbol.path, symbol.address, out, CHECK_PLACE_TEXT))
        (void)chempi_symbol_words(call, out, CHECK_PLACE_TEXT);
}

void check_place(const void *from, char out[CHECK_PLACE_TEXT])
{
    uint32_t i = 0;

    (void)pthread_mutex_lock(&places.lock);
    while (i < places.count && places.all[i].from != from)
        i++;
    if (i < places.count) {
        memcpy(out, places.all[i].words, CHECK_PLACE_TEXT);
    } else {
        find_place(from, out);
        if (i < PLACES) {
            places.all[i].from = from;
            memcpy(places.all[i].words, out, CHECK_PLACE_TEXT);
            places.count++;
        }
    }
    (void)pthread_mutex_unlock(&places.lock);
}

char *check_site_words(const struct check_site *site, char *out, size_t len)
{
    char place[CHECK_PLACE_TEXT];

    check_place(site->from, place);
    (void)snprintf(out, len, "%s at %s", check_names[site->id], place);
    return out;
}
