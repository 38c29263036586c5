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

#include "common/control/wire.h"
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

/* Append lines on what went which way since the last report, if that is
 * counted (chempid/trace.h). */
void chempi_gate_report(struct chempi_writer *out);

/* What conn hears of a gateway (proc >= ranks): its card, its end. */
void chempi_gate_card(uint32_t proc, const char *key, const void *card,
                      size_t len);
void chempi_gate_lost(uint32_t proc, const char *why);
/* Or that it shall be spared, or not any more. */
void chempi_gate_drained(uint32_t proc, bool is_drained);

#endif
