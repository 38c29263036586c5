/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a daemon proves itself by, and whom it believes: the cluster's keys, its
 * own, and the file of nodes' keys (trust.h). All is read again by order.
 *
 *   K1  secrets are in pages that children do not inherit and cores do not
 *       hold
 *   K2  when files are read again and one is wrong, all stays as it was
 */
#ifndef CHEMPI_CHEMPID_SECRETS_H
#define CHEMPI_CHEMPID_SECRETS_H

#include "chempid/peers/trust.h"
#include "common/auth/handshake.h"

/* The files, by number. */
enum chempi_secrets_file {
    CHEMPI_SECRETS_CLUSTER,
    CHEMPI_SECRETS_NODE,
    CHEMPI_SECRETS_TRUST
};

struct chempi_secrets {
    const char *cluster_file; /* one key a line, the first to call with */
    const char *node_file;    /* NULL: a key is made that ends with us */
    const char *trust_file;   /* NULL: all that know the cluster's key */
    struct chempi_keys *keys;
    struct chempi_trust trust;
    /* Open one for who may not do so itself: a descriptor or -errno. NULL: we
     * may. */
    int (*open)(void *arg, enum chempi_secrets_file which);
    void *arg;
};

/* The files' names are set and stay the caller's. 0 or -errno with words;
 * close in any case. */
int chempi_secrets_open(struct chempi_secrets *s, struct chempi_err *err);
int chempi_secrets_reread(struct chempi_secrets *s, struct chempi_err *err);
void chempi_secrets_close(struct chempi_secrets *s);

#endif
