/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of programs; see configfile.h. */
#include "chempid/options/configfile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct reader {
    const char *path;
    struct chempi_err *err;
    char *at;        /* what is left of the text, which ends with a zero */
    uint32_t number; /* of the line at hand */
    bool is_over;    /* the line at hand has been read */
};

static int wrong(const struct reader *r, const char *what)
{
    return chempi_err_set(r->err, -EINVAL, "%s:%u: %s", r->path,
                          (unsigned)r->number, what);
}

/* ---- the text ------------------------------------------------------------ */

static size_t count_lines(const char *text, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += text[i] == '\n';
    return n;
}

/* The whole file with a zero behind it. */
static int read_text(const char *path, char *text, size_t *len,
                     struct chempi_err *err)
{
    FILE *file = fopen(path, "re");
    const char *zero;
    int rc = 0;

    if (!file)
        return chempi_err_set(err, -EINVAL, "%s: %s", path,
                              chempi_err_name(errno));
    *len = fread(text, 1, CHEMPI_CONFIGFILE_BYTES_MAX + 1, file);
    zero = memchr(text, '\0', *len);
    if (ferror(file))
        rc = chempi_err_set(err, -EINVAL, "%s: it cannot be read: %s", path,
                            chempi_err_name(errno));
    else if (*len > CHEMPI_CONFIGFILE_BYTES_MAX)
        rc = chempi_err_set(err, -EINVAL, "%s: it has more than %u bytes", path,
                            CHEMPI_CONFIGFILE_BYTES_MAX);
    else if (zero)
        rc =
            chempi_err_set(err, -EINVAL, "%s:%zu: a zero byte: this is no text",
                           path, count_lines(text, (size_t)(zero - text)) + 1);
    (void)fclose(file); /* read only */
    return rc;
}

/* ---- words --------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* A backslash before the end of the line. */
static bool skip_continuation(struct reader *r)
{
    size_t len = 1;
    char end;

    if (r->at[0] != '\\')
        return false;
    len += r->at[1] == '\r' && r->at[2] == '\n';
    end = r->at[len];
    if (end != '\n' && end != '\0')
        return false;
    r->number += end == '\n';
    r->at += len + (end == '\n');
    return true;
}

static void skip_blanks(struct reader *r)
{
    while (skip_continuation(r) || is_blank(*r->at))
        r->at += is_blank(*r->at);
}

/* Behind a backslash that ends no line. */
static int take_escaped(struct reader *r, char quote, char **out)
{
    const char c = *r->at;

    if (!quote && is_blank(c)) {
        const size_t blanks = strspn(r->at, " \t\r");

        if (r->at[blanks] == '\n' || r->at[blanks] == '\0')
            return wrong(r, "blanks follow the backslash at the end of the "
                            "line, which joins it with no other one then");
    }
    if (quote && !strchr("\"\\$`", c))
        *(*out)++ = '\\';
    *(*out)++ = c;
    r->at++;
    return 0;
}

/* Between single quotes both stand for themselves, and the word goes on. */
static bool keep_continuation(struct reader *r, char **out)
{
    const uint32_t number = r->number;

    if (!skip_continuation(r))
        return false;
    *(*out)++ = '\\';
    if (r->number > number)
        *(*out)++ = '\n';
    return true;
}

/* The rest of a word, unquoted in place, up to its end. */
static int take_rest(struct reader *r, char **out)
{
    char quote = '\0';
    int rc = 0;

    while (!rc) {
        const char c = *r->at;

        if (quote == '\'' ? keep_continuation(r, out) : skip_continuation(r))
            continue;
        if (c == '\0' || c == '\n' || (!quote && is_blank(c)))
            break;
        r->at++;
        if (c == quote)
            quote = '\0';
        else if (!quote && (c == '"' || c == '\''))
            quote = c;
        else if (c == '\\' && quote != '\'')
            rc = take_escaped(r, quote, out);
        else
            *(*out)++ = c;
    }
    if (!rc && quote)
        rc = wrong(r, quote == '"' ? "a quote (\") is not closed"
                                   : "a quote (') is not closed");
    return rc;
}

/* The next word of the line; NULL at its end. */
static int take_word(struct reader *r, char **word)
{
    char *out;
    char end;
    int rc;

    skip_blanks(r);
    out = r->at;
    *word = *r->at == '\n' || *r->at == '\0' ? NULL : out;
    rc = take_rest(r, &out);
    if (rc)
        return rc;
    end = *r->at;
    r->at += end != '\0';
    r->number += end == '\n';
    r->is_over = end == '\n' || end == '\0';
    *out = '\0'; /* the end was noted before: the word may reach up to it */
    return 0;
}

/* ---- lines --------------------------------------------------------------- */

/* The words of a line go to *words, which stands behind their NULL then; it
 * stays where it is when there is none. */
static int take_line(struct reader *r, char ***words)
{
    char **const first = *words;
    char *word;
    int rc = 0;

    r->is_over = false;
    r->at += strspn(r->at, " \t\r");
    if (*r->at == '#')
        r->at += strcspn(r->at, "\n");
    while (!rc && !r->is_over) {
        rc = take_word(r, &word);
        if (!rc && word)
            *(*words)++ = word;
    }
    if (*words > first)
        *(*words)++ = NULL;
    return rc;
}

static int take_lines(struct reader *r, char **words,
                      struct chempi_configfile *out)
{
    int rc = 0;

    while (!rc && *r->at) {
        struct chempi_configfile_line *line = &out->lines[out->count];
        char **const first = words;

        *line = (struct chempi_configfile_line){first, r->number};
        rc = take_line(r, &words);
        out->count += words > first;
    }
    if (!rc && out->count == 0)
        rc = chempi_err_set(r->err, -EINVAL, "%s: no program to run", r->path);
    return rc;
}

int chempi_configfile_read(struct chempi_configfile *out,
                           struct chempi_pool *pool, const char *path,
                           struct chempi_err *err)
{
    char *text = chempi_pool_alloc(pool, CHEMPI_CONFIGFILE_BYTES_MAX + 2);
    struct reader r = {.path = path, .err = err, .at = text, .number = 1};
    struct chempi_configfile file = {0};
    char **words;
    size_t len = 0;
    int rc;

    if (!text)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    rc = read_text(path, text, &len, err);
    if (rc)
        return rc;
    /* A word has a character and one behind it, a line's end or the text's
     * among them: there is room for all words, and a NULL for each line. */
    words = chempi_pool_array(pool, len + 2, sizeof(*words));
    file.lines = chempi_pool_array(pool, count_lines(text, len) + 1,
                                   sizeof(*file.lines));
    if (!words || !file.lines)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    rc = take_lines(&r, words, &file);
    if (!rc)
        *out = file;
    return rc;
}

int chempi_configfile_words(char ***out, struct chempi_pool *pool,
                            const char *option, const char *line,
                            struct chempi_err *err)
{
    char *text = chempi_pool_str(pool, line);
    char **words = chempi_pool_array(pool, strlen(line) + 2, sizeof(*words));
    char **at = words;
    struct reader r = {.path = option, .err = err, .at = text, .number = 1};
    int rc;

    if (!text || !words)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    rc = take_line(&r, &at);
    if (!rc && (at == words || *r.at))
        rc = chempi_err_set(err, -EINVAL, "%s: expected words of one line",
                            option);
    if (!rc)
        *out = words;
    return rc;
}
