/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of chempirun, parsed. Spellings of other launchers are
 * accepted where they mean the same; one or two dashes make no difference.
 * Some have two values (-genv NAME VALUE), and none may be cut short, which
 * getopt_long(3) does not have.
 */
#ifndef CHEMPI_CHEMPID_OPTIONS_H
#define CHEMPI_CHEMPID_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "chempid/hosts/rankfile.h"
#include "chempid/job/spec.h"
#include "chempid/tree/pool.h"
#include "common/base/err.h"

enum chempi_map { CHEMPI_MAP_BLOCK, CHEMPI_MAP_CYCLIC, CHEMPI_MAP_LOAD };

/* One program of the command line (they are separated by ":"), or of a file
 * that it names. */
struct chempi_program {
    uint32_t count; /* ranks; 0: not said */
    char **argv;    /* points into the command line, ends with NULL */
    char **env;     /* NAME=VALUE, ends with NULL */
    char *wdir;
    char *path; /* where it was looked for first, and was not; or NULL */
    char *soft; /* numbers of ranks that are permitted (process_count_range.h),
                   one of them in 1 to count; NULL: not said */
};

/* Initial error handlers; ends with NULL. */
extern const char *const chempi_options_errhandlers[];

/* How other hosts are reached if nothing is said: without a terminal, without
 * questions. */
#define CHEMPI_LAUNCHER_SSH "ssh -x -T -o BatchMode=yes"
/* In an allocation of Slurm: a step for each node, beside those that run.
 * Unbuffered: else lines wait for their ends, and frames have none. */
#define CHEMPI_LAUNCHER_SRUN                                                   \
    "srun --overlap --unbuffered --quiet --mpi=none --nodes=1 --ntasks=1 "     \
    "--nodelist {} sh -c"

/* What ranks get to say where they wait if nothing else is said. */
#define CHEMPI_WHERE_S 2.0

struct chempi_above;

struct chempi_options {
    struct chempi_pool pool;
    struct chempi_program *programs;
    uint32_t program_count;
    char **names; /* --virtual or --nodes; ends with NULL; NULL: not said */
    bool has_allocation; /* they are a batch system's; not an option */
    uint32_t *slots; /* ranks that each of these is meant for; 0: not said */
    char **pass;     /* -x: NAME or NAME=VALUE; ends with NULL */
    char **env;      /* --genv for all programs, ends with NULL */
    char *tables;    /* --network */
    char *files[2];  /* --output, --error: patterns of names (pattern.h) */
    struct chempi_wrap *wraps; /* --wrap */
    uint32_t wrap_count;
    char *dir;            /* --dir: where daemons are found */
    char *via;            /* --via: which of them to speak to */
    const char *launcher; /* --launcher: the words of the command that reaches
                        other hosts, or NULL */
    bool is_flat;         /* --launcher-flat: hosts call no others */
    uint32_t ppn;         /* 0: not said */
    uint32_t bind;        /* enum chempi_bind, without _LIST */
    char *cpu_set;        /* --cpu-set: a list, or NULL */
    struct chempi_rankfile *rankfile; /* --rankfile, or NULL */
    uint32_t stdin_rank;
    double timeout_s; /* 0: none */
    double quiet_s;   /* how long a job that is checked goes without a step
                         until that is a deadlock; 0: as it is safe */
    double spent_s;   /* of it, by tries to start the job; not an option */
    double where_s;   /* what ranks get to say where they wait; 0: they are
                         not asked before timeout_s ends them */
    enum chempi_map map;
    bool is_virtual;
    bool is_private; /* --private: no daemon even if there is one */
    bool fits_only;  /* --no-oversubscribe: in free slots, or not at all */
    bool is_verbose; /* --verbose: say which daemon is used */
    bool is_secure;  /* --secure: what ranks say over tcp is sealed */
    bool survives;   /* --survive: a rank that dies does not end the job */
    bool has_label;
    bool has_time; /* --timestamp */
    bool has_stats;
    bool has_long_stats; /* --stats=long */
    bool has_json;       /* --json: figures as one line of JSON */
    bool has_routes;     /* --trace-routes */
    bool shows_binding;  /* --show-binding */
    bool has_profile;    /* --profile: count MPI calls */
    bool has_sites;      /* --profile=sites: also by place */
    bool has_check;      /* --check, CHEMPI_CHECK: look for mistakes */
    bool allows_unreachable;
    bool has_clean_env; /* --env-none */
    bool wants_help;
    bool wants_version;
    const char *completion; /* --completion: of which shell, or NULL */
    /* Of a world that ranks have started; not options. */
    uint32_t world;             /* its number; 0: nobody's */
    const char *parent;         /* the port of those, or NULL */
    const char *host;           /* info key: nodes to choose, or NULL */
    bool is_loose;              /* which names are, as nobody has said nodes */
    struct chempi_above *above; /* the link to the first launcher, or NULL */
};

/* 0; -EINVAL with words, or -ENOMEM. On failure nothing is left. */
int chempi_options_parse(struct chempi_options *opt, int argc, char **argv,
                         struct chempi_err *err);
/* What the environment says where the command line is silent: a time limit in
 * MPIEXEC_TIMEOUT, 0 for none; where_s in CHEMPI_WHERE_LIMIT, quiet_s in
 * CHEMPI_CHECK_QUIET. 0 or -EINVAL with words. */
int chempi_options_environment(struct chempi_options *opt,
                               struct chempi_err *err);
void chempi_options_fini(struct chempi_options *opt);

/* Which options that are on or off are on, of those that jobs have in common
 * with the jobs that their ranks start: a bit each. */
uint32_t chempi_options_inherited(const struct chempi_options *opt);
void chempi_options_inherit(struct chempi_options *opt, uint32_t bits);

#endif
