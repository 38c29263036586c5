/* SPDX-License-Identifier: BSD-3-Clause */
/* The shm device: coherent shared memory between processes of one node. */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SHM_H
#define CHEMPI_LIBCHEMPI_DEVICES_SHM_H

#include "libchempi/ddi.h"

extern const struct chempi_dev_ops chempi_shm_ops;

#endif
