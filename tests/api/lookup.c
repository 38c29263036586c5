/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Look up the route of a message, for counting instructions; see the script
 * "lookup". The argument is the number of the range that is asked for.
 */
#include <stdint.h>
#include <stdlib.h>

#include "libchempi/didl/transport/conn.h"

enum { LOOKUPS = 1000, RANGES = 8 }; /* the script knows them, too */

static struct chempi_conn_route routes[RANGES];

uint32_t lookup_route(const struct chempi_peer *peer, uint64_t len);

/* What the send path has inline, with a call and a return around it. */
uint32_t lookup_route(const struct chempi_peer *peer, uint64_t len)
{
    return chempi_conn_route(peer, len)->protocol;
}

int main(int argc, char **argv)
{
    uint32_t (*volatile look)(const struct chempi_peer *, uint64_t) =
        lookup_route;
    struct chempi_peer peer = {.routes = routes, .route_count = RANGES};
    uint32_t wanted = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
    uint32_t wrong = 0;

    for (uint32_t i = 0; i < RANGES; i++) {
        routes[i].max_len =
            i + 1 < RANGES ? UINT64_C(1000) * (i + 1) : UINT64_MAX;
        routes[i].protocol = i;
    }
    for (int i = 0; i < LOOKUPS; i++)
        wrong += look(&peer, UINT64_C(1000) * wanted + 1) != wanted;
    return wrong > 0;
}
