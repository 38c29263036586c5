/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The entry's members for launchers that are not ours: on top of a store
 * (store.h) they do what a supervisor of ours does for its ranks. See
 * doc/launchers.md.
 *
 *   H1  before the first fence each process has put who it is: its node, its
 *       host, and the address of a socket where it listens already; rank 0
 *       the job's name and secret, too
 *   H2  the first rank of a node makes region and wake events and brings them
 *       to the sockets of the others; it waits for none of them
 *   H3  cards are put before the fence in begin(), so that get() finds them
 *       at once; what is put later is refused
 *   H4  the launcher hears once that this process has finished: when the
 *       world model has, else when the library is closed
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_GUEST_H
#define CHEMPI_LIBCHEMPI_DIDL_GUEST_H

#include "libchempi/didl/control/entry.h"

extern const struct chempi_entry_ops chempi_guest_ops;

#endif
