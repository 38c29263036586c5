/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and lists of ranks; see pattern.h. */
#include "chempid/job/pattern.h"

#include <stdio.h>
#include <string.h>

#include "common/base/number.h"

/* ---- names --------------------------------------------------------------- */

/* What a sign stands for; NULL: nothing. */
static const char *meaning_of(char sign, const struct chempi_pattern *what,
                              char number[16])
{
    const uint32_t value = sign == 'r'   ? what->rank
                           : sign == 'p' ? what->number
                                         : 0;

    (void)snprintf(number, 16, "%u", value);
    switch (sign) {
    case 'r':
    case 'p':
    case 'g':
        return number;
    case 'h':
        return what->node;
    case 'j':
        return what->job;
    case '%':
        return "%";
    default:
        return NULL;
    }
}

bool chempi_pattern_expand(const char *text, const struct chempi_pattern *what,
                           char *out, size_t size)
{
    size_t len = 0;

    for (; *text; text++) {
        char number[16];
        const char plain[] = {*text, '\0'};
        const char *part =
            *text == '%' ? meaning_of(*++text, what, number) : plain;
        const size_t more = part ? strlen(part) : 0;

        if (!part || more >= size - len)
            return false;
        memcpy(out + len, part, more);
        len += more;
    }
    out[len] = '\0';
    return len > 0;
}

bool chempi_pattern_has_rank(const char *text)
{
    for (; *text; text++) {
        if (*text != '%')
            continue;
        if (*++text == 'r')
            return true;
        if (!*text) /* a pattern does not end so */
            break;
    }
    return false;
}

/* ---- ranks --------------------------------------------------------------- */

/* "4" or "4-7", up to a comma or the end. */
static bool take_range(const char **at, uint32_t *low, uint32_t *high)
{
    return chempi_number_scan_range(at, INT32_MAX, low, high) &&
           (**at == ',' || **at == '\0');
}

static bool is_all(const char *list)
{
    return strcmp(list, "all") == 0;
}

bool chempi_pattern_is_ranks(const char *list)
{
    uint32_t low;
    uint32_t high;

    if (is_all(list))
        return true;
    do
        if (!take_range(&list, &low, &high))
            return false;
    while (*list++ == ',');
    return true;
}

bool chempi_pattern_has(const char *list, uint32_t rank)
{
    uint32_t low;
    uint32_t high;

    if (is_all(list))
        return true;
    do
        if (take_range(&list, &low, &high) && rank >= low && rank <= high)
            return true;
    while (*list++ == ',');
    return false;
}
