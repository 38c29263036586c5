/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of nodes, cluster files, ready files. */
#define _GNU_SOURCE /* mkdtemp */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chempid/tree/nodes/members.h"

Test(members, names_are_words_files_and_no_orders_to_terminals)
{
    static const char *const bad[] = {
        "",   ".a",  "-a",       "a/b",   "a b",       "a:1", "a,b",
        "a#", "a\n", "a\x1b[2J", "a\x7f", "a\xc2\x9b", "\x9b"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_expect_not(chempi_members_is_name(bad[i]), "%zu", i);
    cr_expect(chempi_members_is_name("node-1.example"));
    cr_expect(chempi_members_is_name("gr\xc3\xbcn"));
}

static char dir[] = "/tmp/chempi-nodes-XXXXXX";
static char path[64];

static void make_dir(void)
{
    cr_assert(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/a1.node", dir);
}

static void remove_dir(void)
{
    (void)unlink(path);
    (void)rmdir(dir);
}

static int read_file(const char *text, struct chempi_members *m,
                     struct chempi_err *err)
{
    FILE *f = fopen(path, "w");

    cr_assert(f);
    cr_assert(fputs(text, f) >= 0);
    cr_assert_eq(fclose(f), 0);
    *m = (struct chempi_members){0};
    return chempi_members_read(m, path, err);
}

TestSuite(members, .init = make_dir, .fini = remove_dir);

Test(members, a_cluster_file_names_nodes_addresses_and_slots)
{
    struct chempi_members m;

    cr_assert_eq(read_file("# the cluster\n"
                           "a1 10.0.0.1:4000 8\n"
                           "\n"
                           "  a2 [::1]:4000   # no slots\n",
                           &m, NULL),
                 0);
    cr_assert_eq(m.count, 2);
    cr_assert_str_eq(m.list[0].name, "a1");
    cr_assert_str_eq(m.list[0].address, "10.0.0.1:4000");
    cr_assert_eq(m.list[0].slots, 8);
    cr_assert_str_eq(m.list[1].address, "[::1]:4000");
    cr_assert_eq(m.list[1].slots, 0);
    chempi_members_fini(&m);
}

static void expect_bad_file(const char *text, const char *words)
{
    struct chempi_members m;
    struct chempi_err err = {0};

    cr_assert_eq(read_file(text, &m, &err), -EINVAL, "%s", text);
    cr_assert(strstr(err.text, words), "%s", err.text);
    chempi_members_fini(&m);
}

Test(members, errors_name_file_and_line)
{
    expect_bad_file("a1 x:1\na2\n", "a1.node:2: expected");
    expect_bad_file("a1 x:1 4 5\n", "a1.node:1: expected");
    expect_bad_file("a1 x:1 four\n", "a1.node:1: expected");
    expect_bad_file("a1 x:1\n\na1 y:1\n", "a1.node:3: node a1 is named twice");
    expect_bad_file("a/1 x:1\n", "a1.node:1: node 'a/1'");
    expect_bad_file("a1 x:1 70000\n", "a1.node:1");
}

Test(members, ready_files_are_found_and_others_left_alone)
{
    struct chempi_members m;

    cr_assert_eq(read_file("a1 127.0.0.1:5 2\n", &m, NULL), 0);
    chempi_members_fini(&m);
    chempi_members_scan(&m, dir);
    cr_assert_eq(m.count, 1);
    cr_assert_str_eq(m.list[0].name, "a1");
    chempi_members_fini(&m);
    cr_assert_eq(read_file("nonsense\n", &m, NULL), -EINVAL);
    chempi_members_scan(&m, dir);
    cr_assert_eq(m.count, 0);
}

Test(members, adding_says_what_is_news)
{
    struct chempi_members m = {0};

    cr_assert_eq(chempi_members_add(&m, "a1", "x:1", 2), 1);
    cr_assert_eq(chempi_members_add(&m, "a1", "x:1", 2), 0);
    cr_assert_eq(chempi_members_add(&m, "a1", "x:2", 2), 1);
    cr_assert_eq(chempi_members_add(&m, "../a", "x:2", 2), -EINVAL);
    cr_assert_eq(chempi_members_add(&m, ".a", "x:2", 2), -EINVAL);
    cr_assert_eq(chempi_members_add(&m, "", "x:2", 2), -EINVAL);
    cr_assert_eq(m.count, 1);
    chempi_members_fini(&m);
}
