/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that mdconfig starts, and what it says. */
#ifndef CHEMPI_MDCONFIG_JOB_H
#define CHEMPI_MDCONFIG_JOB_H

#include "common/base/err.h"

#define CHEMPI_JOB_PATH_MAX                                                    \
    4096u /* bytes of a program's path, with the zero                          \
           */

struct chempi_job {
    char *out;       /* standard output; free() by chempi_job_fini() */
    char *err;       /* standard error */
    int status;      /* exit status; 128 + signal */
    int interrupted; /* by this signal, while it ran; 0: not */
};

/*
 * Run argv[0], a path, to its end. What asks mdconfig to end (SIGINT, SIGTERM,
 * SIGHUP) is passed on, and returns when the program has ended. At most
 * CHEMPI_JOB_OUTPUT_MAX bytes are kept of each stream.
 * Errors: -errno when it cannot be started, with words.
 */
int chempi_job_run(char *const argv[], struct chempi_job *job,
                   struct chempi_err *err);
void chempi_job_fini(struct chempi_job *job);

/* One of our programs: beside this one, in libexec/chempi, or in the folder
 * of the build that makes it. -ENOENT with words. */
int chempi_job_find(const char *name, const char *folder,
                    char path[CHEMPI_JOB_PATH_MAX], struct chempi_err *err);

#endif
