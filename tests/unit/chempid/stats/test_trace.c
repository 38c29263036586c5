/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* open_memstream */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "chempid/stats/report.h"
#include "chempid/stats/trace.h"

static struct chempi_writer w;
static char *printed;

static const char *merged(const char *text)
{
    chempi_lines_merge(&chempi_trace_routes, text, strlen(text), &w);
    chempi_lines_merge(&chempi_trace_hops, text, strlen(text), &w);
    chempi_wire_put_u8(&w, 0);
    return (const char *)w.data;
}

static char a[] = "a", b[] = "b", c[] = "c", d[] = "d";
static char *names[] = {a, b, c, d};

static const char *shown(const char *text, const bool *lacking)
{
    size_t len;
    FILE *file = open_memstream(&printed, &len);

    chempi_trace_print(file, text, strlen(text), names, 4, lacking);
    (void)fclose(file);
    return printed;
}

static void clear(void)
{
    chempi_wire_clear(&w);
    free(printed);
    printed = NULL;
}

TestSuite(trace, .fini = clear);

Test(trace, equal_routes_are_summed)
{
    cr_assert_str_eq(merged("route 0 1 1 100 net gate eager 2 1 10 3 1 0\n"
                            "route 0 1 1 100 net gate eager 2 2 20 4 0 5\n"
                            "route 0 1 1 100 net gate eager 3 5 50 0 0 0\n"),
                     "route 0 1 1 100 net gate eager 2 3 30 7 1 5\n"
                     "route 0 1 1 100 net gate eager 3 5 50 0 0 0\n");
}

Test(trace, equal_hops_are_summed)
{
    cr_assert_str_eq(merged("hop 0 1 1 2 1 net tcp 5 50 1\n"
                            "hop 0 1 1 2 1 other tcp 5 50 1\n"
                            "hop 0 1 1 2 0 net tcp 5 50 1\n"
                            "hop 0 1 1 2 1 net tcp 6 60 2\n"),
                     "hop 0 1 1 2 0 net tcp 5 50 1\n"
                     "hop 0 1 1 2 1 net tcp 11 110 3\n"
                     "hop 0 1 1 2 1 other tcp 5 50 1\n");
}

Test(trace, what_is_neither_is_dropped)
{
    cr_assert_str_eq(merged("traffic 0 1 net tcp eager 1 10\n"
                            "route 0 1 1 x net gate eager 2 1 10 3 0 0\n"
                            "route 0 1 1 100 net gate eager 2 1 10 3 0\n"
                            "route 0 1 1 100 net gate eager 2 1 10 3 4 0 0\n"
                            "route 0 1 257 100 net gate eager 2 1 10 3 4 0\n"
                            "hop 0 1 1 2 0 net tcp 5 50\n"
                            "hop 0 1 1 2 x net tcp 5 50 1\n"
                            "missing 3\n"
                            "\n"),
                     "");
}

Test(trace, gateways_are_named)
{
    shown("route 0 1 1 100 net gate eager 2,3 1 10 3 0 0\n"
          "route 0 1 256 18446744073709551615 net tcp r - 1 10 0 0 0\n"
          "route 0 9 256 100 net tcp eager - 1 10 0 0 0\n",
          NULL);
    cr_assert(strstr(printed, "over c, d"), "%s", printed);
    cr_assert(strstr(printed, "any net tcp r"), "%s", printed);
    cr_assert(strstr(printed, "direct"), "%s", printed);
    cr_assert_not(strchr(printed, '*'), "%s", printed);
}

/* The line that holds both words, or NULL. */
static const char *line_with(const char *first, const char *second)
{
    static char line[256];
    const char *at = printed;

    while (*at) {
        const size_t n = strcspn(at, "\n");

        (void)snprintf(line, sizeof(line), "%.*s", (int)n, at);
        if (strstr(line, first) && strstr(line, second))
            return line;
        at += n + (at[n] != '\0');
    }
    return NULL;
}

Test(trace, each_hop_has_a_line)
{
    const char *line;

    shown("route 0 1 1 100 net gate eager 2,3 7 70 3 0 0\n"
          "hop 0 1 1 2,3 0 left tcp 7 140 1\n"
          "hop 0 1 1 2,3 1 middle tcp 7 141 0\n"
          "hop 0 1 1 2,3 1 bypass shm 8 142 0\n"
          "gateway 2\ngateway 3\n",
          NULL);
    line = line_with("hop 1", "left tcp");
    cr_assert(line && strncmp(line, "  a ", 4) == 0, "%s", printed);
    line = line_with("hop 2", "middle tcp");
    cr_assert(line && strstr(line, "  c ") && strstr(line, " d "), "%s",
              printed);
    cr_assert(line_with("hop 2", "bypass shm"), "%s", printed);
    line = line_with("hop 3", "frames"); /* it told that there were none */
    cr_assert(line && strstr(line, " b ") && strstr(line, " 0 "), "%s",
              printed);
}

Test(trace, what_nobody_told_is_no_zero)
{
    const bool lacking[] = {true, false, false, false};
    const char *line;

    shown("route 0 1 1 100 net gate eager 2 7 70 3 0 0\n"
          "hop 0 1 1 2 0 left tcp 7 140 1\n"
          "hop 1 0 1 2 1 left tcp 9 180 1\n"
          "gateway 3\n",
          lacking);
    line = line_with("hop 2", "no figures");
    cr_assert(line && strchr(line, '?') && !strchr(line, '*'), "%s", printed);
    line = line_with("hop 1", "left tcp");
    cr_assert(line && strchr(line, '*'), "%s", printed);
    line = line_with("over c", "?"); /* of a sender that did not tell */
    cr_assert(line && *line == 'b' && strstr(line, "no figures"), "%s",
              printed);
    cr_assert(line_with("hop 2", "180"), "%s", printed);
}

Test(trace, gaps_are_named)
{
    uint32_t places[] = {0, 1, 0, 1, 1, 2};
    struct chempi_spec spec = {.size = 5,
                               .gateway_count = 1,
                               .node_of_rank = places,
                               .node_names = names,
                               .node_count = 3,
                               .want_stats = CHEMPI_STATS_ROUTES};
    static const char text[] = "node 1\nmissing 1\nmissing 3\nmissing 4\n";
    size_t len;
    FILE *file = open_memstream(&printed, &len);
    bool *lacking = chempi_report_lacking(&spec, text, strlen(text));

    chempi_report_gaps(file, &spec, text, strlen(text));
    (void)fclose(file);
    cr_assert(line_with("ranks 1, 3-4 ended", "their figures"), "%s", printed);
    cr_assert(line_with("node a gave", "no figures"), "%s", printed);
    cr_assert(line_with("gateway on node c", "no figures"), "%s", printed);
    cr_assert_not(line_with("node b", "gave"), "%s", printed);
    cr_assert(lacking[0] && lacking[1] && !lacking[2]);
    free(lacking);
}
