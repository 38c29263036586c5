/* SPDX-License-Identifier: BSD-3-Clause */
/* Start, finish and abort of the library in this process. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_ENV_H
#define CHEMPI_LIBCHEMPI_DIDL_ENV_H

#include "libchempi/didl/base/fatal.h"

/* Tells the supervisor, if there is one, after what this rank has sent. The
 * lane stays locked. */
chempi_fatal_tell_fn chempi_env_tell_end;

#endif
