/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of the source; see source_line.h. */
#define _GNU_SOURCE /* pipe2 */
#include "common/symbol/source_line.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/symbol/symbol.h"

enum { ANSWER = 2048 };

/* What it prints, as far as there is room; false: it could not be started. */
static bool run(char *const argv[], char *out, size_t room)
{
    const char *path = getenv("PATH");
    char variable[4096];
    char *env[] = {variable, NULL}; /* nothing that loads this library */
    posix_spawn_file_actions_t actions;
    size_t len = 0;
    ssize_t n = 0;
    int ends[2];
    pid_t pid;
    int rc;

    (void)snprintf(variable, sizeof(variable), "PATH=%s", path ? path : "");
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    (void)posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0);
    (void)posix_spawn_file_actions_addclose(&actions, ends[0]);
    rc = posix_spawnp(&pid, argv[0], &actions, NULL, argv, env);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    while (rc == 0 && len + 1 < room &&
           (n = read(ends[0], out + len, room - len - 1)) > 0)
        len += (size_t)n;
    (void)close(ends[0]);
    out[len] = '\0';
    if (rc == 0)
        (void)waitpid(pid, NULL, 0); /* the program may have taken it */
    return rc == 0;
}

/* "/src/ring.c:12 (discriminator 3)" to "ring.c:12"; false: "??:0". */
static bool take_line(char *answer, char *out, size_t len)
{
    char *end = answer + strcspn(answer, " \n");
    const char *base;

    *end = '\0';
    base = chempi_symbol_base(answer);
    if (*base == '?' || !strchr(base, ':') || strstr(base, ":?") ||
        strcmp(strchr(base, ':'), ":0") == 0)
        return false;
    (void)snprintf(out, len, "%s", base);
    return true;
}

bool chempi_source_line(const char *path, uint64_t address, char *out,
                        size_t len)
{
    char name[] = "addr2line";
    char option[] = "-e";
    char file[CHEMPI_SYMBOL_PATH];
    char answer[ANSWER];
    char number[32];
    char *argv[] = {name, option, file, number, NULL};

    (void)snprintf(file, sizeof(file), "%s", path);
    (void)snprintf(number, sizeof(number), "0x%llx",
                   (unsigned long long)address);
    return run(argv, answer, sizeof(answer)) && take_line(answer, out, len);
}
