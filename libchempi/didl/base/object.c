/* SPDX-License-Identifier: BSD-3-Clause */
/* See object.h. */
#include "libchempi/didl/base/object.h"

_Atomic(chempi_object_end_fn *) chempi_object_on_end;
