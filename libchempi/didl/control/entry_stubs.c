/* SPDX-License-Identifier: BSD-3-Clause */
/* What a way to be started lacks; see entry.h. */
#include "libchempi/didl/control/entry.h"

#include <errno.h>
#include <stddef.h>

bool chempi_entry_no_question(void)
{
    return false;
}

int chempi_entry_no_due(void)
{
    return -1;
}

struct chempi_client *chempi_entry_no_client(void)
{
    return NULL;
}

int chempi_entry_no_root(enum chempi_root_request what, const void *blob,
                         size_t len, uint32_t *serial)
{
    (void)what;
    (void)blob;
    (void)len;
    (void)serial;
    return -EOPNOTSUPP;
}
