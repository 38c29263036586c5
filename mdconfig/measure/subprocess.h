/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that mdconfig starts, and what it says. */
#ifndef CHEMPI_MDCONFIG_SUBPROCESS_H
#define CHEMPI_MDCONFIG_SUBPROCESS_H

#include "common/base/err.h"

/* Bytes of a program's path, with the zero. */
#define CHEMPI_SUBPROCESS_PATH_MAX 4096u
/* Bytes that are kept of each stream. */
#define CHEMPI_SUBPROCESS_OUTPUT_MAX (4u << 20)

struct chempi_subprocess {
    char *out;       /* standard output; free() by chempi_subprocess_fini() */
    char *err;       /* standard error */
    int status;      /* exit status; 128 + signal */
    int interrupted; /* by this signal, while it ran; 0: not */
};

/*
 * Run argv[0], a path, to its end. What asks mdconfig to end (SIGINT, SIGTERM,
 * SIGHUP) is passed on, and returns when the program has ended. At most
 * CHEMPI_SUBPROCESS_OUTPUT_MAX bytes are kept of each stream.
 * Errors: -errno when it cannot be started, with words.
 */
int chempi_subprocess_run(char *const argv[], struct chempi_subprocess *child,
                          struct chempi_err *err);
void chempi_subprocess_fini(struct chempi_subprocess *child);

/* One of our programs: beside this one, in libexec/chempi, or in the folder
 * of the build that makes it. -ENOENT with words. */
int chempi_subprocess_find(const char *name, const char *folder,
                           char path[CHEMPI_SUBPROCESS_PATH_MAX],
                           struct chempi_err *err);

#endif
