/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that this process starts and that is not its child: no wait() of
 * the application's returns it, and no SIGCHLD tells of it. Whoever reaps
 * orphans (init, a subreaper) has it.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_DETACHED_H
#define CHEMPI_LIBCHEMPI_DIDL_DETACHED_H

/*
 * Start argv[0], a path, with `fd` as its descriptor `as`, /dev/null as
 * standard input, our standard output and error, and no other descriptor; no
 * signal is ignored there, CHEMPI_ROOT_SIGNALS are blocked, and it may run
 * where a thread of the library's may. Any thread, also beside others that fork
 * and wait. 0 or -errno.
 */
int chempi_detached_start(char *const *argv, int fd, int as);

#endif
