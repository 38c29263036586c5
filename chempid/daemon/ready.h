/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ready files of the daemons' directory (members.h): each is read when
 * somebody asks for its node, or all when somebody asks for all, and again only
 * when the directory has changed. A daemon calls a few others only: with many
 * on a host, all of them would read the files of all. When many nodes were
 * asked for that have no file, all are read after all: a user may ask for as
 * many as there can be, and no file is opened for each of them.
 *
 * Ready files are made under other names and renamed, so that whatever comes,
 * goes or changes there changes the directory's time.
 */
#ifndef CHEMPI_CHEMPID_READY_H
#define CHEMPI_CHEMPID_READY_H

#include <stdbool.h>
#include <time.h>

#include "chempid/tree/nodes/members.h"

struct chempi_ready { /* zeros: nothing is read yet */
    struct chempi_members list;
    struct timespec changed; /* the directory, before it was read */
    uint32_t misses;         /* files that were looked for in vain */
    bool is_settled;         /* it was read well after that */
    bool is_whole;           /* all files are in the list */
};

/* Forget what was read if it may have changed since. */
void chempi_ready_look(struct chempi_ready *ready, const char *dir);
/* As of the last look; NULL: there is no such file. Valid until the next call
 * of any of these. */
const struct chempi_member *chempi_ready_find(struct chempi_ready *ready,
                                              const char *dir,
                                              const char *node);
const struct chempi_members *chempi_ready_all(struct chempi_ready *ready,
                                              const char *dir);
void chempi_ready_fini(struct chempi_ready *ready);

#endif
