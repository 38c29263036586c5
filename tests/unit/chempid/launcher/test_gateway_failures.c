/* SPDX-License-Identifier: BSD-3-Clause */
/* What the end of a job says of lost gateways. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chempid/launcher/gateway_failures.h"
#include "chempid/launcher/verdict.h"
#include "common/base/compiler.h"
#include "common/table/load.h"
#include "tests/unit/base/tables.h"

#define SIDE 6u      /* nodes on each side */
#define GATEWAYS 12u /* between them */
#define NODES (2 * SIDE + GATEWAYS)
#define NAME 28 /* bytes of a node's name, with zero */

static char names[NODES][NAME];
static char *name_list[NODES];
static uint32_t node_of_rank[2 * SIDE + GATEWAYS];
static struct chempi_spec spec;

/* Names that do not fold, of ranks' nodes, then of gateways. */
static void name_nodes(void)
{
    for (uint32_t i = 0; i < NODES; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%c%c-node-of-a-long-name",
                       i < SIDE       ? 'a'
                       : i < 2 * SIDE ? 'b'
                                      : 'g',
                       'a' + (char)i);
        name_list[i] = names[i];
        node_of_rank[i] = i; /* gateways behind the ranks */
    }
}

static void attach(char *yaml, size_t len, const char *name, uint32_t first)
{
    size_t at = strlen(yaml);

    at += (size_t)snprintf(yaml + at, len - at,
                           "  %s: { type: ethernet, attach: [ ", name);
    for (uint32_t i = 0; i < NODES; i++)
        if (i >= 2 * SIDE || i / SIDE == first)
            at += (size_t)snprintf(yaml + at, len - at, "%s, ", names[i]);
    (void)snprintf(yaml + at, len - at, "] }\n");
}

static void set_up(void)
{
    static char yaml[16384] = "nodes: { ";

    name_nodes();
    for (uint32_t i = 0; i < NODES; i++)
        (void)snprintf(yaml + strlen(yaml), sizeof(yaml) - strlen(yaml),
                       i < 2 * SIDE ? "%s: , " : "%s: { gateway: true }, ",
                       names[i]);
    (void)snprintf(yaml + strlen(yaml), sizeof(yaml) - strlen(yaml),
                   "}\nnetworks:\n");
    attach(yaml, sizeof(yaml), "a-network-with-a-name-of-some-length", 0);
    attach(yaml, sizeof(yaml), "another-network-with-a-longer-name-still", 1);
    chempi_tables_compile(yaml, CHEMPI_COMPILE_AUTO);
    spec = (struct chempi_spec){.size = 2 * SIDE,
                                .node_count = NODES,
                                .node_names = name_list,
                                .node_of_rank = node_of_rank,
                                .gateway_count = GATEWAYS,
                                .own_tables = chempi_tables_dir};
}

TestSuite(gateway_failures, .init = set_up, .fini = chempi_tables_remove);

Test(gateway_failures, long_words_leave_room_for_what_would_help)
{
    struct chempi_verdict v = {.weight = 0};
    char text[CHEMPI_TEXT_MAX];
    struct chempi_gateway_failures f;
    char who[200];
    char why[200];

    memset(who, 'w', sizeof(who));
    who[sizeof(who) - 1] = '\0';
    memset(why, 'y', sizeof(why));
    why[sizeof(why) - 1] = '\0';
    chempi_gateway_failures_init(&f, &spec);
    for (uint32_t i = 0; i < GATEWAYS; i++)
        cr_expect(chempi_gateway_failures_note(&f, spec.size + i, why));
    chempi_gateway_failures_put(&f, who, text, sizeof(text));
    chempi_verdict_cut(&v, 1, text);
    cr_expect(strstr(v.text, " needs one; what would help: another gateway "
                             "that is attached to networks a-network-with-a-"
                             "name-of-some-length and another-network-with-a-"
                             "longer-name-still; the job was ended"),
              "%s", v.text);
    cr_expect(strstr(v.text, "no other way is left between a"), "%s", v.text);
    chempi_gateway_failures_fini(&f);
}

Test(gateway_failures, whom_a_loss_cuts_off_is_told_once)
{
    char text[CHEMPI_TEXT_MAX];
    struct chempi_gateway_failures f;

    chempi_gateway_failures_init(&f, &spec);
    for (uint32_t i = 0; i < GATEWAYS; i++) {
        chempi_gateway_failures_effect(&f, text, sizeof(text));
        cr_expect_str_eq(text, "");
        cr_expect(chempi_gateway_failures_note(&f, spec.size + i, "gone"));
    }
    chempi_gateway_failures_put(&f, "rank 0", text, sizeof(text));
    cr_expect(strstr(text, "; no other way is left between a"), "%s", text);
    chempi_gateway_failures_effect(&f, text, sizeof(text));
    cr_expect_eq(strncmp(text, "; no other way is left between a", 32), 0, "%s",
                 text);
    chempi_gateway_failures_put(&f, "rank 0", text, sizeof(text));
    cr_expect(strstr(text, "; no other way is left, and rank 0 needs one; "),
              "%s", text);
    chempi_gateway_failures_fini(&f);
}

Test(gateway_failures, a_loss_with_another_way_is_no_reason)
{
    char text[CHEMPI_TEXT_MAX] = "?";
    struct chempi_gateway_failures f;

    chempi_gateway_failures_init(&f, &spec);
    cr_expect(chempi_gateway_failures_note(&f, spec.size, "gone"));
    chempi_gateway_failures_put(&f, "rank 0", text, sizeof(text));
    cr_expect_str_eq(text, "");
    chempi_gateway_failures_fini(&f);
}

Test(gateway_failures, nodes_without_a_table_are_said_to_be_unseen)
{
    struct chempi_err err = {.code = 0};
    uint32_t unseen = 99;
    char path[128];

    cr_expect_eq(chempi_gateway_failures_check(&spec, &unseen, &err), 0, "%s",
                 err.text);
    cr_expect_eq(unseen, 0);
    for (uint32_t i = 2 * SIDE; i-- > 1;) {
        (void)snprintf(path, sizeof(path), "%s/%s" CHEMPI_TABLE_SUFFIX,
                       chempi_tables_dir, names[i]);
        cr_assert_eq(unlink(path), 0, "%s", path);
        cr_expect_eq(chempi_gateway_failures_check(&spec, &unseen, &err), 0);
        /* One table alone is a host's own. */
        cr_expect_eq(unseen, i > 1 ? 2 * SIDE - i : 0);
    }
}

Test(gateway_failures, a_cut_is_the_rank_s_that_has_said_so)
{
    struct chempi_gateway_failures f;

    chempi_gateway_failures_init(&f, &spec);
    cr_expect_not(chempi_gateway_failures_is_cut(&f, 3));
    chempi_gateway_failures_cut(&f, 3);
    chempi_gateway_failures_cut(&f, CHEMPI_NODE_ANY); /* nobody */
    cr_expect(chempi_gateway_failures_is_cut(&f, 3));
    cr_expect_not(chempi_gateway_failures_is_cut(&f, 2));
    cr_expect_not(chempi_gateway_failures_is_cut(&f, CHEMPI_NODE_ANY));
    chempi_gateway_failures_fini(&f);
}
