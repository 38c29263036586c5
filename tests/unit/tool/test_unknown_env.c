/* SPDX-License-Identifier: BSD-3-Clause */
/* Which variables of the environment are taken for misspelt settings. */
#include <criterion/criterion.h>

#include "libchempi/didl/tool/registry.h"

static void expect(const char *name, enum chempi_stray verdict,
                   const char *nearest)
{
    char found[CHEMPI_SETTING_NAME_MAX];

    cr_expect_eq(chempi_tool_judge_stray(name, found), verdict, "%s", name);
    if (nearest)
        cr_expect_str_eq(found, nearest, "%s: %s", name, found);
}

Test(strays, are_misspelt_settings_with_the_nearest_name)
{
    expect("CHEMPI_GATE_WINDO", CHEMPI_STRAY_WRONG, "CHEMPI_GATE_WINDOW");
    expect("CHEMPI_PROGRES_SPINS_MAX", CHEMPI_STRAY_WRONG,
           "CHEMPI_PROGRESS_SPINS_MAX");
    expect("CHEMPI_LGO", CHEMPI_STRAY_FOREIGN, "");
    expect("CHEMPI_LOGG", CHEMPI_STRAY_WRONG, "CHEMPI_LOG");
    expect("CHEMPI_TCP_WHATEVER", CHEMPI_STRAY_WRONG, "");
}

Test(strays, are_neither_settings_nor_names_of_other_programs)
{
    expect("CHEMPI_GATE_WINDOW", CHEMPI_STRAY_KNOWN, NULL);
    expect("CHEMPI_LOG", CHEMPI_STRAY_KNOWN, NULL);
    expect("CHEMPI_NODE", CHEMPI_STRAY_FOREIGN, "");
    expect("CHEMPI_SCIVIA_PERSONALITY", CHEMPI_STRAY_FOREIGN, "");
    expect("CHEMPI_TEST_SEED", CHEMPI_STRAY_FOREIGN, "");
    expect("CHEMPI_OF_SOMEBODY", CHEMPI_STRAY_FOREIGN, "");
    expect("MPI_GATE_WINDOW", CHEMPI_STRAY_FOREIGN, "");
    expect("PATH", CHEMPI_STRAY_FOREIGN, "");
}
