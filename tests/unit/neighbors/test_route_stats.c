/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "libchempi/neighbors/route_stats.h"

static struct chempi_route_stats tally;
static struct chempi_writer text;
static struct chempi_neighbor *peers[4]; /* none was ever reached */
static const uint32_t node_of_proc[] = {0, 1, 2, 3};
static const struct chempi_services services = {
    .node = 0, .node_of_proc = node_of_proc, .proc_count = 4};
static const struct chempi_neighbors neighbors = {.services = &services,
                                                  .peers = peers};

static void clear(void)
{
    chempi_route_stats_fini(&tally);
    chempi_wire_clear(&text);
}

TestSuite(route_stats, .fini = clear);

static uint32_t find(uint32_t from, uint8_t class, uint8_t at, uint32_t gateway)
{
    const struct chempi_route_stats_key key = {.from = from,
                                               .to = 1,
                                               .class = class,
                                               .at = at,
                                               .gateway_count = 1,
                                               .gateways = {gateway}};

    return chempi_route_stats_find(&tally, &key, gateway);
}

static const char *report(void)
{
    chempi_wire_clear(&text);
    chempi_route_stats_report(&tally, &neighbors, &text);
    chempi_wire_put_u8(&text, 0);
    return (const char *)text.data;
}

Test(route_stats, ways_are_known_by_all_that_makes_them_differ)
{
    const uint32_t first = find(0, 1, 0, 2);

    cr_assert_eq(first, 1);
    cr_assert_eq(find(0, 1, 0, 3), 2);
    cr_assert_eq(find(0, 2, 0, 2), 3);
    cr_assert_eq(find(0, 1, 1, 2), 4);
    cr_assert_eq(find(5, 1, 0, 2), 5);
    cr_assert_eq(find(0, 1, 0, 2), first);
    cr_assert_null(chempi_route_stats_way(&tally, 0));
}

Test(route_stats, numbers_stay_and_are_limited)
{
    struct chempi_route_stats_way *way =
        chempi_route_stats_way(&tally, find(0, 1, 0, 2));

    for (uint32_t i = 1; i < CHEMPI_ROUTE_STATS_MAX; i++)
        cr_assert_eq(find(i, 1, 0, 2), i + 1);
    cr_assert_not(tally.is_short);
    cr_assert_eq(find(CHEMPI_ROUTE_STATS_MAX, 1, 0, 2), 0);
    cr_assert(tally.is_short);
    cr_assert_eq(find(77, 1, 0, 2), 78, "what is known stays so");
    cr_assert_eq(chempi_route_stats_way(&tally, 1), way);
    cr_assert(strstr(report(), "short 0\n"));
}

Test(route_stats, what_was_thrown_away_is_no_traffic)
{
    struct chempi_neighbor_buf buf = {
        .tally = find(0, 1, 0, 2), .len = 100, .way = CHEMPI_NEIGHBOR_UNSENT};
    const struct chempi_route_stats_hop *hops =
        chempi_route_stats_way(&tally, buf.tally)->hops;

    chempi_route_stats_left(&tally, &buf);
    buf.way = 3;
    chempi_route_stats_left(&tally, &buf);
    buf.has_waited = true;
    chempi_route_stats_left(&tally, &buf);
    cr_assert_eq(hops[3].frames, 2);
    cr_assert_eq(hops[3].bytes, 200);
    cr_assert_eq(hops[3].waits, 1);
    cr_assert_eq(hops[0].frames, 0);
}

Test(route_stats, a_report_tells_what_is_new)
{
    struct chempi_route_stats_way *way =
        chempi_route_stats_way(&tally, find(0, 1, 0, 2));

    way->max_len = 4096;
    way->network = "net";
    way->protocol = "eager";
    cr_assert_str_eq(report(), "");
    way->messages = 3;
    way->bytes = 30;
    way->waits = 1;
    cr_assert_str_eq(report(),
                     "route 0 1 1 4096 net gate eager 2 3 30 1 0 0\n");
    cr_assert_str_eq(report(), "");
    way->resent = 4;
    cr_assert_str_eq(report(), "route 0 1 1 4096 net gate eager 2 0 0 0 0 4\n");
}
