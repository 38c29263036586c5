/* SPDX-License-Identifier: BSD-3-Clause */
/* Strings between Fortran and C. */
#include "fortran/lib/text.h"

#include <stdlib.h>
#include <string.h>

/* The part of a Fortran string that counts: returns its start. */
static const char *trim(const char *from, size_t *len, bool is_stripped)
{
    size_t n = *len;

    while (n && from[n - 1] == ' ')
        n--;
    while (is_stripped && n && *from == ' ') {
        from++;
        n--;
    }
    *len = n;
    return from;
}

void chempi_text_init(struct chempi_text *text, const char *from, size_t len,
                      bool is_stripped)
{
    from = trim(from, &len, is_stripped);
    text->chars = len < sizeof(text->small) ? text->small : malloc(len + 1);
    if (!text->chars)
        return;
    memcpy(text->chars, from, len);
    text->chars[len] = '\0';
}

void chempi_text_fini(struct chempi_text *text)
{
    if (text->chars != text->small)
        free(text->chars);
}

void chempi_text_out(char *to, size_t len, const char *from)
{
    size_t n = strlen(from);

    if (n > len)
        n = len;
    memcpy(to, from, n);
    memset(to + n, ' ', len - n);
}

static bool is_blank(const char *from, size_t len)
{
    (void)trim(from, &len, false);
    return len == 0;
}

char **chempi_text_list(const char *from, size_t len, size_t step, long count)
{
    size_t n = 0;
    char **list;
    char *chars;

    while (count < 0 ? !is_blank(from + n * step * len, len)
                     : n < (size_t)count)
        n++;
    list = malloc((n + 1) * sizeof(*list) + n * (len + 1));
    if (!list)
        return NULL;
    chars = (char *)(list + n + 1);
    for (size_t i = 0; i < n; i++) {
        size_t part = len;
        const char *start = trim(from + i * step * len, &part, true);

        list[i] = chars;
        memcpy(chars, start, part);
        chars[part] = '\0';
        chars += part + 1;
    }
    list[n] = NULL;
    return list;
}
