/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the ranks of a job wait, as the launcher gathers it from all nodes and
 * prints it: ranks that wait for the same are told in one line (doc/where.md).
 *
 * Texts are the ranks': they are bounded, and control characters are replaced.
 */
#ifndef CHEMPI_CHEMPID_WAIT_SUMMARY_H
#define CHEMPI_CHEMPID_WAIT_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "chempid/job/spec.h"
#include "common/control/client.h"
#include "common/control/msg.h"
#include "common/control/wire.h"
#include "common/words/json.h"

/* Places that get a line each. When there are more, ranks in the same call get
 * one together. */
#define CHEMPI_WAIT_SUMMARY_GROUPS 40u

/* Of ranks that are in no group. */
#define CHEMPI_WAIT_SUMMARY_UNKNOWN 0u /* nothing is known of them */
#define CHEMPI_WAIT_SUMMARY_SURPLUS (CHEMPI_WAIT_SUMMARY_GROUPS + 1)

struct chempi_wait_summary_group {
    uint8_t here;   /* enum chempi_here; 0: not used */
    bool is_merged; /* text is the call; the ranks are in it for several */
    bool has_sites; /* the ranks call from several places */
    char text[CHEMPI_HERE_MAX];
    char site[CHEMPI_HERE_SITE_MAX]; /* whence they call, lines, or "" */
};

/* For whom a rank waits, for each of them. */
struct chempi_wait_summary_edges {
    uint32_t count;
    uint32_t ranks[CHEMPI_HERE_FOR_MAX];
};

/* Of zeros: closed. */
struct chempi_wait_summary {
    const struct chempi_spec *spec;
    uint8_t *group_of; /* [size] 1 + the rank's group; 0: nothing is known;
                          beyond the groups: one that got no line */
    bool *is_due;      /* [node_count] it has ranks, and has not told */
    uint32_t due;      /* such nodes */
    struct chempi_wait_summary_group *groups; /* [CHEMPI_WAIT_SUMMARY_GROUPS] */
    struct chempi_wait_summary_edges *edges;  /* [size] */
    uint64_t *moves; /* [size] as in HERE; 0 for those that do not wait */
};

/* All nodes with ranks are asked. 0 or -ENOMEM; then it is closed. */
int chempi_wait_summary_open(struct chempi_wait_summary *p,
                             const struct chempi_spec *spec);
void chempi_wait_summary_close(struct chempi_wait_summary *p);

/* PLACES from one node. What is malformed in it ends it; what came before
 * holds. True when all nodes have told. */
bool chempi_wait_summary_take(struct chempi_wait_summary *p,
                              struct chempi_reader *r);

/* All have told: who is in MPI_Init or MPI_Finalize waits for all that are not,
 * which none of them knows. */
void chempi_wait_summary_meet(struct chempi_wait_summary *p);

/* Have all ranks ended or finalized, as far as is known? */
bool chempi_wait_summary_is_ending(const struct chempi_wait_summary *p);

/* Has this rank ended or finalized? And the words of one that is in a call, ""
 * if there are none. */
bool chempi_wait_summary_is_over(const struct chempi_wait_summary *p,
                                 uint32_t rank);
const char *chempi_wait_summary_words(const struct chempi_wait_summary *p,
                                      uint32_t rank);

/* A line for each group, in the order of their first ranks: those that do not
 * wait first; behind it whence they call, a line for each call on the stack.
 * Then one circle of ranks that wait for each other, if there is any. has_rest:
 * also which ranks nothing is known of. */
void chempi_wait_summary_print(const struct chempi_wait_summary *p, FILE *file,
                               bool has_rest);
/* The same as members of an object, "size", "nodes" with their ranks, "places"
 * in the order of their first ranks, "waits_for", "circle", "no_room" and
 * "unknown". */
void chempi_wait_summary_json(const struct chempi_wait_summary *p,
                              struct chempi_json *j);

#endif
