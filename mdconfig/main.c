/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mdconfig: from a description of networks to connection tables. This file
 * has the table of commands, and reads which one it is. Errors are printed
 * here, once.
 */
#define _GNU_SOURCE /* SIGCHLD */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/compiler.h"
#include "mdconfig/description/command.h"

static const struct chempi_command commands[] = {
    {"compile", "[-o DIR] [--alone|--shared] [--allow-unreachable] FILE",
     "write the connection table of every node", 1, 1, chempi_command_compile},
    {"check", "[--strict] [--all] [--json] FILE",
     "look for mistakes, write nothing", 1, 1, chempi_command_check},
    {"show", "FILE [NODE]", "print a table or a description", 1, 2,
     chempi_command_show},
    {"explain", "[--json] FILE FROM TO SIZE", "say why a message takes its way",
     4, 4, chempi_command_explain},
    {"diff", "[--json] OLD NEW", "say what differs between two descriptions", 2,
     2, chempi_command_diff},
    {"graph",
     "[-o PICTURE] [--layout HOW|--dot] [--from NODE --size SIZE] FILE",
     "draw nodes and networks, and the ways of a size, as SVG or for Graphviz",
     1, 1, chempi_command_graph},
    {"plot", "[-o PICTURE] [--csv] FILE FROM TO",
     "draw the time over the size of a message, as SVG", 3, 3,
     chempi_command_plot},
    {"import",
     "[-o FILE] [--local] [--hosts FILE] [--scontrol FILE] [--topology FILE]",
     "make a first description from this machine, a hosts file, or Slurm's", 0,
     0, chempi_command_import},
    {"calibrate",
     "[-o FILE] [--network NAME] [--seconds S] [--pairs N] [--scratch DIR]\n"
     "      [--virtual] FILE",
     "measure the networks and put the figures into the description", 1, 1,
     chempi_command_calibrate},
};

static void print_help(FILE *out)
{
    (void)fprintf(out, "mdconfig turns a description of nodes and networks "
                       "into connection tables.\n\nusage:\n");
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(commands); i++)
        (void)fprintf(out, "  mdconfig %s %s\n      %s\n", commands[i].name,
                      commands[i].arguments, commands[i].purpose);
    (void)fprintf(out, "  mdconfig --help | --version\n\n"
                       "FILE is a description (see chempi-network(5); - is "
                       "standard input); show\ntakes a table too. Exit codes: "
                       "0 success, 1 failure, 2 wrong usage.\n");
}

static int usage_error(const char *word)
{
    (void)fprintf(
        stderr,
        "mdconfig: expected a command (compile, check, show, "
        "explain, diff, graph, plot, import, calibrate), found %s%s%s; try "
        "mdconfig --help\n",
        word ? "'" : "", word ? word : "none", word ? "'" : "");
    return CHEMPI_COMMAND_USAGE;
}

static int run(const struct chempi_command *command, int argc, char **argv)
{
    struct chempi_err err = {.code = 0};
    struct chempi_command_line line;
    int rc = chempi_command_read_line(argc, argv, command, &line, &err);

    if (!rc)
        rc = command->run(&line, &err);
    if (err.text[0])
        (void)fprintf(stderr, "mdconfig: %s\n", err.text);
    if (rc == CHEMPI_COMMAND_USAGE)
        (void)fprintf(stderr, "usage: mdconfig %s %s\n", command->name,
                      command->arguments);
    return rc;
}

int main(int argc, char **argv)
{
    int rc = -1;

    (void)signal(SIGCHLD, SIG_DFL); /* ignored, no child's end would be told */
    if (argc < 2)
        return usage_error(NULL);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        rc = 0;
    } else if (strcmp(argv[1], "--version") == 0) {
        (void)printf("mdconfig (CHEMPI) %s, table format %u\n", CHEMPI_VERSION,
                     (unsigned)CHEMPI_TABLE_VERSION);
        rc = 0;
    }
    for (size_t i = 0; rc < 0 && i < CHEMPI_ARRAY_LEN(commands); i++) {
        if (strcmp(argv[1], commands[i].name) == 0)
            rc = run(&commands[i], argc - 2, argv + 2);
    }
    if (rc < 0)
        return usage_error(argv[1]);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        (void)fprintf(stderr, "mdconfig: standard output: %s\n",
                      strerror(errno));
        return CHEMPI_COMMAND_FAILED;
    }
    return rc;
}
