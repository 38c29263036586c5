/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Subordinate users (subuid(5)): tens of thousands of numbers that one user may
 * be in namespaces of their own, without anybody's help. They are no users of a
 * daemon: what it gives to each user it would give to one of them again and
 * again. So all of a line of the file are one.
 */
#ifndef CHEMPI_CHEMPID_SUBORDINATES_H
#define CHEMPI_CHEMPID_SUBORDINATES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define CHEMPI_SUBORDINATES_FILE "/etc/subuid"
#define CHEMPI_SUBORDINATES_MAX 65536u /* lines */

struct chempi_subordinates {
    const char *path;
    struct chempi_subordinates_range {
        uint32_t first;
        uint32_t count;
    } * list; /* in order */
    size_t count;
    size_t room;
    struct timespec changed;
    bool is_read;
};

/* Nothing is read yet; path stays the caller's. */
void chempi_subordinates_init(struct chempi_subordinates *s, const char *path);
void chempi_subordinates_fini(struct chempi_subordinates *s);

/* As whom this user counts: the first of its line, or itself. Reads the file
 * when it has changed; what is no line in it, or more than the limit, is
 * left out. */
uid_t chempi_subordinates_account(struct chempi_subordinates *s, uid_t uid);

#endif
