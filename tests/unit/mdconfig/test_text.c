/* SPDX-License-Identifier: BSD-3-Clause */
/* Times, bandwidths, patterns, suggestions and folded names. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/words/edit_distance.h"
#include "common/words/fold.h"
#include "common/words/unfold.h"
#include "mdconfig/description/desc.h"
#include "mdconfig/description/text.h"

/* `mdconfig check --all` lists all that a gateway's loss cuts off. */
Test(arena, texts_of_any_length_are_kept_whole)
{
    struct chempi_arena arena = {.blocks = NULL};
    char names[3000];

    memset(names, 'n', sizeof(names) - 1);
    names[sizeof(names) - 1] = '\0';
    cr_expect_str_eq(chempi_arena_format(&arena, "%s%d", "", 7), "7");
    cr_expect_str_eq(chempi_arena_format(&arena, "%s", ""), "");
    cr_expect_str_eq(chempi_arena_format(&arena, "%s", names), names);
    cr_expect_eq(strlen(chempi_arena_format(&arena, "%s%s", names, names)),
                 2 * (sizeof(names) - 1));
    chempi_arena_fini(&arena);
}

Test(time, takes_units)
{
    double us;

    cr_expect_eq(chempi_text_time("412", &us), 0);
    cr_expect_float_eq(us, 412, 1e-9);
    cr_expect_eq(chempi_text_time("2.5 ms", &us), 0);
    cr_expect_float_eq(us, 2500, 1e-9);
    cr_expect_eq(chempi_text_time("31ns", &us), 0);
    cr_expect_float_eq(us, 0.031, 1e-9);
    cr_expect_eq(chempi_text_time("5 minutes", &us), -ENOTSUP);
}

Test(bandwidth, takes_bits_and_bytes)
{
    double bw;

    cr_expect_eq(chempi_text_bandwidth("87.7 MB/s", &bw), 0);
    cr_expect_float_eq(bw, 87.7, 1e-9);
    cr_expect_eq(chempi_text_bandwidth("87.7", &bw), 0);
    cr_expect_float_eq(bw, 87.7, 1e-9);
    cr_expect_eq(chempi_text_bandwidth("1 Gbit/s", &bw), 0);
    cr_expect_float_eq(bw, 125, 1e-9);
    cr_expect_eq(chempi_text_bandwidth("100 Mb/s", &bw), -ENOTSUP);
}

Test(quantities, are_written_in_the_unit_that_fits)
{
    cr_expect_str_eq(chempi_text_put_size(0).text, "0 B");
    cr_expect_str_eq(chempi_text_put_size(65536).text, "64 KiB");
    cr_expect_str_eq(chempi_text_put_size(65537).text, "65537 B");
    cr_expect_str_eq(chempi_text_put_size(UINT64_MAX).text, "any size");
    cr_expect_str_eq(chempi_text_put_time(0.226).text, "0.226 us");
    cr_expect_str_eq(chempi_text_put_time(412).text, "412 us");
    cr_expect_str_eq(chempi_text_put_time(12550).text, "12.55 ms");
    cr_expect_str_eq(chempi_text_put_bandwidth(87.7).text, "87.7 MB/s");
    cr_expect_str_eq(chempi_text_put_bandwidth(11000).text, "11 GB/s");
}

Test(suggestion, is_the_nearest_word_or_none)
{
    static const char *const words[] = {"latency", "bandwidth", "cost"};

    cr_expect_str_eq(chempi_text_suggest("latnecy", words, 3), "latency");
    cr_expect_str_eq(chempi_text_suggest("bandwith", words, 3), "bandwidth");
    cr_expect_null(chempi_text_suggest("protocol", words, 3));
    cr_expect_null(chempi_text_suggest("", words, 3));
}

static uint32_t expand(const char *text, char names[][CHEMPI_UNFOLD_NAME_MAX],
                       uint32_t room)
{
    struct chempi_unfold p;
    const char *why;
    size_t at;

    if (chempi_unfold_parse(text, strlen(text), &p, &why, &at) != 0)
        return 0;
    for (uint32_t i = 0; i < p.count && i < room; i++)
        chempi_unfold_name(&p, i, names[i]);
    return p.count;
}

Test(unfold, expands_ranges_with_their_width)
{
    static char names[64][CHEMPI_UNFOLD_NAME_MAX];

    cr_expect_eq(expand("node[00-31]", names, 64), 32);
    cr_expect_str_eq(names[0], "node00");
    cr_expect_str_eq(names[31], "node31");
    cr_expect_eq(expand("a[1,3,5-7]x", names, 64), 5);
    cr_expect_str_eq(names[2], "a5x");
    cr_expect_eq(expand("r[0-1]n[08-11]", names, 64), 8);
    cr_expect_str_eq(names[3], "r0n11");
    cr_expect_str_eq(names[4], "r1n08");
    cr_expect_eq(expand("plain", names, 64), 1);
    cr_expect_str_eq(names[0], "plain");
    cr_expect_eq(expand("[9-10]", names, 64), 2);
    cr_expect_str_eq(names[1], "10");
}

Test(unfold, refuses_what_is_none)
{
    static const char *const bad[] = {"a[",
                                      "a[]",
                                      "a[1",
                                      "a[1-]",
                                      "a]",
                                      "a[3-1]",
                                      "a[x]",
                                      "a[1,]",
                                      "a[1-2",
                                      "",
                                      "a[1--2]",
                                      "a[[1]]",
                                      "a[0-9999999]",
                                      "[1-3]]",
                                      "a[1;2]",
                                      "a[-1]",
                                      "a[1 - 2]",
                                      "a[0-1048576]",
                                      "a[1234567890]",
                                      "[0-999][0-999][0-9]"};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(bad); i++)
        cr_expect_eq(expand(bad[i], NULL, 0), 0, "%s", bad[i]);
}

Test(fold, writes_names_as_ranges)
{
    static const char *const names[] = {"a0",  "a1",   "a2", "a4",  "b07",
                                        "b08", "lone", "x9", "x10", "y"};
    char buf[128];

    chempi_fold_names(names, 10, buf, sizeof(buf));
    cr_expect_str_eq(buf, "a[0-2,4], b[07,08], lone, x[9,10], y");
    chempi_fold_names(names, 10, buf, 16);
    cr_expect_eq(strlen(buf), 15);
    cr_expect(strstr(buf, "..."), "%s", buf);
    for (size_t len = 1; len < 64; len++) {
        chempi_fold_names(names, 10, buf, len);
        cr_expect_lt(strlen(buf), len);
    }
    chempi_fold_names(NULL, 0, buf, sizeof(buf));
    cr_expect_str_eq(buf, "");
}

Test(fold, sorts_names_that_stand_in_any_order)
{
    static const char *const names[] = {"sci8", "b1",  "sci10", "sci0",
                                        "sci9", "b",   "a2-x",  "sci7",
                                        "a1-y", "a1-x"};
    char buf[128];

    chempi_fold_sorted(names, 10, buf, sizeof(buf));
    cr_expect_str_eq(buf, "a[1,2]-x, a1-y, b, b1, sci[0,7-9], sci10");
    cr_expect_str_eq(names[0], "sci8");
    chempi_fold_sorted(NULL, 0, buf, sizeof(buf));
    cr_expect_str_eq(buf, "");
}

Test(edit_distance, counts_letters_to_insert_delete_or_change)
{
    char longer[CHEMPI_EDIT_DISTANCE_WORD_MAX + 2];

    cr_expect_eq(chempi_edit_distance("", ""), 0);
    cr_expect_eq(chempi_edit_distance("abc", ""), 3);
    cr_expect_eq(chempi_edit_distance("", "abc"), 3);
    cr_expect_eq(chempi_edit_distance("kitten", "sitting"), 3);
    cr_expect_eq(chempi_edit_distance("sitting", "kitten"), 3);
    memset(longer, 'a', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    cr_expect_eq(chempi_edit_distance(longer, longer), SIZE_MAX);
    cr_expect_eq(chempi_edit_distance("a", longer), SIZE_MAX);
    cr_expect_eq(chempi_edit_distance(longer + 1, longer + 1), 0);
}
