/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes: where ranks go, cluster files, addresses, processors. */
#define _GNU_SOURCE /* mkdtemp */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chempid/launcher/place.h"
#include "chempid/stats/traffic.h"
#include "chempid/supervisor/bind.h"
#include "chempid/tree/addr.h"
#include "chempid/tree/nodes/members.h"

/* ---- names --------------------------------------------------------------- */

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

/* ---- places -------------------------------------------------------------- */

static void expect_places(const struct chempi_place_node *nodes, uint32_t count,
                          uint32_t ppn, enum chempi_map map, const char *want)
{
    uint32_t where[32];
    char text[33] = "";
    const uint32_t size = (uint32_t)strlen(want);

    cr_assert_eq(chempi_place_ranks(nodes, count, size, ppn, map, where, NULL),
                 0);
    for (uint32_t i = 0; i < size; i++)
        text[i] = (char)('0' + where[i]);
    cr_assert_str_eq(text, want);
}

static const struct chempi_place_node unknown[3];
static const struct chempi_place_node sized[3] = {
    {2, 0, 0, false}, {4, 0, 0, false}, {2, 0, 0, false}};
static const struct chempi_place_node loaded[3] = {
    {2, 3, 0, false}, {2, 0, 0, false}, {2, 1, 0, false}};
static const struct chempi_place_node taken[3] = {
    {2, 0, 1, false}, {4, 0, 1, false}, {2, 0, 2, false}};

Test(place, blocks_fill_node_after_node)
{
    expect_places(unknown, 3, 0, CHEMPI_MAP_BLOCK, "001122");
    expect_places(unknown, 3, 0, CHEMPI_MAP_BLOCK, "0001122");
    expect_places(sized, 3, 0, CHEMPI_MAP_BLOCK, "00111");
    expect_places(sized, 3, 1, CHEMPI_MAP_BLOCK, "012");
}

Test(place, more_ranks_than_slots_are_shared_out_by_slots)
{
    expect_places(sized, 3, 0, CHEMPI_MAP_BLOCK, "0000111111112222");
    expect_places(sized, 3, 0, CHEMPI_MAP_BLOCK, "000111122");
}

Test(place, cyclic_deals_ranks_out)
{
    expect_places(unknown, 3, 0, CHEMPI_MAP_CYCLIC, "0120120");
    expect_places(sized, 3, 0, CHEMPI_MAP_CYCLIC, "01201211");
    expect_places(unknown, 3, 2, CHEMPI_MAP_CYCLIC, "012012");
}

Test(place, load_prefers_idle_nodes)
{
    expect_places(loaded, 3, 0, CHEMPI_MAP_LOAD, "112");
    expect_places(loaded, 3, 0, CHEMPI_MAP_LOAD, "001122");
}

/* As it is said: one rank after the other to the least loaded node. */
static void place_by_load(const struct chempi_place_node *nodes, uint32_t count,
                          uint32_t size, uint32_t ppn, uint32_t *ranks)
{
    for (uint32_t i = 0; i < size; i++) {
        uint32_t best = count;
        double least = 0;

        for (uint32_t k = 0; k < count; k++) {
            const double load = (nodes[k].load + ranks[k] + 1) / nodes[k].slots;

            if (ranks[k] < ppn && (best == count || load < least)) {
                best = k;
                least = load;
            }
        }
        ranks[best]++;
    }
}

Test(place, load_is_even_among_many_nodes)
{
    struct chempi_place_node nodes[40] = {0};
    uint32_t where[600];

    for (uint32_t size = 1; size <= 600; size += 37) {
        uint32_t want[40] = {0};
        uint32_t got[40] = {0};

        for (uint32_t k = 0; k < 40; k++) {
            nodes[k].slots = 15 + k * size % 5; /* more than ppn each */
            nodes[k].load = k * 7 % 11;
        }
        place_by_load(nodes, 40, size, 15, want);
        cr_assert_eq(chempi_place_ranks(nodes, 40, size, 15, CHEMPI_MAP_LOAD,
                                        where, NULL),
                     0);
        for (uint32_t i = 0; i < size; i++)
            got[where[i]]++;
        cr_assert_arr_eq(got, want, sizeof(want));
    }
}

Test(place, full_nodes_leave_the_round)
{
    static const struct chempi_place_node nodes[4] = {
        {1, 0, 0, false}, {3, 0, 0, false}, {1, 0, 0, false}, {4, 0, 0, false}};

    expect_places(nodes, 4, 0, CHEMPI_MAP_CYCLIC, "012313133");
}

Test(place, free_slots_come_first)
{
    expect_places(taken, 3, 0, CHEMPI_MAP_BLOCK, "0111");
    expect_places(taken, 3, 0, CHEMPI_MAP_CYCLIC, "0111");
    expect_places(taken, 3, 0, CHEMPI_MAP_LOAD, "0111");
    expect_places(taken, 3, 1, CHEMPI_MAP_BLOCK, "01");
    expect_places(taken, 3, 2, CHEMPI_MAP_BLOCK, "011");
    expect_places(taken, 3, 2, CHEMPI_MAP_BLOCK, "0011");
    expect_places(taken, 3, 0, CHEMPI_MAP_BLOCK, "000111111122");
    expect_places(taken, 3, 0, CHEMPI_MAP_BLOCK, "000111");
}

Test(place, what_is_free_is_told)
{
    static const char *const names[] = {"a", "b", "c"};
    struct chempi_err err;

    cr_assert_eq(chempi_place_check(taken, names, 3, 4, 0, NULL), 0);
    cr_assert_eq(chempi_place_check(taken, names, 3, 5, 0, &err), -EDQUOT);
    cr_assert(strstr(err.text, ": a 1 of 2, b 3 of 4, c 0 of 2;"), "%s",
              err.text);
    cr_assert_eq(chempi_place_check(taken, names, 3, 4, 2, NULL), -EDQUOT);
    cr_assert_eq(chempi_place_check(unknown, names, 3, 99, 0, NULL), 0);
}

Test(place, ranks_that_do_not_fit_are_an_error_with_a_remedy)
{
    struct chempi_err err;
    uint32_t where[8];

    cr_assert_eq(
        chempi_place_ranks(unknown, 3, 7, 2, CHEMPI_MAP_BLOCK, where, &err),
        -ENOSPC);
    cr_assert(strstr(err.text, "--ppn"));
}

/* ---- cluster files ------------------------------------------------------- */

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

/* ---- addresses ----------------------------------------------------------- */

Test(addr, numbers_of_both_families_are_understood)
{
    static const char *const same[] = {"127.0.0.1:4000", "[::1]:4000"};
    struct chempi_addr a;
    char text[CHEMPI_ADDR_MAX];

    for (int i = 0; i < 2; i++) {
        cr_assert_eq(chempi_addr_parse(same[i], &a, NULL), 0);
        chempi_addr_format(&a, text, sizeof(text));
        cr_assert_str_eq(text, same[i]);
    }
    cr_assert_eq(chempi_addr_parse("::1", &a, NULL), 0);
    chempi_addr_format(&a, text, sizeof(text));
    cr_assert_str_eq(text, "[::1]:0");
}

Test(addr, nonsense_is_refused)
{
    static const char *const bad[] = {
        "", ":1", "[::1", "[::1]x", "a:port", "127.0.0.1:", "a:123456"};
    struct chempi_addr a;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_eq(chempi_addr_parse(bad[i], &a, NULL), -EINVAL, "%s",
                     bad[i]);
}

Test(addr, port_zero_becomes_a_port)
{
    struct chempi_addr a;
    struct chempi_addr bound;
    char text[CHEMPI_ADDR_MAX];
    int fd;

    cr_assert_eq(chempi_addr_parse("127.0.0.1", &a, NULL), 0);
    fd = chempi_addr_listen(&a, &bound, NULL);
    cr_assert_geq(fd, 0);
    chempi_addr_format(&bound, text, sizeof(text));
    cr_assert_str_neq(text, "127.0.0.1:0");
    (void)close(fd);
}

/* Whoever listens takes nobody; each place is for one that waits. */
Test(addr, nobody_waits_for_ever_for_a_place)
{
    enum { CALLERS = 256 };
    int fds[CALLERS];
    char name[64];
    int listener;
    int count = 0;

    (void)snprintf(name, sizeof(name), "/tmp/chempi-addr-%ld", (long)getpid());
    listener = chempi_addr_listen_unix(name, 0600, NULL);
    cr_assert_geq(listener, 0);
    do
        fds[count] = chempi_addr_connect_unix(name, 10, NULL);
    while (fds[count] >= 0 && ++count < CALLERS);
    cr_expect_gt(count, 0);
    cr_assert_lt(count, CALLERS, "there is always a place");
    cr_expect_eq(fds[count], -EAGAIN);
    cr_expect_eq(chempi_addr_clear_unix(name, NULL), -EADDRINUSE);
    while (count > 0)
        (void)close(fds[--count]);
    (void)close(listener);
    cr_expect_eq(chempi_addr_clear_unix(name, NULL), 0);
    cr_expect_eq(access(name, F_OK), -1, "nobody listens there");
}

/* ---- processors ---------------------------------------------------------- */

Test(bind, cores_are_places_and_sockets_join_theirs)
{
    static const char text[] = "0 0,4\n0 1,5\n1 2,6\n1 3,7\n";
    struct chempi_bind_map map;

    cr_assert_eq(chempi_bind_parse(&map, CHEMPI_BIND_CORE, text, NULL), 0);
    cr_assert_eq(map.count, 4);
    cr_assert_eq(map.places[1].cpus.bits[0], 0x22);
    chempi_bind_fini(&map);
    cr_assert_eq(chempi_bind_parse(&map, CHEMPI_BIND_SOCKET, text, NULL), 0);
    cr_assert_eq(map.count, 2);
    cr_assert_eq(map.places[1].cpus.bits[0], 0xcc);
    chempi_bind_fini(&map);
}

Test(bind, a_malformed_answer_is_refused)
{
    static const char *const bad[] = {
        "", "0\n", "0 1", "0 1,\n", "0 99999\n", "x 1\n", "0 1\n0 -1\n"};
    struct chempi_bind_map map;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_eq(chempi_bind_parse(&map, CHEMPI_BIND_CORE, bad[i], NULL),
                     -EINVAL, "%s", bad[i]);
}

/* ---- traffic ------------------------------------------------------------- */

Test(traffic, counters_of_the_same_way_are_summed)
{
    static const char text[] = "traffic 1 0 eth tcp eager 1 10\n"
                               "traffic 0 1 eth tcp eager 2 20\n"
                               "nonsense\n"
                               "traffic 0 1 eth tcp eager 3 30\n"
                               "traffic 0 1 smp shm eager 1 1\n"
                               "traffic 0 1 smp shm eager 1\n";
    struct chempi_writer w = {0};

    chempi_lines_merge(&chempi_traffic_kind, text, strlen(text), &w);
    chempi_wire_put_u8(&w, 0);
    cr_assert_str_eq((char *)w.data, "traffic 0 1 eth tcp eager 5 50\n"
                                     "traffic 0 1 smp shm eager 1 1\n"
                                     "traffic 1 0 eth tcp eager 1 10\n");
    chempi_wire_clear(&w);
}
