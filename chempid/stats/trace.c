/* SPDX-License-Identifier: BSD-3-Clause */
/* Which way messages went: lines, and their sums; see trace.h. */
#include "chempid/stats/trace.h"

#include "common/base/compiler.h"

#define ROUTE struct chempi_trace_route
#define HOP struct chempi_trace_hop

static const struct chempi_lines_key route_keys[] = {
    CHEMPI_LINES_NUMBER(1, ROUTE, from, UINT32_MAX),
    CHEMPI_LINES_NUMBER(2, ROUTE, to, UINT32_MAX),
    CHEMPI_LINES_NUMBER(4, ROUTE, size, UINT64_MAX),
    CHEMPI_LINES_NUMBER(3, ROUTE, class, CHEMPI_STATS_CLASS_DIRECT),
    CHEMPI_LINES_TEXT(5, ROUTE, names[0]),
    CHEMPI_LINES_TEXT(6, ROUTE, names[1]),
    CHEMPI_LINES_TEXT(7, ROUTE, names[2]),
    CHEMPI_LINES_TEXT(8, ROUTE, via)};

const struct chempi_lines_kind chempi_trace_routes = {
    .word = "route",
    .size = sizeof(ROUTE),
    .keys = route_keys,
    .key_count = CHEMPI_ARRAY_LEN(route_keys),
    .amount_count = CHEMPI_ARRAY_LEN(((ROUTE *)NULL)->counts),
    .amounts = offsetof(ROUTE, counts)};

static const struct chempi_lines_key hop_keys[] = {
    CHEMPI_LINES_NUMBER(1, HOP, from, UINT32_MAX),
    CHEMPI_LINES_NUMBER(2, HOP, to, UINT32_MAX),
    CHEMPI_LINES_NUMBER(3, HOP, class, CHEMPI_STATS_CLASS_DIRECT),
    CHEMPI_LINES_TEXT(4, HOP, via),
    CHEMPI_LINES_NUMBER(5, HOP, at, UINT32_MAX),
    CHEMPI_LINES_TEXT(6, HOP, names[0]),
    CHEMPI_LINES_TEXT(7, HOP, names[1])};

const struct chempi_lines_kind chempi_trace_hops = {
    .word = "hop",
    .size = sizeof(HOP),
    .keys = hop_keys,
    .key_count = CHEMPI_ARRAY_LEN(hop_keys),
    .amount_count = CHEMPI_ARRAY_LEN(((HOP *)NULL)->counts),
    .amounts = offsetof(HOP, counts)};
