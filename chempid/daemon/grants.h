/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's end of the registrable memory (budget.h): shares and reports
 * travel over the links to the supervisors, which pass them to and from their
 * ranks.
 *
 *   SHARE: u32 local rank, u64 bytes, u32 deadline_ms, u32 serial
 *   HOLDS: u32 local rank, u32 serial, u64 held, u64 used, u64 wanted,
 *          u64 needed, u64 degraded
 */
#ifndef CHEMPI_CHEMPID_GRANTS_H
#define CHEMPI_CHEMPID_GRANTS_H

#include "chempid/job/spec.h"
#include "chempid/tree/link.h"
#include "chempid/tree/nodes/budget.h"
#include "chempid/tree/nodes/status.h"
#include "common/control/msg.h"

struct chempi_daemon;

/* A job's part; zero before it is opened. */
struct chempi_grant {
    struct chempi_budget_job job;
    struct chempi_daemon *daemon;
    struct chempi_link *link; /* to the supervisor */
    const char *id;           /* of the job; the job's */
    uint64_t number;
    /* Set before it is opened: the job must end, for this reason. */
    void (*refused)(void *arg, const char *text);
    void *arg;
};

void chempi_grants_init(struct chempi_daemon *d);
void chempi_grants_fini(struct chempi_daemon *d);

/* The job is about to start here, with this share for each of its processes:
 * 0, until they ask, or CHEMPI_BUDGET_NONE when memory is not divided. 0;
 * -ENOMEM: it must not start, as nobody would answer its reports. */
int chempi_grants_open(struct chempi_daemon *d, struct chempi_grant *g,
                       const struct chempi_spec *spec, uint32_t node,
                       struct chempi_link *link, uint64_t *share);
/* HOLDS of a rank. -EBADMSG. */
int chempi_grants_take(struct chempi_grant *g, const struct chempi_frame *frame,
                       struct chempi_err *err);
/* Its ranks are gone. Harmless when not open. */
void chempi_grants_close(struct chempi_grant *g);

/* Fill in what the record says of memory; with_ranks: also rank by rank.
 * 0 or -ENOMEM. */
int chempi_grants_status(struct chempi_daemon *d, bool with_ranks,
                         struct chempi_pool *pool, struct chempi_status *out);

#endif
