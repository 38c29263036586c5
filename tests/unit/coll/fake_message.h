/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks as threads of one process, and messages between them: stands in for
 * pt2pt, datatype and error below the collectives. A send is finished only
 * when its data has been received, so an algorithm that counts on buffering
 * hangs (and the test's time limit finds it). A run is over when nobody waits
 * for a message any more, nor does what was left to itself.
 */
#ifndef CHEMPI_TESTS_UNIT_COLL_FAKE_MESSAGE_H
#define CHEMPI_TESTS_UNIT_COLL_FAKE_MESSAGE_H

#include "libchempi/didl/coll/sched.h"

enum { FAKE_RANKS_MAX = 40 };

/* What a thread runs as one rank; returns the number of wrong results. */
typedef int fake_rank_fn(struct chempi_comm *comm, void *arg);

/* Fill in the predefined types that the tests use; all are on one node. */
void fake_init(void);

/* Spread ranks over so many nodes, in turn. */
void fake_spread(int nodes);

/* Messages since it was called last. */
int fake_sent(void);

/* n ranks of an intracommunicator. Sum of what they return. */
int fake_run(int n, fake_rank_fn *fn, void *arg);

/* Two groups of a and b ranks; comm->recv_context tells the groups apart. */
int fake_run_inter(int a, int b, fake_rank_fn *fn, void *arg);

/* This thread's rank gets n more pieces of memory, and then none; n < 0: as
 * many as it likes. */
void fake_starve(int n);

/* Has it been refused one since? */
bool fake_is_starved(void);

/* Messages that were sent and never received; 0 after a correct run. */
int fake_leftovers(void);

#endif
