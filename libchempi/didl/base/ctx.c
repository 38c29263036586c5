/* SPDX-License-Identifier: BSD-3-Clause */
/* The context of the process; see ctx.h. */
#include "libchempi/didl/base/ctx.h"

struct chempi_ctx chempi_ctx;
