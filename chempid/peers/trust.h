/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which nodes' keys a daemon accepts, besides their knowledge of the cluster's
 * key: a file of lines
 *
 *   allow PUBLIC-KEY NODE     this key, for the node of this name only
 *   revoke PUBLIC-KEY         never again
 *
 * With an allow line, keys that have none are refused; a revoke line is
 * stronger than any other. What follows '#' is a comment. Without a file every
 * node with the cluster's key is accepted.
 */
#ifndef CHEMPI_CHEMPID_TRUST_H
#define CHEMPI_CHEMPID_TRUST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/noise.h"
#include "common/base/err.h"
#include "common/control/client.h"

#define CHEMPI_TRUST_MAX 65536u /* lines */

struct chempi_trusted {
    uint8_t key[CHEMPI_NOISE_KEY_BYTES];
    char node[CHEMPI_NODE_NAME_MAX]; /* "": revoked */
};

struct chempi_trust {
    struct chempi_trusted *list;
    uint32_t count;
    uint32_t room;
    bool has_allowed;
};

/* Read a file into an empty struct. It must belong to this user or root, and
 * nobody else may write it. fd is taken over; path is for words. 0; -errno with
 * file and line, and nothing held. */
int chempi_trust_read(struct chempi_trust *trust, int fd, const char *path,
                      struct chempi_err *err);
void chempi_trust_fini(struct chempi_trust *trust);

/* Is it accepted, and (node not NULL) for the node of this name? 0, -EACCES
 * with words. */
int chempi_trust_check(const struct chempi_trust *trust, const uint8_t *key,
                       const char *node, struct chempi_err *err);

#endif
