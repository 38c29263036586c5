/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers with units; see size.h. */
#include "common/words/size.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int chempi_size_parse(const char *text, uint64_t max, uint64_t *out)
{
    static const char units[] = "KMGT";
    const char *unit;
    unsigned shift = 0;
    unsigned long long number;
    char *end;

    if (!isdigit((unsigned char)text[0])) /* no sign, no blank */
        return -EINVAL;
    errno = 0;
    number = strtoull(text, &end, 10);
    if (*end) {
        unit = strchr(units, toupper((unsigned char)*end));
        if (!unit || (end[1] && strcmp(end + 1, "iB") != 0))
            return -EINVAL;
        shift = 10 * (unsigned)(unit - units + 1);
    }
    if (errno || number > max >> shift)
        return -ERANGE;
    *out = (uint64_t)number << shift;
    return 0;
}
