/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Supervisors as children of this process (launcher or daemon): start one,
 * talk to it, learn how it ended. What a dead supervisor leaves behind comes
 * to this process, which is a subreaper too, and is killed here.
 *
 *   B1  on_end is called once, last; afterwards the supervisor is reaped and
 *       none of its descendants is left
 *   B2  children that are neither supervisors nor elders are strays
 */
#ifndef CHEMPI_CHEMPID_BROOD_H
#define CHEMPI_CHEMPID_BROOD_H

#include <stdbool.h>
#include <sys/types.h>

#include "chempid/link.h"
#include "chempid/spec.h"
#include "common/base/list.h"

struct chempi_brood { /* one per process */
    struct chempi_list nestlings;
    pid_t *elders; /* children that are not ours to kill */
    size_t elder_count;
};

struct chempi_nestling {
    struct chempi_list entry;
    struct chempi_brood *brood;
    struct chempi_link link;
    pid_t pid;
    uint32_t node;
    const char *node_name; /* the caller's */
    int (*on_frame)(void *arg, const struct chempi_frame *frame,
                    struct chempi_err *err);
    void (*on_end)(void *arg, const char *text); /* how it ended */
    void *arg;
};

/* Become subreaper; present children are elders. 0 or -errno with words. */
int chempi_brood_init(struct chempi_brood *brood, struct chempi_err *err);
/* Kill and reap all that is left (B2 and supervisors). */
void chempi_brood_fini(struct chempi_brood *brood);
/* One child more that is left alone. 0 or -ENOMEM. */
int chempi_brood_spare(struct chempi_brood *brood, pid_t pid);

/* Fork the supervisor of a node of the job. n's callbacks and arg are set by
 * the caller. 0 or -errno with words. */
int chempi_brood_start(struct chempi_brood *brood, struct chempi_nestling *n,
                       struct ev_loop *loop, const struct chempi_spec *spec,
                       uint32_t node, struct chempi_err *err);

/* Tell it that its job is not wanted any more (it kills its ranks and ends);
 * on_end follows. */
void chempi_brood_drop(struct chempi_nestling *n);

#endif
