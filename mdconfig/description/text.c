/* SPDX-License-Identifier: BSD-3-Clause */
/* Quantities with units, and suggestions; see text.h. */
#include "mdconfig/description/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/words/edit_distance.h"

struct unit {
    const char *name;
    double factor;
};

static const struct unit time_units[] = {
    {"", 1}, {"ns", 1e-3}, {"us", 1}, {"\xc2\xb5s", 1}, {"ms", 1e3}, {"s", 1e6},
};

static const struct unit bandwidth_units[] = {
    {"", 1},
    {"B/s", 1e-6},
    {"kB/s", 1e-3},
    {"MB/s", 1},
    {"GB/s", 1e3},
    {"KiB/s", 1024e-6},
    {"MiB/s", 1.048576},
    {"GiB/s", 1073.741824},
    {"bit/s", 0.125e-6},
    {"kbit/s", 0.125e-3},
    {"Mbit/s", 0.125},
    {"Gbit/s", 125},
    {"Tbit/s", 125e3},
};

const char chempi_text_time_units[] = "ns, us, ms, s";
const char chempi_text_bandwidth_units[] = "MB/s, GB/s, MiB/s, Mbit/s, Gbit/s";

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The number at the start of text; *rest is what follows it. The characters
 * are looked at first, since strtod would take hexadecimal, "inf" and "nan".
 */
static int split_number(const char *text, double *value, const char **rest)
{
    size_t len = 0;
    size_t digits = 0;
    bool point = false;
    char number[48];

    for (; is_digit(text[len]) || (text[len] == '.' && !point); len++) {
        if (text[len] == '.')
            point = true;
        else
            digits++;
    }
    if (digits == 0)
        return -EINVAL;
    if (len >= sizeof(number))
        return -ERANGE;
    memcpy(number, text, len);
    number[len] = '\0';
    *value = strtod(number, NULL);
    for (text += len; *text == ' '; text++)
        continue;
    *rest = text;
    return 0;
}

static int read_quantity(const char *text, const struct unit *units,
                         size_t count, double *value)
{
    const char *rest;
    double number;
    int rc = split_number(text, &number, &rest);

    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rest, units[i].name) == 0) {
            *value = number * units[i].factor;
            return 0;
        }
    }
    return -ENOTSUP;
}

int chempi_text_time(const char *text, double *us)
{
    return read_quantity(text, time_units, CHEMPI_ARRAY_LEN(time_units), us);
}

int chempi_text_bandwidth(const char *text, double *bytes_per_us)
{
    return read_quantity(text, bandwidth_units,
                         CHEMPI_ARRAY_LEN(bandwidth_units), bytes_per_us);
}

#define SPREAD_MAX 10.0 /* 1000 % */

int chempi_text_split_spread(const char *text, char *figure, size_t size,
                             double *spread)
{
    static const char *const signs[] = {"\xc2\xb1", "+-"};
    const char *sign = NULL;
    const char *rest = "";
    size_t len = strlen(text);
    double percent = 0;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(signs) && !sign; i++) {
        sign = strstr(text, signs[i]);
        rest = sign ? sign + strlen(signs[i]) : "";
    }
    if (sign) {
        while (*rest == ' ')
            rest++;
        if (split_number(rest, &percent, &rest) != 0 || strcmp(rest, "%") != 0)
            return -EINVAL;
        len = (size_t)(sign - text);
        while (len > 0 && text[len - 1] == ' ')
            len--;
    }
    if (len >= size || percent / 100 > SPREAD_MAX)
        return -ERANGE;
    memcpy(figure, text, len);
    figure[len] = '\0';
    *spread = percent / 100;
    return 0;
}

/* ---- writing ------------------------------------------------------------ */

struct chempi_text_quantity chempi_text_put_size(uint64_t bytes)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    struct chempi_text_quantity q = {"any size"};
    size_t unit = 0;

    if (bytes == UINT64_MAX)
        return q;
    while (bytes >= 1024 && bytes % 1024 == 0 &&
           unit + 1 < CHEMPI_ARRAY_LEN(names)) {
        bytes /= 1024;
        unit++;
    }
    (void)snprintf(q.text, sizeof(q.text), "%" PRIu64 " %s", bytes,
                   names[unit]);
    return q;
}

/* Four significant digits without an exponent or trailing zeros. */
static struct chempi_text_quantity put_number(double value, const char *unit)
{
    int decimals = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;
    struct chempi_text_quantity q;
    char digits[CHEMPI_TEXT_QUANTITY_MAX];
    size_t end;

    (void)snprintf(digits, sizeof(digits), "%.*f", decimals, value);
    if (decimals > 0) {
        end = strlen(digits);
        while (digits[end - 1] == '0')
            end--;
        if (digits[end - 1] == '.')
            end--;
        digits[end] = '\0';
    }
    (void)snprintf(q.text, sizeof(q.text), "%.20s %s", digits, unit);
    return q;
}

struct chempi_text_quantity chempi_text_put_time(double us)
{
    if (us >= 1e6)
        return put_number(us / 1e6, "s");
    return us >= 1e4 ? put_number(us / 1e3, "ms") : put_number(us, "us");
}

struct chempi_text_quantity chempi_text_put_bandwidth(double bytes_per_us)
{
    if (bytes_per_us >= 1e4)
        return put_number(bytes_per_us / 1e3, "GB/s");
    return bytes_per_us >= 1 ? put_number(bytes_per_us, "MB/s")
                             : put_number(bytes_per_us * 1e3, "kB/s");
}

/* The unit of a quantity in words, or NULL when it is none. */
static const struct unit *unit_of(const char *text, const struct unit *units,
                                  size_t count)
{
    const char *rest;
    double number;

    if (split_number(text, &number, &rest) != 0 || !*rest)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rest, units[i].name) == 0)
            return &units[i];
    }
    return NULL;
}

/* In the model's unit, for which three decimals must be enough. */
static bool put_like(double value, const char *model, const struct unit *units,
                     size_t count, struct chempi_text_quantity *out)
{
    const struct unit *unit = unit_of(model, units, count);

    if (!unit || value / unit->factor < 0.1)
        return false;
    *out = put_number(value / unit->factor, unit->name);
    return true;
}

struct chempi_text_quantity chempi_text_put_time_like(double us,
                                                      const char *model)
{
    struct chempi_text_quantity q;

    return put_like(us, model, time_units, CHEMPI_ARRAY_LEN(time_units), &q)
               ? q
               : chempi_text_put_time(us);
}

struct chempi_text_quantity chempi_text_put_bandwidth_like(double bytes_per_us,
                                                           const char *model)
{
    struct chempi_text_quantity q;

    return put_like(bytes_per_us, model, bandwidth_units,
                    CHEMPI_ARRAY_LEN(bandwidth_units), &q)
               ? q
               : chempi_text_put_bandwidth(bytes_per_us);
}

const char *chempi_text_plural(uint64_t number)
{
    return number == 1 ? "" : "s";
}

/* ---- suggestions -------------------------------------------------------- */

const char *chempi_text_suggest(const char *word, const char *const *list,
                                size_t count)
{
    size_t len = strlen(word);
    size_t least = len / 3 + 1;
    const char *best = NULL;

    for (size_t i = 0; i < count; i++) {
        size_t d = chempi_edit_distance(word, list[i]);

        if (d == SIZE_MAX)
            continue; /* a long word */
        if (len >= 3 && strncmp(word, list[i], len) == 0)
            d = d < least ? d : least; /* the beginning of a longer word */
        if (d <= least && d < strlen(list[i])) {
            if (d == least && best)
                continue;
            best = list[i];
            least = d;
        }
    }
    return best;
}
