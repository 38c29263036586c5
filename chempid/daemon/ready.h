/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ready files of the daemons' directory (members.h), read again only when
 * the directory has changed: with many daemons on a host each launch would
 * read all files in all of them.
 *
 * Ready files are made under other names and renamed, so that whatever comes,
 * goes or changes there changes the directory's time.
 */
#ifndef CHEMPI_CHEMPID_READY_H
#define CHEMPI_CHEMPID_READY_H

#include <stdbool.h>
#include <time.h>

#include "chempid/tree/members.h"

struct chempi_ready { /* zeros: nothing is read yet */
    struct chempi_members list;
    struct timespec changed; /* the directory, before it was read */
    bool is_settled;         /* it was read well after that */
};

/* The nodes with ready files now; valid until the next call. */
const struct chempi_members *chempi_ready_look(struct chempi_ready *ready,
                                               const char *dir);
void chempi_ready_fini(struct chempi_ready *ready);

#endif
