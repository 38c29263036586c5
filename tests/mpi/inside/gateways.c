/* SPDX-License-Identifier: BSD-3-Clause */
/* The gateways of this job; see gateways.h. */
#define _GNU_SOURCE /* kill */
#include "tests/mpi/inside/gateways.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libchempi/didl/base/ctx.h"

enum { GATEWAYS_MAX = 4, WORDS = 256 };

static pid_t gateways[GATEWAYS_MAX];
static int gateway_count;

/* A file of a process, its zeros as spaces. */
static const char *read_words(pid_t pid, const char *name)
{
    static char words[WORDS];
    char path[64];
    size_t len;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    file = fopen(path, "r");
    len = file ? fread(words, 1, sizeof(words) - 1, file) : 0;
    if (file)
        (void)fclose(file);
    for (size_t i = 0; i < len; i++)
        if (!words[i])
            words[i] = ' ';
    words[len] = '\0';
    return words;
}

/* Those of this job, in the order of their nodes' names. */
static int find(void)
{
    char nodes[GATEWAYS_MAX][WORDS];
    char start[WORDS];
    struct dirent *entry;
    DIR *all = opendir("/proc");
    int count = 0;

    (void)snprintf(start, sizeof(start), "chempi-gateway --job %s --node ",
                   chempi_ctx.job->id);
    while (all && (entry = readdir(all))) {
        const pid_t pid = (pid_t)atoi(entry->d_name);
        const char *words = pid > 0 ? read_words(pid, "cmdline") : "";
        int at = count;

        if (strncmp(words, start, strlen(start)) != 0 || at == GATEWAYS_MAX)
            continue;
        for (; at > 0 && strcmp(nodes[at - 1], words) > 0; at--) {
            memcpy(nodes[at], nodes[at - 1], WORDS);
            gateways[at] = gateways[at - 1];
        }
        (void)snprintf(nodes[at], WORDS, "%s", words);
        gateways[at] = pid;
        count++;
    }
    if (all)
        (void)closedir(all);
    return count;
}

/* '?': it is gone. */
static char state_of(pid_t pid)
{
    const char *state = strrchr(read_words(pid, "stat"), ')');

    return state && state[1] == ' ' ? state[2] : '?';
}

static bool is_stopped(pid_t pid)
{
    return state_of(pid) == 'T';
}

static bool is_at_work(pid_t pid)
{
    return strchr("RD", state_of(pid)) != NULL;
}

void gateways_find(int count)
{
    while (find() < count)
        ; /* one that is not on the way may start late */
    gateway_count = count;
}

void gateways_stop(void)
{
    for (int i = 0; i < gateway_count; i++)
        (void)kill(gateways[i], SIGSTOP);
    for (int i = 0; i < gateway_count; i++)
        while (!is_stopped(gateways[i]))
            ;
}

void gateways_go_on(void)
{
    for (int i = 0; i < gateway_count; i++)
        (void)kill(gateways[i], SIGCONT);
}

void gateways_kill(int number)
{
    (void)kill(gateways[number % GATEWAYS_MAX], SIGKILL);
}

/* What one has done gives others something to do. */
void gateways_await_rest(void)
{
    for (int i = 0; i < gateway_count;)
        i = is_at_work(gateways[i]) ? 0 : i + 1;
}
