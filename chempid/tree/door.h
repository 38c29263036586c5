/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a launcher is asked on its own host, with daemons or without: each
 * listens on an abstract socket whose name tells user, job and process, and
 * which is gone with it. Whoever connects asks where the job's ranks wait, and
 * reads the answer up to its end. Both ends look at each other's user: only the
 * same one and root ask, and nobody else answers. Who wants JSON says so by the
 * name of its own end, so that nothing has to be waited for before the answer.
 *
 * Abstract names are those of a network namespace: who is in another one (a
 * container) finds no door.
 */
#ifndef CHEMPI_CHEMPID_DOOR_H
#define CHEMPI_CHEMPID_DOOR_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"

#define CHEMPI_DOOR_ASKERS 8u     /* at a time; others are turned away */
#define CHEMPI_DOOR_CALLS_MAX 64u /* launchers that are asked at a time */
#define CHEMPI_DOOR_S 5u          /* that they have, all together */
#define CHEMPI_DOOR_ANSWER_MAX (1u << 20) /* bytes of one */

struct chempi_door_asker {
    int fd;
    bool is_json; /* what it wants */
};

struct chempi_door {
    ev_io io;
    struct ev_loop *loop;
    void (*asked)(void *arg); /* there is one more */
    void *arg;
    int fd; /* -1: closed */
    struct chempi_door_asker askers[CHEMPI_DOOR_ASKERS];
    uint32_t count;
};

/* 0 or -errno; then it is closed, and nobody can ask. */
int chempi_door_open(struct chempi_door *door, struct ev_loop *loop,
                     const char *job, void (*asked)(void *arg), void *arg);
/* Does anybody wait for an answer in words, or in JSON? */
bool chempi_door_has(const struct chempi_door *door, bool is_json);
/* To all who have asked for words, or for JSON; it never waits, and what they
 * do not take is lost. */
void chempi_door_answer(struct chempi_door *door, bool is_json,
                        const char *text, size_t len);
void chempi_door_close(struct chempi_door *door);

/*
 * Ask the launchers of this job, by its name or the launcher's process (NULL:
 * of all jobs of this user), and print what they say, without the characters
 * that terminals obey; to root also of which user it comes. Returns how many
 * have answered. Anybody can have such a name: nobody can let it wait for
 * longer than CHEMPI_DOOR_S, or print more than CHEMPI_DOOR_ANSWER_MAX.
 * *has_more: there are more of them than CHEMPI_DOOR_CALLS_MAX, which are all
 * that are asked.
 */
uint32_t chempi_door_ask(FILE *file, const char *job, bool *has_more);
/* The same as a list of JSON: of each one "pid", "uid" and, as "answer", the
 * value that it has sent, or null where it has sent none that is whole. Nothing
 * is printed if nobody is there. */
uint32_t chempi_door_ask_json(FILE *file, const char *job, bool *has_more);

#endif
