/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of chempirun; see option_table.h. */
#include "chempid/options/option_table.h"

#include <string.h>

#include "common/base/compiler.h"

#define NAMED_WIDTH 21 /* columns: options before their explanation */

const struct chempi_option chempi_option_table[] = {
    {"n", CHEMPI_OPT_N, 1, "RANKS",
     "number of ranks of the program (1, or all slots of the hosts)"},
    {"np", CHEMPI_OPT_N, 1, "RANKS", NULL},
    {"c", CHEMPI_OPT_N, 1, "RANKS", NULL},
    {"soft", CHEMPI_OPT_SOFT, 1, "LIST",
     "these numbers would do, such as 2:10:2,16"},
    {"configfile", CHEMPI_OPT_CONFIGFILE, 1, "FILE",
     "in place of PROGRAM: a program a line"},
    {"nodes", CHEMPI_OPT_NODES, 1, "A[:N],B",
     "use these nodes of the cluster, for N ranks"},
    {"hosts", CHEMPI_OPT_NODES, 1, "A[:N],B", NULL},
    {"host", CHEMPI_OPT_NODES, 1, "A[:N],B", NULL},
    {"H", CHEMPI_OPT_NODES, 1, "A[:N],B", NULL},
    {"f", CHEMPI_OPT_HOSTFILE, 1, "FILE", "the same, with one node a line"},
    {"hostfile", CHEMPI_OPT_HOSTFILE, 1, "FILE", NULL},
    {"machinefile", CHEMPI_OPT_HOSTFILE, 1, "FILE", NULL},
    {"virtual", CHEMPI_OPT_VIRTUAL, 1, "A[:N],B|K",
     "use virtual nodes on this host"},
    {"network", CHEMPI_OPT_NETWORK, 1, "DIR",
     "directory of connection tables (mdconfig)"},
    {"allow-unreachable", CHEMPI_OPT_UNREACHABLE, 0, NULL,
     "start though some nodes have no way to others"},
    {"ppn", CHEMPI_OPT_PPN, 1, "N", "at most N ranks per node"},
    {"npernode", CHEMPI_OPT_PPN, 1, "N", NULL},
    {"N", CHEMPI_OPT_PPN, 1, "N", NULL},
    {"map", CHEMPI_OPT_MAP, 1, "block|cyclic|load",
     "fill node after node, deal out, or by load"},
    {"map-by", CHEMPI_OPT_MAP, 1, "block|cyclic|load", NULL},
    {"rr", CHEMPI_OPT_ROUND_ROBIN, 0, NULL, NULL},
    {"no-oversubscribe", CHEMPI_OPT_FITS, 0, NULL,
     "start in free slots, or not at all"},
    {"nooversubscribe", CHEMPI_OPT_FITS, 0, NULL, NULL},
    {"bind", CHEMPI_OPT_BIND, 1, "auto|core|socket|none",
     "which processors a rank has"},
    {"bind-to", CHEMPI_OPT_BIND, 1, "auto|core|socket|none", NULL},
    {"cpu-set", CHEMPI_OPT_CPU_SET, 1, "LIST",
     "ranks use these processors of each host only,\n"
     "such as 0-3,8"},
    {"cpu-list", CHEMPI_OPT_CPU_SET, 1, "LIST", NULL},
    {"rankfile", CHEMPI_OPT_RANKFILE, 1, "FILE",
     "which node and cores each rank has, lines of\n"
     "rank N=NODE slot=CORES"},
    {"rf", CHEMPI_OPT_RANKFILE, 1, "FILE", NULL},
    {"show-binding", CHEMPI_OPT_SHOW_BINDING, 0, NULL,
     "say which processors each rank has"},
    {"report-bindings", CHEMPI_OPT_SHOW_BINDING, 0, NULL, NULL},
    {"wdir", CHEMPI_OPT_WDIR, 1, "DIR", "working directory"},
    {"wd", CHEMPI_OPT_WDIR, 1, "DIR", NULL},
    {"env", CHEMPI_OPT_ENV, 1, "NAME=VALUE", "variable for the program"},
    {"genv", CHEMPI_OPT_GENV_PAIR, 2, "NAME VALUE",
     "variable for all programs"},
    {"x", CHEMPI_OPT_PASS, 1, "NAME[=VALUE]", "the same, or pass this one on"},
    {"env-none", CHEMPI_OPT_ENV_NONE, 0, NULL, "pass no other variables on"},
    {"envnone", CHEMPI_OPT_ENV_NONE, 0, NULL, NULL},
    {"genvnone", CHEMPI_OPT_ENV_NONE, 0, NULL, NULL},
    {"envall", CHEMPI_OPT_ENV_ALL, 0, NULL, NULL},
    {"genvall", CHEMPI_OPT_ENV_ALL, 0, NULL, NULL},
    {"genvlist", CHEMPI_OPT_ENV_LIST, 1, "NAME,...", NULL},
    {"envlist", CHEMPI_OPT_ENV_LIST, 1, "NAME,...", NULL},
    {"stdin", CHEMPI_OPT_STDIN, 1, "all|none|RANK", "who gets it (rank 0)"},
    {"s", CHEMPI_OPT_STDIN, 1, "all|none|RANK", NULL},
    {"label", CHEMPI_OPT_LABEL, 0, NULL,
     "put the rank before each line of output"},
    {"l", CHEMPI_OPT_LABEL, 0, NULL, NULL},
    {"prepend-rank", CHEMPI_OPT_LABEL, 0, NULL, NULL},
    {"tag-output", CHEMPI_OPT_LABEL, 0, NULL, NULL},
    {"timestamp", CHEMPI_OPT_TIMESTAMP, 0, NULL,
     "put the time before each line of output"},
    {"timestamp-output", CHEMPI_OPT_TIMESTAMP, 0, NULL, NULL},
    {"output", CHEMPI_OPT_OUTPUT, 1, "FILE",
     "output of each rank into a file of its node;\n"
     "%r in the name is the rank, %h the node,\n"
     "%j the job"},
    {"outfile-pattern", CHEMPI_OPT_OUT_ONLY, 1, "FILE",
     "the same, of standard output only"},
    {"outfile", CHEMPI_OPT_OUT_ONLY, 1, "FILE", NULL},
    {"error", CHEMPI_OPT_ERROR, 1, "FILE",
     "the same, of standard error output"},
    {"errfile-pattern", CHEMPI_OPT_ERROR, 1, "FILE", NULL},
    {"errfile", CHEMPI_OPT_ERROR, 1, "FILE", NULL},
    {"wrap", CHEMPI_OPT_WRAP, 1, "[RANKS:]WORDS",
     "start ranks (0,4-7) by these words, such as\n"
     "0,2:'valgrind -q'"},
    {"timeout", CHEMPI_OPT_TIMEOUT, 1, "SECONDS",
     "end the job after this time"},
    {"initial-errhandler", CHEMPI_OPT_ERRHANDLER, 1,
     "mpi_errors_return|mpi_errors_abort|mpi_errors_are_fatal",
     "of the program's communicators"},
    {"memory-alloc-kinds", CHEMPI_OPT_KINDS, 1, "LIST",
     "kinds of memory, such as system,mpi:alloc_mem"},
    {"memory-allocation-kinds", CHEMPI_OPT_KINDS, 1, "LIST", NULL},
    {"stats", CHEMPI_OPT_STATS, 0, NULL,
     "how many messages went which way; =long: from\n"
     "which node to which; =calls: as --profile;\n"
     "=all: both"},
    {"json", CHEMPI_OPT_JSON, 0, NULL,
     "these figures, and those of the next two, as\n"
     "JSON in one line"},
    {"trace-routes", CHEMPI_OPT_ROUTES, 0, NULL,
     "which way messages of which size went, by node"},
    {"profile", CHEMPI_OPT_PROFILE, 0, NULL,
     "count MPI calls by operation and size; =sites:\n"
     "also by place in the source"},
    {"survive", CHEMPI_OPT_SURVIVE, 0, NULL, "go on without ranks that die"},
    {"disable-auto-cleanup", CHEMPI_OPT_SURVIVE, 0, NULL, NULL},
    {"check", CHEMPI_OPT_CHECK, 0, NULL, "look for mistakes in the use of MPI"},
    {"dir", CHEMPI_OPT_DIR, 1, "DIR", "where the daemons' sockets are"},
    {"via", CHEMPI_OPT_VIA, 1, "NAME", "speak to this daemon"},
    {"private", CHEMPI_OPT_PRIVATE, 0, NULL, "use no daemon"},
    {"launcher", CHEMPI_OPT_LAUNCHER, 1, "ssh|rsh|srun",
     "reach the hosts of --nodes by this, and use no\n"
     "daemon there"},
    {"launcher-exec", CHEMPI_OPT_LAUNCHER_EXEC, 1, "WORDS",
     "the same, by this command"},
    {"launcher-flat", CHEMPI_OPT_LAUNCHER_FLAT, 0, NULL,
     "start all hosts from here, none from another one"},
    {"verbose", CHEMPI_OPT_VERBOSE, 0, NULL,
     "say which daemon is used, and where ranks go"},
    {"secure", CHEMPI_OPT_SECURE, 0, NULL,
     "encrypt what ranks say to each other over tcp"},
    {"oversubscribe", CHEMPI_OPT_IGNORED, 0, NULL, NULL},
    {"allow-run-as-root", CHEMPI_OPT_IGNORED, 0, NULL, NULL},
    {"completion", CHEMPI_OPT_COMPLETION, 1, "bash|zsh|fish",
     "print what makes this shell complete options"},
    {"help", CHEMPI_OPT_HELP, 0, NULL, "print this"},
    {"h", CHEMPI_OPT_HELP, 0, NULL, NULL},
    {"version", CHEMPI_OPT_VERSION, 0, NULL, "print the version"},
    {"V", CHEMPI_OPT_VERSION, 0, NULL, NULL},
};

const size_t chempi_option_count = CHEMPI_ARRAY_LEN(chempi_option_table);

/* As it is written: one dash for one letter. */
static const char *dashes(const struct chempi_option *o)
{
    return o->name[1] ? "--" : "-";
}

/* ---- for people ---------------------------------------------------------- */

/* Behind the option, or below it where that is long. */
static void print_help(FILE *file, const struct chempi_option *o)
{
    const int width = fprintf(file, "  %s%s%s%s", dashes(o), o->name,
                              o->value ? " " : "", o->value ? o->value : "");
    const char *line = o->help;

    (void)fprintf(file, "%*s",
                  width <= NAMED_WIDTH ? NAMED_WIDTH + 2 - width : 0, "");
    if (width > NAMED_WIDTH)
        (void)fprintf(file, "\n%*s", NAMED_WIDTH + 2, "");
    for (size_t len; *line; line += len) {
        len = strcspn(line, "\n");
        (void)fprintf(file, "%.*s\n", (int)len, line);
        if (line[len] && ++len)
            (void)fprintf(file, "%*s", NAMED_WIDTH + 2, "");
    }
}

void chempi_option_usage(FILE *file)
{
    (void)fputs("Usage: chempirun [-n RANKS] [OPTION]... PROGRAM [ARG]... "
                "[: ...]\nRun an MPI job.\n\n",
                file);
    for (size_t i = 0; i < chempi_option_count; i++)
        if (chempi_option_table[i].help)
            print_help(file, &chempi_option_table[i]);
    (void)fputs("\nSee chempirun(1) for exit statuses and other spellings.\n",
                file);
}
