/* SPDX-License-Identifier: BSD-3-Clause */
/* The tcp device: byte streams between any two processes. */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_TCP_H
#define CHEMPI_LIBCHEMPI_DEVICES_TCP_H

#include "libchempi/ddi.h"

extern const struct chempi_dev_ops chempi_tcp_ops;

#endif
