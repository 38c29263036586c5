/* SPDX-License-Identifier: BSD-3-Clause */
/* What hwloc says of processors, as places. */
#include <criterion/criterion.h>
#include <errno.h>

#include "chempid/supervisor/bind.h"

Test(bind, cores_are_places_and_sockets_join_theirs)
{
    static const char text[] = "0 0,4\n0 1,5\n1 2,6\n1 3,7\n";
    struct chempi_bind_map map;

    cr_assert_eq(chempi_bind_parse(&map, CHEMPI_BIND_CORE, text, NULL), 0);
    cr_assert_eq(map.count, 4);
    cr_assert_eq(map.places[1].cpus.bits[0], 0x22);
    chempi_bind_fini(&map);
    cr_assert_eq(chempi_bind_parse(&map, CHEMPI_BIND_SOCKET, text, NULL), 0);
    cr_assert_eq(map.count, 2);
    cr_assert_eq(map.places[1].cpus.bits[0], 0xcc);
    chempi_bind_fini(&map);
}

Test(bind, a_malformed_answer_is_refused)
{
    static const char *const bad[] = {
        "", "0\n", "0 1", "0 1,\n", "0 99999\n", "x 1\n", "0 1\n0 -1\n"};
    struct chempi_bind_map map;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_eq(chempi_bind_parse(&map, CHEMPI_BIND_CORE, bad[i], NULL),
                     -EINVAL, "%s", bad[i]);
}
