/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job's options say to the jobs that its ranks start. */
#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>

#include "chempid/worlds/inherit.h"

/* The options of a job that is started from one with these. */
static void inherit(char **argv, struct chempi_options *out)
{
    struct chempi_options opt;
    struct chempi_writer w = {0};
    struct chempi_reader r;
    int argc = 0;

    while (argv[argc])
        argc++;
    cr_assert_eq(chempi_options_parse(&opt, argc, argv, NULL), 0);
    chempi_inherit_write(&opt, &w);
    cr_assert_eq(w.error, 0);
    chempi_wire_read(&r, w.data, w.len);
    cr_assert_eq(chempi_inherit_read(out, &r), 0);
    cr_assert(chempi_wire_is_done(&r));
    chempi_wire_clear(&w);
    chempi_options_fini(&opt);
}

Test(inherit, each_switch_is_told_by_itself)
{
    static const struct {
        const char *option;
        size_t member;
    } cases[] = {
        {"--private", offsetof(struct chempi_options, is_private)},
        {"--launcher-flat", offsetof(struct chempi_options, is_flat)},
        {"--no-oversubscribe", offsetof(struct chempi_options, fits_only)},
        {"--verbose", offsetof(struct chempi_options, is_verbose)},
        {"--secure", offsetof(struct chempi_options, is_secure)},
        {"--survive", offsetof(struct chempi_options, survives)},
        {"--label", offsetof(struct chempi_options, has_label)},
        {"--timestamp", offsetof(struct chempi_options, has_time)},
        {"--show-binding", offsetof(struct chempi_options, shows_binding)},
        {"--allow-unreachable",
         offsetof(struct chempi_options, allows_unreachable)},
        {"--env-none", offsetof(struct chempi_options, has_clean_env)},
    };
    const size_t count = sizeof(cases) / sizeof(cases[0]);

    for (size_t i = 0; i < count; i++) {
        char option[32];
        char *argv[] = {"chempirun", option, "./a", NULL};
        struct chempi_options opt;

        (void)snprintf(option, sizeof(option), "%s", cases[i].option);
        inherit(argv, &opt);
        for (size_t j = 0; j < count; j++)
            cr_expect_eq(*((const char *)&opt + cases[j].member), j == i,
                         "%s after %s", cases[j].option, option);
        cr_expect_not(opt.is_virtual);
        chempi_options_fini(&opt);
    }
}

Test(inherit, virtual_nodes_are_those_of_the_first_job)
{
    char *argv[] = {"chempirun", "--virtual", "a:3,b", "./a", NULL};
    struct chempi_options opt;

    inherit(argv, &opt);
    cr_expect(opt.is_virtual);
    cr_expect_str_eq(opt.names[1], "b");
    cr_expect_eq(opt.slots[0], 3);
    chempi_options_fini(&opt);
}

Test(inherit, figures_checks_and_time_limits_are_the_first_jobs_own)
{
    char *argv[] = {"chempirun", "--stats", "--json",    "--trace-routes",
                    "--profile", "--check", "--timeout", "9",
                    "./a",       NULL};
    struct chempi_options opt;

    inherit(argv, &opt);
    cr_expect_not(opt.has_stats || opt.has_json || opt.has_routes ||
                  opt.has_profile || opt.has_check);
    cr_expect_eq(opt.timeout_s, 0);
    chempi_options_fini(&opt);
}
