/* SPDX-License-Identifier: BSD-3-Clause */
/* The communicators that are always there; see comm.h. */
#include "libchempi/didl/comm/comm.h"

struct chempi_comm chempi_comm_world;
struct chempi_comm chempi_comm_self;
struct chempi_comm *chempi_comm_shown_world;
struct chempi_comm *chempi_comm_shown_self;
