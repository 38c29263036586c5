/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers with units; see size.h. */
#include "common/words/size.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define DECIMALS_MAX 7u /* 10^7 TiB are less than 2^64 bytes */

const char chempi_size_units[] = "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB";

/* What the unit stands for in bytes; 0: it is none. */
static uint64_t unit_bytes(const char *text)
{
    static const char binary[] = "KMGT";
    static const char decimal[] = "kMGT";
    const char *letter;
    uint64_t kilo = 0;
    uint64_t bytes = 1;

    if (!*text || strcmp(text, "B") == 0)
        return 1;
    letter = strchr(binary, toupper((unsigned char)*text));
    if (!letter)
        return 0;
    if (!text[1] || strcmp(text + 1, "iB") == 0)
        kilo = 1024;
    else if (*text == decimal[letter - binary] && strcmp(text + 1, "B") == 0)
        kilo = 1000;
    for (ptrdiff_t i = 0; i <= letter - binary; i++)
        bytes *= kilo;
    return bytes;
}

/* The digits at *text, which is put behind them. False: over 64 bits. */
static bool take_digits(const char **text, uint64_t *out)
{
    bool fits = true;

    for (*out = 0; isdigit((unsigned char)**text); ++*text) {
        const unsigned digit = (unsigned)(**text - '0');

        fits = fits && *out <= (UINT64_MAX - digit) / 10;
        *out = *out * 10 + digit;
    }
    return fits;
}

/* What stands behind a decimal point, in so many parts of one. */
static bool take_decimals(const char **text, uint64_t *out, uint64_t *parts)
{
    const char *end = *text;
    size_t count = 0;

    *out = 0;
    *parts = 1;
    for (size_t i = 0; isdigit((unsigned char)*end); i++, end++)
        if (*end != '0')
            count = i + 1;
    for (size_t i = 0; i < count && i < DECIMALS_MAX; i++) {
        *out = *out * 10 + (uint64_t)((*text)[i] - '0');
        *parts *= 10;
    }
    *text = end;
    return count <= DECIMALS_MAX;
}

int chempi_size_parse(const char *text, uint64_t max, uint64_t *out)
{
    const char *rest = text;
    uint64_t whole;
    uint64_t decimals = 0;
    uint64_t parts = 1;
    uint64_t unit;
    bool fits;

    if (!isdigit((unsigned char)*text)) /* no sign, no blank */
        return -EINVAL;
    fits = take_digits(&rest, &whole);
    if (*rest == '.') {
        rest++;
        if (!isdigit((unsigned char)*rest))
            return -EINVAL;
        fits = take_decimals(&rest, &decimals, &parts) && fits;
    }
    while (rest[0] == ' ' && rest[1])
        rest++;
    unit = unit_bytes(rest);
    if (!unit)
        return -ENOTSUP;
    if (!fits || decimals * unit % parts)
        return -ERANGE;
    decimals = decimals * unit / parts;
    if (decimals > max || whole > (max - decimals) / unit)
        return -ERANGE;
    *out = whole * unit + decimals;
    return 0;
}
