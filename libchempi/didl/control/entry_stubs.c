/* SPDX-License-Identifier: BSD-3-Clause */
/* What a way to be started lacks; see entry.h. */
#include "libchempi/didl/control/entry.h"

int chempi_entry_no_begin(struct chempi_err *err)
{
    (void)err;
    return 0;
}

int chempi_entry_no_end(bool is_for_good)
{
    (void)is_for_good;
    return 0;
}

bool chempi_entry_no_question(void)
{
    return false;
}

int chempi_entry_no_call(void)
{
    return 0;
}

int chempi_entry_no_care(bool cares)
{
    (void)cares;
    return 0;
}

int chempi_entry_no_cut(uint32_t gateway, const char *why)
{
    (void)gateway;
    (void)why;
    return 0;
}

int chempi_entry_no_memory(const struct chempi_client_memory *memory)
{
    (void)memory;
    return 0;
}

int chempi_entry_no_report(const void *text, size_t len)
{
    (void)text;
    (void)len;
    return 0;
}

int chempi_entry_no_here(const struct chempi_client_wait *wait)
{
    (void)wait;
    return 0;
}
