/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The key-value store of one job at one node: what the node's own ranks have
 * published, what was learned of others, and who waits for what is not known
 * yet. A value lives at its owner's node and travels on demand; learned
 * values are forgotten at a fence, so that a later put is seen after it.
 *
 *   -   an entry has a value, or waiters, or is being asked for
 *   K2  waiters are served and forgotten when the value comes
 */
#ifndef CHEMPI_CHEMPID_KVS_H
#define CHEMPI_CHEMPID_KVS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/containers/index.h"
#include "common/control/client.h"

struct chempi_kvs_waiter {
    bool is_node; /* index is a node that asked, else a local rank */
    uint32_t index;
};

struct chempi_kvs_entry {
    uint32_t rank;
    char key[CHEMPI_KVS_KEY_MAX];
    bool has_value;
    bool is_local; /* the rank is of this node */
    uint8_t *value;
    size_t len;
    struct chempi_kvs_waiter *waiters;
    size_t waiter_count;
    size_t waiter_room;
};

struct chempi_kvs {
    struct chempi_kvs_entry **entries;
    uint32_t count;
    uint32_t room;
    struct chempi_index index; /* by rank and key */
    size_t waiting;            /* waiters in all entries */
};

typedef void chempi_kvs_serve_fn(void *arg,
                                 const struct chempi_kvs_waiter *waiter,
                                 const struct chempi_kvs_entry *entry);

/* The entry, made if need be; NULL: no memory. */
struct chempi_kvs_entry *chempi_kvs_entry(struct chempi_kvs *kvs, uint32_t rank,
                                          const char *key, bool is_local);

/* Set (or replace) the value and serve who waits. 0 or -ENOMEM. */
int chempi_kvs_set(struct chempi_kvs *kvs, struct chempi_kvs_entry *entry,
                   const void *value, size_t len, chempi_kvs_serve_fn *serve,
                   void *arg);

/* Remember who waits. 0, -ENOMEM, -ENOBUFS (more than the limit). */
int chempi_kvs_wait(struct chempi_kvs *kvs, struct chempi_kvs_entry *entry,
                    struct chempi_kvs_waiter waiter);

/* Forget learned values. */
void chempi_kvs_forget(struct chempi_kvs *kvs);

/* For whoever outlives its store: a supervisor ends with it. */
void chempi_kvs_fini(struct chempi_kvs *kvs);

#endif
