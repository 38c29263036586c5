/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON; see json.h. */
#include "common/base/json.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* Bytes of the character at text, which is well-formed UTF-8; 0: it is not. */
static size_t character(const unsigned char *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t len = text[0] < 0x80   ? 1
                       : text[0] < 0xc0 ? 0
                       : text[0] < 0xe0 ? 2
                       : text[0] < 0xf0 ? 3
                       : text[0] < 0xf8 ? 4
                                        : 0;
    uint32_t code = len > 1 ? text[0] & (0x7fu >> len) : text[0];

    for (size_t i = 1; i < len; i++) {
        if ((text[i] & 0xc0) != 0x80) /* the final zero, too */
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    return len && code >= least[len] && code <= 0x10ffff &&
                   (code < 0xd800 || code > 0xdfff)
               ? len
               : 0;
}

static void put_text(FILE *file, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    (void)fputc('"', file);
    while (*at) {
        const size_t len = character(at);

        if (len == 0)
            (void)fputs("\\ufffd", file);
        else if (*at == '"' || *at == '\\')
            (void)fprintf(file, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            (void)fprintf(file, "\\u%04x", *at);
        else
            (void)fwrite(at, 1, len, file);
        at += len ? len : 1;
    }
    (void)fputc('"', file);
}

/* What stands before a value. */
static void begin(struct chempi_json *j, const char *name)
{
    if (j->has_some)
        (void)fputs(", ", j->file);
    j->has_some = true;
    if (!name)
        return;
    put_text(j->file, name);
    (void)fputs(": ", j->file);
}

void chempi_json_open(struct chempi_json *j, const char *name)
{
    begin(j, name);
    (void)fputc('{', j->file);
    j->has_some = false;
}

void chempi_json_close(struct chempi_json *j)
{
    (void)fputc('}', j->file);
    j->has_some = true;
}

void chempi_json_open_list(struct chempi_json *j, const char *name)
{
    begin(j, name);
    (void)fputc('[', j->file);
    j->has_some = false;
}

void chempi_json_close_list(struct chempi_json *j)
{
    (void)fputc(']', j->file);
    j->has_some = true;
}

void chempi_json_text(struct chempi_json *j, const char *name, const char *text)
{
    begin(j, name);
    if (text)
        put_text(j->file, text);
    else
        (void)fputs("null", j->file);
}

void chempi_json_number(struct chempi_json *j, const char *name, uint64_t n)
{
    begin(j, name);
    (void)fprintf(j->file, "%" PRIu64, n);
}

void chempi_json_decimal(struct chempi_json *j, const char *name, uint64_t n,
                         int digits)
{
    uint64_t unit = 1;

    for (int i = 0; i < digits; i++)
        unit *= 10;
    begin(j, name);
    (void)fprintf(j->file, "%" PRIu64 ".%0*" PRIu64, n / unit, digits,
                  n % unit);
}

void chempi_json_real(struct chempi_json *j, const char *name, double x)
{
    char text[64];

    begin(j, name);
    if (!(x - x == 0.0)) { /* no number is left of those without end */
        (void)fputs("null", j->file);
        return;
    }
    (void)snprintf(text, sizeof(text), "%.9g", x);
    for (const char *at = text; *at; at++) {
        const size_t point = strcspn(at, "0123456789+-e");

        if (point) /* the locale's, of any number of bytes */
            (void)fputc('.', j->file);
        at += point;
        (void)fputc(*at, j->file);
    }
}

void chempi_json_bool(struct chempi_json *j, const char *name, bool is_true)
{
    begin(j, name);
    (void)fputs(is_true ? "true" : "false", j->file);
}

void chempi_json_end(struct chempi_json *j)
{
    (void)fputc('\n', j->file);
    j->has_some = false;
}
