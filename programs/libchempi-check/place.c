/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From return addresses to lines of the source. Debug information is read by
 * addr2line, which is where compilers are; it is started once per place.
 */
#define _GNU_SOURCE /* pipe2 */
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/symbol.h"
#include "programs/libchempi-check/check.h"

enum { PLACES = 256, ANSWER = 2048 };

static struct {
    pthread_mutex_t lock; /* of all below; none is taken inside */
    uint32_t count;
    struct {
        const void *from;
        char words[CHECK_PLACE_TEXT];
    } all[PLACES]; /* of the first ones only */
} places = {.lock = PTHREAD_MUTEX_INITIALIZER};

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
static bool take_line(char *answer, char out[CHECK_PLACE_TEXT])
{
    char *end = answer + strcspn(answer, " \n");
    const char *base;

    *end = '\0';
    base = chempi_symbol_base(answer);
    if (*base == '?' || !strchr(base, ':') || strstr(base, ":?") ||
        strcmp(strchr(base, ':'), ":0") == 0)
        return false;
    (void)snprintf(out, CHECK_PLACE_TEXT, "%s", base);
    return true;
}

static void find_place(const void *from, char out[CHECK_PLACE_TEXT])
{
    /* Where the call is, not what follows it. */
    const void *call = (const char *)from - 1;
    char name[] = "addr2line";
    char option[] = "-e";
    struct chempi_symbol symbol;
    char answer[ANSWER];
    char number[32];
    char *argv[] = {name, option, symbol.path, number, NULL};

    (void)chempi_symbol_words(call, out, CHECK_PLACE_TEXT);
    if (!chempi_symbol_find(call, &symbol) || symbol.address == 0)
        return;
    (void)snprintf(number, sizeof(number), "0x%llx",
                   (unsigned long long)symbol.address);
    if (run(argv, answer, sizeof(answer)))
        (void)take_line(answer, out);
}

void check_place(const void *from, char out[CHECK_PLACE_TEXT])
{
    uint32_t i = 0;

    (void)pthread_mutex_lock(&places.lock);
    while (i < places.count && places.all[i].from != from)
        i++;
    if (i < places.count) {
        memcpy(out, places.all[i].words, CHECK_PLACE_TEXT);
    } else {
        find_place(from, out);
        if (i < PLACES) {
            places.all[i].from = from;
            memcpy(places.all[i].words, out, CHECK_PLACE_TEXT);
            places.count++;
        }
    }
    (void)pthread_mutex_unlock(&places.lock);
}

char *check_site_words(const struct check_site *site, char *out, size_t len)
{
    char place[CHECK_PLACE_TEXT];

    check_place(site->from, place);
    (void)snprintf(out, len, "%s at %s", check_names[site->id], place);
    return out;
}
