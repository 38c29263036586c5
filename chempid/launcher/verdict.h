/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a job ended, and with which exit status: of all that is reported, the
 * cause is what most probably came first. A rank that was killed is a better
 * cause than one that asked for the end, perhaps because it missed the other.
 */
#ifndef CHEMPI_CHEMPID_VERDICT_H
#define CHEMPI_CHEMPID_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chempid/job/spec.h"
#include "common/control/msg.h"

/* The end of a sentence on what has ended it. */
#define CHEMPI_VERDICT_ENDED "; the job was ended"

#define CHEMPI_VERDICT_BESIDES 400u /* bytes */
#define CHEMPI_VERDICT_MAX                                                     \
    (CHEMPI_TEXT_MAX + CHEMPI_VERDICT_BESIDES + 96) /* .. of all */
#define CHEMPI_VERDICT_CUT_MAX 1000u /* bytes of the words that are kept */

struct chempi_verdict {
    int weight;        /* of the cause; 0: none yet */
    int status;        /* of the cause */
    int late;          /* largest exit status of ranks that had finalized or
                         were survived */
    uint32_t rank;     /* the cause's, or CHEMPI_NODE_ANY */
    bool is_unstarted; /* the cause is a program that cannot be started */
    char text[CHEMPI_TEXT_MAX]; /* the sentence */
    uint32_t others;            /* lost besides, beyond those that are named: */
    uint32_t named;
    char besides[CHEMPI_VERDICT_BESIDES]; /* "rank 1 on node a (...), ..." */
};

/* A rank ended badly. Returns true when the job must end for it. */
bool chempi_verdict_rank(struct chempi_verdict *v,
                         const struct chempi_spec *spec, uint32_t node,
                         uint32_t rank, uint32_t pid, enum chempi_end how,
                         uint32_t code, const char *program,
                         const char *detail);
/* The same where the others go on: the sentence goes to text, and there is no
 * cause to end the job; its exit status becomes that of the worst. False: the
 * end is one that nobody survives (a call of MPI_Abort, a program that cannot
 * be started, a rank that is missed), or a good one; nothing was changed. */
bool chempi_verdict_spare(struct chempi_verdict *v,
                          const struct chempi_spec *spec, uint32_t node,
                          uint32_t rank, uint32_t pid, enum chempi_end how,
                          uint32_t code, const char *program,
                          const char *detail, char *text, size_t len);
/* A node is lost. */
void chempi_verdict_node(struct chempi_verdict *v, const char *text);
/* The launcher itself ends the job; text "" for no sentence. */
void chempi_verdict_order(struct chempi_verdict *v, int status,
                          const char *text);
/* Has it? */
bool chempi_verdict_is_ordered(const struct chempi_verdict *v);
/* Would chempi_verdict_cut() change anything? */
bool chempi_verdict_takes_cut(const struct chempi_verdict *v);
/* Rank's messages have no way any more; text as far as "; the job was ended",
 * up to CHEMPI_VERDICT_CUT_MAX bytes.
 * It counts as much as a rank that asked for the end. */
void chempi_verdict_cut(struct chempi_verdict *v, uint32_t rank,
                        const char *text);
/* The sentence, with what was lost besides the cause. */
void chempi_verdict_put(const struct chempi_verdict *v, char *buf, size_t len);
/* Exit status of the job. */
int chempi_verdict_status(const struct chempi_verdict *v);

#endif
