/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers with decimals; see decimal.h. */
#include "common/words/decimal.h"

#include <stdlib.h>
#include <string.h>

/* The characters are looked at first: strtod would take "inf" and "0x10". */
bool chempi_decimal_parse(const char *text, double min, double max, double *out)
{
    char *end;
    double value;

    if (text[strspn(text, "0123456789.")])
        return false;
    value = strtod(text, &end);
    if (end == text || *end || value < min || value > max)
        return false;
    *out = value;
    return true;
}
