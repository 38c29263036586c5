/* SPDX-License-Identifier: BSD-3-Clause */
/* From options and nodes to a job's description. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "chempid/plan/plan.h"
#include "common/host/cpus.h"

#define NODES 6

static char *words[] = {"chempirun", "--ppn", "2", "-n", "8", "true", NULL};
static struct chempi_options opt;
static struct chempi_spec spec;
static struct chempi_err err;

static void tear_down(void)
{
    chempi_spec_fini(&spec);
    chempi_options_fini(&opt);
}

/* Hosts are x y x x y z; one node has no room, and others' ranks are on two. */
static void plan_words(int argc, char **argv)
{
    static const char *const names[NODES] = {"a", "b", "c", "d", "e", "f"};
    static const uint64_t hosts[NODES] = {70, 80, 70, 70, 80, 90};
    struct chempi_plan_node nodes[NODES];

    for (uint32_t i = 0; i < NODES; i++)
        nodes[i] = (struct chempi_plan_node){
            .name = names[i],
            .place = {.slots = 4, .busy = i == 1 ? 4 : 0},
            .host = hosts[i],
            .busy = i == 0   ? 3
                    : i == 1 ? 4
                             : 0,
        };
    cr_assert_eq(chempi_options_parse(&opt, argc, argv, &err), 0, "%s",
                 err.text);
    cr_assert_eq(chempi_plan_make(&opt, nodes, NODES, NULL, &spec, &err), 0,
                 "%s", err.text);
}

static void plan(void)
{
    plan_words(6, words);
}

Test(plan, nodes_of_a_host_know_each_other, .fini = tear_down)
{
    /* a c d e: b has no free slot, and f is not needed. */
    static const uint32_t first[] = {0, 0, 0, 3};
    static const uint32_t before[] = {3, 5, 7, 4};

    plan();
    cr_assert_eq(spec.node_count, 4);
    cr_assert_str_eq(spec.node_names[3], "e");
    cr_assert_arr_eq(spec.host_of_node, first, sizeof(first));
    cr_assert_arr_eq(spec.bind_offset, before, sizeof(before));
}

Test(plan, processes_of_a_host_are_those_of_its_nodes, .fini = tear_down)
{
    plan();
    cr_assert_eq(chempi_spec_host_procs(&spec, 1), 6);
    cr_assert_eq(chempi_spec_host_procs(&spec, 3), 2);
}

static uint32_t universe_of(uint64_t host, uint32_t slots)
{
    struct chempi_plan_node node = {
        .name = "a", .place = {.slots = slots}, .host = host};
    char *one[] = {"chempirun", "-n", "1", "true", NULL};
    uint32_t size;

    cr_assert_eq(chempi_options_parse(&opt, 4, one, &err), 0, "%s", err.text);
    cr_assert_eq(chempi_plan_make(&opt, &node, 1, NULL, &spec, &err), 0, "%s",
                 err.text);
    size = spec.universe_size;
    tear_down();
    return size;
}

/* Who asks how many processes it may spawn is told of the processors of a host
 * without a daemon. */
Test(plan, the_universe_has_a_place_for_each_processor)
{
    struct chempi_cpus cpus;

    cr_assert_eq(chempi_cpus_get(&cpus), 0);
    cr_expect_eq(universe_of(0, 0), chempi_cpus_count(&cpus));
    cr_expect_eq(universe_of(0, 70), 70);
    cr_expect_eq(universe_of(2, 0), 1, "nothing is known of another host");
}

/* What a program gets that does not say how many ranks it wants. */
Test(plan, ranks_of_a_program_that_does_not_say)
{
    static const struct {
        char *words[8];
        uint32_t ranks;
    } cases[] = {
        {{"chempirun", "true"}, 1},
        {{"chempirun", "--nodes", "a,b", "true"}, 1},
        {{"chempirun", "--nodes", "a:3,b:2", "true"}, 5},
        {{"chempirun", "--nodes", "a:3,b", "true"}, 4},
        {{"chempirun", "--nodes", "a:3,b:2", "-n", "2", "true"}, 2},
        {{"chempirun", "--nodes", "a:3,b:2", "true", ":", "true"}, 2},
        {{"chempirun", "--ppn", "2", "true"}, 2 * NODES},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *argv[9] = {NULL};
        int argc = 0;

        for (; argc < 8 && cases[i].words[argc]; argc++)
            argv[argc] = cases[i].words[argc];
        plan_words(argc, argv);
        cr_assert_eq(spec.size, cases[i].ranks, "case %zu: %u", i, spec.size);
        tear_down();
    }
}
