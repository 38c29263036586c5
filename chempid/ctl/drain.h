/* SPDX-License-Identifier: BSD-3-Clause */
/* chempictl drain and undrain: what an order means before it is given. */
#ifndef CHEMPI_CHEMPID_DRAIN_H
#define CHEMPI_CHEMPID_DRAIN_H

#include <stdbool.h>
#include <stdio.h>

#include "chempid/tree/nodes/status.h"
#include "common/base/err.h"
#include "common/words/json.h"

struct chempi_drain {
    FILE *out;
    struct chempi_json *json;         /* NULL: words */
    const struct chempi_status *list; /* of all nodes */
    uint32_t count;
    const char *node;
    const char *job; /* NULL: all, and those to come */
    uint32_t uid;    /* whose it is */
    bool is_forced;
    bool is_undrain;
};

/*
 * Is there such a gateway and such a job, and has every pair of nodes another
 * one? Pairs that have none are printed, and refused unless forced; then the
 * gateway stays in use for them. As JSON they are objects of an open list, and
 * what is refused is not printed. Reads tables. 0; -ENOENT, -ESRCH, -EPERM,
 * -EBUSY, -ENOMEM with words.
 */
int chempi_drain_check(const struct chempi_drain *d, struct chempi_err *err);

/* Print what is drained: nodes, and gateways of single jobs. */
void chempi_drain_list(FILE *out, bool is_json,
                       const struct chempi_status *list, uint32_t count);

#endif
