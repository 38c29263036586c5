/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of chempirun: their spellings, what follows them, and what
 * --help says. One table for the parser, --help and what shells complete.
 */
#ifndef CHEMPI_CHEMPID_OPTION_TABLE_H
#define CHEMPI_CHEMPID_OPTION_TABLE_H

#include <stddef.h>
#include <stdio.h>

enum chempi_option_id {
    CHEMPI_OPT_N,
    CHEMPI_OPT_SOFT,
    CHEMPI_OPT_CONFIGFILE,
    CHEMPI_OPT_ERRHANDLER,
    CHEMPI_OPT_KINDS,
    CHEMPI_OPT_VIRTUAL,
    CHEMPI_OPT_NETWORK,
    CHEMPI_OPT_NODES,
    CHEMPI_OPT_HOSTFILE,
    CHEMPI_OPT_PPN,
    CHEMPI_OPT_MAP,
    CHEMPI_OPT_ROUND_ROBIN,
    CHEMPI_OPT_BIND,
    CHEMPI_OPT_CPU_SET,
    CHEMPI_OPT_RANKFILE,
    CHEMPI_OPT_LABEL,
    CHEMPI_OPT_TIMESTAMP,
    CHEMPI_OPT_OUTPUT,
    CHEMPI_OPT_OUT_ONLY,
    CHEMPI_OPT_ERROR,
    CHEMPI_OPT_WRAP,
    CHEMPI_OPT_TIMEOUT,
    CHEMPI_OPT_STATS,
    CHEMPI_OPT_JSON,
    CHEMPI_OPT_ROUTES,
    CHEMPI_OPT_SHOW_BINDING,
    CHEMPI_OPT_PROFILE,
    CHEMPI_OPT_CHECK,
    CHEMPI_OPT_UNREACHABLE,
    CHEMPI_OPT_STDIN,
    CHEMPI_OPT_PASS,
    CHEMPI_OPT_ENV,
    CHEMPI_OPT_GENV_PAIR,
    CHEMPI_OPT_ENV_ALL,
    CHEMPI_OPT_ENV_NONE,
    CHEMPI_OPT_ENV_LIST,
    CHEMPI_OPT_WDIR,
    CHEMPI_OPT_DIR,
    CHEMPI_OPT_VIA,
    CHEMPI_OPT_PRIVATE,
    CHEMPI_OPT_LAUNCHER,
    CHEMPI_OPT_LAUNCHER_EXEC,
    CHEMPI_OPT_LAUNCHER_FLAT,
    CHEMPI_OPT_SECURE,
    CHEMPI_OPT_SURVIVE,
    CHEMPI_OPT_VERBOSE,
    CHEMPI_OPT_FITS,
    CHEMPI_OPT_IGNORED,
    CHEMPI_OPT_COMPLETION,
    CHEMPI_OPT_HELP,
    CHEMPI_OPT_VERSION
};

struct chempi_option {
    const char *name; /* without dashes */
    enum chempi_option_id id;
    int words;         /* arguments that follow */
    const char *value; /* what they are: "FILE", "DIR", words with '|' between
                          them to choose from, other names; NULL: none */
    const char *help;  /* lines; NULL: another spelling of what stands above */
};

extern const struct chempi_option chempi_option_table[];
extern const size_t chempi_option_count;

/* What --help prints. */
void chempi_option_usage(FILE *file);

/* The completion of options for a shell, "bash", "zsh" or "fish"; others are
 * refused with -EINVAL. */
int chempi_option_completion(FILE *file, const char *shell);

#endif
