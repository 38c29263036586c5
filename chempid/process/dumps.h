/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Core dumps of supervisors. A supervisor is a fork of a daemon, of root's
 * helper or of a launcher, and has in its memory what that had: secrets and
 * environments, also of other jobs. None of it may come to be in a file.
 */
#ifndef CHEMPI_CHEMPID_DUMPS_H
#define CHEMPI_CHEMPID_DUMPS_H

#include <stdbool.h>

/* From now on this process dumps nothing of its memory. One that has become
 * another user cannot be traced by that user either. */
void chempi_dumps_forbid(bool is_another_user);
/* In a child that becomes a program: as it was. Allocates nothing. */
void chempi_dumps_allow(void);

#endif
