/* SPDX-License-Identifier: BSD-3-Clause */
/* What somebody else has written as JSON (RFC 8259); see json.h. */
#include <string.h>

#include "common/words/json.h"
#include "common/words/utf8.h"

struct cursor {
    const char *at;
    const char *end;
};

static bool take_value(struct cursor *c, int depth);

static char next(const struct cursor *c)
{
    return c->at < c->end ? *c->at : '\0';
}

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && *c->at && strchr(" \t\r\n", *c->at))
        c->at++;
}

static bool take(struct cursor *c, char wanted)
{
    skip_blanks(c);
    if (next(c) != wanted)
        return false;
    c->at++;
    return true;
}

static bool take_word(struct cursor *c, const char *word)
{
    const size_t len = strlen(word);

    if ((size_t)(c->end - c->at) < len || memcmp(c->at, word, len) != 0)
        return false;
    c->at += len;
    return true;
}

static bool is_digit(char x)
{
    return x >= '0' && x <= '9';
}

static bool take_digits(struct cursor *c)
{
    const char *first = c->at;

    while (is_digit(next(c)))
        c->at++;
    return c->at > first;
}

static bool take_number(struct cursor *c)
{
    (void)take_word(c, "-");
    if (!take_word(c, "0") && !take_digits(c))
        return false;
    if (take_word(c, ".") && !take_digits(c))
        return false;
    if (!take_word(c, "e") && !take_word(c, "E"))
        return true;
    if (!take_word(c, "+"))
        (void)take_word(c, "-");
    return take_digits(c);
}

static bool take_escape(struct cursor *c)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    const char what = next(c);

    if (!what || !strchr("\"\\/bfnrtu", what))
        return false;
    c->at++;
    for (int i = 0; what == 'u' && i < 4; i++, c->at++)
        if (!next(c) || !strchr(hex, next(c)))
            return false;
    return true;
}

static bool take_string(struct cursor *c)
{
    if (!take(c, '"'))
        return false;
    while (next(c) != '"') {
        const size_t len = chempi_utf8_len((const unsigned char *)c->at,
                                           (size_t)(c->end - c->at));

        if (len == 0 || (unsigned char)*c->at < 0x20)
            return false;
        c->at += len;
        if (c->at[-1] == '\\' && len == 1 && !take_escape(c))
            return false;
    }
    c->at++;
    return true;
}

static bool take_member(struct cursor *c, bool has_name, int depth)
{
    if (has_name && (!take_string(c) || !take(c, ':')))
        return false;
    return take_value(c, depth);
}

/* An object or a list, behind its first bracket. */
static bool take_members(struct cursor *c, char last, int depth)
{
    if (depth == CHEMPI_JSON_DEPTH_MAX)
        return false;
    if (take(c, last))
        return true;
    for (;;) {
        if (!take_member(c, last == '}', depth + 1))
            return false;
        if (!take(c, ','))
            return take(c, last);
    }
}

/* The recursion is CHEMPI_JSON_DEPTH_MAX deep at most. */
static bool take_value(struct cursor *c, int depth)
{
    if (take(c, '{'))
        return take_members(c, '}', depth);
    if (take(c, '['))
        return take_members(c, ']', depth);
    if (next(c) == '"')
        return take_string(c);
    return take_word(c, "true") || take_word(c, "false") ||
           take_word(c, "null") || take_number(c);
}

bool chempi_json_is_value(const char *text, size_t len)
{
    struct cursor c = {.at = text, .end = text + len};

    if (!take_value(&c, 0))
        return false;
    skip_blanks(&c);
    return c.at == c.end;
}
