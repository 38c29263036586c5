/* SPDX-License-Identifier: BSD-3-Clause */
/* The lanes of this process; see lane.h. */
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/match.h"

struct chempi_lane chempi_lane_main = {
    .match = &chempi_match_main,
    .engine = {.dirty = {&chempi_lane_main.engine.dirty,
                         &chempi_lane_main.engine.dirty},
               .starved = {&chempi_lane_main.engine.starved,
                           &chempi_lane_main.engine.starved},
               .awaited = {&chempi_lane_main.engine.awaited,
                           &chempi_lane_main.engine.awaited}},
    .requests = {.all = {&chempi_lane_main.requests.all,
                         &chempi_lane_main.requests.all},
                 .lulls = {&chempi_lane_main.requests.lulls,
                           &chempi_lane_main.requests.lulls}},
};

struct chempi_lane *chempi_lanes[CHEMPI_LANES_MAX] = {&chempi_lane_main};
uint32_t chempi_lane_count = 1;

struct chempi_lane *chempi_lanes_add(void)
{
    struct chempi_lane *lane = chempi_sys->calloc(1, sizeof(*lane));

    if (!lane)
        return NULL;
    lane->match = chempi_match_create();
    if (!lane->match) {
        free(lane);
        return NULL;
    }
    lane->number = chempi_lane_count;
    chempi_list_init(&lane->waits);
    chempi_list_init(&lane->engine.dirty);
    chempi_list_init(&lane->engine.starved);
    chempi_list_init(&lane->engine.awaited);
    chempi_list_init(&lane->requests.all);
    chempi_list_init(&lane->requests.lulls);
    chempi_lanes[chempi_lane_count++] = lane;
    return lane;
}

void chempi_lanes_close(uint32_t left)
{
    while (chempi_lane_count > left) {
        struct chempi_lane *lane = chempi_lanes[--chempi_lane_count];

        if (lane->is_owing)
            chempi_lane_repay(&chempi_lane_main);
        free(lane->match);
        free(lane);
    }
}
