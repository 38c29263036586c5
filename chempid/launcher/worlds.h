/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the root of a job does for ranks that ask (common/control/dynamic.h):
 * it keeps their names.
 *
 *   -   each question has one answer GRANTED or FAILED, unless who has asked
 *       has ended
 *   -   nothing that a rank says ends anything: it is answered FAILED
 *
 * Never blocks.
 */
#ifndef CHEMPI_CHEMPID_WORLDS_H
#define CHEMPI_CHEMPID_WORLDS_H

#include <stddef.h>
#include <stdint.h>

#include "chempid/launcher/published.h"
#include "common/control/dynamic.h"

/* Answer a rank of the job. */
typedef void chempi_worlds_reply_fn(void *arg, uint32_t node, uint32_t rank,
                                    const struct chempi_reply *reply);

struct chempi_worlds {
    chempi_worlds_reply_fn *reply;
    void *arg;
    struct chempi_published names;
};

void chempi_worlds_init(struct chempi_worlds *worlds,
                        chempi_worlds_reply_fn *reply, void *arg);
void chempi_worlds_fini(struct chempi_worlds *worlds);

/* ROOT_REQUEST of a rank of the job, behind its node and rank. */
void chempi_worlds_take(struct chempi_worlds *worlds, uint32_t node,
                        uint32_t rank, struct chempi_reader *r);

#endif
