/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole numbers in text; see number.h. */
#include "common/base/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

bool chempi_number_scan(const char **at, uint64_t max, uint64_t *out)
{
    unsigned long long value;
    char *end;

    if (!isdigit((unsigned char)**at))
        return false;
    errno = 0;
    value = strtoull(*at, &end, 10);
    if (errno || value > max)
        return false;
    *at = end;
    *out = value;
    return true;
}

bool chempi_number_scan32(const char **at, uint32_t max, uint32_t *out)
{
    uint64_t value;

    if (!chempi_number_scan(at, max, &value))
        return false;
    *out = (uint32_t)value;
    return true;
}

bool chempi_number_scan_range(const char **at, uint32_t max, uint32_t *first,
                              uint32_t *last)
{
    const char *ahead = *at;
    uint32_t low;
    uint32_t high;

    if (!chempi_number_scan32(&ahead, max, &low))
        return false;
    high = low;
    if (*ahead == '-' && (++ahead, !chempi_number_scan32(&ahead, max, &high)))
        return false;
    if (high < low)
        return false;
    *at = ahead;
    *first = low;
    *last = high;
    return true;
}

bool chempi_number_parse(const char *text, uint64_t min, uint64_t max,
                         uint64_t *out)
{
    uint64_t value;

    if (!chempi_number_scan(&text, max, &value) || *text || value < min)
        return false;
    *out = value;
    return true;
}

bool chempi_number_parse32(const char *text, uint32_t min, uint32_t max,
                           uint32_t *out)
{
    uint64_t value;

    if (!chempi_number_parse(text, min, max, &value))
        return false;
    *out = (uint32_t)value;
    return true;
}
