/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* open_memstream */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "chempid/trace.h"

static struct chempi_writer w;

static const char *merged(const char *text)
{
    chempi_trace_merge(text, strlen(text), &w);
    chempi_wire_put_u8(&w, 0);
    return (const char *)w.data;
}

static void clear(void)
{
    chempi_wire_clear(&w);
}

TestSuite(trace, .fini = clear);

Test(trace, equal_routes_are_summed)
{
    cr_assert_str_eq(merged("route 0 1 100 net gate eager 2 1 10 3\n"
                            "route 0 1 100 net gate eager 2 2 20 4\n"
                            "route 0 1 100 net gate eager 3 5 50 0\n"),
                     "route 0 1 100 net gate eager 2 3 30 7\n"
                     "route 0 1 100 net gate eager 3 5 50 0\n");
}

Test(trace, what_is_no_route_is_dropped)
{
    cr_assert_str_eq(merged("traffic 0 1 net tcp eager 1 10\n"
                            "route 0 1 x net gate eager 2 1 10 3\n"
                            "route 0 1 100 net gate eager 2 1 10\n"
                            "route 0 1 100 net gate eager 2 1 10 3 4\n"
                            "\n"),
                     "");
}

Test(trace, gateways_are_named)
{
    static const char text[] = "route 0 1 100 net gate eager 2,3 1 10 3\n"
                               "route 0 1 18446744073709551615 net tcp r - "
                               "1 10 0\n"
                               "route 0 9 100 net tcp eager - 1 10 0\n";
    char a[] = "a", b[] = "b", c[] = "c", d[] = "d";
    char *names[] = {a, b, c, d};
    char *out;
    size_t len;
    FILE *file = open_memstream(&out, &len);

    chempi_trace_print(file, text, strlen(text), names, 4);
    (void)fclose(file);
    cr_assert(strstr(out, "over c, d"), "%s", out);
    cr_assert(strstr(out, "any net tcp r"), "%s", out);
    cr_assert(strstr(out, "direct"), "%s", out);
    free(out);
}
