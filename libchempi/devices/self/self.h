/* SPDX-License-Identifier: BSD-3-Clause */
/* The self device: a process's messages to itself. */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SELF_H
#define CHEMPI_LIBCHEMPI_DEVICES_SELF_H

#include "libchempi/ddi.h"

extern const struct chempi_dev_ops chempi_self_ops;

#endif
