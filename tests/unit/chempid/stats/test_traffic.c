/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of the same way become one. */
#include <criterion/criterion.h>
#include <string.h>

#include "chempid/stats/traffic.h"

Test(traffic, counters_of_the_same_way_are_summed)
{
    static const char text[] = "traffic 1 0 eth tcp eager 1 10\n"
                               "traffic 0 1 eth tcp eager 2 20\n"
                               "nonsense\n"
                               "traffic 0 1 eth tcp eager 3 30\n"
                               "traffic 0 1 smp shm eager 1 1\n"
                               "traffic 0 1 smp shm eager 1\n";
    struct chempi_writer w = {0};

    chempi_lines_merge(&chempi_traffic_kind, text, strlen(text), &w);
    chempi_wire_put_u8(&w, 0);
    cr_assert_str_eq((char *)w.data, "traffic 0 1 eth tcp eager 5 50\n"
                                     "traffic 0 1 smp shm eager 1 1\n"
                                     "traffic 1 0 eth tcp eager 1 10\n");
    chempi_wire_clear(&w);
}
