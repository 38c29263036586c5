/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registrable memory of a node, divided among the ranks of the jobs on it.
 * Jobs have equal parts, and ranks of a job; who asks for less leaves the rest
 * to the others.
 *
 *   M1  what is granted to all ranks together never exceeds the total: a rank
 *       gets only what is free, so a new job gets what others have given back
 *   M2  a grant counts until its rank has reported, in answer to the last
 *       order, that it holds no more than the smaller amount
 *   M3  at most one shrinking order is open per rank, with one deadline
 *   M4  a rank is not asked back what it needs (a card may move nothing without
 *       it); what all of them need never exceeds the total
 *   M5  dividing looks at ranks only that have reported: a rank that is only
 *       named costs nothing; and of reports that come together all but the
 *       first do, too
 *
 * A rank that has not given back by its deadline keeps what it holds, and is
 * named in the log once: registered memory that a transfer uses cannot be
 * taken, and a rank that computes does not hear. The others go on with what is
 * free (their library then copies more), and get the rest when it comes. A job
 * whose ranks need more than there is, or than what comes within
 * CHEMPI_BUDGET_PATIENCE_MS, cannot go on: it is refused. So is one of whose
 * ranks a single one needs more than its limit: it would wait for ever.
 *
 * No input or output in here: orders leave through a callback. See
 * doc/daemon.md.
 */
#ifndef CHEMPI_CHEMPID_BUDGET_H
#define CHEMPI_CHEMPID_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/containers/list.h"

#define CHEMPI_BUDGET_NONE UINT64_MAX /* not divided by anybody */
#define CHEMPI_BUDGET_DEADLINE_MS 1000u
#define CHEMPI_BUDGET_PATIENCE_MS 30000u

/* What a rank says of itself, and the daemon of a rank (MEMORY, HOLDS). */
struct chempi_budget_report {
    uint32_t serial;   /* of the last order it has obeyed or is obeying */
    uint64_t held;     /* bytes that count as its */
    uint64_t used;     /* bytes registered */
    uint64_t wanted;   /* bytes it would register at most */
    uint64_t needed;   /* of these, bytes without which it cannot go on */
    uint64_t degraded; /* transfers that took a slower way for lack of them */
};

struct chempi_budget_rank {
    uint32_t world;
    uint64_t granted; /* bytes that it may hold: M1 */
    uint64_t ordered; /* bytes it was told; < granted: to be given back */
    uint64_t limit;   /* bytes that the kernel lets it lock */
    uint64_t due_ms;  /* when that should be; 0: nothing is due */
    bool is_late;
    bool has_reported;                /* M5 */
    struct chempi_budget_report last; /* serial: of the last order */
};

/* Why a job cannot have what it needs. */
struct chempi_budget_refusal {
    uint64_t needed;    /* bytes, by those of its ranks that have asked */
    uint64_t available; /* bytes that it can have */
    bool is_late;       /* others were asked to give back, and have not */
    bool is_limit;      /* that is what the kernel lets one of them lock */
};

/* A job on this node. */
struct chempi_budget_job {
    struct chempi_list entry;
    struct chempi_budget_rank *ranks;
    uint32_t rank_count; /* 0: not in the budget */
    uint32_t *heard;     /* local ranks that have reported: M5 */
    uint32_t heard_count;
    bool is_refused;      /* it is about to end, and gets nothing more */
    uint64_t patience_ms; /* when it has waited too long; 0: it need not */
    /* Tell local rank `local` its share. */
    void (*send)(void *arg, uint32_t local, uint64_t bytes,
                 uint32_t deadline_ms, uint32_t serial);
    void (*late)(void *arg, const struct chempi_budget_rank *rank);
    /* Once at most; the job must end. Called from settle() and tick(). */
    void (*refuse)(void *arg, const struct chempi_budget_refusal *refusal);
    void *arg;
};

struct chempi_budget {
    uint64_t total; /* bytes, or CHEMPI_BUDGET_NONE */
    struct chempi_list jobs;
    bool is_due; /* something has changed since it was divided */
};

/* What a rank costs, bytes. */
#define CHEMPI_BUDGET_RANK_BYTES                                               \
    (sizeof(struct chempi_budget_rank) + sizeof(uint32_t))

void chempi_budget_init(struct chempi_budget *budget, uint64_t total);

/* What a node may register when nobody says: half of its memory, bytes. */
uint64_t chempi_budget_default(void);
/* What the kernel lets a process of this user lock, bytes. */
uint64_t chempi_budget_limit(uint32_t uid);

/*
 * A job comes: worlds[i] is the process that local rank i is in the world.
 * send, late, refuse and arg are set by the caller. Nobody has anything before
 * it asks (chempi_budget_take()). 0 or -ENOMEM.
 */
int chempi_budget_add(struct chempi_budget *budget,
                      struct chempi_budget_job *job, const uint32_t *worlds,
                      uint32_t count, uint64_t limit);
/* It has ended; its ranks are gone. What they had is divided by the next
 * settle(). Harmless when it was not added. */
void chempi_budget_remove(struct chempi_budget *budget,
                          struct chempi_budget_job *job);

/* A rank has reported; the next settle() gives what follows. Nothing in it is
 * believed that breaks M1. -EINVAL: no such rank. */
int chempi_budget_take(struct chempi_budget *budget,
                       struct chempi_budget_job *job, uint32_t local,
                       const struct chempi_budget_report *report);

/* Divide anew, if something has changed. */
void chempi_budget_settle(struct chempi_budget *budget, uint64_t now_ms);

/* Look at deadlines. Returns when to look next, 0: no need. */
uint64_t chempi_budget_tick(struct chempi_budget *budget, uint64_t now_ms);

/* NULL, or what of M1 and M2 does not hold (invariant.h). */
const char *chempi_budget_check(const struct chempi_budget *budget);

uint64_t chempi_budget_granted(const struct chempi_budget *budget);

#endif
