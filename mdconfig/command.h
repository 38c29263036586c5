/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of mdconfig. A command prints its results on standard output
 * and returns an exit code; what went wrong is in *err, for main to print.
 */
#ifndef CHEMPI_MDCONFIG_COMMAND_H
#define CHEMPI_MDCONFIG_COMMAND_H

#include "common/base/err.h"
#include "common/table/table.h"

enum chempi_command_exit {
    CHEMPI_COMMAND_OK = 0,
    CHEMPI_COMMAND_FAILED = 1,
    CHEMPI_COMMAND_USAGE = 2
};

typedef int chempi_command_fn(int argc, char **argv, struct chempi_err *err);

struct chempi_command {
    const char *name;
    const char *arguments;
    const char *purpose;
    chempi_command_fn *run; /* argv[0] is the first argument */
};

chempi_command_fn chempi_command_compile;
chempi_command_fn chempi_command_check;
chempi_command_fn chempi_command_show;
chempi_command_fn chempi_command_explain;

#endif
