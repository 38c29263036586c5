/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device that reaches processes of other worlds: this process among them,
 * and what happens when one is lost. doc/dynamic.md has the whole.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_FOREIGN_FOREIGN_DEVICE_H
#define CHEMPI_LIBCHEMPI_DIDL_FOREIGN_FOREIGN_DEVICE_H

#include <stdbool.h>

#include "common/base/err.h"
#include "libchempi/didl/transport/worlds/foreign.h"

/*
 * Open that device, if it is not, and describe this process, but for its
 * signature (vouch.h).
 * The first call costs a listener, and a thread if the process has no event
 * descriptor of its own. Collective with nobody. 0 or -errno with words.
 */
int chempi_foreign_introduce(struct chempi_introduction *out,
                             struct chempi_err *err);

/* Before the devices are opened. From then on all of a world that does not
 * survive the loss of a process is lost with one, and everybody of the own job
 * that has met it is told. */
void chempi_foreign_register(void);

/* A process of another world, of a bond that is agreed, is lost, and who shares
 * that bond may not have heard of it: those of the own job that had not taken
 * it in yet when it was told. They hear it now, and who has come to be known
 * since is lost with it, if its world is. Holder of the first lane. */
void chempi_foreign_spread_loss(uint32_t index);

/* At the end, as long as what was sent is not taken, and when it is (is_over):
 * after CHEMPI_MEET_PATIENCE_MS (0: never) a warning says so. Nothing is given
 * up: who receives may compute for longer. Holder of the first lane. */
void chempi_foreign_await_end(bool is_over);

#endif
