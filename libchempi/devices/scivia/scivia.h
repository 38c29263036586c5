/* SPDX-License-Identifier: BSD-3-Clause */
/* The device for SCI and VIA adapters; see doc/scivia.md. */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_SCIVIA_H
#define CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_SCIVIA_H

#include "libchempi/ddi.h"

extern const struct chempi_dev_ops chempi_scivia_ops;

#endif
