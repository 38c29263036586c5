/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of mdconfig. A command prints its results on standard output
 * and returns an exit code; what went wrong is in *err, for main to print.
 */
#ifndef CHEMPI_MDCONFIG_COMMAND_H
#define CHEMPI_MDCONFIG_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/table/table.h"
#include "mdconfig/description/desc.h"

enum chempi_command_exit {
    CHEMPI_COMMAND_OK = 0,
    CHEMPI_COMMAND_FAILED = 1,
    CHEMPI_COMMAND_USAGE = 2
};

struct chempi_command_line;

typedef int chempi_command_fn(struct chempi_command_line *line,
                              struct chempi_err *err);

struct chempi_command {
    const char *name;
    const char *arguments; /* with the options */
    const char *purpose;
    int least; /* arguments that are no options */
    int most;
    chempi_command_fn *run;
};

chempi_command_fn chempi_command_compile;
chempi_command_fn chempi_command_check;
chempi_command_fn chempi_command_show;
chempi_command_fn chempi_command_explain;
chempi_command_fn chempi_command_diff;
chempi_command_fn chempi_command_graph;
chempi_command_fn chempi_command_plot;
chempi_command_fn chempi_command_import;
chempi_command_fn chempi_command_calibrate;

#define CHEMPI_COMMAND_ARGUMENTS_MAX 4

/* Options and arguments of a command line, taken apart. */
struct chempi_command_line {
    const char *arguments[CHEMPI_COMMAND_ARGUMENTS_MAX];
    int count;
    const char *output;   /* -o; NULL: not given */
    const char *from;     /* --from */
    const char *size;     /* --size */
    uint64_t len;         /* --size, or an argument, read by the command */
    const char *hosts;    /* --hosts */
    const char *scontrol; /* --scontrol */
    const char *topology; /* --topology */
    const char *network;  /* --network */
    const char *seconds;  /* --seconds */
    const char *pairs;    /* --pairs */
    const char *scratch;  /* --scratch */
    const char *layout;   /* --layout */
    bool is_virtual;
    bool local;
    bool dot;
    bool csv;
    bool is_json; /* --json */
    bool alone;
    bool shared;
    bool allow_unreachable;
    bool strict;
    bool all; /* list whatever the number */
};

/* Take a command's line apart; argv[0] is its first word. Options are those
 * that command->arguments names, and no beginnings of them, which
 * getopt_long(3) would take. 0 or CHEMPI_COMMAND_USAGE with *err. */
int chempi_command_read_line(int argc, char **argv,
                             const struct chempi_command *command,
                             struct chempi_command_line *line,
                             struct chempi_err *err);
/* A size as people type it. 0 or CHEMPI_COMMAND_USAGE with *err. */
int chempi_command_read_size(const char *text, uint64_t *len,
                             struct chempi_err *err);
/* A node of the description, or CHEMPI_NAMES_NONE with *err. */
uint32_t chempi_command_find_node(const struct chempi_desc *desc,
                                  const char *name, struct chempi_err *err);
/* The nodes of arguments 1 and 2; false: *err. */
bool chempi_command_find_ends(const struct chempi_desc *desc,
                              const struct chempi_command_line *line,
                              uint32_t *from, uint32_t *to,
                              struct chempi_err *err);
/* Store what is wrong with the command line; CHEMPI_COMMAND_USAGE. */
int chempi_command_usage(struct chempi_err *err, const char *what,
                         const char *word);

#endif
