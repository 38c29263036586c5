/* SPDX-License-Identifier: BSD-3-Clause */
/* Control groups of jobs; see cgroup.h. */
#define _GNU_SOURCE /* syscall, getline */
#include "chempid/process/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "chempid/process/birth.h"
#include "common/base/sys.h"
#include "common/containers/array.h"
#include "common/fd/file.h"

#define PREFIX "chempi."
#define OWN_TRIES 100u
#define GROUPS_TEXT 8192  /* bytes of a process's groups */
#define PERIOD_US 100000u /* over which time of processors is counted */
#define SWEEP_ROUNDS 500u
#define SWEEP_NS 10000000 /* between two */

/* Born in its group by clone3; of a supervisor's process. */
static bool is_born_inside;

/* ---- files --------------------------------------------------------------- */

static int write_file(const char *dir, const char *job, const char *name,
                      const char *text)
{
    char path[2 * CHEMPI_CGROUP_PATH_MAX];
    ssize_t n;
    int code;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s/%s", dir, job, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    n = write(fd, text, strlen(text));
    code = n < 0 ? -errno : 0;
    (void)close(fd); /* the kernel has taken or refused it at once */
    return code;
}

/* Does the word stand in the list, between these separators? */
static bool has_word(const char *list, const char *word, const char *between)
{
    const size_t len = strlen(word);

    while (*list) {
        const size_t n = strcspn(list, between);

        if (n == len && memcmp(list, word, len) == 0)
            return true;
        list += n;
        list += strspn(list, between);
    }
    return false;
}

static bool file_has(const char *dir, const char *name, const char *word)
{
    char path[2 * CHEMPI_CGROUP_PATH_MAX];
    char text[1024];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    (void)chempi_file_read(path, text, sizeof(text)); /* else it is empty */
    return has_word(text, word, " \n");
}

/* ---- where groups can be ------------------------------------------------- */

/* This process's group in the hierarchy with this controller; "": version 2. */
static bool find_own(const char *controller, char *path, size_t size)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[CHEMPI_CGROUP_PATH_MAX];
    bool is_found = false;

    while (file && !is_found && fgets(line, sizeof(line), file)) {
        char *list = strchr(line, ':');
        char *own = list ? strchr(list + 1, ':') : NULL;

        if (!own)
            continue;
        *own++ = '\0';
        own[strcspn(own, "\n")] = '\0';
        is_found =
            *controller ? has_word(list + 1, controller, ",") : list[1] == '\0';
        if (is_found)
            (void)snprintf(path, size, "%s", strcmp(own, "/") ? own : "");
    }
    if (file)
        (void)fclose(file); /* read only */
    return is_found;
}

/* Which group of that hierarchy is mounted where: " - TYPE source OPTIONS"
 * after the mount's fifth word. */
static bool is_mount_of(const char *line, const char *controller, char *group,
                        char *where)
{
    const char *tail = strstr(line, " - ");
    char type[32];
    char options[256];

    if (!tail || sscanf(tail, " - %31s %*s %255s", type, options) != 2 ||
        sscanf(line, "%*s %*s %*s %1023s %1023s", group, where) != 2)
        return false;
    if (!*controller)
        return strcmp(type, "cgroup2") == 0;
    return strcmp(type, "cgroup") == 0 && has_word(options, controller, ",");
}

static bool find_mount(const char *controller,
                       char group[CHEMPI_CGROUP_PATH_MAX],
                       char where[CHEMPI_CGROUP_PATH_MAX])
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t size = 0;
    bool is_found = false;

    while (file && !is_found && getline(&line, &size, file) >= 0)
        is_found = is_mount_of(line, controller, group, where);
    free(line);
    if (file)
        (void)fclose(file); /* read only */
    return is_found;
}

/* Where groups can be made, and its name in /proc/PID/cgroup. In a container
 * the own group may be named from outside of the mount. */
static bool find_base(const char *controller, char base[CHEMPI_CGROUP_PATH_MAX],
                      char name[CHEMPI_CGROUP_PATH_MAX])
{
    char mounted[CHEMPI_CGROUP_PATH_MAX];
    char where[CHEMPI_CGROUP_PATH_MAX];
    char own[CHEMPI_CGROUP_PATH_MAX];
    int n;

    if (!find_mount(controller, mounted, where) ||
        !find_own(controller, own, sizeof(own)))
        return false;
    if (strcmp(mounted, "/") == 0) {
        n = snprintf(base, CHEMPI_CGROUP_PATH_MAX, "%s%s", where, own);
        (void)snprintf(name, CHEMPI_CGROUP_PATH_MAX, "%s", own);
        if (n >= 0 && n < (int)CHEMPI_CGROUP_PATH_MAX &&
            access(base, X_OK) == 0)
            return true;
        mounted[0] = '\0';
    }
    (void)snprintf(base, CHEMPI_CGROUP_PATH_MAX, "%s", where);
    (void)snprintf(name, CHEMPI_CGROUP_PATH_MAX, "%s", mounted);
    return true;
}

/* Groups without processes. */
static void remove_empty(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *d;

    while (dir && (d = readdir(dir))) {
        char job[4 * CHEMPI_CGROUP_PATH_MAX];

        if (d->d_type != DT_DIR || d->d_name[0] == '.')
            continue;
        (void)snprintf(job, sizeof(job), "%s/%s", path, d->d_name);
        (void)rmdir(job); /* only if nothing is in it */
    }
    if (dir)
        (void)closedir(dir); /* read only */
    (void)rmdir(path);
}

/* A group of nobody else's that lives; or -EBUSY, -errno. Its descriptor. */
static int lock_group(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;

    if (!rc && access(path, F_OK) < 0)
        rc = -errno; /* removed in between */
    if (!rc)
        return fd;
    if (fd >= 0)
        (void)close(fd); /* a directory */
    return rc == -EWOULDBLOCK ? -EBUSY : rc;
}

/* One's own, whose name is taken where another namespace numbers processes
 * alike. */
static int make_own(char *dir, size_t size, size_t len)
{
    int rc = -EBUSY;

    for (unsigned i = 0; i < OWN_TRIES && (rc == -EBUSY || rc == -ENOENT);
         i++) {
        const size_t room = size - len;

        if (i && snprintf(dir + len, room, "-%u", i) >= (int)room)
            return -ENAMETOOLONG;
        if (mkdir(dir, 0755) < 0 && errno != EEXIST)
            return -errno;
        rc = lock_group(dir);
    }
    return rc;
}

/* A dead daemon whose keeper was killed, too, has left its own. Nothing is
 * killed there. */
static void remove_stale(const char *base)
{
    DIR *dir = opendir(base);
    struct dirent *d;

    while (dir && (d = readdir(dir))) {
        char path[2 * CHEMPI_CGROUP_PATH_MAX];
        int fd;

        if (strncmp(d->d_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        (void)snprintf(path, sizeof(path), "%s/%s", base, d->d_name);
        fd = lock_group(path);
        if (fd < 0)
            continue;
        remove_empty(path);
        (void)close(fd); /* a directory */
    }
    if (dir)
        (void)closedir(dir); /* read only */
}

/* Version 2 lends a controller to groups below only where no process is; the
 * root of all groups is an exception. */
static bool lend(const char *base, const char *dir, const char *controller)
{
    char word[32];

    if (!file_has(base, "cgroup.controllers", controller))
        return false;
    (void)snprintf(word, sizeof(word), "+%s", controller);
    return write_file(base, "", "cgroup.subtree_control", word) == 0 &&
           write_file(dir, "", "cgroup.subtree_control", word) == 0;
}

/* The name of what lies there below the group `base`. */
static bool name_place(struct chempi_cgroup_place *p, const char *base,
                       const char *below)
{
    const size_t len = strlen(base);
    const size_t more = strlen(below) + 1;

    if (len + more > sizeof(p->name))
        return false;
    memcpy(p->name, base, len);
    memcpy(p->name + len, below, more);
    return true;
}

/* The place in this hierarchy; NULL: it cannot be written. */
static struct chempi_cgroup_place *
add_place(struct chempi_cgroups *all, const char *controller, const char *node)
{
    struct chempi_cgroup_place *p = &all->places[all->count];
    char base[CHEMPI_CGROUP_PATH_MAX];
    char name[CHEMPI_CGROUP_PATH_MAX];
    char procs[CHEMPI_CGROUP_PATH_MAX + 16];
    int n;

    if (!find_base(controller, base, name))
        return NULL;
    (void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", base);
    n = snprintf(p->dir, sizeof(p->dir), "%s/" PREFIX "%s.%ld", base, node,
                 (long)getpid());
    if (n < 0 || n >= (int)sizeof(p->dir) - CHEMPI_JOB_ID_MAX ||
        access(procs, W_OK) < 0)
        return NULL;
    for (uint32_t i = 0; i < all->count; i++)
        if (strncmp(all->places[i].dir, p->dir, (size_t)n) == 0)
            return &all->places[i]; /* several controllers are mounted there */
    remove_stale(base);
    p->fd = make_own(p->dir, sizeof(p->dir) - CHEMPI_JOB_ID_MAX, (size_t)n);
    if (p->fd < 0)
        return NULL;
    if (!name_place(p, name, p->dir + strlen(base))) {
        (void)close(p->fd); /* a directory, and removed when it is stale */
        return NULL;
    }
    p->is_v2 = !*controller;
    if (p->is_v2) {
        p->has_memory = all->limits.memory && lend(base, p->dir, "memory");
        p->has_processes = all->limits.processes && lend(base, p->dir, "pids");
        p->has_cpus = all->limits.cpus > 0 && lend(base, p->dir, "cpu");
    }
    all->count++;
    return p;
}

static void complain(struct chempi_err *err, const char *what)
{
    (void)chempi_err_set(err, -ENOTSUP,
                         "jobs are not limited in %s: this daemon cannot use "
                         "that controller of the kernel's control groups here",
                         what);
}

int chempi_cgroups_open(struct chempi_cgroups *all, const char *node,
                        const struct chempi_cgroup_limits *limits,
                        struct chempi_err *err)
{
    static const char *const others[] = {"freezer", "pids", "name=systemd"};
    struct chempi_cgroup_place *p;
    bool has_memory = !limits->memory;
    bool has_processes = !limits->processes;
    bool has_cpus = limits->cpus <= 0;

    *all = (struct chempi_cgroups){.limits = *limits};
    p = add_place(all, "", node);
    if (p) {
        has_memory |= p->has_memory;
        has_processes |= p->has_processes;
        has_cpus |= p->has_cpus;
    }
    if (!has_memory && (p = add_place(all, "memory", node)))
        has_memory = p->has_memory = true;
    if (!has_processes && (p = add_place(all, "pids", node)))
        has_processes = p->has_processes = true;
    if (!has_cpus && (p = add_place(all, "cpu", node)))
        has_cpus = p->has_cpus = true;
    for (size_t i = 0; !all->count && i < CHEMPI_ARRAY_LEN(others); i++)
        (void)add_place(all, others[i], node);
    if (!has_memory || !has_processes || !has_cpus)
        complain(err, !has_memory      ? "memory"
                      : !has_processes ? "processes"
                                       : "processors");
    else if (!all->count)
        (void)chempi_err_set(err, -ENOTSUP,
                             "jobs have no control groups: none of this host "
                             "can be written by this daemon");
    else
        return 0;
    return -ENOTSUP;
}

/* ---- a job's ------------------------------------------------------------- */

static int set_limits(const struct chempi_cgroup_place *p, const char *job,
                      const struct chempi_cgroup_limits *limits)
{
    const long quota = (long)(limits->cpus * PERIOD_US);
    char text[64];
    int rc = 0;

    if (p->has_memory) {
        (void)snprintf(text, sizeof(text), "%" PRIu64, limits->memory);
        rc =
            write_file(p->dir, job,
                       p->is_v2 ? "memory.max" : "memory.limit_in_bytes", text);
        /* Nor in swap; without it the file is missing. */
        if (!rc)
            (void)write_file(p->dir, job,
                             p->is_v2 ? "memory.swap.max"
                                      : "memory.memsw.limit_in_bytes",
                             p->is_v2 ? "0" : text);
    }
    if (!rc && p->has_processes) {
        (void)snprintf(text, sizeof(text), "%" PRIu64, limits->processes);
        rc = write_file(p->dir, job, "pids.max", text);
    }
    if (!rc && p->has_cpus && p->is_v2) {
        (void)snprintf(text, sizeof(text), "%ld %u", quota, PERIOD_US);
        rc = write_file(p->dir, job, "cpu.max", text);
    } else if (!rc && p->has_cpus) { /* the period is this if nothing is said */
        (void)snprintf(text, sizeof(text), "%ld", quota);
        rc = write_file(p->dir, job, "cpu.cfs_quota_us", text);
    }
    return rc;
}

static void name_group(const struct chempi_cgroup_place *p, const char *job,
                       char path[2 * CHEMPI_CGROUP_PATH_MAX])
{
    (void)snprintf(path, 2 * (size_t)CHEMPI_CGROUP_PATH_MAX, "%s/%s", p->dir,
                   job);
}

bool chempi_cgroup_tells(const char *lines, const char *name, const char *job)
{
    const size_t len = strlen(name);
    const size_t more = strlen(job);

    while (*lines) {
        const char *path = strchr(lines, '/'); /* "ID:CONTROLLERS:PATH" */
        const size_t n = strcspn(lines, "\n");

        if (path && (size_t)(path - lines) < n &&
            strncmp(path, name, len) == 0 && path[len] == '/' &&
            strncmp(path + len + 1, job, more) == 0 &&
            strchr("/\n", path[len + 1 + more])) /* or the end */
            return true;
        lines += n;
        lines += *lines == '\n';
    }
    return false;
}

/* All groups of a process; "" when it is gone. */
static void read_groups(pid_t pid, char lines[GROUPS_TEXT])
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%ld/cgroup", (long)pid);
    (void)chempi_file_read(path, lines, GROUPS_TEXT); /* else it is empty */
}

bool chempi_cgroup_has(const struct chempi_cgroup *group, pid_t pid)
{
    char lines[GROUPS_TEXT];

    if (!group->job[0])
        return false;
    read_groups(pid, lines);
    for (uint32_t i = 0; i < group->all->count; i++)
        if (chempi_cgroup_tells(lines, group->all->places[i].name, group->job))
            return true;
    return false;
}

/* Numbers may have been used again since they were read: a process is killed
 * that was in the group after this had a hold of it. */
static bool is_inside(const struct chempi_cgroup_place *p, pid_t pid,
                      const char *job)
{
    char lines[GROUPS_TEXT];

    read_groups(pid, lines);
    return chempi_cgroup_tells(lines, p->name, job);
}

static void kill_one(const struct chempi_cgroup_place *p, pid_t pid,
                     const char *job)
{
    const int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (fd < 0 && errno == ENOSYS)
        (void)kill(pid, SIGKILL); /* kernels before 5.3 */
    else if (fd >= 0 && is_inside(p, pid, job))
        (void)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
    if (fd >= 0)
        (void)close(fd); /* a hold only */
}

/* Version 1, and kernels before 5.14. */
static void kill_each(const struct chempi_cgroup_place *p, const char *job)
{
    char path[2 * CHEMPI_CGROUP_PATH_MAX];
    FILE *file;
    long pid;

    (void)snprintf(path, sizeof(path), "%s/%s/cgroup.procs", p->dir, job);
    file = fopen(path, "re");
    while (file && fscanf(file, "%ld", &pid) == 1)
        if (pid > 0) /* 0: of another namespace */
            kill_one(p, (pid_t)pid, job);
    if (file)
        (void)fclose(file); /* read only */
}

static void kill_all(const struct chempi_cgroup_place *p, const char *job)
{
    if (!p->is_v2 || write_file(p->dir, job, "cgroup.kill", "1"))
        kill_each(p, job);
}

/* False: there are processes in it, or groups. */
static bool end_group(const struct chempi_cgroup_place *p, const char *job)
{
    char path[2 * CHEMPI_CGROUP_PATH_MAX];

    name_group(p, job, path);
    if (rmdir(path) == 0 || errno == ENOENT)
        return true;
    kill_all(p, job);
    return rmdir(path) == 0 || errno == ENOENT;
}

static void close_fd(struct chempi_cgroup *group)
{
    if (group->all && group->fd >= 0)
        (void)close(group->fd); /* a directory */
    group->fd = -1;
}

int chempi_cgroup_make(struct chempi_cgroup *group, struct chempi_cgroups *all,
                       const char *job, struct chempi_err *err)
{
    char path[2 * CHEMPI_CGROUP_PATH_MAX];
    uint32_t made = 0;
    int rc = 0;

    *group = (struct chempi_cgroup){.fd = -1};
    if (!all || !all->count)
        return 0;
    group->all = all;
    (void)snprintf(group->job, sizeof(group->job), "%s", job);
    for (uint32_t i = 0; !rc && i < all->count; i++) {
        name_group(&all->places[i], job, path);
        if (mkdir(path, 0755) < 0)
            rc = -errno;
        made += !rc;
        if (!rc)
            rc = set_limits(&all->places[i], job, &all->limits);
        if (!rc && all->places[i].is_v2) /* else the child enters by itself */
            group->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (!rc)
        return 0;
    while (made > 0) /* not what was there before */
        (void)end_group(&all->places[--made], job);
    close_fd(group);
    group->all = NULL;
    return chempi_err_set(err, rc, "cannot make the control group %s: %s", path,
                          chempi_err_name(rc));
}

/* Entering afterwards takes milliseconds: the kernel waits for all
 * processors. */
pid_t chempi_cgroup_fork(struct chempi_cgroup *group)
{
    pid_t pid = -1;

    if (group && group->all && group->fd >= 0)
        pid = chempi_birth_clone(CLONE_INTO_CGROUP, group->fd);
    if (pid == 0)
        is_born_inside = true;
    if (pid < 0)
        pid = chempi_sys->fork(); /* older kernels */
    if (group)
        close_fd(group);
    return pid;
}

int chempi_cgroup_enter(const struct chempi_cgroup *group,
                        struct chempi_err *err)
{
    for (uint32_t i = 0; group && group->all && i < group->all->count; i++) {
        const struct chempi_cgroup_place *p = &group->all->places[i];
        const int rc =
            p->is_v2 && is_born_inside
                ? 0
                : write_file(p->dir, group->job, "cgroup.procs", "0");

        if (rc)
            return chempi_err_set(err, rc,
                                  "cannot enter the control group %s/%s: %s",
                                  p->dir, group->job, chempi_err_name(rc));
    }
    return 0;
}

/* Has the kernel killed for lack of memory in it? */
static bool has_run_out(const struct chempi_cgroup_place *p, const char *job)
{
    char path[2 * CHEMPI_CGROUP_PATH_MAX];
    char line[128];
    unsigned long long count = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s/%s", p->dir, job,
                   p->is_v2 ? "memory.events" : "memory.oom_control");
    file = fopen(path, "re");
    while (file && !count && fgets(line, sizeof(line), file))
        (void)sscanf(line, "oom_kill %llu", &count);
    if (file)
        (void)fclose(file); /* read only */
    return count > 0;
}

void chempi_cgroup_explain(const struct chempi_cgroup *group, int number,
                           char *text, size_t size)
{
    text[0] = '\0';
    if (number != SIGKILL || !group || !group->all)
        return;
    for (uint32_t i = 0; i < group->all->count; i++)
        if (group->all->places[i].has_memory &&
            has_run_out(&group->all->places[i], group->job))
            (void)snprintf(text, size,
                           "as the job's processes on this node had reached "
                           "their limit of %" PRIu64 " MiB of memory",
                           group->all->limits.memory >> 20);
}

/* ---- the end ------------------------------------------------------------- */

static bool end_all(const struct chempi_cgroup *group)
{
    bool is_gone = true;

    for (uint32_t i = 0; i < group->all->count; i++)
        is_gone &= end_group(&group->all->places[i], group->job);
    return is_gone;
}

void chempi_cgroup_kill(const struct chempi_cgroup *group)
{
    for (uint32_t i = 0; group->all && i < group->all->count; i++)
        kill_all(&group->all->places[i], group->job);
}

void chempi_cgroup_remove(struct chempi_cgroup *group)
{
    struct chempi_cgroups *all = group->all;

    if (!all)
        return;
    close_fd(group);
    if (!end_all(group) &&
        CHEMPI_ARRAY_FIT(all->left, all->left_room, all->left_count + 1))
        all->left[all->left_count++] = *group;
    group->all = NULL;
}

void chempi_cgroups_tidy(struct chempi_cgroups *all)
{
    size_t kept = 0;

    for (size_t i = 0; i < all->left_count; i++)
        if (!end_all(&all->left[i]))
            all->left[kept++] = all->left[i];
    all->left_count = kept;
}

void chempi_cgroups_fini(struct chempi_cgroups *all)
{
    for (uint32_t i = 0; i < all->count; i++)
        (void)close(all->places[i].fd); /* a directory */
    free(all->left);
    *all = (struct chempi_cgroups){0};
}

/* All of a place; false: some cannot be removed yet. */
static bool sweep_place(const struct chempi_cgroup_place *p)
{
    DIR *dir = opendir(p->dir);
    struct dirent *d;
    bool is_empty = true;

    if (!dir)
        return true;
    while ((d = readdir(dir)))
        if (d->d_type == DT_DIR && d->d_name[0] != '.')
            is_empty &= end_group(p, d->d_name);
    (void)closedir(dir); /* read only */
    return is_empty && (rmdir(p->dir) == 0 || errno == ENOENT);
}

void chempi_cgroups_sweep(const struct chempi_cgroups *all)
{
    const struct timespec pause = {.tv_nsec = SWEEP_NS};

    for (uint32_t round = 0; round < SWEEP_ROUNDS; round++) {
        bool is_gone = true;

        for (uint32_t i = 0; i < all->count; i++)
            is_gone &= sweep_place(&all->places[i]);
        if (is_gone)
            return;
        (void)nanosleep(&pause, NULL); /* for those that were killed to end */
    }
}
