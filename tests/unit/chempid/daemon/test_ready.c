/* SPDX-License-Identifier: BSD-3-Clause */
/* Ready files: which are read, and when again. */
#define _GNU_SOURCE /* mkdtemp, utimensat */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chempid/daemon/ready.h"
#include "common/base/sys.h"

static char dir[] = "/tmp/chempi-ready-XXXXXX";
static struct chempi_ready ready;
static struct chempi_sys sys;
static unsigned opens; /* files that were looked for */

static int count_open(const char *path, int flags, mode_t mode)
{
    opens++;
    return chempi_sys_libc.open(path, flags, mode);
}

static void path_of(const char *file, char *path, size_t size)
{
    (void)snprintf(path, size, "%s/%s", dir, file);
}

static void write_file(const char *file, const char *text)
{
    char path[128];
    FILE *f;

    path_of(file, path, sizeof(path));
    f = fopen(path, "w");
    cr_assert(f);
    cr_assert(fputs(text, f) >= 0);
    cr_assert_eq(fclose(f), 0);
}

static void rename_to(const char *from, const char *to)
{
    char paths[2][128];

    path_of(from, paths[0], sizeof(paths[0]));
    path_of(to, paths[1], sizeof(paths[1]));
    cr_assert_eq(rename(paths[0], paths[1]), 0);
}

/* As if nothing had changed there for an hour. */
static void settle(void)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};

    cr_assert_eq(clock_gettime(CLOCK_REALTIME, &times[1]), 0);
    times[1].tv_sec -= 3600;
    cr_assert_eq(utimensat(AT_FDCWD, dir, times, 0), 0);
}

static void make(void)
{
    cr_assert(mkdtemp(dir));
    write_file("a2.node", "a2 127.0.0.1:2 1\n");
    write_file("a10.node", "a10 127.0.0.1:10 1\n");
    write_file("a1.node", "a1 127.0.0.1:1 1\n");
    write_file("x.node", "a3 127.0.0.1:3 1\n"); /* another node's name */
    settle();
    sys = chempi_sys_libc;
    sys.open = count_open;
    chempi_sys = &sys;
    chempi_ready_look(&ready, dir);
}

static void clear(void)
{
    static const char *const files[] = {"a1.node", "a2.node", "a10.node",
                                        "b7.node", "x.node"};
    char path[128];

    chempi_ready_fini(&ready);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        path_of(files[i], path, sizeof(path));
        (void)unlink(path);
    }
    (void)rmdir(dir);
}

TestSuite(ready, .init = make, .fini = clear);

Test(ready, who_asks_for_a_node_has_its_file_read_only)
{
    const struct chempi_member *m = chempi_ready_find(&ready, dir, "a2");

    cr_assert(m);
    cr_expect_str_eq(m->address, "127.0.0.1:2");
    cr_expect_eq(ready.list.count, 1);
    cr_expect_null(chempi_ready_find(&ready, dir, "a4"));
}

Test(ready, a_file_speaks_for_the_node_of_its_name)
{
    cr_expect_null(chempi_ready_find(&ready, dir, "x"));
    cr_expect_null(chempi_ready_find(&ready, dir, "a3"));
    cr_expect_null(chempi_ready_find(&ready, dir, "../a1"));
    (void)chempi_ready_all(&ready, dir);
    cr_expect_null(chempi_ready_find(&ready, dir, "a3"));
}

Test(ready, all_are_in_order_whoever_was_asked_for_before)
{
    static const char *const names[] = {"a1", "a2", "a10"};
    const struct chempi_members *all;

    (void)chempi_ready_find(&ready, dir, "a10");
    all = chempi_ready_all(&ready, dir);
    cr_assert_eq(all->count, 3);
    for (int i = 0; i < 3; i++)
        cr_expect_str_eq(all->list[i].name, names[i]);
}

Test(ready, what_was_read_is_kept_until_the_directory_changes)
{
    (void)chempi_ready_find(&ready, dir, "a1");
    chempi_ready_look(&ready, dir);
    cr_expect_eq(ready.list.count, 1);
    write_file("a1.node", "a1 127.0.0.1:7 1\n");
    rename_to("a2.node", "x.node");
    chempi_ready_look(&ready, dir);
    cr_expect_eq(ready.list.count, 0);
    cr_assert(chempi_ready_find(&ready, dir, "a1"));
    cr_expect_str_eq(chempi_ready_find(&ready, dir, "a1")->address,
                     "127.0.0.1:7");
}

/* Anybody on this host may ask for as many as there can be. */
Test(ready, many_that_are_not_there_are_not_looked_for_one_by_one)
{
    char name[16];
    unsigned before;

    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "b%u", i);
        cr_expect_null(chempi_ready_find(&ready, dir, name));
    }
    cr_expect_leq(opens, 64 + 4, "%u files", opens);
    before = opens;
    cr_expect(chempi_ready_find(&ready, dir, "a2"));
    chempi_ready_look(&ready, dir);
    cr_expect_null(chempi_ready_find(&ready, dir, "b7"));
    cr_expect_eq(opens, before);
    write_file("b7.node", "b7 127.0.0.1:7 1\n");
    chempi_ready_look(&ready, dir);
    cr_expect(chempi_ready_find(&ready, dir, "b7"));
    cr_expect_eq(opens, before + 1, "its own only");
}
