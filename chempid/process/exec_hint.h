/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a rank's process has not become its program, in words. */
#ifndef CHEMPI_CHEMPID_EXEC_HINT_H
#define CHEMPI_CHEMPID_EXEC_HINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chempid/job/spec.h"

/* Exit status of a child that has not become its program. */
#define CHEMPI_EXEC_STATUS 127

/* What a rank's process does before it is its program, as it reports it to its
 * supervisor where that fails. */
enum chempi_exec_step {
    CHEMPI_EXEC_SETUP,
    CHEMPI_EXEC_WDIR,
    CHEMPI_EXEC_PROGRAM,
    CHEMPI_EXEC_BIND,
    CHEMPI_EXEC_OUT, /* the file for standard output, or for both */
    CHEMPI_EXEC_ERR, /* the one for standard error output */
    CHEMPI_EXEC_STEPS
};

/* The name of the file that a rank's standard output (0) or standard error
 * output (1) goes to. False: it is too long. */
bool chempi_exec_file(const struct chempi_spec *spec, uint32_t rank, int stream,
                      char *name, size_t size);

/* Which step of a rank has failed with the errno `code`, and what more can be
 * said of it: the name of a file, that a program is not in PATH, that its
 * interpreter is missing, or the like. */
void chempi_exec_words(const struct chempi_spec *spec, uint32_t rank,
                       enum chempi_exec_step step, int code, char *text,
                       size_t size);

#endif
