/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is in a job's control group, of processes that live. Skipped where no
 * group can be written.
 */
#define _GNU_SOURCE /* kill */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/process/cgroup.h"

#define JOB "4.unit.17"
#define ROOM (4 * (size_t)CHEMPI_CGROUP_PATH_MAX)

static struct chempi_cgroups all;
static int guard[2]; /* the test alone holds the end to write to */

/* A process that is in the group of this directory, and ends with the test. */
static pid_t start_in(const char *dir)
{
    char path[ROOM + 16];
    int up[2];
    char byte = 0;
    pid_t pid;

    (void)snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
    cr_assert_eq(pipe(up), 0);
    pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        FILE *file = fopen(path, "we");

        (void)close(guard[1]);
        if (!file || fputs("0", file) < 0 || fclose(file) != 0 ||
            write(up[1], &byte, 1) != 1)
            _exit(1);
        (void)read(guard[0], &byte, 1); /* nobody writes */
        _exit(0);
    }
    (void)close(up[1]);
    cr_assert_eq(read(up[0], &byte, 1), 1, "%s cannot be entered", dir);
    (void)close(up[0]);
    return pid;
}

static void end(pid_t pid)
{
    cr_expect_eq(kill(pid, SIGKILL), 0);
    cr_expect_eq(waitpid(pid, NULL, 0), pid);
}

/* Groups below the one where daemons put theirs, each in the one before. */
static void make(char *path, const char *const *names)
{
    (void)snprintf(path, ROOM, "%s", all.places[0].dir);
    *strrchr(path, '/') = '\0';
    for (; *names; names++) {
        const size_t len = strlen(path);

        (void)snprintf(path + len, ROOM - len, "/%s", *names);
        cr_assert(mkdir(path, 0755) == 0 || errno == EEXIST, "%s", path);
    }
}

static void unmake(char *path, const char *const *names)
{
    for (; *names; names++) {
        if (strcmp(path, all.places[0].dir) != 0)
            cr_expect_eq(rmdir(path), 0, "%s", path);
        *strrchr(path, '/') = '\0';
    }
}

static bool has(const struct chempi_cgroup *group, const char *const *names)
{
    char path[ROOM];
    pid_t pid;
    bool is_in;

    make(path, names);
    pid = start_in(path);
    is_in = chempi_cgroup_has(group, pid);
    end(pid);
    unmake(path, names);
    return is_in;
}

/* As nothing is made where users may not, root plays them. */
Test(cgroup_members, groups_of_others_are_not_the_jobs_whatever_their_names)
{
    const struct chempi_cgroup_limits limits = {0};
    struct chempi_cgroup group;
    struct chempi_err err = {0};
    const char *place;
    char user[64];

    if (chempi_cgroups_open(&all, "unit", &limits, &err))
        cr_skip_test("no group can be written here");
    cr_assert_eq(pipe(guard), 0);
    cr_assert_eq(chempi_cgroup_make(&group, &all, JOB, &err), 0, "%s",
                 err.text);
    place = strrchr(all.places[0].dir, '/') + 1;
    (void)snprintf(user, sizeof(user), "user.%ld", (long)getpid());
    cr_expect_not(chempi_cgroup_has(&group, getpid()));
    cr_expect(has(&group, (const char *const[]){place, JOB, "below", NULL}));
    chempi_cgroup_remove(&group);
    cr_assert_eq(chempi_cgroup_make(&group, &all, JOB, &err), 0, "%s",
                 err.text);
    cr_expect(has(&group, (const char *const[]){place, JOB, NULL}));
    cr_expect_not(has(&group, (const char *const[]){user, JOB, NULL}));
    cr_expect_not(has(&group, (const char *const[]){user, place, JOB, NULL}));
    cr_expect_not(has(&group, (const char *const[]){place, JOB "0", NULL}));
    chempi_cgroup_remove(&group);
    chempi_cgroups_sweep(&all);
    chempi_cgroups_fini(&all);
}
