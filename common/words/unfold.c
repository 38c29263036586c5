/* SPDX-License-Identifier: BSD-3-Clause */
/* Names with ranges; see unfold.h. */
#include "common/words/unfold.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#define NUMBER_DIGITS 9 /* so that numbers fit in 32 bits */
#define TEXT_BYTES_MAX 4096u

struct scan {
    const char *at;
    const char *end;
    const char *why;
    size_t name_len; /* of the longest name, so far */
};

/* Of a group's numbers: the wanted one, from 0, and what is found. */
struct pick {
    uint64_t i;
    uint32_t number;
    int width;
};

static int bad(struct scan *s, const char *why)
{
    s->why = why;
    return -EINVAL;
}

static bool take_char(struct scan *s, char c)
{
    const bool is_there = s->at < s->end && *s->at == c;

    s->at += is_there;
    return is_there;
}

static int take_number(struct scan *s, uint32_t *value, int *digits)
{
    uint32_t v = 0;
    int n = 0;

    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++, n++) {
        if (n == NUMBER_DIGITS)
            return bad(s, "a number of at most nine digits");
        v = v * 10 + (uint32_t)(*s->at - '0');
    }
    if (n == 0)
        return bad(s, "a number");
    *value = v;
    *digits = n;
    return 0;
}

/* "7" or "5-7": numbers from *first on, the first and the last of so many
 * digits. */
static int take_run(struct scan *s, uint32_t *first, uint32_t *count,
                    int digits[2])
{
    uint32_t last;
    int rc = take_number(s, first, &digits[0]);

    if (rc)
        return rc;
    last = *first;
    digits[1] = digits[0];
    if (take_char(s, '-'))
        rc = take_number(s, &last, &digits[1]);
    if (rc)
        return rc;
    if (last < *first)
        return bad(s, "a range that ascends");
    if (last - *first >= CHEMPI_UNFOLD_COUNT_MAX)
        return bad(s, "at most 1048576 names");
    *count = last - *first + 1;
    return 0;
}

/* What stands between brackets; the opening one has been read. */
static int take_group(struct scan *s, uint64_t *count, struct pick *pick)
{
    int widest = 0;

    *count = 0;
    do {
        uint32_t first;
        uint32_t more;
        int digits[2];
        const int rc = take_run(s, &first, &more, digits);

        if (rc)
            return rc;
        if (pick->i >= *count && pick->i - *count < more) {
            pick->number = first + (uint32_t)(pick->i - *count);
            pick->width = digits[0];
        }
        *count += more;
        for (int i = 0; i < 2; i++)
            widest = digits[i] > widest ? digits[i] : widest;
    } while (take_char(s, ','));
    if (!take_char(s, ']'))
        return bad(s, "',', '-' or ']'");
    if (*count > CHEMPI_UNFOLD_COUNT_MAX)
        return bad(s, "at most 1048576 names");
    s->name_len += (size_t)widest;
    return 0;
}

/* Text up to the next bracket or the end: how many bytes. */
static size_t skip_text(struct scan *s)
{
    const char *from = s->at;

    while (s->at < s->end && *s->at != '[' && *s->at != ']')
        s->at++;
    s->name_len += (size_t)(s->at - from);
    return (size_t)(s->at - from);
}

static int take_groups(struct scan *s, uint64_t *count)
{
    struct pick none = {.i = UINT64_MAX};
    uint64_t more;
    int rc = 0;

    *count = 1;
    while (!rc) {
        (void)skip_text(s);
        if (s->at == s->end)
            return 0;
        if (!take_char(s, '['))
            return bad(s, "'[' before ']'");
        rc = take_group(s, &more, &none);
        *count *= rc ? 1 : more;
        if (*count > CHEMPI_UNFOLD_COUNT_MAX)
            rc = bad(s, "at most 1048576 names");
    }
    return rc;
}

int chempi_unfold_parse(const char *text, size_t len, struct chempi_unfold *out,
                        const char **why, size_t *at)
{
    struct scan s = {.at = text, .end = text + len};
    uint64_t count = 0;
    int rc;

    if (len > TEXT_BYTES_MAX)
        rc = bad(&s, "a shorter name");
    else if (len == 0)
        rc = bad(&s, "a name");
    else
        rc = take_groups(&s, &count);
    if (!rc && s.name_len >= CHEMPI_UNFOLD_NAME_MAX)
        rc = bad(&s, "names of at most 255 characters");
    if (rc) {
        *why = s.why;
        *at = (size_t)(s.at - text);
        return rc;
    }
    *out = (struct chempi_unfold){
        .text = text, .len = len, .count = (uint32_t)count};
    return 0;
}

void chempi_unfold_name(const struct chempi_unfold *pattern, uint32_t i,
                        char buf[CHEMPI_UNFOLD_NAME_MAX])
{
    struct scan s = {.at = pattern->text, .end = pattern->text + pattern->len};
    uint64_t rest = pattern->count;
    size_t len = 0;

    for (;;) {
        const char *from = s.at;
        const int text_len = (int)skip_text(&s);
        struct scan ahead;
        struct pick pick = {.i = 0};
        uint64_t count;

        len += (size_t)snprintf(buf + len, CHEMPI_UNFOLD_NAME_MAX - len, "%.*s",
                                text_len, from);
        if (!take_char(&s, '['))
            return;
        ahead = s;
        (void)take_group(&ahead, &count, &pick); /* it was parsed before */
        rest /= count;
        pick.i = i / rest;
        i %= (uint32_t)rest;
        (void)take_group(&s, &count, &pick);
        len += (size_t)snprintf(buf + len, CHEMPI_UNFOLD_NAME_MAX - len,
                                "%0*" PRIu32, pick.width, pick.number);
    }
}

size_t chempi_unfold_word(const char *list, size_t len)
{
    size_t at = 0;
    int depth = 0;

    while (at < len && (list[at] != ',' || depth > 0)) {
        depth += (list[at] == '[') - (list[at] == ']');
        at++;
    }
    return at;
}
