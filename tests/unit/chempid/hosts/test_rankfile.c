/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that give ranks their nodes and cores, and what nodes make of them. */
#define _GNU_SOURCE /* mkstemp */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chempid/hosts/rankfile.h"
#include "chempid/job/corelist.h"
#include "chempid/supervisor/bind.h"

static char path[] = "/tmp/rankfile-XXXXXX";
static struct chempi_pool pool;
static struct chempi_rankfile file;
static struct chempi_err err;

static void set_up(void)
{
    (void)close(mkstemp(path));
}

static void tear_down(void)
{
    (void)unlink(path);
    chempi_pool_fini(&pool);
}

TestSuite(rankfile, .init = set_up, .fini = tear_down);

static int read_text(const char *text)
{
    FILE *f = fopen(path, "w");

    cr_assert(f);
    (void)fputs(text, f);
    (void)fclose(f);
    return chempi_rankfile_read(&file, &pool, path, &err);
}

/* The words behind the file's name. */
static void refuse(const char *text, const char *words)
{
    cr_expect_eq(read_text(text), -EINVAL, "%s", text);
    cr_expect_eq(strncmp(err.text, path, strlen(path)), 0, "%s", err.text);
    cr_expect_str_eq(err.text + strlen(path), words);
}

Test(rankfile, lines_come_in_any_order)
{
    cr_assert_eq(read_text("# all of them\n\nrank 1=b slot=1:0-2,3 # last\r\n"
                           "  rank\t0=+n1  slot=*"),
                 0);
    cr_assert_eq(file.count, 2);
    cr_assert_str_eq(file.ranks[0].host, "+n1");
    cr_assert_str_eq(file.ranks[0].slots, "*");
    cr_assert_eq(file.ranks[0].line, 4);
    cr_assert_str_eq(file.ranks[1].slots, "1:0-2,3");
}

Test(rankfile, what_is_wrong_is_told_with_its_line)
{
    refuse("", " names no rank; expected lines of 'rank N=NODE slot=CORES'");
    refuse("rank 0=a slot=0\nrank 2=a slot=1\n",
           " names rank 2 (line 2) and not rank 1");
    refuse("\nhost a\n",
           ":2: expected 'rank N=NODE slot=CORES', found 'host a'");
    refuse("rank 0=a\n",
           ":1: expected 'rank N=NODE slot=CORES', found 'rank 0=a'");
    refuse("rank 0=a slots=0\n",
           ":1: expected 'rank N=NODE slot=CORES', found 'rank 0=a slots=0'");
    refuse("rank 0=a slot=0 1\n",
           ":1: expected 'rank N=NODE slot=CORES', found '1'");
    refuse("rank 0=a slot=0\rrank 1=b slot=1\n",
           ":1: expected 'rank N=NODE slot=CORES', found 'rank'");
    refuse("rank 0= slot=0\n",
           ":1: expected 'rank N=NODE slot=CORES', found 'rank 0= slot=0'");
    refuse("rank -1=a slot=0\n",
           ":1: rank -1: expected a number from 0 to 1048575");
    refuse("rank 0=a slot=0\nrank 0=b slot=0\n",
           ":2: rank 0 is named twice, in line 1 before");
    refuse("rank 0=a:1 slot=0\n",
           ":1: rank 0: 'a:1' is no node name; expected one, or +nK for node "
           "number K of the job");
    refuse("rank 0=a slot=1-0\n",
           ":1: rank 0: slot=1-0: expected cores such as 2, 0-3,8 or *, or of "
           "a socket, such as 1:0-2, and found '1-0'");
}

static int ignore(void *arg, uint32_t socket, uint32_t first, uint32_t last)
{
    (void)arg;
    (void)socket;
    (void)first;
    (void)last;
    return 0;
}

Test(rankfile, lists_of_cores)
{
    static const char *const good[] = {
        "0", "0-0", "0,1-3;7", "1:0", "1:*", "0:0,1,1:2-3", "*", "65535"};
    static const char *const bad[] = {"",   "a",   "0,",    "0-",   "-1",
                                      ":0", "1:",  "1:2:3", "0 1",  "1-0",
                                      "**", "*-1", "65536", "0:,1", "0x1"};

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        cr_expect_eq(chempi_corelist_each(good[i], ignore, NULL, &err), 0, "%s",
                     good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        cr_expect_eq(chempi_corelist_each(bad[i], ignore, NULL, &err), -EINVAL,
                     "%s", bad[i]);
}

Test(rankfile, hosts_are_those_that_it_names)
{
    struct chempi_hosts hosts;

    cr_assert_eq(read_text("rank 0=b slot=0\nrank 1=a slot=0\n"
                           "rank 2=b slot=0\n"),
                 0);
    cr_assert_eq(chempi_rankfile_hosts(&file, &hosts, &pool, &err), 0);
    cr_assert_eq(hosts.count, 2);
    cr_assert_str_eq(hosts.names[0], "b");
    cr_assert_eq(hosts.slots[0], 2);
    cr_assert_eq(hosts.slots[1], 1);
    chempi_hosts_fini(&hosts);
    cr_assert_eq(read_text("rank 0=b slot=0\nrank 1=+n0 slot=0\n"), 0);
    cr_assert_eq(chempi_rankfile_hosts(&file, &hosts, &pool, &err), 0);
    cr_assert_eq(hosts.count, 0);
}

Test(rankfile, ranks_go_where_it_says)
{
    static const char *const names[] = {"a", "b"};
    uint32_t nodes[3];

    cr_assert_eq(read_text("rank 0=b slot=0\nrank 1=+n0 slot=0\n"
                           "rank 2=b slot=0\n"),
                 0);
    cr_assert_eq(chempi_rankfile_place(&file, names, 2, 3, nodes, &err), 0);
    cr_assert(nodes[0] == 1 && nodes[1] == 0 && nodes[2] == 1);
    cr_assert_eq(chempi_rankfile_place(&file, names, 2, 2, nodes, &err),
                 -EINVAL);
    cr_assert(strstr(err.text, "names ranks 0 to 2, and the job has 2 ranks"));
    cr_assert_eq(chempi_rankfile_place(&file, names, 1, 3, nodes, &err),
                 -EINVAL);
    cr_assert(strstr(err.text, ":1: rank 0: the job has no node b; expected a"),
              "%s", err.text);
    cr_assert_eq(read_text("rank 0=localhost slot=0\n"), 0);
    cr_assert_eq(chempi_rankfile_place(&file, names, 1, 1, nodes, &err), 0);
    cr_assert_eq(nodes[0], 0);
    cr_assert_eq(chempi_rankfile_place(&file, names, 2, 1, nodes, &err),
                 -EINVAL);
}

/* Two sockets of two cores with two processors each. */
static int bind_by(char *slots, struct chempi_bind_map *map)
{
    static char *names[] = {"a", "b"};
    static uint32_t nodes[] = {1, 0, 1};
    static uint32_t lines[] = {3, 2, 1};
    char *lists[] = {"0", "nonsense", slots};
    struct chempi_spec spec = {.size = 3,
                               .node_count = 2,
                               .node_names = names,
                               .node_of_rank = nodes,
                               .rankfile = "file",
                               .slots_of_rank = lists,
                               .line_of_rank = lines};
    struct chempi_bind_map cores;
    int rc;

    cr_assert_eq(chempi_bind_parse(&cores, CHEMPI_BIND_CORE,
                                   "0 0,4\n0 1,5\n1 2,6\n1 3,7\n", &err),
                 0);
    rc = chempi_bind_list(&cores, &spec, 1, map, &err);
    chempi_bind_fini(&cores);
    return rc;
}

static void expect_bound(char *slots, const char *processors)
{
    struct chempi_bind_map map;
    char text[CHEMPI_CPUS_TEXT_MAX];

    cr_assert_eq(bind_by(slots, &map), 0, "%s", err.text);
    cr_assert_eq(map.count, 2);
    (void)chempi_cpus_format(&map.places[0].cpus, text, sizeof(text));
    cr_expect_str_eq(text, "0,4");
    (void)chempi_cpus_format(&map.places[1].cpus, text, sizeof(text));
    cr_expect_str_eq(text, processors);
    chempi_bind_fini(&map);
}

Test(rankfile, lists_become_processors)
{
    expect_bound("3", "3,7");
    expect_bound("1:0", "2,6");
    expect_bound("0-1,3", "0-1,3-5,7");
    expect_bound("1:*", "2-3,6-7");
    expect_bound("*", "0-7");
    expect_bound("0:1,1:0", "1-2,5-6");
}

Test(rankfile, cores_that_are_not_there_are_told)
{
    struct chempi_bind_map map;

    cr_assert_eq(bind_by("2-4", &map), -EINVAL);
    cr_expect_str_eq(err.text, "file:1: rank 2: slot=2-4: expected cores of "
                               "node b from 0 to 3, found 4");
    cr_assert_eq(bind_by("1:2", &map), -EINVAL);
    cr_expect_str_eq(err.text, "file:1: rank 2: slot=1:2: expected cores of "
                               "socket 1 of node b from 0 to 1, found 2");
    cr_assert_eq(bind_by("2:*", &map), -EINVAL);
    cr_expect_str_eq(err.text, "file:1: rank 2: slot=2:*: ranks may use no "
                               "core of socket 2 of node b");
}
