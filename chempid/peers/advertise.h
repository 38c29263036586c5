/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The address that others are told of a daemon which listens on all of this
 * host's addresses.
 */
#ifndef CHEMPI_CHEMPID_ADVERTISE_H
#define CHEMPI_CHEMPID_ADVERTISE_H

#include "chempid/tree/addr.h"

/* *addr is all addresses (0.0.0.0 or ::) with a port: put the host's only one
 * there that others can call. One of IPv4 comes before one of IPv6; loopback
 * and link-local ones do not count. -EADDRNOTAVAIL: there is none, or there
 * are several, which are named. */
int chempi_advertise_find(struct chempi_addr *addr, struct chempi_err *err);

#endif
