/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages through gateways, as a rank sees them: to the engine one more
 * device, to the real devices a user of their endpoints to gateway processes.
 * doc/gateways.md has the whole; internal.h the invariants.
 *
 * Used by conn only, under the lane lock.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_GATE_GATE_H
#define CHEMPI_LIBCHEMPI_DIDL_GATE_GATE_H

#include "libchempi/ddi.h"

extern const struct chempi_dev_ops chempi_gate_ops;

/* Has this job gateways? Else nothing here is ever used. */
bool chempi_gate_is_needed(void);

/* The sink for the real devices: frames are kept, the rest goes to `above`.
 * Before any device is opened. */
const struct chempi_sink *chempi_gate_sink(const struct chempi_sink *above);

/* Open the device that stands for all ways through gateways, over the real
 * ones, which are open (devices[0 .. *device_count)). */
int chempi_gate_open(struct chempi_dev *const *devices,
                     const uint32_t *device_count, struct chempi_dev **out,
                     struct chempi_err *err);

/* For reports: the nodes of the gateways that messages of len bytes go by, as
 * "2,5"; text stays as it is for an endpoint of another device. */
void chempi_gate_describe(const struct chempi_ep *ep, uint64_t len, char *text,
                          size_t size);
/* How often pieces of messages of this protocol had to wait for the window,
 * since it was asked last; 0 for an endpoint of another device. */
uint64_t chempi_gate_waits(struct chempi_ep *ep, uint32_t protocol);

/* What conn hears of a gateway (proc >= ranks): its card, its end. */
void chempi_gate_card(uint32_t proc, const char *key, const void *card,
                      size_t len);
void chempi_gate_lost(uint32_t proc, const char *why);
/* Or that it shall be spared, or not any more. */
void chempi_gate_drained(uint32_t proc, bool is_drained);

#endif
