/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of processors, and the cores that ranks get by default. */
#define _GNU_SOURCE /* mkdtemp */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "chempid/supervisor/cores.h"
#include "common/base/sys.h"

/* ---- lists --------------------------------------------------------------- */

Test(cpus, a_list_survives_there_and_back)
{
    static const char *const lists[] = {"0", "0-1", "3,5", "0-2,4,6-8,8191"};

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        struct chempi_cpus cpus;
        char text[CHEMPI_CPUS_TEXT_MAX];

        cr_assert_eq(chempi_cpus_parse(lists[i], &cpus), 0);
        cr_assert(chempi_cpus_format(&cpus, text, sizeof(text)));
        cr_assert_str_eq(text, lists[i]);
    }
}

Test(cpus, the_kernel_ends_lists_with_a_newline)
{
    struct chempi_cpus cpus;

    cr_assert_eq(chempi_cpus_parse("0,2-3\n", &cpus), 0);
    cr_assert_eq(chempi_cpus_count(&cpus), 3);
    cr_assert(chempi_cpus_has(&cpus, 2));
}

Test(cpus, a_list_may_be_followed_by_something_else)
{
    struct chempi_cpus cpus;
    struct chempi_cpus more;
    const char *text = "1,4 8-9;,";

    cr_assert_eq(chempi_cpus_scan(&text, &cpus), 0);
    cr_assert_str_eq(text, " 8-9;,");
    text++;
    cr_assert_eq(chempi_cpus_scan(&text, &more), 0);
    cr_assert_str_eq(text, ";,");
    cr_assert_eq(chempi_cpus_scan(&text, &more), -EINVAL);
    chempi_cpus_join(&cpus, &more);
    cr_assert_eq(chempi_cpus_count(&cpus), 4);
    cr_assert(chempi_cpus_has(&cpus, 1) && chempi_cpus_has(&cpus, 9));
}

Test(cpus, what_is_no_list_is_refused)
{
    static const char *const bad[] = {"",
                                      "\n",
                                      "a",
                                      "1,",
                                      "3-2",
                                      "-1",
                                      "1-",
                                      "8192",
                                      "0-9999",
                                      "1 2",
                                      "1\n2",
                                      "1;2",
                                      "99999999999999999999"};
    struct chempi_cpus cpus;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_eq(chempi_cpus_parse(bad[i], &cpus), -EINVAL, "%s", bad[i]);
}

Test(cpus, a_list_is_cut_between_ranges)
{
    struct chempi_cpus cpus;
    char text[8];

    cr_assert_eq(chempi_cpus_parse("0-1,10,20-30", &cpus), 0);
    cr_assert_not(chempi_cpus_format(&cpus, text, sizeof(text)));
    cr_assert_str_eq(text, "0-1,10");
}

/* ---- cores --------------------------------------------------------------- */

static char dir[] = "/tmp/chempi-cores-XXXXXX";

static void put(const char *name, const char *text)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void put_dir(const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    cr_assert_eq(mkdir(path, 0700), 0);
}

/* Four cores of two processors each, 0 and 4 to 3 and 7. */
static void make_host(const char *smt)
{
    cr_assert(mkdtemp(dir));
    put_dir("smt");
    put("smt/active", smt);
    for (int i = 0; i < 8; i++) {
        char name[64];
        char text[16];

        snprintf(name, sizeof(name), "cpu%d", i);
        put_dir(name);
        snprintf(name, sizeof(name), "cpu%d/topology", i);
        put_dir(name);
        snprintf(name, sizeof(name), "cpu%d/topology/thread_siblings_list", i);
        snprintf(text, sizeof(text), "%d,%d\n", i % 4, i % 4 + 4);
        put(name, text);
    }
}

static void remove_host(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", dir);
    cr_assert_eq(system(command), 0);
}

static void check_place(const struct chempi_bind_place *place, const char *list)
{
    char text[CHEMPI_CPUS_TEXT_MAX];

    (void)chempi_cpus_format(&place->cpus, text, sizeof(text));
    cr_assert_str_eq(text, list);
}

static void find(const char *where, const char *allowed,
                 struct chempi_bind_map *map)
{
    struct chempi_cpus cpus;

    cr_assert_eq(chempi_cpus_parse(allowed, &cpus), 0);
    cr_assert_eq(chempi_cores_find(where, &cpus, map), 0);
}

Test(cores, siblings_are_one_core)
{
    struct chempi_bind_map map;

    make_host("1\n");
    find(dir, "0-7", &map);
    cr_assert_eq(map.count, 4);
    check_place(&map.places[1], "1,5");
    chempi_bind_fini(&map);
    find(dir, "1-2,5", &map); /* K3 */
    cr_assert_eq(map.count, 2);
    check_place(&map.places[0], "1,5");
    check_place(&map.places[1], "2");
    chempi_bind_fini(&map);
    find(dir, "2,5-7", &map);
    cr_assert_eq(map.count, 3);
    check_place(&map.places[1], "5");
    cr_expect_eq(map.places[0].socket, 2);
    cr_expect_eq(map.places[1].socket, 1); /* K2, though 1 is not allowed */
    cr_expect_eq(map.places[2].socket, 3);
    chempi_bind_fini(&map);
    remove_host();
}

Test(cores, without_siblings_a_processor_is_a_core)
{
    struct chempi_bind_map map;

    make_host("0\n");
    find(dir, "1-2,5", &map);
    cr_assert_eq(map.count, 3);
    check_place(&map.places[2], "5");
    chempi_bind_fini(&map);
    remove_host();
    find("/nowhere", "3-4", &map);
    cr_assert_eq(map.count, 2);
    chempi_bind_fini(&map);
}

Test(cores, shares_are_disjoint_and_leave_no_core_over)
{
    static const char *const lists[] = {"0-1", "2-3", "4-6"};
    struct chempi_bind_map map;

    find("/nowhere", "0-6", &map);
    for (uint32_t i = 0; i < 3; i++) {
        struct chempi_bind_place place;

        chempi_cores_share(&map, i, 3, &place);
        check_place(&place, lists[i]);
    }
    chempi_bind_fini(&map);
}

/* ---- who gets them ------------------------------------------------------- */

static uint32_t places[CHEMPI_CPUS_MAX + 1];
static uint32_t hosts[2];
static uint32_t slots;

static uint32_t choose_on(uint32_t node, uint32_t ranks, uint32_t gateways,
                          struct chempi_bind_map *map)
{
    struct chempi_spec spec = {.size = ranks,
                               .gateway_count = gateways,
                               .node_count = 2,
                               .node_of_rank = places,
                               .slots = slots,
                               .host_of_node = hosts};

    chempi_cores_choose(&spec, node, map);
    return map->count;
}

static uint32_t choose(uint32_t ranks, uint32_t gateways,
                       struct chempi_bind_map *map)
{
    return choose_on(0, ranks, gateways, map);
}

static struct chempi_sys rigged;

/* The same name, and this process's number. */
static int bind_apart(int fd, const struct sockaddr *addr, socklen_t len)
{
    struct sockaddr_un name = {0};
    int n;

    memcpy(&name, addr, len);
    n = snprintf((char *)&name + len, sizeof(name) - len, "-%d", (int)getpid());
    return chempi_sys_libc.bind(fd, (const struct sockaddr *)&name,
                                len + (socklen_t)n);
}

/* Where no other job has a core. The number of cores. */
static uint32_t be_alone(void)
{
    struct chempi_bind_map map;
    struct chempi_cpus cpus;
    uint32_t count;

    rigged = chempi_sys_libc;
    rigged.bind = bind_apart;
    chempi_sys = &rigged;
    cr_assert_eq(chempi_cpus_get(&cpus), 0);
    cr_assert_eq(chempi_cores_find(CHEMPI_CORES_DIR, &cpus, &map), 0);
    count = map.count;
    chempi_bind_fini(&map);
    if (count < 2)
        cr_skip_test("one core only");
    return count;
}

Test(cores, a_core_is_given_to_one_job_at_a_time)
{
    struct chempi_bind_map first;
    struct chempi_bind_map second;

    (void)be_alone();
    cr_assert_eq(choose(2, 0, &first), 2);
    cr_assert(first.is_share);
    cr_assert_eq(choose(2, 0, &second), 0);
    cr_assert_not(second.is_share);
    chempi_bind_fini(&first);
    cr_assert_eq(choose(2, 0, &second), 2);
    chempi_bind_fini(&second);
}

/* Under a daemon that has a slot per core. */
Test(cores, jobs_have_cores_of_their_own)
{
    const uint32_t count = be_alone();
    struct chempi_bind_map first;
    struct chempi_bind_map second;
    struct chempi_bind_map rest;

    slots = count;
    cr_assert_eq(choose(1, 0, &first), 1);
    cr_assert_eq(first.hold_count, 1);
    cr_assert_eq(choose(1, 0, &second), 1);
    cr_assert_neq(memcmp(&first.places[0].cpus, &second.places[0].cpus,
                         sizeof(first.places[0].cpus)),
                  0);
    if (count > 2) {
        cr_assert_eq(choose(count - 2, 0, &rest), count - 2);
        chempi_bind_fini(&rest);
    }
    cr_assert_eq(choose(count - 1, 0, &rest), 0);
    chempi_bind_fini(&first);
    cr_assert_eq(choose(count - 1, 0, &rest), count - 1);
    chempi_bind_fini(&rest);
    chempi_bind_fini(&second);
    slots = 1;
    cr_assert_eq(choose(1, 0, &first), 1);
    cr_assert_eq(first.hold_count, count);
    chempi_bind_fini(&first);
}

Test(cores, nobody_gets_by_default_what_a_job_has_asked_for)
{
    const uint32_t count = be_alone();
    struct chempi_bind_map first = {0};
    struct chempi_bind_map second;
    struct chempi_bind_map third;

    cr_assert_eq(choose(count, 0, &second), count);
    chempi_cores_release(&second); /* as if asked for: no names so far */
    second.offset = 1;
    chempi_cores_claim(&second, 1);
    cr_assert_eq(second.hold_count, 1);
    cr_assert_eq(choose(count, 0, &first), 0);
    third = second; /* who asks gets what somebody has, but no name */
    third.holds = NULL;
    third.hold_count = 0;
    chempi_cores_claim(&third, 2);
    cr_assert_eq(third.hold_count, 1);
    chempi_cores_release(&third);
    chempi_bind_fini(&second);
    cr_assert_eq(choose(count, 0, &first), count);
    chempi_bind_fini(&first);
}

Test(cores, only_jobs_that_fit_are_bound)
{
    const uint32_t count = be_alone();
    struct chempi_bind_map map;

    cr_assert_eq(choose(count + 1, 0, &map), 0);
    cr_assert_eq(choose(count, 1, &map), 0);
    cr_assert_eq(choose(1, 0, &map), 0);
    cr_assert_eq(choose(count, 0, &map), count);
    chempi_bind_fini(&map);
}

Test(cores, nodes_of_one_host_divide_its_cores)
{
    struct chempi_bind_map map;

    (void)be_alone();
    places[1] = 1;
    cr_assert_eq(choose(2, 0, &map), 1); /* the other is on node 1 */
    cr_assert_lt(map.hold_count, chempi_cpus_count(&map.allowed));
    chempi_bind_fini(&map);
    hosts[1] = 1; /* another host: one rank here, and all is its own */
    cr_assert_eq(choose(2, 0, &map), 0);
}

/* Each call in a network namespace of its own. */
static int bind_always(int fd, const struct sockaddr *addr, socklen_t len)
{
    (void)fd;
    (void)addr;
    (void)len;
    return 0;
}

Test(cores, nodes_that_cannot_see_names_divide_the_cores_of_a_host)
{
    struct chempi_bind_map first;
    struct chempi_bind_map second;

    slots = be_alone();
    rigged.bind = bind_always;
    places[1] = 1;
    cr_assert_eq(choose_on(0, 2, 0, &first), 1);
    cr_assert_eq(choose_on(1, 2, 0, &second), 1);
    cr_assert_neq(memcmp(&first.places[0].cpus, &second.places[0].cpus,
                         sizeof(first.places[0].cpus)),
                  0);
    chempi_bind_fini(&first);
    chempi_bind_fini(&second);
}
