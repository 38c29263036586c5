/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that was bound to one processor by default may use all that the
 * job may, once it has said that it has threads; one with several, or one that
 * has chosen others, keeps what it has. Threads that access files may use all,
 * so that they do not take the processor on which the program computes.
 * Argument: the case.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

#include "check.h"

#define THREADS_MAX 32

static int nth(const cpu_set_t *set, int n)
{
    int cpu = 0;

    while (!CPU_ISSET(cpu, set) || n-- > 0)
        cpu++;
    return cpu;
}

static void set_list(const char *name, const cpu_set_t *set)
{
    char text[8 * CPU_SETSIZE] = "";
    size_t len = 0;

    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, set))
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%d",
                                    len ? "," : "", cpu);
    CHECK_OR_DIE(setenv(name, text, 1) == 0, "no memory");
}

/* A non-blocking write, which has a thread of its own. */
static void write_file(void)
{
    char path[64];
    MPI_Request request;
    MPI_File file;

    snprintf(path, sizeof(path), "affinity-%ld.tmp", (long)getpid());
    CHECK_OR_DIE(MPI_File_open(MPI_COMM_SELF, path,
                               MPI_MODE_CREATE | MPI_MODE_RDWR |
                                   MPI_MODE_DELETE_ON_CLOSE,
                               MPI_INFO_NULL, &file) == MPI_SUCCESS,
                 "open");
    MPI_File_iwrite(file, path, 1, MPI_BYTE, &request);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "iwrite");
    MPI_File_close(&file);
}

/* Threads but the first one: all, or those that are not among before. */
static int threads(pid_t tids[THREADS_MAX], const pid_t *before, int count)
{
    DIR *dir = opendir("/proc/self/task");
    const struct dirent *e;
    int n = 0;

    while (dir && n < THREADS_MAX && (e = readdir(dir))) {
        pid_t tid = atoi(e->d_name);
        bool is_old = tid <= 0 || tid == getpid();

        for (int i = 0; i < count; i++)
            is_old |= before[i] == tid;
        if (!is_old)
            tids[n++] = tid;
    }
    if (dir)
        closedir(dir);
    return n;
}

static void *end_at_once(void *arg)
{
    return arg;
}

/* With the first thread of a process comes a sanitizer's, which nobody frees:
 * it is there before. */
static void check_writers(const cpu_set_t *all)
{
    pid_t before[THREADS_MAX];
    pid_t writers[THREADS_MAX];
    pthread_t first;
    cpu_set_t now;
    int count;

    CHECK_OR_DIE(pthread_create(&first, NULL, end_at_once, NULL) == 0 &&
                     pthread_join(first, NULL) == 0,
                 "no thread");
    count = threads(before, NULL, 0);
    write_file();
    count = threads(writers, before, count);
    CHECK(count > 0, "no thread has written");
    for (int i = 0; i < count; i++)
        if (sched_getaffinity(writers[i], sizeof(now), &now) == 0)
            CHECK(CPU_EQUAL(&now, all), "a thread is bound to %d processors",
                  CPU_COUNT(&now));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "threads";
    const int level = strcmp(what, "single") == 0 || strcmp(what, "file") == 0
                          ? MPI_THREAD_SINGLE
                          : MPI_THREAD_FUNNELED;
    cpu_set_t all;
    cpu_set_t own;
    cpu_set_t now;

    CHECK_OR_DIE(sched_getaffinity(0, sizeof(all), &all) == 0, "no mask");
    CPU_ZERO(&own);
    CPU_SET(nth(&all, 0), &own);
    if (strcmp(what, "several") == 0 && CPU_COUNT(&all) > 1)
        CPU_SET(nth(&all, 1), &own);
    CHECK_OR_DIE(sched_setaffinity(0, sizeof(own), &own) == 0, "not bound");
    if (strcmp(what, "chosen") == 0) { /* not what the launcher has set */
        CPU_ZERO(&now);
        CPU_SET(nth(&all, CPU_COUNT(&all) - 1), &now);
        set_list("CHEMPI_CPUS", CPU_COUNT(&all) > 1 ? &now : &own);
    } else {
        set_list("CHEMPI_CPUS", &own);
    }
    if (strcmp(what, "several") == 0) { /* where widening would show */
        CPU_ZERO(&now);
        CPU_SET(nth(&all, 0), &now);
        set_list("CHEMPI_HOST_CPUS", &now);
    } else {
        set_list("CHEMPI_HOST_CPUS", &all);
    }
    check_start_thread(&argc, &argv, level);
    if (strcmp(what, "file") == 0)
        check_writers(&all);
    CHECK(sched_getaffinity(0, sizeof(now), &now) == 0, "no mask");
    if (strcmp(what, "threads") == 0 || CPU_COUNT(&all) == 1)
        CHECK(CPU_EQUAL(&now, &all), "bound to %d processors of %d",
              CPU_COUNT(&now), CPU_COUNT(&all));
    else
        CHECK(CPU_EQUAL(&now, &own), "%s: %d processors, not %d", what,
              CPU_COUNT(&now), CPU_COUNT(&own));
    return check_finish();
}
