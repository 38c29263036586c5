/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of cores; see corelist.h. */
#include "chempid/job/corelist.h"

#include <errno.h>
#include <stdbool.h>

#include "common/base/number.h"

/* "N:" */
static void take_socket(const char **at, uint32_t *socket)
{
    const char *ahead = *at;
    uint32_t number;

    if (!chempi_number_scan32(&ahead, CHEMPI_CORELIST_NUMBER_MAX, &number) ||
        *ahead != ':')
        return;
    *socket = number;
    *at = ahead + 1;
}

/* "N", "N-M" or "*" */
static bool take_cores(const char **at, uint32_t *first, uint32_t *last)
{
    if (**at == '*') {
        ++*at;
        *first = 0;
        *last = UINT32_MAX;
        return true;
    }
    return chempi_number_scan_range(at, CHEMPI_CORELIST_NUMBER_MAX, first,
                                    last);
}

int chempi_corelist_each(const char *text, chempi_corelist_fn *take, void *arg,
                         struct chempi_err *err)
{
    const char *at = text;
    uint32_t socket = CHEMPI_CORELIST_ANY;
    uint32_t first;
    uint32_t last;
    int rc = 0;

    for (;;) {
        take_socket(&at, &socket);
        if (!take_cores(&at, &first, &last))
            break;
        rc = take ? take(arg, socket, first, last) : 0;
        if (rc || !*at)
            return rc;
        if (*at != ',' && *at != ';')
            break;
        at++;
    }
    return chempi_err_set(err, -EINVAL,
                          "slot=%.100s: expected cores such as 2, 0-3,8 or *, "
                          "or of a socket, such as 1:0-2, and found '%.20s'",
                          text, at);
}
