/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of invariants; see invariant.h. */
#include "common/base/invariant.h"

#include <stdio.h>
#include <stdlib.h>

void chempi_invariant_hold(const char *broken, const char *file, int line)
{
    if (!broken)
        return;
    (void)fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, broken);
    abort();
}
