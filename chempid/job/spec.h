/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The description of a job: everything that a node needs to know in order to
 * run its part. Made by the launcher, constant afterwards; it travels as the
 * payload of LAUNCH.
 */
#ifndef CHEMPI_CHEMPID_SPEC_H
#define CHEMPI_CHEMPID_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chempid/job/shell.h"
#include "chempid/tree/pool.h"
#include "common/base/err.h"
#include "common/control/client.h"
#include "common/control/wire.h"

/* Limits on what a LAUNCH may say; the whole is bounded by its frame too. */
#define CHEMPI_SPEC_STRINGS_MAX (1u << 16)  /* arguments or variables */
#define CHEMPI_SPEC_STRING_MAX (128u << 10) /* bytes, as the kernel's */
#define CHEMPI_SPEC_APPS_MAX 1024u
#define CHEMPI_SPEC_GATEWAYS_MAX (1u << 12)
#define CHEMPI_SPEC_WRAPS_MAX 64u

#define CHEMPI_BUSY_ANY UINT32_MAX
#define CHEMPI_STDIN_ALL UINT32_MAX
#define CHEMPI_STDIN_NONE (UINT32_MAX - 1)

enum chempi_bind {
    CHEMPI_BIND_NONE,
    CHEMPI_BIND_CORE,
    CHEMPI_BIND_SOCKET,
    CHEMPI_BIND_AUTO, /* shares of the cores, if there are enough (cores.h) */
    CHEMPI_BIND_LIST  /* to the cores of slots_of_rank */
};

/* One program of the job; its ranks are consecutive. */
struct chempi_app {
    char **argv; /* ends with NULL */
    char **env;  /* NAME=VALUE for this program, ends with NULL */
    char *wdir;  /* NULL: the job's */
    uint32_t first_rank;
    uint32_t count;
};

/* Words before the programs of some ranks, such as a debugger's. */
struct chempi_wrap {
    char *ranks; /* a list as of pattern.h */
    char **argv; /* ends with NULL, and has one word at least */
};

struct chempi_cgroup;

struct chempi_spec {
    struct chempi_pool pool; /* owns all that follows */
    uint64_t job;            /* random; never 0 */
    char id[CHEMPI_JOB_ID_MAX];
    uint8_t secret[CHEMPI_JOB_SECRET_BYTES];
    /* Ranks seal what they send through gateways, with a key that nodes
     * without ranks are not told (doc/gateways.md). */
    bool is_secure;
    uint8_t rank_key[CHEMPI_JOB_SECRET_BYTES];
    uint32_t uid;
    uint32_t gid;
    uint32_t size;
    uint32_t node_count;
    char **node_names;
    uint32_t *node_of_rank; /* [size + gateway_count] */
    uint32_t gateway_count; /* processes behind the ranks that forward */
    uint32_t *bind_offset;  /* per node: places used before it on its host */
    uint32_t *host_of_node; /* the first node that is on the same host */
    uint32_t *busy_max;     /* per node: slots that other jobs may hold there
                               when this one comes (CHEMPI_BUSY_ANY), else it
                               is refused: they were to be free; NULL: any */
    struct chempi_app *apps;
    uint32_t app_count;
    char **env; /* of all ranks, ends with NULL */
    char *cwd;
    /* Files for standard output and error of each rank, as patterns
     * (pattern.h); NULL: the launcher has it. One name is one file. */
    char *files[2];
    struct chempi_wrap *wraps; /* of a rank, the first that names it */
    uint32_t wrap_count;
    char *tables;     /* directory of connection tables, or NULL */
    char *own_tables; /* where the launcher finds some, or NULL; not sent */
    uint32_t universe_size;
    uint32_t stdin_rank; /* a rank, CHEMPI_STDIN_ALL or _NONE */
    uint32_t bind;       /* enum chempi_bind */
    bool shows_binding;  /* each rank tells its processors */
    char *cpu_set;  /* the processors that ranks may use on each host, as a list
                       (cpus.h), or NULL: all that their supervisor may */
    char *rankfile; /* which has said the next two, or NULL */
    char **slots_of_rank;   /* [size] a list of cores (corelist.h) */
    uint32_t *line_of_rank; /* [size] where the file says so */
    char *parent;           /* the port of those that have spawned it, or NULL;
                               nor is that told to nodes without ranks */
    uint32_t world;         /* its number under the first root (worlds.h) */
    bool is_debugged;       /* MPI_Init waits until BEGIN comes */
    bool survives;          /* ranks that die do not end the job */
    uint32_t want_stats;    /* CHEMPI_STATS_* (common/control/client.h) */
    struct chempi_shell shell; /* beside it in LAUNCH */
    uint64_t memory_share;     /* of each rank here, bytes (budget.h); each
                                  daemon's own, not sent with the others */
    uint32_t slots;            /* of this node, by its daemon; 0: it has none.
                                  Not sent, either */
    const struct chempi_cgroup *cgroup; /* of the ranks here, or NULL; not
                                           sent, either */
};

/* What users know a job by (spec->id); its number cannot be found from it. */
void chempi_spec_name(uint64_t job, char id[CHEMPI_JOB_ID_MAX]);

/* An empty description with a fresh random job number, id, secret and key. */
int chempi_spec_init(struct chempi_spec *spec, struct chempi_err *err);
void chempi_spec_fini(struct chempi_spec *spec);

const struct chempi_app *chempi_spec_app(const struct chempi_spec *spec,
                                         uint32_t rank);
/* The words before a rank's program; NULL: none. */
char **chempi_spec_wrap(const struct chempi_spec *spec, uint32_t rank);
/* Ranks and gateways; a gateway's number is size or more. */
uint32_t chempi_spec_procs(const struct chempi_spec *spec);
/* The gateway on a node, or CHEMPI_NODE_ANY. */
uint32_t chempi_spec_gateway(const struct chempi_spec *spec, uint32_t node);
/* The nodes from this one on have a gateway and no rank; node_count: none. */
uint32_t chempi_spec_first_spare(const struct chempi_spec *spec);
/* Whether no program may run before BEGIN: a node may yet refuse its part for
 * lack of free slots, and then the job is started anew elsewhere. */
bool chempi_spec_is_held(const struct chempi_spec *spec);
/* Processes of the job on the host of a node. */
uint32_t chempi_spec_host_procs(const struct chempi_spec *spec, uint32_t node);
/* Nodes of the job on that host. */
uint32_t chempi_spec_host_nodes(const struct chempi_spec *spec, uint32_t node);
/* Nodes that standard input goes to. */
uint32_t chempi_spec_readers(const struct chempi_spec *spec);
/* Ranks on a node. */
uint32_t chempi_spec_local_size(const struct chempi_spec *spec, uint32_t node);

/* Bytes of LAUNCH for a node, or for a daemon that sends them on (_ANY);
 * failure stays in the writer. */
void chempi_spec_write(const struct chempi_spec *spec, uint32_t node,
                       struct chempi_writer *w);
/* The whole LAUNCH of a launcher for its daemon, which finds the shell. */
void chempi_spec_order(const struct chempi_spec *spec, struct chempi_writer *w);
/* Such bytes, which the description was read from, once more: as they are or
 * for a node without ranks. */
void chempi_spec_copy(const struct chempi_spec *spec, const uint8_t *bytes,
                      size_t len, bool has_ranks, struct chempi_writer *w);
/* From LAUNCH, validated: node names are names, each is there once. On failure
 * nothing is left. -EBADMSG, -ENOMEM. */
int chempi_spec_read(struct chempi_spec *spec, struct chempi_reader *r);
/* The same; what it holds counts in the purse (NULL: nowhere), which lives as
 * long. -EDQUOT: it is empty. */
int chempi_spec_read_for(struct chempi_spec *spec, struct chempi_reader *r,
                         struct chempi_purse *purse);
/* Whose it says it is, before it is read. */
uint32_t chempi_spec_user(const struct chempi_reader *r);

#endif
