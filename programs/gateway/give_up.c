/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of the job by a gateway that cannot go on. */
#include <stdarg.h>
#include <stdio.h>

#include "programs/gateway/gateway.h"

void gateway_give_up(struct gateway *g, const char *fmt, ...)
{
    char text[CHEMPI_ERR_TEXT_MAX];
    va_list args;

    if (g->is_over)
        return;
    g->is_over = true;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (g->client)
        (void)chempi_client_abort(g->client, 1, text);
}
