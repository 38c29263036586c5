/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deadlocks of jobs that are checked (doc/checking.md): the ranks are asked
 * from time to time where they wait, and those are stuck that
 *
 *   D1  wait for nothing but what other ranks call, and have not gone on for
 *       so long, by the number `moves` of their answers; and
 *   D2  wait for each of some ranks, one of which is stuck or has ended; or
 *       for any of several, when all ranks are stuck or have ended.
 *
 * No call of a rank that is not stuck helps these. What is on its way between
 * ranks would: D1's time is for that.
 */
#ifndef CHEMPI_CHEMPID_DEADLOCK_H
#define CHEMPI_CHEMPID_DEADLOCK_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chempid/where/wait_query.h"

/* A deadlock, in a sentence for the user. */
typedef void chempi_deadlock_found(void *arg, const char *text);

/* Of zeros: closed. */
struct chempi_deadlock {
    struct chempi_wait_query *query;
    ev_timer timer;
    chempi_deadlock_found *found;
    void *arg;
    double limit_s;  /* for the answers to one look */
    uint32_t looks;  /* that must find a rank as it was */
    bool is_likely;  /* one more look, with places, decides */
    uint64_t *moves; /* [size] at the last look */
    uint32_t *same;  /* [size] looks in a row that have found these */
    bool *is_stuck;  /* [size] */
};

/* Begin to look. quiet_s: the time of D1, 0 for 2 s where all ranks share a
 * node and 10 s elsewhere. Without memory nothing is looked for. */
void chempi_deadlock_open(struct chempi_deadlock *d,
                          struct chempi_wait_query *query, double quiet_s,
                          chempi_deadlock_found *found, void *arg);
void chempi_deadlock_close(struct chempi_deadlock *d);

/* One look. Are there ranks that are stuck? */
bool chempi_deadlock_look(struct chempi_deadlock *d,
                          const struct chempi_wait_summary *places);
/* After a look that has found some: who waits for whom, at most len bytes. */
void chempi_deadlock_put(const struct chempi_deadlock *d,
                         const struct chempi_wait_summary *places, char *out,
                         size_t len);

#endif
