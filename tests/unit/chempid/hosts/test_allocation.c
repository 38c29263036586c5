/* SPDX-License-Identifier: BSD-3-Clause */
/* What batch systems say of their nodes, and programs of themselves. */
#define _GNU_SOURCE /* mkstemp, pwrite */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chempid/hosts/allocation.h"
#include "chempid/job/program.h"

static struct chempi_hosts hosts;
static struct chempi_pool pool;
static struct chempi_err err;

static void clear(void)
{
    chempi_pool_fini(&pool);
    chempi_hosts_fini(&hosts);
    hosts = (struct chempi_hosts){0};
    err = (struct chempi_err){0};
}

static int names(const char *list, const char *want)
{
    char got[256] = "";
    int rc;

    clear();
    rc = chempi_allocation_names(&hosts, &pool, list, &err);
    for (uint32_t i = 0; !rc && i < hosts.count; i++) {
        const size_t len = strlen(got);

        (void)snprintf(got + len, sizeof(got) - len, "%s%s", i ? " " : "",
                       hosts.names[i]);
    }
    if (!rc)
        cr_assert_str_eq(got, want);
    return rc;
}

Test(allocation, lists_of_slurm_are_expanded, .fini = clear)
{
    cr_assert_eq(names("n1", "n1"), 0);
    cr_assert_eq(names("b,a", "b a"), 0);
    cr_assert_eq(names("n[0-2]", "n0 n1 n2"), 0);
    cr_assert_eq(names("n[08-10,3],b", "n08 n09 n10 n3 b"), 0);
    cr_assert_eq(names("r[1-2]c[3-4]x", "r1c3x r1c4x r2c3x r2c4x"), 0);
}

Test(allocation, lists_that_make_no_sense_are_refused, .fini = clear)
{
    static const char *const bad[] = {
        "",       "n[",    "n[]",     "n[1",        "n[a]",
        "n[2-1]", "n[1-]", "n[1,,2]", "n[0-70000]", "n[1]n[1]]x",
        "n]1,[2", "a,,b",  "a,a",     "n[1-2-3]"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        cr_assert_eq(names(bad[i], ""), -EINVAL, "%s", bad[i]);
    cr_assert_eq(names("n[0-99999999999999999999]", ""), -EINVAL);
    cr_assert_eq(names("a123456789012345678901234567890123456789012345678901"
                       "2345678901234567890",
                       ""),
                 -EINVAL);
}

Test(allocation, slots_are_repeated, .fini = clear)
{
    cr_assert_eq(names("n[0-3]", "n0 n1 n2 n3"), 0);
    cr_assert_eq(chempi_allocation_slots(&hosts, "4(x2),3", &err), 0);
    cr_assert_eq(hosts.slots[1], 4);
    cr_assert_eq(hosts.slots[2], 3);
    cr_assert_eq(hosts.slots[3], 0);
    cr_assert_eq(chempi_allocation_slots(&hosts, "1(x99999999),7", &err), 0);
    cr_assert_eq(hosts.slots[3], 1);
    cr_assert_eq(chempi_allocation_slots(&hosts, "x", &err), -EINVAL);
    cr_assert_eq(chempi_allocation_slots(&hosts, "4(y2)", &err), -EINVAL);
    cr_assert_eq(chempi_allocation_slots(&hosts, "0", &err), -EINVAL);
}

Test(program, a_file_may_hold_anything)
{
    static const char *const texts[] = {"", "#!", "#!\n", "\177ELF", "x"};
    char path[] = "/tmp/chempi-program-XXXXXX";
    const int fd = mkstemp(path);
    char name[64];

    cr_assert_geq(fd, 0);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        cr_assert_eq(ftruncate(fd, 0), 0);
        cr_assert_eq(pwrite(fd, texts[i], strlen(texts[i]), 0),
                     (ssize_t)strlen(texts[i]));
        cr_assert_not(chempi_program_interpreter(path, name, sizeof(name)));
        cr_assert_not(chempi_program_other_mpi(path, name, sizeof(name)));
    }
    cr_assert_eq(pwrite(fd, "#! /bin/x -y\n", 13, 0), 13);
    cr_assert(chempi_program_interpreter(path, name, sizeof(name)));
    cr_assert_str_eq(name, "/bin/x");
    cr_assert_eq(close(fd), 0);
    cr_assert_eq(unlink(path), 0);
}

/* Every byte of the headers in turn, so that no field is trusted. */
Test(program, headers_are_not_trusted)
{
    char path[] = "/tmp/chempi-program-XXXXXX";
    const int fd = mkstemp(path);
    FILE *self = fopen("/proc/self/exe", "re");
    char head[2048];
    char name[64];
    size_t len;

    cr_assert(fd >= 0 && self);
    len = fread(head, 1, sizeof(head), self);
    cr_assert_eq(fclose(self), 0);
    for (size_t i = 4; i < len; i++) {
        const char before = head[i];

        head[i] = (char)0xff;
        cr_assert_eq(pwrite(fd, head, len, 0), (ssize_t)len);
        (void)chempi_program_interpreter(path, name, sizeof(name));
        (void)chempi_program_other_mpi(path, name, sizeof(name));
        head[i] = before;
    }
    cr_assert_eq(close(fd), 0);
    cr_assert_eq(unlink(path), 0);
}
