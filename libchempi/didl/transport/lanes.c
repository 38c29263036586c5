/* SPDX-License-Identifier: BSD-3-Clause */
/* The lanes of this process; see lane.h. */
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/match.h"

struct chempi_lane chempi_lane_main = {
    .match = &chempi_match_main,
    .engine = {.dirty = {&chempi_lane_main.engine.dirty,
                         &chempi_lane_main.engine.dirty},
               .starved = {&chempi_lane_main.engine.starved,
                           &chempi_lane_main.engine.starved}},
    .requests = {.all = {&chempi_lane_main.requests.all,
                         &chempi_lane_main.requests.all},
                 .lulls = {&chempi_lane_main.requests.lulls,
                           &chempi_lane_main.requests.lulls}},
};
