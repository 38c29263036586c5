/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the launcher knows of its job's gateways that are lost, and which nodes
 * have no way to each other any more.
 */
#ifndef CHEMPI_CHEMPID_GATEWAY_FAILURES_H
#define CHEMPI_CHEMPID_GATEWAY_FAILURES_H

#include <stdbool.h>

#include "chempid/job/spec.h"
#include "chempid/tree/nodes/reachability.h"
#include "common/control/msg.h"

struct chempi_gateway_failures {
    const struct chempi_spec *spec;
    struct chempi_pool pool;
    const char **why; /* [gateway_count], NULL: it runs; NULL until needed */
    uint8_t *cuts;    /* [size], 1: that rank has said that it needs a lost
                         way; NULL until needed */
    bool has_told;    /* whom the losses so far cut off */
};

void chempi_gateway_failures_init(struct chempi_gateway_failures *f,
                                  const struct chempi_spec *spec);
void chempi_gateway_failures_fini(struct chempi_gateway_failures *f);

/* A gateway process is lost. False: that was known, or it is none. */
bool chempi_gateway_failures_note(struct chempi_gateway_failures *f,
                                  uint32_t proc, const char *why);

bool chempi_gateway_failures_is_lost(const struct chempi_gateway_failures *f,
                                     uint32_t proc);

/* This rank needs a lost way, and its end follows. */
void chempi_gateway_failures_cut(struct chempi_gateway_failures *f,
                                 uint32_t rank);
bool chempi_gateway_failures_is_cut(const struct chempi_gateway_failures *f,
                                    uint32_t rank);

/* "; no other way is left between a and b", or "": to be told at once. Reads
 * the tables. */
void chempi_gateway_failures_effect(struct chempi_gateway_failures *f,
                                    char *buf, size_t len);

/* What has happened to the gateway of a node, in words to be told at once; one
 * that is lost is noted, and its effect added. Reads the tables then. */
void chempi_gateway_failures_tell(struct chempi_gateway_failures *f,
                                  uint32_t node, uint32_t proc,
                                  enum chempi_fall how, const char *why,
                                  char *buf, size_t len);

/* Why the job ends for the lost gateways, up to the words for whoever needs
 * what they carried; "" where no table says so. Whom that cuts off is left out
 * where the effect of the last loss has told it. Reads the tables. */
void chempi_gateway_failures_put(const struct chempi_gateway_failures *f,
                                 const char *who, char *buf, size_t len);

/*
 * Nodes of the job's ranks that the tables leave without a way to each other:
 * 0; -EHOSTUNREACH with words and remedy; -ENOMEM. Reads the tables. *unseen:
 * nodes that were not looked at; 0 where no tables but one node's are at hand,
 * as on a host that has its own only.
 */
int chempi_gateway_failures_check(const struct chempi_spec *spec,
                                  uint32_t *unseen, struct chempi_err *err);

#endif
