/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON; see json.h. */
#include "common/words/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/words/utf8.h"

static void put_text(FILE *file, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char *end = at + strlen(text);

    (void)fputc('"', file);
    while (at < end) {
        const size_t len = chempi_utf8_len(at, (size_t)(end - at));
        const bool is_c1 = len == 2 && at[0] == 0xc2 && at[1] < 0xa0;

        if (len == 0)
            (void)fputs("\\ufffd", file);
        else if (*at == '"' || *at == '\\')
            (void)fprintf(file, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            (void)fprintf(file, "\\u%04x", *at);
        else if (is_c1) /* terminals obey these, too */
            (void)fprintf(file, "\\u%04x", at[1]);
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
    if (!isfinite(x)) {
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

void chempi_json_limit(struct chempi_json *j, const char *name, uint64_t n)
{
    if (n == UINT64_MAX)
        chempi_json_text(j, name, NULL);
    else
        chempi_json_number(j, name, n);
}

void chempi_json_texts(struct chempi_json *j, const char *name,
                       const char *const *texts, size_t count)
{
    chempi_json_open_list(j, name);
    for (size_t i = 0; i < count; i++)
        chempi_json_text(j, NULL, texts[i]);
    chempi_json_close_list(j);
}

void chempi_json_embed(struct chempi_json *j, const char *name,
                       const char *text, size_t len)
{
    begin(j, name);
    (void)fwrite(text, 1, len, j->file);
}

void chempi_json_end(struct chempi_json *j)
{
    (void)fputc('\n', j->file);
    j->has_some = false;
}
