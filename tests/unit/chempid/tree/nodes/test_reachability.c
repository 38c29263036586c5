/* SPDX-License-Identifier: BSD-3-Clause */
/* Which pairs of nodes are cut off, and how that is told. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "chempid/tree/nodes/reachability.h"
#include "common/base/compiler.h"
#include "tests/unit/base/tables.h"

static bool is_kept(void *arg, const char *gateway)
{
    return !strstr(arg, gateway);
}

/* Without the gateways that are named in `lost`. */
static struct chempi_reachability ask(const char *const *nodes, uint32_t count,
                                      char *lost, char text[512])
{
    const char *where = chempi_tables_dir;
    const struct chempi_reachability_question q = {.nodes = nodes,
                                                   .node_count = count,
                                                   .dirs = &where,
                                                   .dir_count = 1,
                                                   .is_usable = is_kept,
                                                   .arg = lost};
    struct chempi_reachability cuts;

    cr_assert_eq(chempi_reachability_find(&q, &cuts), 0);
    chempi_reachability_put(&cuts, text, 512);
    return cuts;
}

static const char two_gateways[] =
    "nodes: { 'a[0-2]': , 'b[0,1]': , x: , 'g[0,1]': { gateway: true } }\n"
    "networks:\n"
    "  left: { type: ethernet, attach: [ 'a[0-2]', x, 'g[0,1]' ] }\n"
    "  right: { type: ethernet, attach: [ 'b[0,1]', x, 'g[0,1]' ] }\n";

static const char *const ends[] = {"a2", "a0", "a1", "b0", "b1", "g1"};

Test(reachability, nothing_is_cut_off_while_a_gateway_is_left,
     .fini = chempi_tables_remove)
{
    char lost[] = "g0";
    char text[512];
    struct chempi_reachability cuts;

    chempi_tables_compile(two_gateways, CHEMPI_COMPILE_AUTO);
    cuts = ask(ends, 6, lost, text);
    cr_expect_eq(cuts.pairs, 0);
    cr_expect_str_eq(text, "");
    cr_expect_eq(cuts.unknown, 0);
    chempi_reachability_fini(&cuts);
}

Test(reachability, are_told_in_groups_with_what_would_help,
     .fini = chempi_tables_remove)
{
    char lost[] = "g0 g1";
    char text[512];
    struct chempi_reachability cuts;

    chempi_tables_compile(two_gateways, CHEMPI_COMPILE_AUTO);
    cuts = ask(ends, 6, lost, text);
    cr_expect_str_eq(text, "a[0-2] and b[0,1]");
    cr_expect_eq(cuts.pairs, 6);
    cr_expect_str_eq(cuts.hint, "`gateway: true` for x, which is on networks "
                                "left and right");
    chempi_reachability_fini(&cuts);
}

Test(reachability, of_one_direction_are_told_as_such,
     .fini = chempi_tables_remove)
{
    static const char *const pair[] = {"a", "b"};
    char lost[] = "g";
    char text[512];
    struct chempi_reachability cuts;

    chempi_tables_compile(
        "nodes: { a: , b: , 'g': { gateway: true } }\n"
        "networks:\n"
        "  left: { type: ethernet, attach: [ a, g ] }\n"
        "  right: { type: ethernet, attach: [ b, g ] }\n"
        "  back: { type: ethernet, attach: { b: { direction: send }, "
        "a: { direction: receive } } }\n",
        CHEMPI_COMPILE_AUTO);
    cuts = ask(pair, 2, lost, text);
    cr_expect_str_eq(text, "a to b");
    cr_expect_eq(cuts.pairs, 1);
    cr_expect_str_eq(cuts.hint, "another gateway that is attached to networks "
                                "left and right");
    chempi_reachability_fini(&cuts);
}

Test(reachability, of_many_kinds_end_with_their_number,
     .fini = chempi_tables_remove)
{
    static char yaml[16384] = "nodes: { g: { gateway: true }, 'n[0-63]': }\n"
                              "networks:\n";
    static const char *nodes[64];
    static char names[64][8];
    char lost[] = "g";
    char text[512];
    struct chempi_reachability cuts;

    for (int i = 0; i < 64; i++) {
        (void)snprintf(yaml + strlen(yaml), sizeof(yaml) - strlen(yaml),
                       "  w%d: { type: ethernet, attach: [ g, n%d ] }\n", i, i);
        (void)snprintf(names[i], sizeof(names[i]), "n%d", i);
        nodes[i] = names[i];
    }
    chempi_tables_compile(yaml, CHEMPI_COMPILE_AUTO);
    cuts = ask(nodes, 64, lost, text);
    cr_expect_eq(cuts.pairs, 64 * 63 / 2);
    cr_expect_eq(strncmp(text, "n0 and n[1-63]; n1 and n[2-63]; ", 32), 0, "%s",
                 text);
    cr_expect(strstr(text, ", and others: 2016 pairs in all"), "%s", text);
    cr_expect_lt(strlen(text), sizeof(text));
    chempi_reachability_fini(&cuts);
}

Test(reachability, nodes_without_a_table_are_counted,
     .fini = chempi_tables_remove)
{
    static const char *const pair[] = {"a0", "stranger"};
    char lost[] = "";
    char text[512];
    struct chempi_reachability cuts;

    chempi_tables_compile(two_gateways, CHEMPI_COMPILE_AUTO);
    cuts = ask(pair, 2, lost, text);
    cr_expect_eq(cuts.pairs, 0);
    cr_expect_eq(cuts.unknown, 1);
    chempi_reachability_fini(&cuts);
}
