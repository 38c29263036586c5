/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What daemons say of their nodes, in STATUS: records, one after the other.
 *   str node, str error; when error is "": u64 host, u32 slots, u32 load in
 *   hundredths, u32 busy, u32 pid, str version, str tables, u8 is drained,
 *   count jobs, jobs x (str id, u32 uid, u32 size, u32 local, str program, cut
 *   to CHEMPI_STATUS_PROGRAM_MAX, u8 1: without its gateways, or 0,
 *   count gateways x (str node, u8 fall: 0 while it runs, else enum
 *   chempi_fall + 1; u32 pid)), u64 registrable memory, u64
 *   granted, count grants (0 if not asked for), grants x (str job, u32 rank,
 *   u64 granted, u64 ordered, u64 used, u64 wanted, u64 degraded, u32 due_ms,
 *   u8 is late)
 */
#ifndef CHEMPI_CHEMPID_STATUS_H
#define CHEMPI_CHEMPID_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "chempid/tree/pool.h"
#include "common/control/client.h"
#include "common/control/wire.h"

#define CHEMPI_STATUS_JOBS_MAX (1u << 16)
#define CHEMPI_STATUS_VERSION_MAX 64u
#define CHEMPI_STATUS_PATH_MAX (128u << 10) /* bytes, as of an argument */
#define CHEMPI_STATUS_PROGRAM_MAX 256u      /* bytes of a name, with zero */
/* Of jobs' gateways in a record: users choose how many there are, and what they
 * choose must not keep others from seeing the node. */
#define CHEMPI_STATUS_ALL_GATEWAYS_MAX (1u << 13)
#define CHEMPI_STATUS_GATEWAYS_MAX (1u << 12) /* of a job */

/* What has become of a gateway in a job. */
enum chempi_status_fate {
    CHEMPI_FATE_UP = 0, /* it runs, or will */
    CHEMPI_FATE_DRAINED,
    CHEMPI_FATE_LOST /* for good */
};

struct chempi_status_gateway {
    const char *node;
    enum chempi_status_fate fate;
    uint32_t pid; /* at its own node, once it runs; else 0 */
};

struct chempi_status_job {
    const char *id;
    uint32_t uid;
    uint32_t size;  /* ranks in all */
    uint32_t local; /* ranks on this node */
    const char *program;
    bool is_cut; /* there are gateways that the record has no room for */
    uint32_t gateway_count;
    struct chempi_status_gateway *gateways;
};

/* What a rank may register (budget.h). */
struct chempi_status_grant {
    const char *job;
    uint32_t rank;
    uint64_t granted;
    uint64_t ordered; /* < granted: that much it shall keep */
    uint64_t used;
    uint64_t wanted;
    uint64_t degraded; /* transfers */
    uint32_t due_ms;
    bool is_late;
};

struct chempi_status {
    const char *node;
    const char *error; /* "" or why nothing else is known */
    uint64_t host;     /* equal for nodes of one host */
    uint32_t slots;
    uint32_t load; /* of the host, hundredths of running tasks */
    uint32_t busy; /* ranks that run there */
    uint32_t pid;  /* of the daemon */
    const char *version;
    const char *tables; /* directory of its connection tables, or "" */
    bool is_drained;    /* its gateways are spared, also in jobs to come */
    uint32_t job_count;
    struct chempi_status_job *jobs;
    uint64_t memory; /* registrable, bytes; UINT64_MAX: not divided */
    uint64_t memory_granted;
    uint32_t grant_count;
    struct chempi_status_grant *grants;
};

void chempi_status_write(struct chempi_writer *w,
                         const struct chempi_status *s);
/* One record; what it points to is in the pool. Control characters are ? but in
 * names of programs and directories. The reader goes bad when it is
 * malformed or when there is no memory. */
void chempi_status_read(struct chempi_reader *r, struct chempi_pool *pool,
                        struct chempi_status *s);

/* "in use", "drained", "lost". */
const char *chempi_status_fate_word(enum chempi_status_fate fate);

/* What has become of the gateway on a node in this job; UP where it has none
 * there, or for NULL. */
enum chempi_status_fate
chempi_status_fate_of(const struct chempi_status_job *job, const char *node);

/* The job of this id and user there, or NULL. Whoever launches can have copied
 * the id of another user's job that runs elsewhere. */
const struct chempi_status_job *
chempi_status_find(const struct chempi_status *s, const char *id, uint32_t uid);

/* Does the job run on one of the first `count` nodes of the list? */
bool chempi_status_has_job(const struct chempi_status *list, uint32_t count,
                           const struct chempi_status_job *job);

/* Whose job it is that a user means by this id: the user's own, or that of
 * another one. -ESRCH: there is none; -EEXIST: there are two, of *uid and of
 * *other. */
int chempi_status_owner(const struct chempi_status *list, uint32_t count,
                        const char *id, uint32_t asker, uint32_t *uid,
                        uint32_t *other);

/* Of this host: a number for it, and its load. */
uint64_t chempi_status_host(void);
uint32_t chempi_status_load(void);

#endif
