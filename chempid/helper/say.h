/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the daemon's log goes: to standard error. A daemon in the background
 * lets go of that once it serves, so that who reads to its end is not kept
 * waiting, and tells the system's log (syslog(3)) instead; but a regular file
 * stays, for nobody waits for the end of one.
 *
 *   Y1  no line waits for its reader: what a pipe, a terminal or the system's
 *       log does not take at once is counted, and said with the next line that
 *       is taken
 *   Y2  of each kind (module and level) there are CHEMPI_LOG_BURST lines, and
 *       then CHEMPI_LOG_PER_S a second; what is left out is counted and said
 *   Y3  a line is one line, whatever users have put in: control characters are
 *       question marks
 */
#ifndef CHEMPI_CHEMPID_SAY_H
#define CHEMPI_CHEMPID_SAY_H

#include "common/base/log.h"

/* Tell standard error of all up to this level; name, the node's, stays the
 * caller's. */
void chempi_say_start(const char *name, enum chempi_log_level max);

/* Leave standard error to the others who have it, unless it is a regular file:
 * what follows goes to the system's log. 0 or -errno, and then all stays. */
int chempi_say_leave(void);
/* Open what lines go to: this process may soon not be able to. */
void chempi_say_prepare(void);

#endif
